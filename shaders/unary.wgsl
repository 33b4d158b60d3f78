// out[i] = f(x[i]); `f` is the operator's formula.
struct Params { n4: u32, a: f32, b: f32 }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let q = group_index(wg, groups) * WG + lane;
    if (q >= p.n4) { return; }
    let x = load4_x(q);
    store4_out(q, vec4<R>(f(x.x), f(x.y), f(x.z), f(x.w)));
}
