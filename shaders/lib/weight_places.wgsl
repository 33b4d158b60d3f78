// w[b, n, k] lies at place(column, k), side by side for neighbouring columns; 0 beyond k and where it lies nowhere.
fn weight1(column: Column, k: u32) -> f32 {
    let at = place(column, k);
    if (k >= p.k || at == NOWHERE) { return 0.0; }
    return load_weight(at);
}
fn weight4(column: Column, k: u32) -> vec4<f32> {
    return vec4<f32>(weight1(column, k), weight1(column, k + 1u), weight1(column, k + 2u), weight1(column, k + 3u));
}
fn weight8(b: u32, n: u32, o: u32) -> Octet {
    let column = column_of(b, n);
    return Octet(weight4(column, o * 8u), weight4(column, o * 8u + 4u));
}
fn weight_column(i: u32, octets: u32) -> u32 { return i % BN; }
fn weight_octet(i: u32, octets: u32) -> u32 { return i / BN; }
