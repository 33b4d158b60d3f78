// out[m, q] = four bytes clamp(round(x / row_scale) + row_zero, -128, 127) of row m; those beyond k are of no account.
struct Params { words: u32, quads: u32, k: u32 }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = group_index(wg, groups) * WG + lane;
    if (i >= p.words) { return; }
    let m = i / p.quads;
    let x = round(x4(m * p.k, i % p.quads * 4u) * (1.0 / load_row_scales(m))) + f32(load_row_zeros(m));
    out[i] = pack4xI8(vec4<i32>(clamp(x, vec4<f32>(-128.0), vec4<f32>(127.0))));
}
