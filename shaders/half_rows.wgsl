// half[m, k] = x[m, k] * factor / row_scale[m] in fragments of FRAG x FRAG, row by row in a fragment, fragments of one row of
// them side by side; row_scale is a power of two. It is 1 where the largest of a row lies in [low, high), so that halves
// neither overflow nor lose bits; other rows are brought to `unit`. Rows from m on, and columns from k on, are 0.
struct Params { k: u32, width: u32, m: u32, rows: u32, low: f32, high: f32, unit: f32, factor: f32 }

fn place(row: u32, k: u32) -> u32 {
    return (row / FRAG * (p.width / FRAG) + k / FRAG) * (FRAG * FRAG / 4u) + row % FRAG * (FRAG / 4u) + k % FRAG / 4u;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = group_index(wg, groups);
    if (row >= p.rows) { return; }
    if (row >= p.m) {
        for (var k = lane * 4u; k < p.width; k += WG * 4u) { half[place(row, k)] = vec4<f16>(); }
        return;
    }
    var most = 0.0;
    for (var k = lane * 4u; k < p.k; k += WG * 4u) {
        let v = abs(x4(row * p.k, k));
        most = max(most, max(max(v.x, v.y), max(v.z, v.w)));
    }
    most = reduce_max(most, lane);
    // The exponent bits of the largest are a power of two, so that scaling is exact.
    var scale = 1.0;
    if ((most < p.low || most >= p.high) && most > 1e-34 && most <= 3.4028234e38) {
        scale = bitcast<f32>(min(bitcast<u32>(most) & 0x7f800000u, 0x7e800000u)) * p.unit;
    }
    for (var k = lane * 4u; k < p.width; k += WG * 4u) { half[place(row, k)] = vec4<f16>(x4(row * p.k, k) * p.factor / scale); }
    if (lane == 0u) { row_scale[row] = scale; }
}
