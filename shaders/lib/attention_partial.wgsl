// Keep this part's sum and, behind it, its maximum and weight for the merge.
fn finish(row: u32, split: u32, d: u32, acc: vec4<f32>, row_max: f32, row_sum: f32) {
    let at = (row * SPLITS + split) * (V4 + 1u);
    parts[at + d] = acc;
    if (d == 0u) { parts[at + V4] = vec4<f32>(row_max, row_sum, 0.0, 0.0); }
}
