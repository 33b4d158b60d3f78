// Pairs (2j, 2j + 1); tables hold one column per pair.
fn rotate(i: u32, d: u32, row: u32) -> f32 {
    let c = load_cos(row + d / 2u);
    let s = load_sin(row + d / 2u);
    if (d % 2u == 0u) { return load_x(i) * c - load_x(i + 1u) * s; }
    return load_x(i) * c + load_x(i - 1u) * s;
}
