// out[s, h] = sum_c softmax_c(q[s, h] . k[c]) v[c] over c <= pos + s, by cooperative matrices: ROWS rows (s, h) of one head of the
// cache per subgroup, SUBGROUPS of them per workgroup, BLOCK keys at a time. Scores are in powers of two. Weights are taken against a
// maximum that moves only when a row outgrows it by GROWTH, since only then the sums must leave their matrices.
struct Params {
    seq: u32, heads_q: u32, heads_kv: u32, capacity: u32,
    pos_slot: u32, pos_base: i32, scale: f32, rows: u32, keys: u32,
}
const FRAGMENT: u32 = FRAG * FRAG / 4u;
const MI: u32 = ROWS / FRAG;
const DI: u32 = D / FRAG;
const CI: u32 = BLOCK / FRAG;
// vec4s from row to row; one or two more than a row has, so that rows lie in different banks.
const S_STRIDE: u32 = BLOCK / 4u + 1u;
const P_STRIDE: u32 = BLOCK / 4u + 2u;
// Invocations of a row, and the fours of keys that each of them has.
const SHARE: u32 = LANES / ROWS;
const FOURS: u32 = BLOCK / 4u / SHARE;
const GROWTH: f32 = 8.0;
const LOWEST: f32 = -3.0e38;

var<workgroup> scores: array<vec4<f32>, SUBGROUPS * ROWS * S_STRIDE>;
var<workgroup> weights: array<vec4<f16>, SUBGROUPS * ROWS * P_STRIDE>;
var<workgroup> factors: array<f32, SUBGROUPS * ROWS>;
// Matrices are loaded from multiples of 16 bytes: everything in shared memory takes a multiple of them.
var<workgroup> outgrown: vec4<u32>;

