// out[m, first + n] = finish(sum over quads of terms of x[m] and weight[n]): SPLIT invocations share a block of ROWS x 4 results
// and split its sums. `add` says what a quad, four neighbouring k, adds to a sum of type T.
struct Params {
    m: u32, n: u32, k: u32, quads: u32,
    w_row: u32, width: u32, tiles_n: u32, first: u32,
    scale: f32, zero: i32, inverse: f32, out_zero: f32,
    group: u32, scale_k: u32,
}

var<workgroup> shares: array<vec4<T>, WG>;

fn gather(v: vec4<T>, lane: u32) -> vec4<T> {
    if (SPLIT == 1u) { return v; }
    shares[lane] = v;
    for (var half = WG / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (lane < half) { shares[lane] += shares[lane + half]; }
    }
    let total = shares[0];
    workgroupBarrier();
    return total;
}

// The four bytes of the weight from byte `at` on; those of terms beyond k are 0.
fn weight_bytes(at: u32, k: u32) -> u32 {
    if (ALIGNED) { return weight[at >> 2u]; }
    let shift = 8u * (at & 3u);
    var word = weight[at >> 2u] >> shift;
    if (shift > 0u) { word |= weight[min((at >> 2u) + 1u, arrayLength(&weight) - 1u)] << (32u - shift); }
    return select(word, word & ((1u << (8u * (p.k - k))) - 1u), p.k - k < 4u);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = group_index(wg, groups) * (WG / SPLIT) + lane / SPLIT;
    let row = tile / p.tiles_n * ROWS;
    let col = tile % p.tiles_n * 4u;
    var sums: array<vec4<T>, ROWS>;
    if (row < p.m) {
        for (var q = lane % SPLIT; q < p.quads; q += SPLIT) {
            var w: array<W, 4>;
            for (var e = 0u; e < 4u; e++) { w[e] = w_quad(min(col + e, p.n - 1u), q); } // unroll
            for (var r = 0u; r < ROWS; r++) { // unroll
                let x = x_quad(min(row + r, p.m - 1u), q);
                for (var e = 0u; e < 4u; e++) { sums[r][e] = add(sums[r][e], x, w[e]); } // unroll
            }
        }
    }
    for (var r = 0u; r < ROWS; r++) { // unroll
        let sum = gather(sums[r], lane);
        if (lane % SPLIT == 0u && row + r < p.m) {
            var v: vec4<R>;
            for (var e = 0u; e < 4u; e++) { v[e] = finish(row + r, p.first + min(col + e, p.n - 1u), sum[e]); } // unroll
            store(row + r, col, v);
        }
    }
}
