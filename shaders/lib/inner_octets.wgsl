// Partial sums over every TEAM-th group of eight k, weights decoded by `weight8`.
fn accumulate(sums: ptr<function, array<Rows, NR>>, at: Place, member: u32) {
    for (var o = member; o < (p.k + 7u) / 8u; o += TEAM) {
        let x = x8(at, o * 8u);
        for (var r = 0u; r < NR; r++) {
            let w = weight8(at.b, min(at.col + r, p.n - 1u), o);
            let low = x[0] * w.low.x + x[1] * w.low.y + x[2] * w.low.z + x[3] * w.low.w;
            let high = x[4] * w.high.x + x[5] * w.high.y + x[6] * w.high.z + x[7] * w.high.w;
            (*sums)[r] += low + high;
        }
    }
}
