// The elements under neighbouring windows are read once for all of them, four at a time; rows of the picture are whole fours.
const SPAN: u32 = (PER - 1u) * STRIDE_X + (KERNEL_X - 1u) * DILATION_X + 1u;
// Elements before the first one in its four.
const LEAD: u32 = (4u - PADDING_X % 4u) % 4u;
const QUADS: u32 = (LEAD + SPAN + 3u) / 4u;
fn along(sums: ptr<function, array<f32, PER>>, line: u32, x: u32, weights: u32) {
    var under: array<f32, 4u * QUADS>;
    for (var q = 0u; q < QUADS; q++) { // unroll
        let column = x * STRIDE_X + 4u * q - PADDING_X - LEAD;
        if (column < p.columns) {
            let four = load4_x((line + column) / 4u);
            for (var e = 0u; e < 4u; e++) { under[4u * q + e] = four[e]; } // unroll
        }
    }
    for (var j = 0u; j < KERNEL_X; j++) { // unroll
        let w = load_weight(weights + j);
        for (var e = 0u; e < PER; e++) { (*sums)[e] += w * under[LEAD + e * STRIDE_X + j * DILATION_X]; } // unroll
    }
}
