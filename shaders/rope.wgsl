// Rotates pairs of x[row, h, :] by the angles of row `start + row`: out = x * cos + partner(x) * sin.
struct Params {
    count: u32, heads: u32, d: u32, rotary: u32,
    start_slot: u32, start_base: i32, table: u32, rows: u32,
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = group_index(wg, groups) * WG + lane;
    if (i >= p.count) { return; }
    let d = i % p.d;
    let row = (i / (p.d * p.heads)) % p.rows + u32(live(p.start_slot) + p.start_base);
    if (d >= p.rotary) {
        store_out(i, load_x(i));
    } else {
        store_out(i, rotate(load_x(i), load_x(i - d + partner(d)), d, row * p.table));
    }
}
