// Halves at place(column, k), side by side for neighbouring columns, on their way to shared memory. Columns go on from batch to
// batch; beyond k, and where they lie nowhere, they are 0.
struct Eight { low: vec4<f16>, high: vec4<f16> }
alias Bits = Eight;
alias Row = Column;

fn row_of(col0: u32, item: u32) -> Column {
    let n = min(col0 + item % BN, p.n * p.batch - 1u);
    return column_of(n / p.n, n % p.n);
}

fn one(column: Column, k: u32) -> f16 {
    let at = place(column, k);
    if (k < p.k && at != NOWHERE) { return weight[at]; }
    return 0.0h;
}

fn four(column: Column, k: u32) -> vec4<f16> {
    return vec4<f16>(one(column, k), one(column, k + 1u), one(column, k + 2u), one(column, k + 3u));
}

fn packed(column: Column, k0: u32, item: u32) -> Eight {
    let k = k0 + item / BN * 8u;
    return Eight(four(column, k), four(column, k + 4u));
}

fn scale_of(column: Column, k0: u32, item: u32) -> f32 { return 1.0; }

fn unpack(base: u32, bits: Eight, scale: f32, item: u32) {
    let at = base + item % BN * STRIDE + item / BN * 2u;
    ws[at] = bits.low;
    ws[at + 1u] = bits.high;
}
