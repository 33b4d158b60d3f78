// Pairs (2j, 2j + 1); tables hold one column per pair.
fn partner(d: u32) -> u32 { return d ^ 1u; }
fn rotate(x: f32, other: f32, d: u32, row: u32) -> f32 {
    return x * load_cos(row + d / 2u) + select(other, -other, d % 2u == 0u) * load_sin(row + d / 2u);
}
