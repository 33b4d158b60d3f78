// Activations are multiplied by the weight of their norm, and the squares of each row are summed on the way.
var<private> squares: array<f32, MB>;
fn taken(m: u32, base: u32, k: u32) -> vec4<f32> {
    if (!WHOLE && k >= K) { return vec4<f32>(0.0); }
    let v = x4(base, k);
    squares[m] += dot(v, v);
    return v * norm4(k);
}
fn squares_of(m: u32) -> f32 { return subgroupAdd(squares[m]); }
