// A convolution as a matrix product: channels of the result by its pixels; terms are the pixels of a patch, channel by channel.
// The picture has `rows` rows, `columns` columns and so many pixels, the result `across` columns; it stays in low..high.
struct Params {
    m: u32, n: u32, k: u32, batch: u32,
    x_batch: u32, w_batch: u32, tiles_m: u32, tiles_n: u32,
    k8: u32, width: u32, rows: u32, columns: u32,
    pixels: u32, across: u32, low: f32, high: f32,
}
