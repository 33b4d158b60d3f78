// out = (x - mean[c]) / sqrt(variance[c] + eps) * weight(c) + bias(c), with c the channel; four elements per invocation.
struct Params { quads: u32, channels: u32, pixels: u32, eps: f32 }

fn normed(x: f32, i: u32) -> f32 {
    let c = i / p.pixels % p.channels;
    return (x - load_mean(c)) * inverseSqrt(load_variance(c) + p.eps) * weight(c) + bias(c);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let q = group_index(wg, groups) * WG + lane;
    if (q >= p.quads) { return; }
    let x = load4_x(q);
    let i = 4u * q;
    store4_out(q, vec4<f32>(normed(x.x, i), normed(x.y, i + 1u), normed(x.z, i + 2u), normed(x.w, i + 3u)));
}
