// Each window reads its own elements.
fn along(sums: ptr<function, array<f32, PER>>, line: u32, x: u32, weights: u32) {
    for (var j = 0u; j < KERNEL_X; j++) {
        let w = load_weight(weights + j);
        for (var e = 0u; e < PER; e++) {
            let column = tap(x + e, j, STRIDE_X, PADDING_X, DILATION_X);
            if (column < p.columns) { (*sums)[e] += w * load_x(line + column); }
        }
    }
}
