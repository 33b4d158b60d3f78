// Four factors of a row, 0 beyond k, of weights that lie by terms: channel of the picture, channel of the result, element.
fn x4(base: u32, k: u32) -> vec4<f32> {
    let row = base / p.k;
    var v = vec4<f32>(0.0);
    for (var j = 0u; j < 4u; j++) {
        let channel = (k + j) / (KERNEL_X * KERNEL_Y);
        if (k + j < p.k) { v[j] = load_x((channel * p.m + row) * KERNEL_X * KERNEL_Y + (k + j) % (KERNEL_X * KERNEL_Y)); }
    }
    return v;
}
