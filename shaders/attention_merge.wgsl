// out[row] = sum_i exp(max_i - max) sums[row, i] / sum_i exp(max_i - max) weight_i over the parts i of a row.
struct Params { quads: u32, splits: u32, d4: u32 }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let item = group_index(wg, groups) * WG + lane;
    if (item >= p.quads) { return; }
    let row = item / p.d4;
    var top = -3.0e38;
    for (var i = 0u; i < p.splits; i++) { top = max(top, stats[row * p.splits + i].x); }
    var sum = vec4<f32>(0.0);
    var weight = 0.0;
    for (var i = 0u; i < p.splits; i++) {
        let part = stats[row * p.splits + i];
        if (part.y > 0.0) {
            let w = exp(part.x - top);
            weight += w * part.y;
            sum += w * sums[(row * p.splits + i) * p.d4 + item % p.d4];
        }
    }
    store4_out(item, sum / weight);
}
