// out[b, o, y, x] = sum_{c, i, j} weight[o, c, i, j] * x[b, c, tap(y, i), tap(x, j)] + bias[o] over the channels of o's group.
// Groups take `taken` channels and make `made`.
struct Params {
    count: u32, channels: u32, down: u32, across: u32,
    rows: u32, columns: u32, taken: u32, made: u32,
    low: f32, high: f32,
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = group_index(wg, groups) * WG + lane;
    if (index >= p.count) { return; }
    let x = index % p.across;
    let y = index / p.across % p.down;
    let plane = index / (p.across * p.down);
    let o = plane % p.channels;
    let first = plane / p.made * p.taken;
    var sum = 0.0;
    for (var c = 0u; c < p.taken; c++) {
        let weights = plane_of_weights(o, c) * KERNEL_X * KERNEL_Y;
        for (var i = 0u; i < KERNEL_Y; i++) {
            let row = tap(y, i, STRIDE_Y, PADDING_Y, DILATION_Y);
            if (row >= p.rows) { continue; }
            for (var j = 0u; j < KERNEL_X; j++) {
                let column = tap(x, j, STRIDE_X, PADDING_X, DILATION_X);
                if (column >= p.columns) { continue; }
                sum += load_weight(weights + i * KERNEL_X + j) * load_x(((first + c) * p.rows + row) * p.columns + column);
            }
        }
    }
    store_out(index, epilogue(o, 0u, sum));
}
