// A matrix product: sizes, elements between batches, strides of the added tensor and of the scales, tiles per dimension,
// columns of the whole result, of which these n may be a part. Where the columns are patches, the picture's rows, columns and
// pixels, and how many patches lie side by side; rows of the result if those are not
// its columns. The least and the greatest result; eps of a norm.
struct Params {
    m: u32, n: u32, k: u32, batch: u32,
    x_batch: u32, w_batch: u32, bias_m: u32, bias_n: u32,
    alpha: f32, beta: f32, tiles_m: u32, tiles_n: u32,
    k8: u32, group: u32, scale_k: u32, scale_n: u32,
    width: u32, rows: u32, columns: u32, pixels: u32,
    across: u32, down: u32, low: f32, high: f32,
    eps: f32,
}
// An index of nothing.
const NOWHERE: u32 = 0xffffffffu;
