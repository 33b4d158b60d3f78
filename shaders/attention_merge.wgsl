// out[row] = sum_i exp(max_i - max) sums[row, i] / sum_i exp(max_i - max) weight_i over the parts i of a row. A workgroup takes a
// row: TEAMS invocations share each four of its columns, and take every TEAMS-th part.
struct Params { rows: u32, splits: u32 }
const TEAMS: u32 = WG / WIDE;
// Parts that are loaded at once.
const AT_ONCE: u32 = 4u;
const LOWEST: f32 = -3.4028234e38;

var<workgroup> tops: array<f32, TEAMS>;
var<workgroup> weights: array<f32, TEAMS>;
var<workgroup> sums: array<vec4<f32>, WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = group_index(wg, groups);
    if (row >= p.rows) { return; }
    let team = lane / WIDE;
    let d = min(lane % WIDE, V4 - 1u);
    let last = p.splits - 1u;
    var top = LOWEST;
    var weight = 0.0;
    var sum = vec4<f32>(0.0);
    for (var i0 = team; i0 < p.splits; i0 += TEAMS * AT_ONCE) {
        var stat: array<vec4<f32>, AT_ONCE>;
        var part: array<vec4<f32>, AT_ONCE>;
        for (var j = 0u; j < AT_ONCE; j++) { // unroll
            let at = (row * p.splits + min(i0 + j * TEAMS, last)) * (V4 + 1u);
            stat[j] = parts[at + V4];
            part[j] = parts[at + d];
        }
        for (var j = 0u; j < AT_ONCE; j++) { // unroll
            // A part without keys weighs exactly 0; a NaN is passed on (`!=` would be false for it).
            if (i0 + j * TEAMS < p.splits && !(stat[j].y == 0.0)) {
                let best = max(top, stat[j].x);
                let old = exp(top - best);
                let e = exp(stat[j].x - best);
                top = best;
                weight = weight * old + e * stat[j].y;
                sum = sum * old + e * part[j];
            }
        }
    }
    if (lane % WIDE == 0u) {
        tops[team] = top;
        weights[team] = weight;
    }
    sums[lane] = sum;
    workgroupBarrier();
    if (lane >= V4) { return; }
    var best = LOWEST;
    for (var i = 0u; i < TEAMS; i++) { best = max(best, tops[i]); }
    var all = vec4<f32>(0.0);
    var total = 0.0;
    for (var i = 0u; i < TEAMS; i++) {
        let e = exp(tops[i] - best);
        total += e * weights[i];
        all += e * sums[i * WIDE + lane];
    }
    row_out(row, lane, all / total);
}
