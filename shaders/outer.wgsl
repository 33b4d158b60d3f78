// out[r, c] = sum over t of a_at(t, r) * b_at(t, c), 4 x 4 results per invocation.
struct Params {
    rows: u32, cols: u32, terms: u32, tiles: u32,
    w_row: u32, group: u32, groups: u32, scale_k: u32,
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = group_index(wg, groups) * WG + lane;
    let row = tile / p.tiles * 4u;
    let col = tile % p.tiles * 4u;
    if (row >= p.rows) { return; }
    var sums: array<vec4<f32>, 4>;
    for (var t = 0u; t < p.terms; t++) {
        let b = b_at(t, col);
        for (var r = 0u; r < 4u; r++) { sums[r] = fma(vec4<f32>(a_at(t, min(row + r, p.rows - 1u))), b, sums[r]); } // unroll
    }
    for (var r = 0u; r < 4u; r++) { // unroll
        for (var e = 0u; e < 4u; e++) { // unroll
            if (row + r < p.rows && col + e < p.cols) { store_out((row + r) * p.cols + col + e, sums[r][e]); }
        }
    }
}
