//! Convolutions of one or two dimensions. Without groups they are matrix products, of the weights and of patches of the picture
//! that are gathered as they are needed; with groups each result is a sum of its own.

use super::linear::{Patches, Product, Weights, epilogue, lower_product};
use super::window::{Pair, Phases, Window};
use super::{FLOATS, Lower, Op, Operand, Params};
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

/// Phases along a dimension at most.
const MOST_PHASES: u32 = 64;

struct Convolution {
    x: Operand,
    weight: Operand,
    bias: Option<Operand>,
    out: Operand,
    window: Window,
    /// Gradient of a convolution: windows lie in the result.
    transposed: bool,
    groups: u32,
    /// Rows and columns of the operand and of the result.
    from: Pair,
    to: Pair,
    /// Least and greatest result.
    bounds: Option<[f32; 2]>,
}

fn plain(lower: &mut Lower<'_>) -> Result<()> {
    convolve(lower, None)
}

fn clamped(lower: &mut Lower<'_>) -> Result<()> {
    let (low, high) = (lower.double_or(9, f64::NEG_INFINITY)?, lower.double_or(10, f64::INFINITY)?);
    convolve(lower, Some([low.min(high) as f32, high as f32]))
}

fn convolve(lower: &mut Lower<'_>, bounds: Option<[f32; 2]>) -> Result<()> {
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
    let convolution = Convolution { x, weight, bias, out, window, transposed, groups, from, to, bounds };
    // Few results meet a window that jumps further than the phases of a product go.
    let far = transposed && window.stride.iter().any(|&stride| stride > MOST_PHASES);
    if groups == 1 && !far { product(lower, &convolution, sizes) } else { direct(lower, &convolution, sizes) }
}

/// The first two dimensions, and rows and columns of a picture or of a line.
fn split(dims: Dims) -> Option<(Pair, Pair)> {
    match dims[..] {
        [a, b, columns] => Some(([a, b], [1, columns])),
        [a, b, rows, columns] => Some(([a, b], [rows, columns])),
        _ => None,
    }
}

/// `out[batch, m, n] = sum_k weight[m, k] * patch[batch, n, k]`: channels of the result by its pixels.
fn product(lower: &mut Lower<'_>, c: &Convolution, [batch, m, rows, columns]: [u32; 4]) -> Result<()> {
    let Convolution { window, from: size, to, .. } = *c;
    let phases = c.transposed.then(|| window.phases());
    let (count, [down, across], terms) = match phases {
        Some(Phases { count, taps, .. }) => {
            (count[0] * count[1], [rows.div_ceil(count[0]), columns.div_ceil(count[1])], taps)
        }
        None => (1, to, window.kernel),
    };
    let product = Product {
        m,
        n: down * across,
        k: c.x.dims.get(1).copied().unwrap_or(0) * terms[0] * terms[1],
        batch: batch * count,
        x_batch: 0,
        w_batch: c.x.dims.numel() / batch,
        x: c.weight,
        weights: Weights::Patches(Patches { pictures: c.x, window, phases, size, across, to }),
        bias: c.bias.map(|bias| (bias, 1, 0)),
        alpha: 1.0,
        beta: 1.0,
        bounds: c.bounds,
        out: c.out,
    };
    lower_product(lower, product)
}

/// Elements under neighbouring windows that an invocation holds at most, and windows that it takes then.
const MOST_SPAN: u32 = 16;
const RUN: u32 = 4;

/// One invocation for each result, or for a few neighbours where their windows are small.
fn direct(lower: &mut Lower<'_>, c: &Convolution, [batch, channels, rows, columns]: [u32; 4]) -> Result<()> {
    let Window { kernel: [_, wide], stride: [_, stride], dilation: [_, dilation], .. } = c.window;
    let span = (RUN - 1).saturating_mul(stride).saturating_add((wide - 1).saturating_mul(dilation)) + 1;
    let once = !c.transposed && span <= MOST_SPAN;
    let run = if once { RUN } else { 1 };
    let kernel = c.window.name(Kernel::new(source!("conv_direct"))).set("PER", run);
    let kernel = kernel.link(if c.transposed { source!("lib/tap_transposed") } else { source!("lib/tap") });
    let kernel = kernel.link(match once {
        true if c.from[1].is_multiple_of(4) => source!("lib/line_quads"),
        true => source!("lib/line_once"),
        false => source!("lib/line_taps"),
    });
    let place = if c.transposed { "(o / p.made * p.taken + c) * p.made + o % p.made" } else { "o * p.taken + c" };
    let kernel = kernel.function(format!("fn plane_of_weights(o: u32, c: u32) -> u32 {{ return {place}; }}"));
    let whole = once && columns.is_multiple_of(RUN);
    let kernel = kernel.link(if whole { source!("lib/put_four") } else { source!("lib/put_some") });
    let kernel = kernel.reads("x", c.x.elem).reads("weight", c.weight.elem).writes("out", c.out.elem);
    let params = Params::new().f32(1.0).f32(1.0).u32(1).u32(0);
    let (kernel, bias) = epilogue(kernel, c.bias, c.bounds.is_some());
    let taken = c.x.dims.get(1).copied().unwrap_or(0) / c.groups;
    lower.expect_turns(u64::from(taken).saturating_mul(c.window.turns() + 1))?;
    let count = batch * channels * rows * columns.div_ceil(run);
    let params = params.u32(count).u32(channels).u32(rows).u32(columns);
    let params = params.u32(c.from[0]).u32(c.from[1]).u32(taken).u32(channels / c.groups);
    let [low, high] = c.bounds.unwrap_or_default();
    let binds = [&[c.x.into(), c.weight.into(), c.out.into()], bias.as_slice()].concat();
    lower.each(kernel, &binds, params.f32(low).f32(high), count)
}
