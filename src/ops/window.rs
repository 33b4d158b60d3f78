//! Windows that move over the last two dimensions of a tensor, which are called a picture here.

use super::{Lower, Operand};
use crate::error::Result;
use crate::graph::Dims;
use crate::shader::Kernel;

/// Numbers for the two dimensions of a picture: along its columns and along its rows.
pub(super) type Pair = [u32; 2];

/// Above this no argument of a window makes sense, and below it sums of them do not overflow.
const MOST: i64 = 1 << 24;

/// How a window looks and moves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Elements under the window.
    pub kernel: Pair,
    /// Distance between neighbouring windows.
    pub stride: Pair,
    /// Elements that the picture is extended by on each side.
    pub padding: Pair,
    /// Distance between neighbouring elements under the window.
    pub dilation: Pair,
}

impl Window {
    /// How many windows there are along each dimension of a picture; with `ceil` the last one may hang over.
    pub fn count(&self, lower: &Lower<'_>, size: Pair, ceil: bool) -> Result<Pair> {
        let along = |axis: usize| {
            let [size, kernel, stride, padding, dilation] = self.along(axis, size);
            let rest = size + 2 * padding - dilation * (kernel - 1) - 1;
            let room = if ceil { rest + stride - 1 } else { rest };
            let steps = room / stride;
            let hangs_over = ceil && steps * stride >= size + padding;
            (room >= 0).then_some(steps + i64::from(!hangs_over))
        };
        self.pair(lower, size, [along(0), along(1)])
    }

    /// The size of a picture that has `size` windows, with `extra` elements more at its end.
    pub fn cover(&self, lower: &Lower<'_>, size: Pair, extra: Pair) -> Result<Pair> {
        let along = |axis: usize| {
            let [size, kernel, stride, padding, dilation] = self.along(axis, size);
            let extra = extra.get(axis).copied().map_or(0, i64::from);
            (size > 0).then_some((size - 1) * stride - 2 * padding + dilation * (kernel - 1) + extra + 1)
        };
        self.pair(lower, size, [along(0), along(1)])
    }

    /// The phases of a transposed convolution whose strides are small.
    pub fn phases(&self) -> Phases {
        let along = |axis: usize| {
            let [_, kernel, stride, _, dilation] = self.along(axis, [0; 2]).map(|n| n as u32);
            let divisor = common_divisor(stride, dilation);
            let period = stride / divisor;
            let undoes = |n: &u32| n * (dilation / divisor % period) % period == 1 % period;
            let inverse = (0..period).find(undoes).unwrap_or(0);
            [stride, kernel.div_ceil(period), period, divisor, inverse]
        };
        let [[a, b, c, d, e], [f, g, h, i, j]] = [along(0), along(1)];
        Phases { count: [a, f], taps: [b, g], period: [c, h], divisor: [d, i], inverse: [e, j] }
    }

    /// How often loops over the elements under the window turn, one over the columns of each row.
    pub fn turns(&self) -> u64 {
        let [rows, columns] = self.kernel.map(u64::from);
        rows.saturating_mul(columns + 1)
    }

    /// True when windows are at least twice as long as the padding, as PyTorch asks of pools.
    pub fn reaches_out_of_padding(&self) -> bool {
        let long = |axis| {
            let [_, kernel, _, padding, dilation] = self.along(axis, [0; 2]);
            2 * padding <= dilation * (kernel - 1) + 1
        };
        long(0) && long(1)
    }

    fn along(&self, axis: usize, size: Pair) -> [i64; 5] {
        [size, self.kernel, self.stride, self.padding, self.dilation]
            .map(|pair| pair.get(axis).map_or(0, |&n| n.into()))
    }

    fn pair(&self, lower: &Lower<'_>, size: Pair, found: [Option<i64>; 2]) -> Result<Pair> {
        let fits = |n: Option<i64>| n.and_then(|n| u32::try_from(n).ok()).filter(|&n| n < 1 << 30);
        match (found.map(fits), size.iter().all(|&n| n < 1 << 30)) {
            ([Some(rows), Some(columns)], true) => Ok([rows, columns]),
            _ => Err(lower.refuse(format!("{self:?} does not fit a picture of {size:?}"))),
        }
    }

    /// Names the window's numbers in a kernel.
    pub fn name(&self, kernel: Kernel) -> Kernel {
        let [(ky, kx), (sy, sx), (py, px), (dy, dx)] =
            [self.kernel, self.stride, self.padding, self.dilation].map(|[y, x]| (y, x));
        let kernel = kernel.set("KERNEL_Y", ky).set("KERNEL_X", kx).set("STRIDE_Y", sy).set("STRIDE_X", sx);
        kernel.set("PADDING_Y", py).set("PADDING_X", px).set("DILATION_Y", dy).set("DILATION_X", dx)
    }
}

/// How the results of a transposed convolution meet its window: those whose places leave the same rest when divided by the
/// stride are a phase, and meet every `period`-th element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Phases {
    /// Phases.
    pub count: Pair,
    /// Elements that a phase meets at most.
    pub taps: Pair,
    period: Pair,
    /// Largest common divisor of stride and dilation; only phases that it divides meet any element.
    divisor: Pair,
    /// The number that undoes, within a period, a multiplication by the dilation over the divisor.
    inverse: Pair,
}

impl Phases {
    /// Names the numbers in a kernel.
    pub fn name(&self, kernel: Kernel) -> Kernel {
        let Phases { taps, period, divisor, inverse, .. } = *self;
        let kernel = kernel.set("TAPS_Y", taps[0]).set("TAPS_X", taps[1]);
        let kernel = kernel.set("PERIOD_Y", period[0]).set("PERIOD_X", period[1]);
        let kernel = kernel.set("DIVISOR_Y", divisor[0]).set("DIVISOR_X", divisor[1]);
        kernel.set("INVERSE_Y", inverse[0]).set("INVERSE_X", inverse[1])
    }
}

fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a.max(1) } else { common_divisor(b, a % b) }
}

impl Lower<'_> {
    /// Integer list argument `index` for a picture of `rank` dimensions, 1 or 2: a number for each, or one for all. A single
    /// row has `still` along its columns.
    pub(super) fn pair(&mut self, index: usize, rank: usize, least: u32, still: u32) -> Result<Option<Pair>> {
        let list = self.ints(index)?;
        let narrow = |&n: &i64| (i64::from(least)..MOST).contains(&n).then_some(n as u32);
        match (list.iter().map(narrow).collect::<Option<Vec<u32>>>().as_deref(), rank) {
            (Some([]), _) => Ok(None),
            (Some(&[x]), 1) => Ok(Some([still, x])),
            (Some(&[n]), _) => Ok(Some([n, n])),
            (Some(&[y, x]), 2) => Ok(Some([y, x])),
            _ => Err(self.refuse(format!("argument {index} is {list:?}, expected {rank} numbers, at least {least}"))),
        }
    }

    /// Planes of a floating-point tensor, and rows and columns of each.
    pub(super) fn picture(&self, x: Operand) -> Result<(u32, Pair)> {
        match x.dims[..] {
            [channels, rows, columns] => Ok((channels, [rows, columns])),
            [batch, channels, rows, columns] => Ok((batch * channels, [rows, columns])),
            _ => Err(self.refuse(format!("its operand is {}, expected three or four dimensions", x.dims))),
        }
    }
}

/// The shape of planes like those of `x` with pictures of another size.
pub(super) fn resized(x: Operand, [rows, columns]: Pair) -> Result<Dims> {
    let rank = x.dims.len();
    x.dims.with(rank.saturating_sub(2), rows)?.with(rank.saturating_sub(1), columns)
}
