//! Convolutions of one or two dimensions. Without groups they are matrix products, of the weights and of patches of the picture
//! that are gathered as they are needed; with groups each result is a sum of its own.

use super::linear::{Algorithm, Form, WeightLayout, choose, cut};
use super::window::{Pair, Window};
use super::{Bind, FLOATS, Lower, Op, Operand, Params};
use crate::error::Result;
use crate::graph::Dims;
use crate::shader::Kernel;
use crate::source;

/// Rows of this family.
pub const OPS: &[Op] = &[
    Op::new("aten.convolution.default", FLOATS, plain).notes(NOTES),
    Op::new("et_vk.conv_with_clamp.default", FLOATS, clamped).notes(NOTES),
];

const NOTES: &str = "one or two dimensions, also transposed; any groups";

struct Convolution {
    x: Operand,
    weight: Operand,
    bias: Option<Operand>,
    out: Operand,
    window: Window,
    /// Gradient of a convolution: windows lie in the result.
    transposed: bool,
    groups: u32,
    /// Rows and columns of the operand.
    from: Pair,
    /// Least and greatest result.
    bounds: Option<[f64; 2]>,
}

fn plain(lower: &mut Lower<'_>) -> Result<()> {
    convolve(lower, None)
}

fn clamped(lower: &mut Lower<'_>) -> Result<()> {
    let bounds = [lower.double_or(9, f64::NEG_INFINITY)?, lower.double_or(10, f64::INFINITY)?];
    convolve(lower, Some(bounds))
}

fn convolve(lower: &mut Lower<'_>, bounds: Option<[f64; 2]>) -> Result<()> {
    let (x, weight, bias) = (lower.tensor(0)?, lower.tensor(1)?, lower.optional_tensor(2)?);
    let (transposed, groups) = (lower.boolean(6)?, lower.int(8)?);
    let shapes = (split(x.dims), split(weight.dims));
    let (Some(([batch, channels], from)), Some(([outer, inner], kernel))) = shapes else {
        return Err(lower.unsupported(format!("{} with weights {}, expected rank 3 or 4", x.dims, weight.dims)));
    };
    let rank = x.dims.len() - 2;
    let window = Window {
        kernel,
        stride: lower.pair(3, rank, 1, 1)?.unwrap_or([1; 2]),
        padding: lower.pair(4, rank, 0, 0)?.unwrap_or_default(),
        dilation: lower.pair(5, rank, 1, 1)?.unwrap_or([1; 2]),
    };
    let extra = lower.pair(7, rank, 0, 0)?.unwrap_or_default();
    let groups = u32::try_from(groups).unwrap_or(0);
    let (taken, made) = if transposed {
        (outer, u64::from(inner) * u64::from(groups))
    } else {
        (inner.saturating_mul(groups), u64::from(outer))
    };
    let divides = groups > 0 && outer.is_multiple_of(groups) && !kernel.contains(&0);
    if !divides || taken != channels || weight.dims.len() != x.dims.len() || !weight.elem.is_float() {
        let (dtype, w) = (weight.dtype, weight.dims);
        return Err(lower.refuse(format!("{} in {groups} groups with weights {dtype} {w}", x.dims)));
    }
    if let Some(bias) = bias.filter(|b| u64::from(b.dims.numel()) != made || !b.elem.is_float()) {
        return Err(lower.refuse(format!("the bias is {} {}, expected {made} numbers", bias.dtype, bias.dims)));
    }
    let to = if transposed { window.cover(lower, from, extra)? } else { window.count(lower, from, false)? };
    let made = u32::try_from(made).unwrap_or(u32::MAX);
    let sizes = [batch, made, to[0], to[1]];
    let dims = if rank == 1 { Dims::new(&[batch, made, to[1]])? } else { Dims::new(&sizes)? };
    let out = lower.output(0, dims)?;
    lower.expect_floating_output()?;
    if out.dims.numel() == 0 {
        return Ok(());
    }
    let convolution = Convolution { x, weight, bias, out, window, transposed, groups, from, bounds };
    if groups == 1 { product(lower, &convolution, sizes) } else { direct(lower, &convolution, sizes) }
}

/// The first two dimensions, and rows and columns of a picture or of a line.
fn split(dims: Dims) -> Option<(Pair, Pair)> {
    match dims[..] {
        [a, b, columns] => Some(([a, b], [1, columns])),
        [a, b, rows, columns] => Some(([a, b], [rows, columns])),
        _ => None,
    }
}

impl Convolution {
    /// True when a patch is one pixel of the picture, and the patches are the picture.
    fn is_pointwise(&self) -> bool {
        let Window { kernel, stride, padding, .. } = self.window;
        !self.transposed && kernel == [1; 2] && stride == [1; 2] && padding == [0; 2]
    }

