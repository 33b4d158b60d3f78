// w[b, n, k] is element n of row k of a dense matrix.
fn weight1(base: u32, k: u32) -> f32 {
    if (k >= p.k) { return 0.0; }
    return load_weight(base + k * p.n);
}
fn weight4(base: u32, k: u32) -> vec4<f32> {
    return vec4<f32>(weight1(base, k), weight1(base, k + 1u), weight1(base, k + 2u), weight1(base, k + 3u));
}
fn weight8(b: u32, n: u32, o: u32) -> Octet {
    let base = b * p.w_batch + n;
    return Octet(weight4(base, o * 8u), weight4(base, o * 8u + 4u));
}
fn weight_column(i: u32, octets: u32) -> u32 { return i % BN; }
fn weight_octet(i: u32, octets: u32) -> u32 { return i / BN; }
