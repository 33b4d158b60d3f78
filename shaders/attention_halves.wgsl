// Queries, and the keys and values that a call sees, as halves in fragments of FRAG x FRAG for `attention_coop`. A row is
// divided by a power of two where halves cannot hold it; queries take the scale of the scores. A subgroup per row.
struct Params {
    seq: u32, heads_q: u32, heads_kv: u32, capacity: u32,
    pos_slot: u32, pos_base: i32, scale: f32, rows: u32, keys: u32,
}
const D4: u32 = D / 4u;
const FRAGMENT: u32 = FRAG * FRAG / 4u;

fn place(line: u32, d: u32) -> u32 {
    return (line / FRAG * (D / FRAG) + d / FRAG) * FRAGMENT + line % FRAG * (FRAG / 4u) + d % FRAG / 4u;
}

// The power of two that brings `most` near 1; 1 where halves hold the row as it is.
fn unit_of(most: f32) -> f32 {
    if ((most >= 0.0625 && most < 32768.0) || most < 1e-30 || most > 3.4028234e38) { return 1.0; }
    return bitcast<f32>(bitcast<u32>(most) & 0x7f800000u);
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) wg: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(num_subgroups) subgroups: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    let g = p.heads_q / p.heads_kv;
    let context = min(u32(live(p.pos_slot) + p.pos_base) + p.seq, p.capacity);
    // Whole blocks of keys, so that a block beyond the last key holds zeros.
    let padded = (context + BLOCK - 1u) / BLOCK * BLOCK;
    let queries = p.rows * p.heads_kv;
    let lines = queries + 2u * padded * p.heads_kv;
    for (var line = group_index(wg, groups) * subgroups + subgroup; line < lines; line += groups.x * groups.y * subgroups) {
        let is_query = line < queries;
        let key_line = (line - queries) % (padded * p.heads_kv);
        let is_key = line - queries < padded * p.heads_kv;
        let kv = select(key_line / padded, line / p.rows, is_query);
        let row = select(key_line % padded, line % p.rows, is_query);
        var v = vec4<f32>();
        if (lane < D4) {
            if (is_query) {
                let s = row / g;
                if (s < p.seq) { v = load4_q((s * p.heads_q + kv * g + row % g) * D4 + lane) * p.scale; }
            } else if (row < context) {
                let at = (row * p.heads_kv + kv) * D4 + lane;
                if (is_key) { v = load4_k_cache(at); } else { v = load4_v_cache(at); }
            }
        }
        let most = subgroupMax(max(max(abs(v.x), abs(v.y)), max(abs(v.z), abs(v.w))));
        let unit = unit_of(most);
        let h = vec4<f16>(v / unit);
        if (is_query) {
            let at = kv * p.rows + row;
            if (lane < D4) { q_half[place(at, lane * 4u)] = h; }
            if (lane == 0u) { q_unit[at] = unit; }
        } else {
            let at = kv * p.keys + row;
            if (is_key) {
                if (lane < D4) { k_half[place(at, lane * 4u)] = h; }
                if (lane == 0u) { kv_unit[at].x = unit; }
            } else {
                if (lane < D4) { v_half[place(at, lane * 4u)] = h; }
                if (lane == 0u) { kv_unit[at].y = unit; }
            }
        }
    }
}
