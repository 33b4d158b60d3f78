// Attention of few rows on a long cache, as in attention.wgsl: a workgroup takes BQ rows (s, h) that share one head of the cache
// and one of SPLITS parts of its keys. TEAM invocations share a key, each with QUADS fours of its dimensions, and keep the
// sums of all rows over the keys that come their way; running maxima are a team's own until the end.
// Sizes are constants; with ALONE there is one position, so that all rows see the same keys.
struct Params {
    seq: u32, tiles: u32, pos_base: i32, scale: f32,
    rotary: u32, start_base: i32,
}

const D4: u32 = D / 4u;
const V4: u32 = D4;
const GROUP: u32 = HEADS_Q / HEADS_KV;
const WG: u32 = SUBGROUPS * LANES;
// Keys of a subgroup, and of a workgroup, at a time.
const KEYS: u32 = LANES / TEAM;
const STEP: u32 = SUBGROUPS * KEYS * AT_ONCE;
const FULL: bool = D4 % TEAM == 0u;
const LOWEST: f32 = -3.4028234e38;

// What each subgroup has of every row.
var<workgroup> sums_of: array<vec4<f32>, SUBGROUPS * BQ * D4>;
var<workgroup> stats_of: array<vec2<f32>, SUBGROUPS * BQ>;

struct Loaded { k: array<vec4<f32>, AT_ONCE * QUADS>, v: array<vec4<f32>, AT_ONCE * QUADS> }

// What an invocation has of the keys from c0 on; beyond the end some key and values of 0, which weigh nothing though others may
// be infinite. Where a call appends, some of it is being written.
fn load(c0: u32, end: u32, kv: u32, subgroup: u32, lane: u32) -> Loaded {
    var l: Loaded;
    for (var u = 0u; u < AT_ONCE; u++) { // unroll
        let c = c0 + (subgroup * AT_ONCE + u) * KEYS + lane / TEAM;
        for (var j = 0u; j < QUADS; j++) { // unroll
            let d = lane % TEAM + TEAM * j;
            let at = (min(c, max(end, 1u) - 1u) * HEADS_KV + kv) * D4 + min(d, D4 - 1u);
            l.k[u * QUADS + j] = select(vec4<f32>(0.0), load4_k_cache(at), FULL || d < D4);
            l.v[u * QUADS + j] = select(vec4<f32>(0.0), load4_v_cache(at), c < end && (FULL || d < D4));
        }
    }
    return l;
}

@compute @workgroup_size(SUBGROUPS * LANES)
fn main(
    @builtin(workgroup_id) wg: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    let part = group_index(wg, groups);
    let split = part % SPLITS;
    let kv = part / SPLITS % HEADS_KV;
    let tile = part / (SPLITS * HEADS_KV);
    if (tile >= p.tiles) { return; }
    let seq = select(p.seq, 1u, ALONE);
    let rows = seq * GROUP;
    let row0 = tile * BQ;
    let pos = u32(live(POS_SLOT) + p.pos_base);
    let visible = min(pos + min(row0 + BQ - 1u, rows - 1u) / GROUP + 1u, CAPACITY);
    let context = min(pos + seq, CAPACITY);
    let length = ((context + SPLITS - 1u) / SPLITS + STEP - 1u) / STEP * STEP;
    let first = split * length;
    let end = min(first + length, visible);
    let member = lane % TEAM;

    // Keys and values of the first step are on their way while queries are prepared.
    var loaded = load(first, end, kv, subgroup, lane);
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
        if (c0 > first) { loaded = load(c0, end, kv, subgroup, lane); }
        let key = c0 + subgroup * KEYS * AT_ONCE + lane / TEAM;
        if (APPENDS && end > pos) {
            for (var u = 0u; u < AT_ONCE; u++) { // unroll
                let c = key + u * KEYS;
                if (c >= pos && c < end) {
                    for (var j = 0u; j < QUADS; j++) { // unroll
                        loaded.k[u * QUADS + j] = new_key(c - pos, min(member + TEAM * j, D4 - 1u));
                        loaded.v[u * QUADS + j] = new_value(c - pos, min(member + TEAM * j, D4 - 1u));
                    }
                }
            }
        }
        var s: array<f32, BQ * AT_ONCE>;
        for (var i = 0u; i < BQ; i++) { // unroll
            for (var u = 0u; u < AT_ONCE; u++) { // unroll
                for (var j = 0u; j < QUADS; j++) { s[i * AT_ONCE + u] += dot(q[i * QUADS + j], loaded.k[u * QUADS + j]); } // unroll
            }
        }
        for (var bit = 1u; bit < TEAM; bit *= 2u) {
            for (var n = 0u; n < BQ * AT_ONCE; n++) { s[n] += subgroupShuffleXor(s[n], bit); } // unroll
        }
        for (var i = 0u; i < BQ; i++) { // unroll
            // Keys that this row sees.
            let stop = select(min(end, pos + min(row0 + i, rows - 1u) / GROUP + 1u), end, ALONE);
            var best = top[i];
            for (var u = 0u; u < AT_ONCE; u++) { best = max(best, select(LOWEST, s[i * AT_ONCE + u], key + u * KEYS < stop)); } // unroll
            let old = exp(top[i] - best);
            top[i] = best;
            weight[i] *= old;
            for (var j = 0u; j < QUADS; j++) { acc[i * QUADS + j] *= old; } // unroll
            for (var u = 0u; u < AT_ONCE; u++) { // unroll
                let e = select(0.0, exp(s[i * AT_ONCE + u] - best), key + u * KEYS < stop);
                weight[i] += e;
                // Values that only later rows see may be NaN.
                if (ALONE || key + u * KEYS < stop) {
                    for (var j = 0u; j < QUADS; j++) { acc[i * QUADS + j] += e * loaded.v[u * QUADS + j]; } // unroll
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
        finish(row / GROUP * HEADS_Q + kv * GROUP + row % GROUP, split, item % D4, sum, best, total);
    }
}
