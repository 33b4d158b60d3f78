// The sum divided by p.divisor, by the elements under the window or, with PADDED, by those in the padding as well.
struct Pool { sum: f32, count: u32 }
fn start() -> Pool { return Pool(); }
fn take(pool: ptr<function, Pool>, v: f32, place: u32) {
    (*pool).sum += v;
    (*pool).count += 1u;
}
// Elements of a window that lie before the end of the padded picture.
fn reach(o: u32, kernel: u32, stride: u32, padding: u32, size: u32) -> u32 { return min(kernel, size + 2u * padding - o * stride); }
fn finish(index: u32, pool: Pool, y: u32, x: u32) -> f32 {
    if (pool.count == 0u) { return 0.0; }
    if (DIVIDED) { return pool.sum / p.divisor; }
    if (!PADDED) { return pool.sum / f32(pool.count); }
    let rows = reach(y, KERNEL_Y, STRIDE_Y, PADDING_Y, p.rows);
    return pool.sum / f32(rows * reach(x, KERNEL_X, STRIDE_X, PADDING_X, p.columns));
}
