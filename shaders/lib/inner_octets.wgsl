// Partial sums over every TEAM-th group of eight k, weights decoded by `weight8`.
fn accumulate(sums: ptr<function, array<f32, COUNT>>, at: Place, member: u32) {
    for (var o = member; o < (p.k + 7u) / 8u; o += TEAM) {
        var w: array<Octet, NR>;
        for (var r = 0u; r < NR; r++) { w[r] = weight8(at.b, min(at.col + r, p.n - 1u), o); }
        for (var m = 0u; m < MB; m++) {
            let base = at.b * p.x_batch + min(m, p.m - 1u) * p.k;
            let low = x4(base, o * 8u);
            let high = x4(base, o * 8u + 4u);
            for (var r = 0u; r < NR; r++) { (*sums)[m * NR + r] += dot(w[r].low, low) + dot(w[r].high, high); }
        }
    }
}
