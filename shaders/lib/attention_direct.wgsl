// One part holds all keys: divide and store.
fn finish(row: u32, split: u32, d: u32, acc: vec4<f32>, row_max: f32, row_sum: f32) {
    row_out(row, d, acc / row_sum);
}
