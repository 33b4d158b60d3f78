// out[i] = the lowest byte of x[i].
struct Params { quads: u32 }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let q = group_index(wg, groups) * WG + lane;
    if (q < p.quads) { store4_out(q, load4_x(q)); }
}
