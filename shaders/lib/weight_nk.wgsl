// w[b, n, k] is element k of row n of a dense matrix.
fn weight4(base: u32, k: u32) -> vec4<f32> {
    if (ALIGNED) {
        if (k < p.k) { return load4_weight((base + k) / 4u); }
        return vec4<f32>(0.0);
    }
    var v = vec4<f32>(0.0);
    for (var j = 0u; j < 4u; j++) { if (k + j < p.k) { v[j] = load_weight(base + k + j); } }
    return v;
}
fn weight8(b: u32, n: u32, o: u32) -> Octet {
    let base = b * p.w_batch + n * p.k;
    return Octet(weight4(base, o * 8u), weight4(base, o * 8u + 4u));
}
fn weight_column(i: u32, octets: u32) -> u32 { return i / octets; }
fn weight_octet(i: u32, octets: u32) -> u32 { return i % octets; }
