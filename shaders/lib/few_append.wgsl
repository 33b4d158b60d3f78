// Rotates the queries of all rows, which are one tile, and brings the new keys and values of this part of the keys, rotated as in
// rope.wgsl, to the cache. This workgroup reads them from shared memory, as the cache holds them; no other one does.
var<workgroup> queries: array<vec4<f32>, BQ * D4>;
var<workgroup> new_keys: array<vec4<f32>, BQ * D4>;
var<workgroup> new_values: array<vec4<f32>, BQ * D4>;

fn prepare(kv: u32, first: u32, end: u32, pos: u32, index: u32) {
    let angles = u32(live(START_SLOT) + p.start_base);
    for (var n = 0u; n < (BQ * D + WG - 1u) / WG; n++) { // unroll
        let i = index + n * WG;
        let row = min(i / D, select(p.seq, 1u, ALONE) * GROUP - 1u);
        let d = i % D;
        let at = (row / GROUP * HEADS_Q + kv * GROUP + row % GROUP) * D;
        var x = load_q(at + d);
        if (ROTARY == D || d < ROTARY) { x = rotate(x, load_q(at + partner(d)), d, (angles + row / GROUP) * TABLE); }
        if (i < BQ * D) { queries[i / 4u][i % 4u] = x; }
    }
    let newest = max(first, pos);
    for (var i = index; newest < end && i < (end - newest) * D; i += WG) {
        let row = newest + i / D;
        let d = i % D;
        let at = ((row - pos) * HEADS_KV + kv) * D;
        var x = load_k(at + d);
        if (ROTARY == D || d < ROTARY) { x = rotate(x, load_k(at + partner(d)), d, (angles + row - pos) * TABLE); }
        let v = load_v(at + d);
        let to = (row * HEADS_KV + kv) * D + d;
        store_k_cache(to, x);
        store_v_cache(to, v);
        let here = (row - pos) * D4 + d / 4u;
        new_keys[here][d % 4u] = kept(x);
        new_values[here][d % 4u] = kept(v);
    }
    workgroupBarrier();
}
fn query(row0: u32, i: u32, kv: u32, d: u32) -> vec4<f32> { return queries[i * D4 + d]; }
fn new_key(row: u32, d: u32) -> vec4<f32> { return new_keys[row * D4 + d]; }
fn new_value(row: u32, d: u32) -> vec4<f32> { return new_values[row * D4 + d]; }
