// Bytes times bytes, summed exactly: x - zero meets w.
alias T = i32;
struct W { bytes: u32, zero: i32 }

fn x_quad(m: u32, q: u32) -> u32 {
    let at = m * p.k + q * 4u;
    let shift = 8u * (at & 3u);
    var word = x[at >> 2u] >> shift;
    if (!ALIGNED && shift > 0u) { word |= x[min((at >> 2u) + 1u, arrayLength(&x) - 1u)] << (32u - shift); }
    return word;
}
fn w_quad(n: u32, q: u32) -> W {
    let bytes = weight_bytes(n * p.w_row + q * 4u, q * 4u);
    return W(bytes, p.zero * dot4I8Packed(bytes, 0x01010101u));
}
fn add(sum: i32, x: u32, w: W) -> i32 { return sum + dot4I8Packed(x, w.bytes) - w.zero; }
fn value(m: u32, n: u32, sum: i32) -> f32 { return f32(sum) * (p.scale * load_scales(n)); }
