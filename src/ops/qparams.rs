//! Scales and zero points from the extremes of a tensor, of its rows or of blocks of it.

use super::layout::{Layout, padded};
use super::quantize::Blocks;
use super::{FLOATS, Lower, Op, Operand, Params};
use crate::error::Result;
use crate::graph::{DType, Dims};
use crate::shader::{Elem, Kernel};
use crate::source;

/// Rows of this family.
pub const OPS: &[Op] = &[
    Op::new("quantized_decomposed.choose_qparams.tensor", FLOATS, of_tensor),
    Op::new("quantized_decomposed.choose_qparams_per_token_asymmetric.default", FLOATS, of_rows),
    Op::new("torchao.choose_qparams_affine.default", FLOATS, of_blocks),
];

/// How a scale and a zero point come from the extremes `low <= 0 <= high`: WGSL expressions, and what the integers are.
struct Rule {
    scale: &'static str,
    zero: &'static str,
    range: [i64; 2],
    eps: f64,
}

const SPAN: &str = "(high - low) / (p.high - p.low)";
/// The least number becomes the least integer.
const FROM_LOW: &str = "p.low - round(low / scale)";
/// That end stays exact at which less is lost.
const FROM_NEARER: &str =
    "select(p.high - high / scale, p.low - low / scale, p.low + low / scale + (p.high + high / scale) > 0.0)";

/// `(x, low, high, eps, type) -> scale [1], zero [1]`
fn of_tensor(lower: &mut Lower<'_>) -> Result<()> {
    let x = lower.tensor(0)?;
    let range = [lower.int(1)?, lower.int(2)?];
    let rule = Rule { scale: SPAN, zero: FROM_LOW, range, eps: lower.double(3)? };
    let blocks = Blocks { sizes: vec![x.dims.numel()], inside: vec![true] };
    choose(lower, x, (&blocks, Dims::new(&[1])?), &rule)
}

/// `(x, type) -> scales, zeros [.., 1]`
fn of_rows(lower: &mut Lower<'_>) -> Result<()> {
    let x = lower.tensor(0)?;
    let Some(last) = x.dims.len().checked_sub(1) else { return Err(lower.refuse("its input has rank 0")) };
    let rule = Rule { scale: SPAN, zero: FROM_NEARER, range: [-128, 127], eps: f64::from(f32::EPSILON) };
    let dims = x.dims.with(last, 1)?;
    let blocks = Blocks { sizes: vec![dims.numel(), x.dims.last()], inside: vec![false, true] };
    choose(lower, x, (&blocks, dims), &rule)
}

/// `(x, mapping, block shape, type, low, high, eps, type of scales, type of zeros, keep) -> scales, zeros`
fn of_blocks(lower: &mut Lower<'_>) -> Result<()> {
    let x = lower.tensor(0)?;
    let range = [lower.int_or(4, -128)?, lower.int_or(5, 127)?];
    let (scale, zero) = match lower.text(1)? {
        "ASYMMETRIC" => (SPAN, FROM_LOW),
        "SYMMETRIC" => ("max(-low, high) / ((p.high - p.low) * 0.5)", "trunc((p.high + p.low + 1.0) * 0.5)"),
        "SYMMETRIC_NO_CLIPPING_ERR" => ("max(low / p.low, high / p.high)", "trunc((p.high + p.low + 1.0) * 0.5)"),
        other => return Err(lower.unsupported(format!("mapping {other:?}"))),
    };
    let smallest = if x.dtype == DType::F16 { half::f16::MIN_POSITIVE.to_f64() } else { f64::from(f32::MIN_POSITIVE) };
    let rule = Rule { scale, zero, range, eps: lower.double_or(6, smallest)? };
    let blocks = lower.blocks(2, x)?;
    let outside = blocks.sizes.iter().zip(&blocks.inside).filter(|(_, inside)| !**inside).map(|(&size, _)| size);
    let mut sizes: Vec<u32> = outside.collect();
    if lower.boolean_or(9, false)? {
        let shape = lower.ints(2)?;
        let count = |(&size, &block): (&u32, &i64)| size.div_ceil(u32::try_from(block).unwrap_or(u32::MAX).max(1));
        sizes = x.dims.iter().zip(&shape).map(count).collect();
    }
    choose(lower, x, (&blocks, Dims::new(&sizes)?), &rule)
}

/// Loops over blocks, then over the elements of one: block o and element k of it are flat index `o * length + k`.
fn choose(lower: &mut Lower<'_>, x: Operand, (blocks, dims): (&Blocks, Dims), rule: &Rule) -> Result<()> {
    let (scale, zero) = (lower.output(0, dims)?, lower.output(1, dims)?);
    if !scale.elem.is_float() {
        return Err(lower.unsupported(format!("the scales are {}, expected a floating-point type", scale.dtype)));
    }
    if zero.elem == Elem::Bool {
        return Err(lower.unsupported("the zero points are bool, expected a type of numbers"));
    }
    let strides = Dims::new(&blocks.sizes)?.strides();
    let loops = blocks.sizes.iter().zip(strides).zip(&blocks.inside);
    let (inner, outer): (Vec<_>, Vec<_>) = loops.partition(|(_, inside)| **inside);
    let (sizes, strides): (Vec<u32>, Vec<u32>) =
        outer.iter().chain(&inner).map(|((size, stride), _)| (**size, *stride)).unzip();
    let length: u32 = inner.iter().map(|((size, _), _)| **size).product();
    let layout = Layout::new(&sizes, &[strides]);
    let (rows, put) = match (zero.elem.size(), zero.elem.compute_type()) {
        (1, _) => (4, "store4_zero(slot, vec4<i32>(zeros))".to_string()),
        (_, wgsl) => (1, format!("store_zero(slot, {wgsl}(zeros.x))")),
    };
    let threads = lower.row_threads(length, 2)?;
    let kernel = Kernel::new(source!("choose_qparams"))
        .set("WG", threads)
        .set("ROWS", rows)
        .link(source!("lib/index"))
        .link(lower.reduction())
        .reads("x", x.elem)
        .writes("scale", scale.elem)
        .writes("zero", zero.elem)
        .function(format!("fn scale_of(low: f32, high: f32) -> f32 {{ return {}; }}", rule.scale))
        .function(format!("fn zero_of(low: f32, high: f32, scale: f32) -> f32 {{ return {}; }}", rule.zero))
        .function(format!("fn put(slot: u32, zeros: vec4<f32>) {{ {put}; }}"));
    let count = dims.numel();
    let [low, high] = rule.range;
    let params = Params::new().u32(count).u32(length).u32(layout.sizes.len() as u32);
    let params = params.f32(rule.eps as f32).f32(low as f32).f32(high as f32);
    let params = params.words8(padded(&layout.sizes)).words8(padded(layout.of(0)));
    lower.step(kernel, &[x.into(), scale.into(), zero.into()], params, u64::from(count.div_ceil(rows)))
}
