// Halves of dense matrices [k, n] on their way to shared memory, where they lie by terms too. Columns go on from batch to batch.
const STRIDE: u32 = BN / 4u + 2u;
const HELD: u32 = BK * STRIDE;
struct Eight { low: vec4<f16>, high: vec4<f16> }
alias Bits = Eight;
// The first of the eight columns of an item.
struct Row { first: u32 }

fn row_of(col0: u32, item: u32) -> Row {
    let n = min(col0 + item % (BN / 8u) * 8u, p.n * p.batch - 8u);
    return Row(n / p.n * p.w_batch + n % p.n);
}

fn packed(row: Row, k0: u32, item: u32) -> Eight {
    let k = k0 + item / (BN / 8u);
    let at = (row.first + min(k, p.k - 1u) * p.n) / 4u;
    return Eight(select(vec4<f16>(), weight[at], k < p.k), select(vec4<f16>(), weight[at + 1u], k < p.k));
}

fn scale_of(row: Row, k0: u32, item: u32) -> f32 { return 1.0; }

fn unpack(base: u32, bits: Eight, scale: f32, item: u32) {
    let at = base + item / (BN / 8u) * STRIDE + item % (BN / 8u) * 2u;
    ws[at] = bits.low;
    ws[at + 1u] = bits.high;
}

fn factor(n: u32, k: u32) -> MatB { return coopLoadT<MatB>(&ws[k * STRIDE + n / 4u], STRIDE); }
