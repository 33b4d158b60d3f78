// w[b, n, k] is element k of the patch of result n; 0 outside of the picture.
fn weight1(base: u32, n: u32, k: u32) -> f32 {
    let row = tap(n / p.across, k / KERNEL_X % KERNEL_Y, STRIDE_Y, PADDING_Y, DILATION_Y);
    let column = tap(n % p.across, k % KERNEL_X, STRIDE_X, PADDING_X, DILATION_X);
    if (k >= p.k || row >= p.rows || column >= p.columns) { return 0.0; }
    return load_weight(base + k / (KERNEL_X * KERNEL_Y) * p.pixels + row * p.columns + column);
}
fn weight4(base: u32, n: u32, k: u32) -> vec4<f32> {
    return vec4<f32>(weight1(base, n, k), weight1(base, n, k + 1u), weight1(base, n, k + 2u), weight1(base, n, k + 3u));
}
fn weight8(b: u32, n: u32, o: u32) -> Octet {
    return Octet(weight4(b * p.w_batch, n, o * 8u), weight4(b * p.w_batch, n, o * 8u + 4u));
}
fn weight_column(i: u32, octets: u32) -> u32 { return i % BN; }
fn weight_octet(i: u32, octets: u32) -> u32 { return i / BN; }
