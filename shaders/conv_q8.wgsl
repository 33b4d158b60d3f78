// out[b, c, y, x] = finish(sum over taps and input channels j of c's group of (x - zero) * weight), four neighbours in memory per
// invocation. Places outside of x hold zero and add nothing.
struct Params {
    total: u32, oc: u32, height: u32, width: u32,
    ic: u32, inputs: u32, outputs: u32, w_channel: u32,
    w_tap: u32, kernel_y: u32, kernel_x: u32, in_y: u32, in_x: u32,
    stride_y: u32, stride_x: u32, padding_y: u32, padding_x: u32, dilation_y: u32, dilation_x: u32,
    scale: f32, zero: i32, inverse: f32, out_zero: f32,
}

// Where tap t of place o lies in x, `limit` or more for nowhere.
fn place(o: u32, t: u32, stride: u32, padding: u32, dilation: u32, limit: u32) -> u32 {
    if (!TRANSPOSED) { return o * stride + t * dilation - padding; }
    let spread = o + padding - t * dilation;
    return select(limit, spread / stride, i32(spread) >= 0 && spread % stride == 0u);
}

fn value(m: u32, n: u32, sum: i32) -> f32 { return f32(sum) * (p.scale * load_scales(n)); }

fn element(at: u32) -> i32 {
    let i = min(at, p.total - 1u);
    let plane = i / p.width / p.height;
    let c = plane % p.oc;
    let first = plane / p.oc * p.ic + c / p.outputs * p.inputs;
    var sum = 0;
    for (var ty = 0u; ty < p.kernel_y; ty++) {
        let y = place(i / p.width % p.height, ty, p.stride_y, p.padding_y, p.dilation_y, p.in_y);
        for (var tx = 0u; tx < p.kernel_x; tx++) {
            let x = place(i % p.width, tx, p.stride_x, p.padding_x, p.dilation_x, p.in_x);
            if (y >= p.in_y || x >= p.in_x) { continue; }
            let source = (first * p.in_y + y) * p.in_x + x;
            let w = c * p.w_channel + (ty * p.kernel_x + tx) * p.w_tap;
            for (var j = 0u; j < p.inputs; j++) { sum += (load_x(source + j * p.in_y * p.in_x) - p.zero) * load_weight(w + j); }
        }
    }
    return finish(plane, c, sum);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = 4u * (group_index(wg, groups) * WG + lane);
    if (i >= p.total) { return; }
    store4_out(i / 4u, vec4<i32>(element(i), element(i + 1u), element(i + 2u), element(i + 3u)));
}
