// Numbers times bytes.
alias T = f32;
alias W = vec4<f32>;

fn x_quad(m: u32, q: u32) -> vec4<f32> { return x4(m * p.k, q * 4u); }
fn w_quad(n: u32, q: u32) -> W { return vec4<f32>(unpack4xI8(weight_bytes(n * p.w_row + q * 4u, q * 4u))); }
fn add(sum: f32, x: vec4<f32>, w: W) -> f32 { return sum + dot(x, w); }
fn value(m: u32, n: u32, sum: f32) -> f32 { return sum * load_scales(n); }
