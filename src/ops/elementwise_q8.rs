//! Sums, rectified numbers and shuffled pixels of bytes, with a scale and a zero point of their own.

use super::layout::{Layout, padded};
use super::{DType, Lower, Op, Operand, Params};
use crate::error::Result;
use crate::graph::Dims;
use crate::shader::{Elem, Kernel};
use crate::source;

/// Rows of this family.
pub const OPS: &[Op] = &[
    Op::new("et_vk.q8ta_add.default", &[DType::I8], add),
    Op::new("et_vk.q8ta_relu.default", &[DType::I8], relu),
    Op::new("et_vk.q8ta_pixel_shuffle.default", &[DType::I8], pixel_shuffle),
];

const WG: u32 = 64;

/// What becomes bytes: a WGSL expression of four numbers at quad `q`.
struct Requantized<'a> {
    formula: &'a str,
    inputs: &'a [(&'static str, Operand)],
    /// Scale and zero point of each operand.
    scales: [(f64, i64); 2],
    alpha: f64,
    /// One over the scale of the result, and its zero point.
    out: (f64, i64),
    layout: Layout,
}

fn run(lower: &mut Lower<'_>, out: Operand, r: &Requantized<'_>) -> Result<()> {
    let all: Vec<Operand> = r.inputs.iter().map(|(_, x)| *x).chain([out]).collect();
    if let Some(other) = all.iter().find(|x| x.elem != Elem::I8) {
        return Err(lower.unsupported(format!("found {other}, expected operands and a result of int8")));
    }
    let kernel = Kernel::new(source!("requantize")).set("WG", WG).link(source!("lib/index"));
    let kernel = kernel.function(format!("fn numbers(q: u32) -> vec4<f32> {{ return {}; }}", r.formula));
    let kernel = r.inputs.iter().fold(kernel, |kernel, (name, x)| kernel.reads(name, x.elem)).writes("out", out.elem);
    let total = out.dims.numel();
    let mut params = Params::new().u32(total).u32(r.layout.sizes.len() as u32);
    for (scale, zero) in r.scales {
        params = params.f32(scale as f32).i32(zero as i32);
    }
    let params = params.f32(r.alpha as f32).f32(r.out.0 as f32).f32(r.out.1 as f32).f32(0.0);
    let params = params.words8(padded(&r.layout.sizes)).words8(padded(r.layout.of(0)));
    let mut binds: Vec<super::Bind> = r.inputs.iter().map(|(_, x)| (*x).into()).collect();
    binds.push(out.into());
    lower.step(kernel, &binds, params, u64::from(total.div_ceil(4).div_ceil(WG)))
}

/// `(a, b, scale and zero of a, of b, of out, alpha) -> a + alpha b`
fn add(lower: &mut Lower<'_>) -> Result<()> {
    let (a, b) = (lower.tensor(0)?, lower.tensor(1)?);
    if a.dims != b.dims {
        return Err(lower.refuse(format!("{} and {} differ", a.dims, b.dims)));
    }
    let scales = [(lower.double(2)?, lower.int(3)?), (lower.double(4)?, lower.int(5)?)];
    let (out_scale, alpha) = ((1.0 / lower.double(6)?, lower.int(7)?), lower.double(8)?);
    let out = lower.output(0, a.dims)?;
    let formula = "number(load4_a(q), p.scale_a, p.zero_a) + scaled(number(load4_b(q), p.scale_b, p.zero_b), p.alpha)";
    let inputs = [("a", a), ("b", b)];
    run(
        lower,
        out,
        &Requantized { formula, inputs: &inputs, scales, alpha, out: out_scale, layout: Layout::new(&[], &[]) },
    )
}

/// `(x, scale and zero of x, of out) -> max(x, 0)`
fn relu(lower: &mut Lower<'_>) -> Result<()> {
    let a = lower.tensor(0)?;
    let scales = [(lower.double(1)?, lower.int(2)?), (1.0, 0)];
    let out_scale = (1.0 / lower.double(3)?, lower.int(4)?);
    let out = lower.output(0, a.dims)?;
    let formula = "max(number(load4_a(q), p.scale_a, p.zero_a), vec4<f32>(0.0))";
    let (inputs, layout) = ([("a", a)], Layout::new(&[], &[]));
    run(lower, out, &Requantized { formula, inputs: &inputs, scales, alpha: 1.0, out: out_scale, layout })
}

/// `(x [.., C r r, H, W], scale and zero of x, one over the scale of out, its zero, r) -> out [.., C, H r, W r]`
fn pixel_shuffle(lower: &mut Lower<'_>) -> Result<()> {
    let a = lower.tensor(0)?;
    let scales = [(lower.double(1)?, lower.int(2)?), (1.0, 0)];
    let out_scale = (lower.double(3)?, lower.int(4)?);
    let factor = u32::try_from(lower.int(5)?).unwrap_or(0);
    let [outer @ .., channels, height, width] = &*a.dims else {
        return Err(lower.refuse(format!("the input is {}, expected rank 3 or more", a.dims)));
    };
    let square = factor.checked_mul(factor).filter(|&square| square > 0 && channels.is_multiple_of(square));
    let Some(square) = square else {
        return Err(lower.refuse(format!("{channels} channels are no multiple of {factor} squared")));
    };
    let (planes, area) = (outer.iter().product::<u32>() * (channels / square), height * width);
    let [down, across] = [height, width].map(|size| size.saturating_mul(factor));
    let dims = Dims::new(&[outer, &[channels / square, down, across]].concat())?;
    let out = lower.output(0, dims)?;
    let layout =
        Layout::new(&[planes, *height, factor, *width, factor], &[vec![square * area, *width, factor * area, 1, area]]);
    let formula = "number(vec4<i32>(shuffled(4u * q), shuffled(4u * q + 1u), shuffled(4u * q + 2u), shuffled(4u * q + 3u)), p.scale_a, p.zero_a)";
    let inputs = [("a", a)];
    run(lower, out, &Requantized { formula, inputs: &inputs, scales, alpha: 1.0, out: out_scale, layout })
}
