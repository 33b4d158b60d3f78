// Element k of the patch of result n, channel by channel of the picture.
struct Column { first: u32, y: u32, x: u32 }
fn column_of(b: u32, n: u32) -> Column { return Column(b * p.w_batch, n / p.across, n % p.across); }
fn place(column: Column, k: u32) -> u32 {
    let row = tap(column.y, k / KERNEL_X % KERNEL_Y, STRIDE_Y, PADDING_Y, DILATION_Y);
    let x = tap(column.x, k % KERNEL_X, STRIDE_X, PADDING_X, DILATION_X);
    let at = column.first + k / (KERNEL_X * KERNEL_Y) * p.pixels + row * p.columns + x;
    return select(NOWHERE, at, row < p.rows && x < p.columns);
}
