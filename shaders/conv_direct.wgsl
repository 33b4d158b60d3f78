// out[b, o, y, x] = sum_{c, i, j} weight[o, c, i, j] * x[b, c, tap(y, i), tap(x, j)] + bias[o] over the channels of o's group, PER
// neighbours x per invocation. Groups take `taken` channels and make `made`.
struct Params {
    alpha: f32, beta: f32, bias_m: u32, bias_n: u32,
    count: u32, channels: u32, down: u32, across: u32,
    rows: u32, columns: u32, taken: u32, made: u32,
    low: f32, high: f32,
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = group_index(wg, groups) * WG + lane;
    if (index >= p.count) { return; }
    let runs = (p.across + PER - 1u) / PER;
    let x = index % runs * PER;
    let y = index / runs % p.down;
    let plane = index / (runs * p.down);
    let o = plane % p.channels;
    let first = plane / p.made * p.taken;
    var sums: array<f32, PER>;
    for (var c = 0u; c < p.taken; c++) {
        let weights = plane_of_weights(o, c) * KERNEL_X * KERNEL_Y;
        for (var i = 0u; i < KERNEL_Y; i++) {
            let row = tap(y, i, STRIDE_Y, PADDING_Y, DILATION_Y);
            if (row < p.rows) { along(&sums, ((first + c) * p.rows + row) * p.columns, x, weights + i * KERNEL_X); }
        }
    }
    for (var e = 0u; e < PER; e++) { sums[e] = epilogue(o, 0u, sums[e]); } // unroll
    put(&sums, (plane * p.down + y) * p.across + x, min(PER, p.across - x));
}
