// Halves of a dense matrix [n, k] on their way to shared memory.
struct Eight { low: vec4<f16>, high: vec4<f16> }
alias Bits = Eight;
struct Row { first: u32 }

fn row_of(col0: u32, item: u32) -> Row { return Row(min(col0 + item / OCTETS, p.n - 1u) * p.k); }

fn half4(row: Row, k: u32) -> vec4<f16> {
    if (ALIGNED) { return select(vec4<f16>(), weight[min(row.first + k, p.n * p.k - 4u) / 4u], k < p.k); }
    var v = vec4<f16>();
    for (var j = 0u; j < 4u; j++) { // unroll
        let at = row.first + k + j;
        if (k + j < p.k) { v[j] = weight[at / 4u][at % 4u]; }
    }
    return v;
}

fn packed(row: Row, k0: u32, item: u32) -> Eight {
    let k = k0 + item % OCTETS * 8u;
    return Eight(half4(row, k), half4(row, k + 4u));
}

fn scale_of(row: Row, k0: u32, item: u32) -> f32 { return 1.0; }

fn unpack(base: u32, bits: Eight, scale: f32, item: u32) {
    let at = base + item / OCTETS * STRIDE + item % OCTETS * 2u;
    ws[at] = bits.low;
    ws[at + 1u] = bits.high;
}
