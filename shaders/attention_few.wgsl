// Attention of few rows on a long cache, as in attention.wgsl: a workgroup takes BQ rows (s, h) that share one head of the cache
// and one of `splits` parts of its keys. TEAM invocations share a key, each with QUADS fours of its dimensions, and keep the
// sums of all rows over the keys that come their way; running maxima are a team's own until the end.
struct Params {
    seq: u32, heads_q: u32, heads_kv: u32, capacity: u32,
    pos_slot: u32, pos_base: i32, scale: f32, splits: u32,
    tiles: u32, rotary: u32, table: u32, start_slot: u32,
    start_base: i32,
}

const D4: u32 = D / 4u;
const WG: u32 = SUBGROUPS * LANES;
// Keys of a subgroup, and of a workgroup, at a time.
const KEYS: u32 = LANES / TEAM;
const STEP: u32 = SUBGROUPS * KEYS * AT_ONCE;
const FULL: bool = D4 % TEAM == 0u;
const LOWEST: f32 = -3.0e38;

// What each subgroup has of every row.
var<workgroup> sums_of: array<vec4<f32>, SUBGROUPS * BQ * D4>;
var<workgroup> stats_of: array<vec2<f32>, SUBGROUPS * BQ>;

@compute @workgroup_size(SUBGROUPS * LANES)
fn main(
    @builtin(workgroup_id) wg: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    let part = group_index(wg, groups);
    let split = part % p.splits;
    let tile = part / p.splits % p.tiles;
    let kv = part / (p.splits * p.tiles);
    if (kv >= p.heads_kv) { return; }
    let g = p.heads_q / p.heads_kv;
    let rows = p.seq * g;
    let row0 = tile * BQ;
    let pos = u32(live(p.pos_slot) + p.pos_base);
    let visible = min(pos + min(row0 + BQ - 1u, rows - 1u) / g + 1u, p.capacity);
    let context = min(pos + p.seq, p.capacity);
    let length = ((context + p.splits - 1u) / p.splits + STEP - 1u) / STEP * STEP;
    let first = split * length;
    let end = min(first + length, visible);
    let member = lane % TEAM;

    prepare(kv, first, end, pos, index);
    var q: array<vec4<f32>, BQ * QUADS>;
    for (var i = 0u; i < BQ; i++) { // unroll
        for (var j = 0u; j < QUADS; j++) { // unroll
            let d = member + TEAM * j;
            if (FULL || d < D4) { q[i * QUADS + j] = p.scale * query(row0, i, kv, d); }
        }
    }
    var acc: array<vec4<f32>, BQ * QUADS>;
    var top: array<f32, BQ>;
    var weight: array<f32, BQ>;
    for (var i = 0u; i < BQ; i++) { top[i] = LOWEST; } // unroll
    for (var c0 = first; c0 < end; c0 += STEP) {
        let key = c0 + subgroup * KEYS * AT_ONCE + lane / TEAM;
        var k: array<vec4<f32>, AT_ONCE * QUADS>;
        var v: array<vec4<f32>, AT_ONCE * QUADS>;
        for (var u = 0u; u < AT_ONCE; u++) { // unroll
            let base = (min(key + u * KEYS, end - 1u) * p.heads_kv + kv) * D4;
            for (var j = 0u; j < QUADS; j++) { // unroll
                let d = member + TEAM * j;
                if (FULL || d < D4) {
                    k[u * QUADS + j] = load4_k_cache(base + d);
                    v[u * QUADS + j] = load4_v_cache(base + d);
                }
            }
        }
        for (var i = 0u; i < BQ; i++) { // unroll
            // Keys that this row sees.
            let stop = min(end, pos + min(row0 + i, rows - 1u) / g + 1u);
            var s: array<f32, AT_ONCE>;
            var best = top[i];
            for (var u = 0u; u < AT_ONCE; u++) { // unroll
                var sum = 0.0;
                for (var j = 0u; j < QUADS; j++) { sum += dot(q[i * QUADS + j], k[u * QUADS + j]); } // unroll
                for (var bit = 1u; bit < TEAM; bit *= 2u) { sum += subgroupShuffleXor(sum, bit); }
                s[u] = sum;
                best = max(best, select(LOWEST, sum, key + u * KEYS < stop));
            }
            let old = exp(top[i] - best);
            top[i] = best;
            weight[i] *= old;
            for (var j = 0u; j < QUADS; j++) { acc[i * QUADS + j] *= old; } // unroll
            for (var u = 0u; u < AT_ONCE; u++) { // unroll
                // Values that this row must not see may be NaN.
                if (key + u * KEYS < stop) {
                    let e = exp(s[u] - best);
                    weight[i] += e;
                    for (var j = 0u; j < QUADS; j++) { acc[i * QUADS + j] += e * v[u * QUADS + j]; } // unroll
                }
            }
        }
    }
    // The teams of a subgroup, then its workgroup.
    for (var bit = TEAM; bit < LANES; bit *= 2u) {
        for (var i = 0u; i < BQ; i++) { // unroll
            let other = subgroupShuffleXor(top[i], bit);
            let best = max(top[i], other);
            let mine = exp(top[i] - best);
            let theirs = exp(other - best);
            top[i] = best;
            weight[i] = weight[i] * mine + subgroupShuffleXor(weight[i], bit) * theirs;
            for (var j = 0u; j < QUADS; j++) { // unroll
                let sum = acc[i * QUADS + j];
                acc[i * QUADS + j] = sum * mine + subgroupShuffleXor(sum, bit) * theirs;
            }
        }
    }
    if (lane < TEAM) {
        for (var i = 0u; i < BQ; i++) { // unroll
            let at = subgroup * BQ + i;
            if (member == 0u) { stats_of[at] = vec2<f32>(top[i], weight[i]); }
            for (var j = 0u; j < QUADS; j++) { // unroll
                let d = member + TEAM * j;
                if (FULL || d < D4) { sums_of[at * D4 + d] = acc[i * QUADS + j]; }
            }
        }
    }
    workgroupBarrier();
    for (var item = index; item < BQ * D4; item += WG) {
        let i = item / D4;
        let row = row0 + i;
        if (row >= rows) { continue; }
        var best = LOWEST;
        for (var s = 0u; s < SUBGROUPS; s++) { best = max(best, stats_of[s * BQ + i].x); } // unroll
        var sum = vec4<f32>(0.0);
        var total = 0.0;
        for (var s = 0u; s < SUBGROUPS; s++) { // unroll
            let stat = stats_of[s * BQ + i];
            let e = exp(stat.x - best);
            total += e * stat.y;
            sum += e * sums_of[(s * BQ + i) * D4 + item % D4];
        }
        finish((row / g) * p.heads_q + kv * g + row % g, split, item % D4, sum, best, total);
    }
}
