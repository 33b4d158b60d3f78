// turned = q rotated, k_cache[pos + s] = k[s] rotated, v_cache[pos + s] = v[s]: rows s, in each the heads of q, of k and of v.
// Heads rotate by the angles of row `start + s`, as in rope.wgsl.
struct Params {
    count: u32, heads_q: u32, heads_kv: u32, d: u32,
    rotary: u32, table: u32, start_slot: u32, start_base: i32,
    pos_slot: u32, pos_base: i32, capacity: u32,
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = group_index(wg, groups) * WG + lane;
    if (i >= p.count) { return; }
    let d = i % p.d;
    let heads = p.heads_q + 2u * p.heads_kv;
    let s = i / p.d / heads;
    let head = i / p.d % heads;
    let angles = (s + u32(live(p.start_slot) + p.start_base)) * p.table;
    let turns = d < p.rotary;
    if (head < p.heads_q) {
        let at = (s * p.heads_q + head) * p.d;
        var x = load_q(at + d);
        if (turns) { x = rotate(x, load_q(at + partner(d)), d, angles); }
        store_turned(at + d, x);
        return;
    }
    let row = s + u32(live(p.pos_slot) + p.pos_base);
    if (row >= p.capacity) { return; }
    let kv = (head - p.heads_q) % p.heads_kv;
    let source = (s * p.heads_kv + kv) * p.d;
    let to = (row * p.heads_kv + kv) * p.d + d;
    if (head >= p.heads_q + p.heads_kv) {
        store_v_cache(to, load_v(source + d));
        return;
    }
    var x = load_k(source + d);
    if (turns) { x = rotate(x, load_k(source + partner(d)), d, angles); }
    store_k_cache(to, x);
}
