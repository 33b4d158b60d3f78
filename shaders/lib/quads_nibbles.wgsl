// Numbers times nibbles minus 8, even k in the high nibble of a byte.
alias T = f32;
alias W = vec4<f32>;

fn weight_byte(at: u32) -> u32 {
    let i = min(at, arrayLength(&weight) * 4u - 1u);
    return weight[i >> 2u] >> (8u * (i & 3u));
}
fn x_quad(m: u32, q: u32) -> vec4<f32> { return x4(m * p.k, q * 4u); }
fn w_quad(n: u32, q: u32) -> W {
    let at = n * p.w_row + q * 2u;
    let a = weight_byte(at);
    let b = weight_byte(at + 1u);
    return vec4<f32>(vec4<u32>(a >> 4u, a, b >> 4u, b) & vec4<u32>(15u)) - 8.0;
}
fn add(sum: f32, x: vec4<f32>, w: W) -> f32 { return sum + dot(x, w); }
fn value(m: u32, n: u32, sum: f32) -> f32 { return sum * load_scales(n); }
