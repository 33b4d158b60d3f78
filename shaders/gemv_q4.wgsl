// out[m, n] = sum_k x[m, k] * w[n, k] + bias for MB rows m and 4-bit weights: a team of SPLIT subgroups shares NR columns n at a
// time and cuts the sum along k. With NORM, rows are normalised: their squares are summed as they are taken. With GATED there are
// twice N columns, and out[m, n] = silu(y[m, n]) * y[m, N + n]. An invocation keeps the activations of its own run of WORDS
// octets (`take_x`) and multiplies them with the packed words of column after column, BLOCKS times NR of them; the next words
// are on their way meanwhile. Sizes are constants: no load waits for a parameter.
const TEAM: u32 = SPLIT * LANES;
const TEAMS: u32 = SUBGROUPS / SPLIT;
const COUNT: u32 = NR * MB;
// Columns of the result that a team computes together, and how many sums they are.
const WIDE: u32 = select(NR, NR / 2u, GATED);
const RESULTS: u32 = WIDE * MB;
// What a subgroup leaves for its team: sums, then the squares of each row.
const LEFT: u32 = COUNT + select(0u, MB, NORM);
// Lanes that hold the same value in the end.
const SAME: u32 = LANES / COUNT;
const STEPS: u32 = BLOCKS * CHUNKS;

var<workgroup> parts: array<f32, SUBGROUPS * LEFT>;

struct Fetched { words: array<Words, NR>, scale: array<f32, NR> }

// Words and scales of a block of columns: the k that invocation `member` has in this step.
fn fetch(col: u32, step: u32, member: u32) -> Fetched {
    var f: Fetched;
    let run = step % CHUNKS * TEAM + member;
    let inside = WHOLE || run < RUNS;
    let near = select(RUNS - 1u, run, inside);
    let scale_at = near * WORDS * 8u / GROUP * SCALE_K;
    for (var r = 0u; r < NR; r++) { // unroll
        let c = col + select(r, N + r - WIDE, GATED && r >= WIDE);
        f.words[r] = weight[c * RUNS + near];
        f.scale[r] = select(0.0, load_scales(scale_at + c * SCALE_N), inside);
    }
    return f;
}

// Where the activations of a row start, and four of them; none beyond the last.
fn row_start(row: u32) -> u32 { return select(min(row, p.m - 1u), row, MB == 1u) * K; }
fn x4(base: u32, k: u32) -> vec4<f32> {
    if (WHOLE || k < K) { return load4_x((base + k) / 4u); }
    return vec4<f32>(0.0);
}

// The block that a step belongs to; the last ones move back to end with the last column.
fn column(first: u32, step: u32) -> u32 { return min(first + step / CHUNKS * WIDE, N - WIDE); }

// One of two values, the other lane's share added.
fn fold(a: f32, b: f32, lane: u32, bit: u32) -> f32 {
    let upper = (lane & bit) != 0u;
    return select(a, b, upper) + subgroupShuffleXor(select(b, a, upper), bit);
}

// The sum over the subgroup of value lane / SAME.
fn gather(values: ptr<function, array<f32, COUNT>>, lane: u32) -> f32 {
    for (var i = 0u; i < COUNT / 2u; i++) { (*values)[i] = fold((*values)[i], (*values)[i + COUNT / 2u], lane, LANES / 2u); } // unroll
    for (var i = 0u; i < COUNT / 4u; i++) { (*values)[i] = fold((*values)[i], (*values)[i + COUNT / 4u], lane, LANES / 4u); } // unroll
    for (var i = 0u; i < COUNT / 8u; i++) { (*values)[i] = fold((*values)[i], (*values)[i + COUNT / 8u], lane, LANES / 8u); } // unroll
    for (var i = 0u; i < COUNT / 16u; i++) { (*values)[i] = fold((*values)[i], (*values)[i + COUNT / 16u], lane, LANES / 16u); } // unroll
    for (var i = 0u; i < COUNT / 32u; i++) { (*values)[i] = fold((*values)[i], (*values)[i + COUNT / 32u], lane, LANES / 32u); } // unroll
    var sum = (*values)[0];
    for (var bit = SAME / 2u; bit > 0u; bit /= 2u) { sum += subgroupShuffleXor(sum, bit); }
    return sum;
}

