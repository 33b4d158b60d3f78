// cache[pos + s, ...] = value[s, ...]: the rows of `value` go to rows pos.. of the cache.
struct Params { quads: u32, row_quads: u32, pos_slot: u32, pos_base: i32, capacity: u32 }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let q = group_index(wg, groups) * WG + lane;
    let row = u32(live(p.pos_slot) + p.pos_base);
    if (q >= p.quads || row + q / p.row_quads >= p.capacity) { return; }
    store4_cache(row * p.row_quads + q, load4_value(q));
}