@compute @workgroup_size(SUBGROUPS * LANES)
fn main(
    @builtin(workgroup_id) wg: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    // Rows of late positions see the most keys: they go first. Workgroups beyond the last compute it once more.
    let tiles = p.rows / (SUBGROUPS * ROWS);
    let job = min(wg.x + wg.y * groups.x, tiles * p.heads_kv - 1u);
    let kv = job % p.heads_kv;
    let first = (tiles - 1u - job / p.heads_kv) * SUBGROUPS * ROWS;
    let row0 = first + subgroup * ROWS;
    let scores0 = subgroup * ROWS * S_STRIDE;
    let weights0 = subgroup * ROWS * P_STRIDE;
    let g = p.heads_q / p.heads_kv;
    let pos = u32(live(p.pos_slot) + p.pos_base);
    let s_last = min((first + SUBGROUPS * ROWS - 1u) / g, p.seq - 1u);
    let end = min(pos + s_last + 1u, p.capacity);
    let row = lane % ROWS;
    let part = lane / ROWS;
    let seen = min(pos + min((row0 + row) / g, p.seq - 1u) + 1u, p.capacity);
    let q_unit_row = q_unit[kv * p.rows + row0 + row];
    // The largest unit of the values: weights of smaller ones shrink by the difference.
    var top = 0.0;
    for (var c = lane; c < end; c += LANES) { top = max(top, kv_unit[kv * p.keys + c].y); }
    top = subgroupMax(top);

    var q: array<MatA, MI * DI>;
    for (var i = 0u; i < MI; i++) { // unroll
        for (var d = 0u; d < DI; d++) { // unroll
            q[i * DI + d] = coopLoadT<MatA>(&q_half[(((kv * p.rows + row0) / FRAG + i) * DI + d) * FRAGMENT], FRAG / 4u);
        }
    }
    var sums: array<Acc, MI * DI>;
    var nothing: Acc;
    var dots: array<Acc, MI * CI>;
    var most = LOWEST;
    var total = 0.0;
    let s_stride = S_STRIDE;
    if (index == 0u) { outgrown = vec4<u32>(); }
    for (var c0 = 0u; c0 < end; c0 += BLOCK) {
        let key0 = (kv * p.keys + c0) / FRAG;
        for (var c = 0u; c < CI; c++) { // unroll
            for (var d = 0u; d < DI; d++) { // unroll
                let k = coopLoad<MatB>(&k_half[((key0 + c) * DI + d) * FRAGMENT], FRAG / 4u);
                for (var i = 0u; i < MI; i++) { // unroll
                    if (d == 0u) {
                        dots[i * CI + c] = coopMultiplyAdd(q[i * DI], k, nothing);
                    } else {
                        dots[i * CI + c] = coopMultiplyAdd(q[i * DI + d], k, dots[i * CI + c]);
                    }
                }
            }
        }
        for (var i = 0u; i < MI; i++) { // unroll
            for (var c = 0u; c < CI; c++) { // unroll
                let at = scores0 + i * FRAG * S_STRIDE + c * (FRAG / 4u);
                let block = dots[i * CI + c];
                coopStoreT(block, &scores[at], s_stride);
            }
        }
        workgroupBarrier();
        var mine: array<vec4<f32>, FOURS>;
        var best = LOWEST;
        for (var f = 0u; f < FOURS; f++) { // unroll
            let c = c0 + (part * FOURS + f) * 4u;
            let at = kv * p.keys + c;
            let unit = vec4<f32>(kv_unit[at].x, kv_unit[at + 1u].x, kv_unit[at + 2u].x, kv_unit[at + 3u].x);
            let s = scores[scores0 + row * S_STRIDE + part * FOURS + f] * (unit * q_unit_row);
            let kept = vec4<u32>(c, c + 1u, c + 2u, c + 3u) < vec4<u32>(seen);
            mine[f] = select(vec4<f32>(LOWEST), s, kept);
            best = max(best, max(max(mine[f].x, mine[f].y), max(mine[f].z, mine[f].w)));
        }
        if (SHARE == 2u) { best = max(best, subgroupShuffleXor(best, ROWS)); }
        if (best > most + GROWTH) { outgrown.x = 1u; }
        if (workgroupUniformLoad(&outgrown).x != 0u) {
            let new_most = max(most, best);
            let shrink = exp2(most - new_most);
            most = new_most;
            total *= shrink;
            // As many columns of the sums at a time as the scores have.
            for (var b = 0u; b < DI / CI; b++) { // unroll
                for (var i = 0u; i < MI; i++) { // unroll
                    for (var c = 0u; c < CI; c++) { // unroll
                        let at = scores0 + i * FRAG * S_STRIDE + c * (FRAG / 4u);
                        let block = sums[i * DI + b * CI + c];
                        coopStoreT(block, &scores[at], s_stride);
                    }
                }
                workgroupBarrier();
                for (var f = 0u; f < FOURS; f++) { scores[scores0 + row * S_STRIDE + part * FOURS + f] *= shrink; } // unroll
                workgroupBarrier();
                for (var i = 0u; i < MI; i++) { // unroll
                    for (var c = 0u; c < CI; c++) { // unroll
                        sums[i * DI + b * CI + c] = coopLoadT<Acc>(&scores[scores0 + i * FRAG * S_STRIDE + c * (FRAG / 4u)], S_STRIDE);
                    }
                }
                workgroupBarrier();
            }
            if (index == 0u) { outgrown = vec4<u32>(); }
        }
        for (var f = 0u; f < FOURS; f++) { // unroll
            let at = kv * p.keys + c0 + (part * FOURS + f) * 4u;
            // Unseen keys hold exactly LOWEST; a NaN that a row does see stays NaN.
            let w = select(exp2(mine[f] - most), vec4<f32>(0.0), mine[f] == vec4<f32>(LOWEST));
            total += w.x + w.y + w.z + w.w;
            let unit = vec4<f32>(kv_unit[at].y, kv_unit[at + 1u].y, kv_unit[at + 2u].y, kv_unit[at + 3u].y);
            weights[weights0 + row * P_STRIDE + part * FOURS + f] = vec4<f16>(select(w * (unit / top), vec4<f32>(0.0), w == vec4<f32>(0.0)));
        }
        workgroupBarrier();
        for (var c = 0u; c < CI; c++) { // unroll
            var w: array<MatA, MI>;
            for (var i = 0u; i < MI; i++) { w[i] = coopLoadT<MatA>(&weights[weights0 + i * FRAG * P_STRIDE + c * (FRAG / 4u)], P_STRIDE); } // unroll
            for (var d = 0u; d < DI; d++) { // unroll
                let v = coopLoadT<MatB>(&v_half[((key0 + c) * DI + d) * FRAGMENT], FRAG / 4u);
                for (var i = 0u; i < MI; i++) { sums[i * DI + d] = coopMultiplyAdd(w[i], v, sums[i * DI + d]); } // unroll
            }
        }
    }
    if (SHARE == 2u) { total += subgroupShuffleXor(total, ROWS); }
    if (part == 0u) { factors[subgroup * ROWS + row] = top / total; }
    workgroupBarrier();
    for (var b = 0u; b < DI / CI; b++) { // unroll
        for (var i = 0u; i < MI; i++) { // unroll
            for (var c = 0u; c < CI; c++) { // unroll
                let at = scores0 + i * FRAG * S_STRIDE + c * (FRAG / 4u);
                let block = sums[i * DI + b * CI + c];
                coopStoreT(block, &scores[at], s_stride);
            }
        }
        workgroupBarrier();
        for (var i = lane; i < ROWS * BLOCK / 4u; i += LANES) {
            let r = i / (BLOCK / 4u);
            let at_row = row0 + r;
            let quad = b * (BLOCK / 4u) + i % (BLOCK / 4u);
            if (at_row / g < p.seq) {
                let at = (at_row / g) * p.heads_q + kv * g + at_row % g;
                store4_out(at * (D / 4u) + quad, scores[scores0 + r * S_STRIDE + i % (BLOCK / 4u)] * factors[subgroup * ROWS + r]);
            }
        }
        workgroupBarrier();
    }
}
