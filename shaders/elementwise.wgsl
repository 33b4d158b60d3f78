// out[i] = f(operands at i): `f` is the operator's formula, `apply` reads the operands as their layouts need it.
struct Params {
    n4: u32, rank: u32, s: C, t: C,
    sizes: array<vec4<u32>, 2>,
    strides: array<array<vec4<u32>, 2>, 3>,
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let q = group_index(wg, groups) * WG + lane;
    if (q >= p.n4) { return; }
    store4_out(q, apply(q));
}