// Result i of the columns from col on; `gated` is the sum that it gates.
fn deliver(row0: u32, col: u32, i: u32, sum: f32, gated: f32, squares: f32) {
    let m = row0 + i % MB;
    let n = col + i / MB;
    if (MB > 1u && m >= p.m || i >= RESULTS) { return; }
    let scale = select(1.0, inverseSqrt(squares / f32(K) + p.eps), NORM);
    var v = epilogue(m, n, sum * scale);
    if (GATED) { v = v / (1.0 + exp(-v)) * epilogue(m, n + N, gated * scale); }
    put(m, n, v);
}

@compute @workgroup_size(SUBGROUPS * LANES)
fn main(
    @builtin(workgroup_id) wg: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    let tile = group_index(wg, groups);
    let row0 = tile / TILES_N * MB;
    let team = subgroup / SPLIT;
    let member = subgroup % SPLIT * LANES + lane;
    let first = (tile % TILES_N * TEAMS + team) * (WIDE * BLOCKS);
    var next = fetch(column(first, 0u), 0u, member);
    if (CHUNKS == 1u) { take_x(row0, member); }
    var sums: array<f32, COUNT>;
    for (var step = 0u; step < STEPS; step++) {
        let now = next;
        // In a long stream nothing is asked: a last fetch in vain is cheaper than a branch between loads.
        let after = min(step + 1u, STEPS - 1u);
        if (STEPS > 2u || step < after) { next = fetch(column(first, after), after, member); }
        if (CHUNKS > 1u) { take_x(row0, step % CHUNKS * TEAM + member); }
        for (var r = 0u; r < NR; r++) { // unroll
            var dots: array<Dot, MB>;
            for (var j = 0u; j < WORDS; j++) { // unroll
                let weights = decode(word(now.words[r], j));
                for (var m = 0u; m < MB; m++) { dots[m] = add_octet(dots[m], weights, m, j); } // unroll
            }
            for (var m = 0u; m < MB; m++) { sums[r * MB + m] += scaled(dots[m], m, now.scale[r]); } // unroll
        }
        if (step % CHUNKS == CHUNKS - 1u) {
            let col = column(first, step);
            let sum = gather(&sums, lane);
            for (var i = 0u; i < COUNT; i++) { sums[i] = 0.0; } // unroll
            // Those of the row of the sum that this lane has.
            var squares = 0.0;
            for (var m = 0u; m < MB; m++) { squares = select(squares, squares_of(m), lane / SAME % MB == m); } // unroll
            if (SPLIT == 1u) {
                let i = lane / SAME;
                var gated = 0.0;
                if (GATED) { gated = subgroupShuffleXor(sum, LANES / 2u); }
                if (lane % SAME == 0u) { deliver(row0, col, i, sum, gated, squares); }
            } else {
                if (lane % SAME == 0u) { parts[subgroup * LEFT + lane / SAME] = sum; }
                if (NORM && lane % SAME == 0u && lane / SAME < MB) { parts[subgroup * LEFT + COUNT + lane / SAME] = squares; }
                workgroupBarrier();
                if (member < RESULTS) {
                    let base = team * SPLIT * LEFT;
                    var total = 0.0;
                    var gated = 0.0;
                    var whole = 0.0;
                    for (var s = 0u; s < SPLIT; s++) { // unroll
                        total += parts[base + s * LEFT + member];
                        if (GATED) { gated += parts[base + s * LEFT + RESULTS + member]; }
                        if (NORM) { whole += parts[base + s * LEFT + COUNT + member % MB]; }
                    }
                    deliver(row0, col, member, total, gated, whole);
                }
                if (BLOCKS > 1u) { workgroupBarrier(); }
            }
        }
    }
}
