// As embedding_q4, for rows and groups of any length, with zero points: out[t, d] = (nibble - 8 - zero) * scale, four of all
// elements of the result per invocation.
struct Params { count: u32, width: u32, groups: u32, group: u32, rows: i32, total: u32 }

fn element(place: u32) -> f32 {
    let i = min(place, p.total - 1u);
    let row = u32(clamp(load_index(i / p.width), 0, p.rows - 1));
    let d = i % p.width;
    let at = row * (p.width / 2u) + d / 2u;
    let byte = w[at >> 2u] >> (8u * (at & 3u));
    let nibble = select(byte >> 4u, byte, (d % 2u == 0u) == LOW_FIRST) & 15u;
    let g = row * p.groups + d / p.group;
    return (f32(nibble) - 8.0 - zero(g)) * load_scales(g);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = group_index(wg, groups) * WG + lane;
    if (i >= p.count) { return; }
    store4_out(i, vec4<f32>(element(4u * i), element(4u * i + 1u), element(4u * i + 2u), element(4u * i + 3u)));
}
