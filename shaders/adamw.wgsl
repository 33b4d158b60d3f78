// Decoupled weight decay, then Adam: m and v move towards g and g^2, and the parameter by rate * (m / c1) / (sqrt(v / c2) + eps).
struct Params {
    quads: u32, rate: f32, kept: f32, eps: f32,
    beta_1: f32, rest_1: f32, beta_2: f32, rest_2: f32,
    correction_1: f32, correction_2: f32,
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let q = group_index(wg, groups) * WG + lane;
    if (q >= p.quads) { return; }
    let g = load4_gradient(q);
    let m = load4_mean(q) * p.beta_1 + g * p.rest_1;
    let v = load4_variance(q) * p.beta_2 + g * g * p.rest_2;
    store4_mean(q, m);
    store4_variance(q, v);
    let step = p.rate * (m / p.correction_1) / (sqrt(v / p.correction_2) + p.eps);
    store4_parameter(q, load4_parameter(q) * p.kept - step);
}
