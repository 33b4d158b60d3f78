// Activations are taken as they are.
fn taken(m: u32, base: u32, k: u32) -> vec4<f32> { return x4(base, k); }
fn squares_of(m: u32) -> f32 { return 0.0; }
