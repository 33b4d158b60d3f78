// Keep this part's sum, maximum and weight for the merge.
fn finish(row: u32, split: u32, d: u32, acc: vec4<f32>, row_max: f32, row_sum: f32) {
    sums[(row * p.splits + split) * V4 + d] = acc;
    if (d == 0u) { stats[row * p.splits + split] = vec2<f32>(row_max, row_sum); }
}
