// A transposed convolution by phases: results whose places leave the same rest when divided by the stride meet the same elements of
// the window, every PERIOD-th from a first one on. Batches are phases of images, columns the results of a phase.
const PHASES: u32 = STRIDE_Y * STRIDE_X;
const NONE: u32 = 0x1000000u;

// The first element that results of a phase meet; beyond every window when there is none.
fn first_tap(phase: u32, stride: u32, padding: u32, divisor: u32, inverse: u32, period: u32) -> u32 {
    let rest = (phase + padding) % stride;
    return select(NONE, rest / divisor * inverse % period, rest % divisor == 0u);
}
fn first_row(phase: u32) -> u32 { return first_tap(phase / STRIDE_X, STRIDE_Y, PADDING_Y, DIVISOR_Y, INVERSE_Y, PERIOD_Y); }
fn first_column(phase: u32) -> u32 { return first_tap(phase % STRIDE_X, STRIDE_X, PADDING_X, DIVISOR_X, INVERSE_X, PERIOD_X); }

fn line_of(b: u32, row: u32) -> u32 { return (b % PHASES * p.m + row) * p.k; }

// Four factors of a row, 0 beyond k, of weights that lie by terms: channel of the picture, channel of the result, element.
fn x4(base: u32, k: u32) -> vec4<f32> {
    let line = base / p.k;
    let y = first_row(line / p.m);
    let x = first_column(line / p.m);
    var v = vec4<f32>(0.0);
    for (var j = 0u; j < 4u; j++) { // unroll
        let t = k + j;
        let i = y + t / TAPS_X % TAPS_Y * PERIOD_Y;
        let j_x = x + t % TAPS_X * PERIOD_X;
        if (t < p.k && i < KERNEL_Y && j_x < KERNEL_X) {
            v[j] = load_x(((t / (TAPS_Y * TAPS_X) * p.m + line % p.m) * KERNEL_Y + i) * KERNEL_X + j_x);
        }
    }
    return v;
}

struct Column { first: u32, y: u32, x: u32, i: u32, j: u32 }

// Where the first element of the window lies for result n of a phase.
fn column_of(b: u32, n: u32) -> Column {
    let phase = b % PHASES;
    let i = first_row(phase);
    let j = first_column(phase);
    let y = i32(n / p.across * STRIDE_Y + phase / STRIDE_X + PADDING_Y) - i32(i * DILATION_Y);
    let x = i32(n % p.across * STRIDE_X + phase % STRIDE_X + PADDING_X) - i32(j * DILATION_X);
    return Column(b / PHASES * p.w_batch, u32(y / i32(STRIDE_Y)), u32(x / i32(STRIDE_X)), i, j);
}

fn place(column: Column, k: u32) -> u32 {
    let i = k / TAPS_X % TAPS_Y;
    let j = k % TAPS_X;
    let y = column.y - i * (DILATION_Y / DIVISOR_Y);
    let x = column.x - j * (DILATION_X / DIVISOR_X);
    let at = column.first + k / (TAPS_Y * TAPS_X) * p.pixels + y * p.columns + x;
    let under = column.i + i * PERIOD_Y < KERNEL_Y && column.j + j * PERIOD_X < KERNEL_X;
    return select(NOWHERE, at, under && y < p.rows && x < p.columns);
}

fn out_at(b: u32, row: u32, column: u32) -> u32 {
    let phase = b % PHASES;
    let y = column / p.across * STRIDE_Y + phase / STRIDE_X;
    let x = column % p.across * STRIDE_X + phase % STRIDE_X;
    return select(NOWHERE, ((b / PHASES * p.m + row) * p.down + y) * p.width + x, y < p.down && x < p.width);
}
