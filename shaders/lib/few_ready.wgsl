// Queries come rotated, and the cache has all keys.
fn prepare(kv: u32, first: u32, end: u32, pos: u32, index: u32) {}
fn query(row0: u32, i: u32, kv: u32, d: u32) -> vec4<f32> {
    let g = p.heads_q / p.heads_kv;
    let row = min(row0 + i, p.seq * g - 1u);
    return load4_q(((row / g) * p.heads_q + kv * g + row % g) * D4 + d);
}
