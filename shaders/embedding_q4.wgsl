// out[t, d] = (nibble d of row index[t] - 8) * scale of d's group; eight d per invocation. An index outside is clamped. Of a
// table that is bound in parts, this is the part of `held` rows from `first` on.
struct Params { count: u32, octets: u32, groups: u32, octets_per_group: u32, rows: i32, first: u32, held: u32 }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = group_index(wg, groups) * WG + lane;
    if (i >= p.count) { return; }
    let row = u32(clamp(load_index(i / p.octets), 0, p.rows - 1)) - p.first;
    if (row >= p.held) { return; }
    let octet = i % p.octets;
    let word = w[row * p.octets + octet];
    let scale = load_scales(row * p.groups + octet / p.octets_per_group);
    let low = (vec4<f32>(unpack4xU8(word & 0x0f0f0f0fu)) - 8.0) * scale;
    let high = (vec4<f32>(unpack4xU8((word >> 4u) & 0x0f0f0f0fu)) - 8.0) * scale;
    let even = select(high, low, LOW_FIRST);
    let odd = select(low, high, LOW_FIRST);
    store4_out(2u * i, vec4<f32>(even.x, odd.x, even.y, odd.y));
    store4_out(2u * i + 1u, vec4<f32>(even.z, odd.z, even.w, odd.w));
}
