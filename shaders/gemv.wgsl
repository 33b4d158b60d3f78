// out[b, m, n] = alpha * sum_k x[b, m, k] * w[b, n, k] + beta * bias for few rows m: LANES invocations share NR columns n.
struct Params {
    m: u32, n: u32, k: u32, batch: u32,
    x_batch: u32, w_batch: u32, bias_m: u32, bias_n: u32,
    alpha: f32, beta: f32, tiles_m: u32, tiles_n: u32,
    k8: u32, groups_n: u32, group: u32,
}

const NR: u32 = 4u;
const TEAMS: u32 = WG / LANES;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) index: u32) {
    let tile = group_index(wg, groups);
    let b = tile / p.tiles_n;
    let lane = index % LANES;
    let col0 = ((tile % p.tiles_n) * TEAMS + index / LANES) * NR;
    var sum: array<array<f32, NR>, MB>;
    if (b < p.batch && col0 < p.n) {
        let octets = (p.k + 7u) / 8u;
        for (var o = lane; o < octets; o += LANES) {
            var w: array<Octet, NR>;
            for (var r = 0u; r < NR; r++) { w[r] = weight8(b, min(col0 + r, p.n - 1u), o); }
            for (var m = 0u; m < MB; m++) {
                let base = b * p.x_batch + min(m, p.m - 1u) * p.k;
                let low = x4(base, o * 8u);
                let high = x4(base, o * 8u + 4u);
                for (var r = 0u; r < NR; r++) { sum[m][r] += dot(w[r].low, low) + dot(w[r].high, high); }
            }
        }
    }
    for (var m = 0u; m < MB; m++) {
        for (var r = 0u; r < NR; r++) {
            let total = reduce_lanes(sum[m][r], index);
            if (lane == 0u && b < p.batch && m < p.m && col0 + r < p.n) {
                store_out((b * p.m + m) * p.n + col0 + r, epilogue(m, col0 + r, total));
            }
        }
    }
}
