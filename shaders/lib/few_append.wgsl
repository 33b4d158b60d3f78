// Rotates the queries of all rows, which are one tile, and brings the new keys and values of this part of the keys, rotated as in
// rope.wgsl, to the cache, where this workgroup reads them and no other does.
var<workgroup> queries: array<vec4<f32>, BQ * D4>;

fn prepare(kv: u32, first: u32, end: u32, pos: u32, index: u32) {
    let g = p.heads_q / p.heads_kv;
    let angles = u32(live(p.start_slot) + p.start_base);
    for (var i = index; i < BQ * D; i += WG) {
        let row = min(i / D, p.seq * g - 1u);
        let d = i % D;
        let at = ((row / g) * p.heads_q + kv * g + row % g) * D;
        var x = load_q(at + d);
        if (d < p.rotary) { x = rotate(x, load_q(at + partner(d)), d, (angles + row / g) * p.table); }
        queries[i / 4u][i % 4u] = x;
    }
    let newest = max(first, pos);
    for (var i = index; newest < end && i < (end - newest) * D; i += WG) {
        let row = newest + i / D;
        let d = i % D;
        let at = ((row - pos) * p.heads_kv + kv) * D;
        var x = load_k(at + d);
        if (d < p.rotary) { x = rotate(x, load_k(at + partner(d)), d, (angles + row - pos) * p.table); }
        let to = (row * p.heads_kv + kv) * D + d;
        store_k_cache(to, x);
        store_v_cache(to, load_v(at + d));
    }
    storageBarrier();
    workgroupBarrier();
}
fn query(row0: u32, i: u32, kv: u32, d: u32) -> vec4<f32> { return queries[i * D4 + d]; }
