// Queries come rotated, and the cache has all keys.
fn prepare(kv: u32, first: u32, end: u32, pos: u32, index: u32) {}
fn query(row0: u32, i: u32, kv: u32, d: u32) -> vec4<f32> {
    let row = min(row0 + i, p.seq * GROUP - 1u);
    return load4_q((row / GROUP * HEADS_Q + kv * GROUP + row % GROUP) * D4 + d);
}
fn key4(c: u32, pos: u32, kv: u32, d: u32) -> vec4<f32> { return load4_k_cache((c * HEADS_KV + kv) * D4 + d); }
fn value4(c: u32, pos: u32, kv: u32, d: u32) -> vec4<f32> { return load4_v_cache((c * HEADS_KV + kv) * D4 + d); }
