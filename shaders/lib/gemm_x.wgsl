// Four activations of a row, 0 beyond k.
fn x4(base: u32, k: u32) -> vec4<f32> {
    if (ALIGNED) {
        if (k < p.k) { return load4_x((base + k) / 4u); }
        return vec4<f32>(0.0);
    }
    var v = vec4<f32>(0.0);
    for (var j = 0u; j < 4u; j++) { if (k + j < p.k) { v[j] = load_x(base + k + j); } }
    return v;
}
