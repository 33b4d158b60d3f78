// out[i] = clamp(round(numbers at i / scale) + zero, -128, 127): `numbers` gives four of them from the bytes of operands a and b.
struct Params {
    total: u32, rank: u32, scale_a: f32, zero_a: i32,
    scale_b: f32, zero_b: i32, alpha: f32, inverse: f32,
    out_zero: f32, nothing: f32, unused_a: u32, unused_b: u32,
    sizes: array<vec4<u32>, 2>,
    strides: array<array<vec4<u32>, 2>, 1>,
}

// A product that is rounded before it is added to something, though compilers contract: ties shall fall as in PyTorch. What is
// added is 0, which the text must not say.
fn scaled(v: vec4<f32>, scale: f32) -> vec4<f32> { return fma(v, vec4<f32>(scale), vec4<f32>(p.nothing)); }
fn number(bytes: vec4<i32>, scale: f32, zero: i32) -> vec4<f32> { return scaled(vec4<f32>(bytes - vec4<i32>(zero)), scale); }
fn shuffled(i: u32) -> i32 { return load_a(at(min(i, p.total - 1u), 0u)); }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let q = group_index(wg, groups) * WG + lane;
    if (4u * q >= p.total) { return; }
    let rounded = round(numbers(q) * p.inverse) + p.out_zero;
    store4_out(q, vec4<i32>(clamp(rounded, vec4<f32>(-128.0), vec4<f32>(127.0))));
}
