// Pairs (2j, 2j + 1); the table holds cos and sin of each pair side by side.
fn partner(d: u32) -> u32 { return d ^ 1u; }
fn rotate(x: f32, other: f32, d: u32, row: u32) -> f32 {
    return x * load_cos(row + (d & ~1u)) + select(other, -other, d % 2u == 0u) * load_cos(row + (d | 1u));
}
