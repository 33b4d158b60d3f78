// Terms are columns of a and rows of a 4-bit weight, whose scales hold for groups along c.
fn a_at(t: u32, r: u32) -> f32 { return load_a(r * p.terms + t); }
fn scale_at(t: u32, c: u32) -> f32 { return load_scales(min(c / p.group, p.groups - 1u) * p.scale_k + t); }
fn b_at(t: u32, c: u32) -> vec4<f32> {
    let nibbles = vec4<u32>(weight[t * p.w_row + c / 8u] >> (4u * (c & 4u))) >> vec4<u32>(0u, 4u, 8u, 12u);
    let w = vec4<f32>(nibbles & vec4<u32>(15u)) - 8.0;
    if (WHOLE) { return w * scale_at(t, c); }
    return w * vec4<f32>(scale_at(t, c), scale_at(t, c + 1u), scale_at(t, c + 2u), scale_at(t, c + 3u));
}
