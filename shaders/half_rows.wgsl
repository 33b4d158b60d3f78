// half[m, k] = x[m, k] * 2^-e and row_scale[m] = 2^e, e chosen so that the largest of a row lies in [TOP / 2, TOP): halves
// neither overflow nor lose small rows. Columns from k to the padded width are 0.
struct Params { k: u32, width: u32, m: u32, top: f32 }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = group_index(wg, groups);
    if (row >= p.m) { return; }
    var most = 0.0;
    for (var k = lane * 4u; k < p.k; k += WG * 4u) {
        let v = abs(x4(row * p.k, k));
        most = max(most, max(max(v.x, v.y), max(v.z, v.w)));
    }
    most = reduce_max(most, lane);
    // The exponent bits of the largest are a power of two, so that scaling is exact.
    var scale = 1.0;
    if (most > 1e-34 && most <= 3.4028234e38) { scale = bitcast<f32>(bitcast<u32>(most) & 0x7f800000u) * (2.0 / p.top); }
    for (var k = lane * 4u; k < p.width; k += WG * 4u) { half[(row * p.width + k) / 4u] = vec4<f16>(x4(row * p.k, k) / scale); }
    if (lane == 0u) { row_scale[row] = scale; }
}
