// Terms are rows of both operands.
fn a_at(t: u32, r: u32) -> f32 { return load_a(t * p.rows + r); }
fn b_at(t: u32, c: u32) -> vec4<f32> {
    if (WHOLE) { return load4_b((t * p.cols + c) / 4u); }
    let base = t * p.cols;
    let last = base + p.cols - 1u;
    return vec4<f32>(load_b(base + c), load_b(min(base + c + 1u, last)), load_b(min(base + c + 2u, last)), load_b(min(base + c + 3u, last)));
}