    /// Links how windows move and what becomes of a sum; the bias is the last binding.
    fn finish(&self, kernel: Kernel, binds: &mut Vec<Bind>) -> Kernel {
        let tap = if self.transposed { source!("lib/tap_transposed") } else { source!("lib/tap") };
        let mut kernel = self.window.name(kernel).link(tap);
        let mut sum = "sum";
        if let Some(bias) = self.bias {
            kernel = kernel.reads("bias", bias.elem);
            binds.push(bias.into());
            sum = "sum + load_bias(m)";
        }
        let mut value = sum.to_owned();
        if self.bounds.is_some() {
            kernel = kernel.link(source!("lib/float")).link(source!("lib/nan"));
            value = format!("bounded({sum}, p.low, p.high)");
        }
        kernel.function(format!("fn epilogue(m: u32, n: u32, sum: f32) -> f32 {{ return {value}; }}"))
    }

    fn limits(&self, params: Params) -> Params {
        let [low, high] = self.bounds.unwrap_or_default();
        params.f32(low.min(high) as f32).f32(high as f32)
    }
}

/// `out[batch, m, n] = sum_k weight[m, k] * patch[batch, n, k]`: channels of the result by its pixels.
fn product(lower: &mut Lower<'_>, c: &Convolution, [batch, m, rows, columns]: [u32; 4]) -> Result<()> {
    let n = rows * columns;
    let k = c.weight.dims.numel() / m;
    // A tile takes 16 terms at a time.
    lower.expect_turns(k.div_ceil(16).into())?;
    let pixels = c.from[0] * c.from[1];
    let form = Form { size: (m, n, k), layout: WeightLayout::ByTerm, group: None, halves: false };
    let (tile_m, tile_n) = match choose(&form, lower.caps()) {
        Algorithm::Tile { rows, columns } => (rows, columns),
        _ => (64, 64),
    };
    let kernel = cut(Kernel::new(source!("gemm_tile")), tile_m, tile_n);
    let kernel = kernel.alias("Mul", "f32").flag("HALF_SUMS", false).link(source!("lib/patches"));
    let kernel = kernel.link(if c.transposed { source!("lib/gemm_x_transposed") } else { source!("lib/gemm_x") });
    let patches = if c.is_pointwise() { source!("lib/weight_kn") } else { source!("lib/weight_patches") };
    let kernel = kernel.flag("ALIGNED", k.is_multiple_of(4)).link(patches);
    let kernel = kernel.reads("x", c.weight.elem).writes("out", c.out.elem).reads("weight", c.x.elem);
    let mut binds = vec![c.weight.into(), c.out.into(), c.x.into()];
    let kernel = c.finish(kernel, &mut binds);
    let (tiles_m, tiles_n) = (m.div_ceil(tile_m), n.div_ceil(tile_n));
    let params = Params::new().u32(m).u32(n).u32(k).u32(batch).u32(0).u32(c.x.dims.numel() / batch);
    let params = params.u32(tiles_m).u32(tiles_n).u32(k.div_ceil(8)).u32(n);
    let params = params.u32(c.from[0]).u32(c.from[1]).u32(pixels).u32(columns);
    let groups = u64::from(tiles_m) * u64::from(tiles_n) * u64::from(batch);
    lower.step(kernel, &binds, c.limits(params), groups)
}

/// One invocation for each result.
fn direct(lower: &mut Lower<'_>, c: &Convolution, [_, channels, rows, columns]: [u32; 4]) -> Result<()> {
    let kernel = Kernel::new(source!("conv_direct"));
    let kernel = kernel.reads("x", c.x.elem).reads("weight", c.weight.elem).writes("out", c.out.elem);
    let place = if c.transposed { "(o / p.made * p.taken + c) * p.made + o % p.made" } else { "o * p.taken + c" };
    let kernel = kernel.function(format!("fn plane_of_weights(o: u32, c: u32) -> u32 {{ return {place}; }}"));
    let mut binds = vec![c.x.into(), c.weight.into(), c.out.into()];
    let kernel = c.finish(kernel, &mut binds);
    let taken = c.x.dims.get(1).copied().unwrap_or(0) / c.groups;
    lower.expect_turns(u64::from(taken).saturating_mul(c.window.turns() + 1))?;
    let count = c.out.dims.numel();
    let params = Params::new().u32(count).u32(channels).u32(rows).u32(columns);
    let params = params.u32(c.from[0]).u32(c.from[1]).u32(taken).u32(channels / c.groups);
    lower.each(kernel, &binds, c.limits(params), count)
}
