// out[row] = sum_i exp(max_i - max) sums[row, i] / sum_i exp(max_i - max) weight_i over the parts i of a row.
struct Params { quads: u32, splits: u32, d4: u32 }
// Parts that are loaded at once.
const AT_ONCE: u32 = 8u;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let item = group_index(wg, groups) * WG + lane;
    if (item >= p.quads) { return; }
    let row = item / p.d4;
    let last = p.splits - 1u;
    var top = -3.4028234e38;
    for (var i = 0u; i < p.splits; i += AT_ONCE) {
        for (var j = 0u; j < AT_ONCE; j++) { top = max(top, stats[row * p.splits + min(i + j, last)].x); } // unroll
    }
    var sum = vec4<f32>(0.0);
    var weight = 0.0;
    for (var i = 0u; i < p.splits; i += AT_ONCE) {
        var part: array<vec2<f32>, AT_ONCE>;
        var sums_of: array<vec4<f32>, AT_ONCE>;
        for (var j = 0u; j < AT_ONCE; j++) { // unroll
            let at = row * p.splits + min(i + j, last);
            part[j] = stats[at];
            sums_of[j] = sums[at * p.d4 + item % p.d4];
        }
        for (var j = 0u; j < AT_ONCE; j++) { // unroll
            // A part without keys weighs exactly 0; a NaN is passed on (`!=` would be false for it).
            if (i + j < p.splits && !(part[j].y == 0.0)) {
                let w = exp(part[j].x - top);
                weight += w * part[j].y;
                sum += w * sums_of[j];
            }
        }
    }
    store4_out(item, sum / weight);
}
