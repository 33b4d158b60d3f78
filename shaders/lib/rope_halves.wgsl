// Pairs (j, j + rotary / 2); tables hold one column per dimension.
fn rotate(i: u32, d: u32, row: u32) -> f32 {
    let half = p.rotary / 2u;
    let c = load_cos(row + d);
    let s = load_sin(row + d);
    if (d < half) { return load_x(i) * c - load_x(i + half) * s; }
    return load_x(i) * c + load_x(i - half) * s;
}
