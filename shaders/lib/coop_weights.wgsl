// Packed weights on their way to shared memory, octet `item` of a step being octet item % OCTETS of column item / OCTETS. Halves hold the weights times WEIGHT_SCALE: small scales keep their bits.
const WEIGHT_SCALE: f32 = 16.0;
// Eight weights of 0.
const ZERO: u32 = 0x88888888u;

alias Bits = u32;
// Where the words and the scales of an item's row begin.
struct Row { word: u32, scale: u32 }

fn row_of(col0: u32, item: u32) -> Row {
    let n = min(col0 + item / OCTETS, p.n - 1u);
    return Row(n * K8, n * SCALE_N);
}

fn packed(row: Row, k0: u32, item: u32) -> u32 {
    let octet = k0 / 8u + item % OCTETS;
    if (WHOLE) { return weight[row.word + octet]; }
    return select(ZERO, weight[row.word + min(octet, K8 - 1u)], octet < K8);
}

fn scale_of(row: Row, k0: u32, item: u32) -> f32 {
    let octet = k0 / 8u + item % OCTETS;
    return load_scales(row.scale + select(min(octet, K8 - 1u), octet, WHOLE) / (GROUP / 8u) * SCALE_K);
}

// A nibble n in the last bits of the half 1024.0 reads as 1024 + n.
fn four(bits: u32, scale: f16) -> vec4<f16> {
    let low = unpack2x16float((bits & 0xfu) | ((bits & 0xf0u) << 12u) | 0x64006400u);
    let high = unpack2x16float(((bits >> 8u) & 0xfu) | ((bits & 0xf000u) << 4u) | 0x64006400u);
    return (vec4<f16>(vec4<f32>(low, high)) - 1032.0h) * scale;
}

fn unpack(base: u32, bits: u32, scale: f32, item: u32) {
    let s = f16(scale * WEIGHT_SCALE);
    let at = base + item / OCTETS * STRIDE + item % OCTETS * 2u;
    // Neighbours begin with different halves of their octets: their stores fall into different banks.
    let odd = item & 1u;
    ws[at + odd] = four(bits >> (16u * odd), s);
    ws[at + 1u - odd] = four(bits >> (16u - 16u * odd), s);
}
