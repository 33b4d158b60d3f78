// Products of octets in f32. A nibble n is never converted: bits 4i to 4i + 3 of a word, put into the mantissa of
// 2^(23 - 4i), read as 2^(23 - 4i) + n, and subtracting 2^(23 - 4i) + 8 leaves n - 8, exactly. Activations are divided by 256:
// sums that their scale brings back into range do not leave it before.
alias Dot = f32;
var<private> x_now: array<vec4<f32>, MB * WORDS * 2u>;

fn take_x(row0: u32, run: u32) {
    for (var m = 0u; m < MB; m++) { // unroll
        let base = row_start(row0 + m);
        for (var i = 0u; i < WORDS * 2u; i++) { x_now[m * WORDS * 2u + i] = taken(m, base, run * WORDS * 8u + i * 4u) * 0.00390625; } // unroll
    }
}

fn n0(w: u32) -> f32 { return bitcast<f32>((w & 0xfu) | 0x4b000000u) - 8388616.0; }
fn n1(w: u32) -> f32 { return bitcast<f32>((w & 0xf0u) | 0x49000000u) - 524296.0; }
fn n2(w: u32) -> f32 { return bitcast<f32>((w & 0xf00u) | 0x47000000u) - 32776.0; }
fn n3(w: u32) -> f32 { return bitcast<f32>((w & 0xf000u) | 0x45000000u) - 2056.0; }
fn n4(w: u32) -> f32 { return bitcast<f32>((w & 0xf0000u) | 0x43000000u) - 136.0; }

fn decode(w: u32) -> mat2x4<f32> {
    let high = w >> 12u;
    return mat2x4<f32>(n0(w), n1(w), n2(w), n3(w), n4(w), n2(high), n3(high), n4(high));
}
fn add_octet(sum: f32, w: mat2x4<f32>, m: u32, j: u32) -> f32 {
    let a = x_now[(m * WORDS + j) * 2u];
    let b = x_now[(m * WORDS + j) * 2u + 1u];
    let low = fma(w[0].x, a.x, fma(w[0].y, a.y, fma(w[0].z, a.z, fma(w[0].w, a.w, sum))));
    return fma(w[1].x, b.x, fma(w[1].y, b.y, fma(w[1].z, b.z, fma(w[1].w, b.w, low))));
}
fn scaled(dot: f32, m: u32, scale: f32) -> f32 { return dot * (scale * 256.0); }
