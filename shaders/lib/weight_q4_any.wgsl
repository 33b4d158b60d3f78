// As weight_q4, for groups that are no multiple of 8: one scale per element.
fn weight1(word: u32, n: u32, o: u32, j: u32) -> f32 {
    let group = min((o * 8u + j) / p.group, (p.k - 1u) / p.group);
    return (f32((word >> (4u * j)) & 15u) - 8.0) * load_scales(group * p.scale_k + n * p.scale_n);
}
fn weight8(b: u32, n: u32, o: u32) -> Octet {
    let word = weight[n * p.k8 + o];
    let low = vec4<f32>(weight1(word, n, o, 0u), weight1(word, n, o, 1u), weight1(word, n, o, 2u), weight1(word, n, o, 3u));
    let high = vec4<f32>(weight1(word, n, o, 4u), weight1(word, n, o, 5u), weight1(word, n, o, 6u), weight1(word, n, o, 7u));
    return Octet(low, high);
}
fn weight_column(i: u32, octets: u32) -> u32 { return i / octets; }
fn weight_octet(i: u32, octets: u32) -> u32 { return i % octets; }
