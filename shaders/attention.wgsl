// out[s, h] = sum_c softmax_c(scale * q[s, h] . k[c] + mask[s, c]) v[c] over the keys c that row s sees, one pass with a running
// maximum. A team is what shares its keys: `group` query heads on one head of the keys. A workgroup takes BQ rows (s, h) of a
// team and, of the keys, one of SPLITS parts. Tensors are counted in rows of a head; `strides` are those of the teams in
// q, k, v, out and, in elements, the mask.
struct Params {
    teams: u32, group: u32, seq: u32, keys: u32,
    pos_slot: u32, pos_base: i32, scale: f32, tiles: u32,
    split_min: u32, q_step: u32, key_step: u32, mask_row: u32,
    mask_key: u32, rank: u32,
    sizes: array<vec4<u32>, 2>,
    strides: array<array<vec4<u32>, 2>, 5>,
}

const ITEMS: u32 = (BQ * V4 + WG - 1u) / WG;
const LOWEST: f32 = -3.4028234e38;
// Fours of a key that are loaded at once: 4, 2 or 1; and fours of values.
const AT_ONCE: u32 = 4u - 3u * (D4 % 2u) - 2u * (D4 / 2u % 2u) * (1u - D4 % 2u);
const VALUES: u32 = 8u;

var<workgroup> scores: array<array<f32, WG>, BQ>;
var<workgroup> row_max: array<f32, BQ>;
var<workgroup> row_sum: array<f32, BQ>;
var<workgroup> row_scale: array<f32, BQ>;
var<workgroup> partial: array<f32, WG>;

fn reduce_rows_max(lane: u32) {
    let team = WG / BQ;
    let row = lane / team;
    var m = LOWEST;
    for (var c = lane % team; c < WG; c += team) { m = max(m, scores[row][c]); }
    partial[lane] = m;
    workgroupBarrier();
    if (lane < BQ) {
        var best = row_max[lane];
        for (var i = 0u; i < team; i++) { best = max(best, partial[lane * team + i]); }
        row_scale[lane] = exp(row_max[lane] - best);
        row_max[lane] = best;
    }
    workgroupBarrier();
}

fn reduce_rows_sum(lane: u32) {
    let team = WG / BQ;
    let row = lane / team;
    var sum = 0.0;
    for (var c = lane % team; c < WG; c += team) { sum += scores[row][c]; }
    partial[lane] = sum;
    workgroupBarrier();
    if (lane < BQ) {
        var total = row_sum[lane] * row_scale[lane];
        for (var i = 0u; i < team; i++) { total += partial[lane * team + i]; }
        row_sum[lane] = total;
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = group_index(wg, groups);
    let split = index % SPLITS;
    let tile = (index / SPLITS) % p.tiles;
    let team = index / (SPLITS * p.tiles);
    if (team >= p.teams) { return; }
    let q0 = at(team, 0u);
    let k0 = at(team, 1u);
    let v0 = at(team, 2u);
    let mask0 = at(team, 4u);
    let g = p.group;
    let rows = p.seq * g;
    let row0 = tile * BQ;
    let pos = u32(live(p.pos_slot) + p.pos_base);
    // The keys that the last row of this tile sees, then the part of them that this split takes.
    let most = visible(min(row0 + BQ - 1u, rows - 1u) / g, pos);
    let context = visible(p.seq - 1u, pos);
    let length = max(((context + SPLITS - 1u) / SPLITS + WG - 1u) / WG * WG, p.split_min);
    let first = split * length;
    let end = min(first + length, most);

    if (lane < BQ) {
        row_max[lane] = LOWEST;
        row_sum[lane] = 0.0;
    }
    var acc: array<vec4<f32>, ITEMS>;
    workgroupBarrier();
    for (var c0 = first; c0 < end; c0 += WG) {
        let key = c0 + lane;
        var dots: array<f32, BQ>;
        if (key < end) {
            let k_row = k0 + key * p.key_step;
            // As many loads as divide a key are on their way at once.
            for (var d0 = 0u; d0 < D4; d0 += AT_ONCE) {
                var k: array<vec4<f32>, AT_ONCE>;
                for (var d = 0u; d < AT_ONCE; d++) { k[d] = row_k(k_row, d0 + d); } // unroll
                for (var i = 0u; i < BQ; i++) {
                    let row = min(row0 + i, rows - 1u);
                    let q_row = q0 + row / g * p.q_step + row % g;
                    for (var d = 0u; d < AT_ONCE; d++) { dots[i] += dot(k[d], row_q(q_row, d0 + d)); } // unroll
                }
            }
        }
        for (var i = 0u; i < BQ; i++) {
            let s = min(row0 + i, rows - 1u) / g;
            scores[i][lane] = LOWEST;
            if (key < min(visible(s, pos), end)) { scores[i][lane] = score(dots[i] * p.scale, s, key, mask0); }
        }
        workgroupBarrier();
        reduce_rows_max(lane);
        for (var i = 0u; i < BQ; i++) {
            let s = scores[i][lane];
            // Unseen keys hold exactly LOWEST; a NaN that a row does see stays NaN.
            scores[i][lane] = select(exp(s - row_max[i]), 0.0, s == LOWEST);
        }
        workgroupBarrier();
        reduce_rows_sum(lane);
        for (var n = 0u; n < ITEMS; n++) {
            let item = lane + n * WG;
            if (item < BQ * V4) {
                let i = item / V4;
                var sum = acc[n] * row_scale[i];
                // Keys that this row must not see have weight 0 but may hold NaN.
                let last = min(visible(min(row0 + i, rows - 1u) / g, pos), end);
                let stop = min(last, c0 + WG);
                let d = item % V4;
                var c = c0;
                for (; c + VALUES <= stop; c += VALUES) {
                    var v: array<vec4<f32>, VALUES>;
                    for (var j = 0u; j < VALUES; j++) { v[j] = row_v(v0 + (c + j) * p.key_step, d); } // unroll
                    for (var j = 0u; j < VALUES; j++) { sum += scores[i][c + j - c0] * v[j]; } // unroll
                }
                for (; c < stop; c++) { sum += scores[i][c - c0] * row_v(v0 + c * p.key_step, d); }
                acc[n] = sum;
            }
        }
        workgroupBarrier();
    }
    for (var n = 0u; n < ITEMS; n++) {
        let item = lane + n * WG;
        let row = row0 + item / V4;
        if (item < BQ * V4 && row < rows) {
            let out_row = at(team, 3u) + row / g * p.q_step + row % g;
            finish(out_row, split, item % V4, acc[n], row_max[item / V4], row_sum[item / V4]);
        }
    }
}
