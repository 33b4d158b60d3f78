// out[n, k / 2] = two codes clamp(round(x[n, k] / scales[k / group, n]), -8, 7) + 8, even k in the low nibble; 8 where the scale
// is 0, nothing beyond the last k.
struct Params { total: u32, k: u32, group: u32, width: u32 }

fn code(n: u32, k: u32) -> i32 {
    if (k >= p.k) { return 0; }
    let scale = load_scales(k / p.group * p.width + n);
    if (scale == 0.0) { return 8; }
    return i32(clamp(round(load_x(n * p.k + k) / scale), -8.0, 7.0)) + 8;
}

fn codes(at: u32) -> i32 {
    let i = min(at, p.total - 1u);
    let row = (p.k + 1u) / 2u;
    let k = i % row * 2u;
    return code(i / row, k) | (code(i / row, k + 1u) << 4u);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = 4u * (group_index(wg, groups) * WG + lane);
    if (i >= p.total) { return; }
    store4_out(i / 4u, vec4<i32>(codes(i), codes(i + 1u), codes(i + 2u), codes(i + 3u)));
}
