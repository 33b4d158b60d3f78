// w[n, k] = (nibble k % 8 of word [n, k / 8] - 8) * scales[k / group, n]; even k in the low nibble of a byte.
fn weight8(b: u32, n: u32, o: u32) -> Octet {
    let word = weight[n * p.k8 + o];
    let scale = load_scales((o * 8u / p.group) * p.scale_k + n * p.scale_n);
    let even = vec4<f32>(unpack4xU8(word & 0x0f0f0f0fu)) - 8.0;
    let odd = vec4<f32>(unpack4xU8((word >> 4u) & 0x0f0f0f0fu)) - 8.0;
    return Octet(vec4<f32>(even.x, odd.x, even.y, odd.y) * scale, vec4<f32>(even.z, odd.z, even.w, odd.w) * scale);
}
fn weight_column(i: u32, octets: u32) -> u32 { return i / octets; }
fn weight_octet(i: u32, octets: u32) -> u32 { return i % octets; }
