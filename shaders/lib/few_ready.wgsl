// Queries come rotated, and the cache has all keys.
fn prepare(kv: u32, first: u32, end: u32, pos: u32, index: u32) {}
fn query(row0: u32, i: u32, kv: u32, d: u32) -> vec4<f32> {
    let row = min(row0 + i, p.seq * GROUP - 1u);
    return load4_q((row / GROUP * HEADS_Q + kv * GROUP + row % GROUP) * D4 + d);
}
fn new_key(row: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
fn new_value(row: u32, d: u32) -> vec4<f32> { return vec4<f32>(); }
