// The elements under neighbouring windows are read once for all of them.
const SPAN: u32 = (PER - 1u) * STRIDE_X + (KERNEL_X - 1u) * DILATION_X + 1u;
fn along(sums: ptr<function, array<f32, PER>>, line: u32, x: u32, weights: u32) {
    var under: array<f32, SPAN>;
    for (var s = 0u; s < SPAN; s++) { // unroll
        let column = x * STRIDE_X + s - PADDING_X;
        if (column < p.columns) { under[s] = load_x(line + column); }
    }
    for (var j = 0u; j < KERNEL_X; j++) { // unroll
        let w = load_weight(weights + j);
        for (var e = 0u; e < PER; e++) { (*sums)[e] += w * under[e * STRIDE_X + j * DILATION_X]; } // unroll
    }
}
