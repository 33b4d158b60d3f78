// Pairs (j, j + rotary / 2); tables hold one column per dimension.
fn partner(d: u32) -> u32 { return select(d - p.rotary / 2u, d + p.rotary / 2u, d < p.rotary / 2u); }
fn rotate(x: f32, other: f32, d: u32, row: u32) -> f32 {
    return x * load_cos(row + d) + select(other, -other, d < p.rotary / 2u) * load_sin(row + d);
}
