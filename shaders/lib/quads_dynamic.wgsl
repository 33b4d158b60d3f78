// Bytes of rows with a scale and a zero point each, times 4-bit groups, even k in the low nibble of a byte.
alias T = f32;
struct X { bytes: u32, zero: i32 }
struct W { bytes: u32, sum: i32, scale: f32 }

fn x_quad(m: u32, q: u32) -> X { return X(x[m * p.quads + q], load_row_zeros(m)); }
fn w_quad(n: u32, q: u32) -> W {
    let half = weight[n * (p.w_row / 4u) + q / 2u] >> (16u * (q & 1u));
    let nibbles = (half & 0xfu) | ((half & 0xf0u) << 4u) | ((half & 0xf00u) << 8u) | ((half & 0xf000u) << 12u);
    // n - 8 as a signed byte: the fourth bit turns, and is then repeated above.
    let turned = nibbles ^ 0x08080808u;
    let bytes = turned | ((turned & 0x08080808u) * 30u);
    return W(bytes, dot4I8Packed(bytes, 0x01010101u), load_scales(q * 4u / p.group * p.scale_k + p.first + n));
}
fn add(sum: f32, x: X, w: W) -> f32 { return fma(f32(dot4I8Packed(x.bytes, w.bytes) - x.zero * w.sum), w.scale, sum); }
fn value(m: u32, n: u32, sum: f32) -> f32 { return sum * load_row_scales(m); }
