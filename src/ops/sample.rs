//! Pictures sampled between their pixels: scaled to another size, or read where a grid says.

use super::window::{Pair, resized};
use super::{Bind, FLOATS, Lower, Op, Operand, Params};
use crate::error::Result;
use crate::graph::{Dims, Value};
use crate::shader::{Kernel, Source};
use crate::source;

/// Rows of this family.
pub const OPS: &[Op] = &[
    Op::new("aten.upsample_nearest2d.vec", FLOATS, nearest),
    Op::new("aten.upsample_bilinear2d.vec", FLOATS, bilinear),
    Op::new("aten.grid_sampler_2d.default", FLOATS, grid_sampler).notes("every interpolation, padding and alignment"),
    Op::new("et_vk.grid_priors.default", FLOATS, grid_priors),
];

/// The requested size of operand 0, and its scales where they were given instead.
fn size(lower: &mut Lower<'_>, scales: usize) -> Result<(Pair, [Option<f64>; 2])> {
    let x = lower.tensor(0)?;
    let (_, from) = lower.picture(x)?;
    let factors = lower.doubles(scales)?;
    if let Some(size) = lower.pair(1, 2, 1, 1)? {
        return Ok((size, [None; 2]));
    }
    let &[y, x] = &factors[..] else {
        return Err(lower.refuse(format!("scales {factors:?}, expected two or a size")));
    };
    let scaled = |size: u32, scale: f64| {
        let size = (f64::from(size) * scale).floor();
        (scale > 0.0 && (1.0..=f64::from(i32::MAX)).contains(&size)).then_some(size as u32)
    };
    match [scaled(from[0], y), scaled(from[1], x)] {
        [Some(rows), Some(columns)] => Ok(([rows, columns], [Some(y), Some(x)])),
        _ => Err(lower.refuse(format!("a picture of {from:?} cannot be scaled by {factors:?}"))),
    }
}

/// Elements of the operand per element of the result, rounded as PyTorch does it.
fn ratio(from: u32, to: u32, scale: Option<f64>) -> f32 {
    scale.map_or(from as f32 / to as f32, |scale| (1.0 / scale) as f32)
}

fn nearest(lower: &mut Lower<'_>) -> Result<()> {
    let (to, scales) = size(lower, 2)?;
    resample(lower, to, source!("lib/resample_nearest"), scales, ratio)
}

fn bilinear(lower: &mut Lower<'_>) -> Result<()> {
    let (to, scales) = size(lower, 3)?;
    if lower.boolean(2)? {
        let corners =
            |from: u32, to: u32, _| if to > 1 { from.saturating_sub(1) as f32 / (to - 1) as f32 } else { 0.0 };
        return resample(lower, to, source!("lib/resample_corners"), scales, corners);
    }
    resample(lower, to, source!("lib/resample_centers"), scales, ratio)
}

fn resample(
    lower: &mut Lower<'_>,
    to: Pair,
    piece: Source,
    scales: [Option<f64>; 2],
    ratio: fn(u32, u32, Option<f64>) -> f32,
) -> Result<()> {
    let x = lower.tensor(0)?;
    let (_, [rows, columns]) = lower.picture(x)?;
    let out = lower.output(0, resized(x, to)?)?;
    if rows * columns == 0 && out.dims.numel() > 0 {
        return Err(lower.refuse(format!("{} has no pixels", x.dims)));
    }
    let params = Params::new().u32(out.dims.numel()).u32(to[0]).u32(to[1]).u32(rows).u32(columns);
    let params = params.f32(ratio(rows, to[0], scales[0])).f32(ratio(columns, to[1], scales[1]));
    sample(lower, Kernel::new(source!("resample")).link(piece), [x, out], None, params)
}

/// Adds the step of one invocation for each element of the second operand.
fn sample(
    lower: &mut Lower<'_>,
    kernel: Kernel,
    [x, out]: [Operand; 2],
    grid: Option<Operand>,
    params: Params,
) -> Result<()> {
    lower.expect_floating_output()?;
    let mut kernel = kernel.reads("x", x.elem).writes("out", out.elem);
    let mut binds: Vec<Bind> = vec![x.into(), out.into()];
    if let Some(grid) = grid {
        kernel = kernel.reads("grid", grid.elem);
        binds.push(grid.into());
    }
    lower.each(kernel, &binds, params, out.dims.numel())
}

/// Pixels of `[N, C, H, W]` at the places of `[N, rows, columns, 2]`: x and y between -1 and 1.
fn grid_sampler(lower: &mut Lower<'_>) -> Result<()> {
    let (x, grid) = (lower.tensor(0)?, lower.tensor(1)?);
    let modes = (lower.int(2)?, lower.int(3)?, lower.boolean(4)?);
    let (&[batch, channels, rows, columns], &[images, down, across, 2]) = (&x.dims[..], &grid.dims[..]) else {
        return Err(lower.refuse(format!("{} at {}, expected [N, C, H, W] and [N, H, W, 2]", x.dims, grid.dims)));
    };
    if batch != images || !grid.elem.is_float() || rows * columns == 0 {
        return Err(lower.refuse(format!("{} at {} {}", x.dims, grid.dtype, grid.dims)));
    }
    let (interpolation, padding, corners) = modes;
    let interpolation = match interpolation {
        0 => source!("lib/grid_bilinear"),
        1 => source!("lib/grid_nearest"),
        2 => source!("lib/grid_bicubic"),
        other => return Err(lower.refuse(format!("interpolation {other}, expected 0 to 2"))),
    };
    if !(0..=2).contains(&padding) {
        return Err(lower.refuse(format!("padding {padding}, expected 0 to 2")));
    }
    let out = lower.output(0, Dims::new(&[batch, channels, down, across])?)?;
    let params = Params::new().u32(out.dims.numel()).u32(down).u32(across).u32(rows).u32(columns).u32(channels);
    let kernel = Kernel::new(source!("grid_sample")).link(interpolation);
    let kernel = kernel.set("PAD", padding as u32).flag("CORNERS", corners);
    sample(lower, kernel, [x, out], Some(grid), params)
}

/// `[H * W, 2]`: x and y of each pixel of a picture, shifted and scaled; the picture itself is not read.
fn grid_priors(lower: &mut Lower<'_>) -> Result<()> {
    let x = lower.tensor(0)?;
    let (stride, offset) = (lower.double(1)?, lower.double(2)?);
    let (_, [rows, columns]) = lower.picture(x)?;
    let out = lower.output(0, Dims::new(&[rows * columns, 2])?)?;
    lower.expect_floating_output()?;
    let count = out.dims.numel();
    let kernel = Kernel::new(source!("grid_priors")).writes("out", out.elem);
    let params = Params::new().u32(count).u32(columns).f32(stride as f32).f32(offset as f32);
    lower.each(kernel, &[out.into()], params, count)
}

impl Lower<'_> {
    /// Floating-point list argument `index`; None as an empty list.
    fn doubles(&self, index: usize) -> Result<Vec<f64>> {
        match self.value(index)? {
            Value::Doubles(items) => Ok(items.clone()),
            Value::Ints(items) => Ok(items.iter().map(|&n| n as f64).collect()),
            Value::Null => Ok(Vec::new()),
            _ => Err(self.wrong(index, "a list of numbers")),
        }
    }
}
