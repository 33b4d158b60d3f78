// cache[b, pos + s, ...] = value[b, s, ...]: the rows of `value` go to rows pos.. of the cache.
struct Params { quads: u32, row_quads: u32, seq: u32, pos_slot: u32, pos_base: i32, capacity: u32 }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let q = group_index(wg, groups) * WG + lane;
    let line = q / p.row_quads;
    let row = u32(live(p.pos_slot) + p.pos_base) + line % p.seq;
    if (q >= p.quads || row >= p.capacity) { return; }
    store4_cache((line / p.seq * p.capacity + row) * p.row_quads + q % p.row_quads, load4_value(q));
}
