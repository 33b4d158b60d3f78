// out[i] = x[at(i) + stride * index at i]: an index below 0 counts from the end, one outside is clamped. Of a table that is
// bound in parts, this is the part of `held` rows from `first` on; rows of other parts are left alone.
struct Params {
    count: u32, rank: u32, stride: u32, extent: i32,
    first: u32, held: u32, unused_a: u32, unused_b: u32,
    sizes: array<vec4<u32>, 2>,
    strides: array<array<vec4<u32>, 2>, 2>,
}

fn row(i: u32) -> u32 {
    let n = load_index(at(i, 1u));
    return u32(clamp(select(n, n + p.extent, n < 0), 0, p.extent - 1)) - p.first;
}

fn source(i: u32) -> u32 { return at(i, 0u) + row(i) * p.stride; }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = group_index(wg, groups) * WG + lane;
    if (i >= p.count || row(i) >= p.held) { return; }
    out[i] = cell(i);
}
