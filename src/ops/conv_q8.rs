//! Convolutions of bytes with bytes into bytes: plain, depthwise, pointwise and transposed, one kernel.

use super::linear_q8::{MOST_TERMS, Requant, finish};
use super::{Bind, DType, Lower, Op, Operand, Params};
use crate::error::Result;
use crate::graph::Dims;
use crate::shader::{Elem, Kernel};
use crate::source;

/// Rows of this family.
pub const OPS: &[Op] = &[
    Op::new("et_vk.q8ta_conv2d.default", &[DType::I8], plain).notes(NOTES),
    Op::new("et_vk.q8ta_conv2d_pw.default", &[DType::I8], plain).notes(NOTES),
    Op::new("et_vk.q8ta_conv2d_dw.default", &[DType::I8], plain).notes(NOTES),
    Op::new("et_vk.q8ta_conv2d_transposed.default", &[DType::I8], transposed).notes(NOTES),
];

const NOTES: &str = "activation none or relu; any groups, sizes and dilation";
const WG: u32 = 64;

/// Along one dimension of the picture.
#[derive(Clone, Copy)]
struct Axis {
    input: u32,
    kernel: u32,
    stride: u32,
    padding: u32,
    dilation: u32,
}

impl Axis {
    /// Length of the result.
    fn output(&self) -> Option<u32> {
        let reach = self.dilation.checked_mul(self.kernel.checked_sub(1)?)?.checked_add(1)?;
        let padded = self.input.checked_add(self.padding.checked_mul(2)?)?;
        padded.checked_sub(reach)?.checked_div(self.stride)?.checked_add(1)
    }

    /// Length of the result of the transposed convolution.
    fn transposed(&self, extra: u32) -> Option<u32> {
        let spread = self.input.checked_sub(1)?.checked_mul(self.stride)?;
        let reach = self.dilation.checked_mul(self.kernel.checked_sub(1)?)?.checked_add(1)?;
        spread.checked_add(reach)?.checked_add(extra)?.checked_sub(self.padding.checked_mul(2)?)
    }
}

/// `(x, scale, zero, weight, sums, scales, scale of out, zero of out, bias?, kernel, stride, padding, dilation, groups,
/// activation) -> out`
fn plain(lower: &mut Lower<'_>) -> Result<()> {
    let axes = axes(lower, 12)?;
    let requant = lower.requant(6, 14)?;
    let sizes = axes.map(|axis| axis.output());
    convolve(lower, (axes, sizes), 13, requant, false)
}

/// The same with the output's padding before the dilation.
fn transposed(lower: &mut Lower<'_>) -> Result<()> {
    let axes = axes(lower, 13)?;
    let requant = lower.requant(6, 15)?;
    let extra = pair(lower, 12)?;
    let [y, x] = axes;
    let sizes = [y.transposed(extra[0]), x.transposed(extra[1])];
    convolve(lower, (axes, sizes), 14, requant, true)
}

/// A list of two numbers, or of one for both.
fn pair(lower: &mut Lower<'_>, index: usize) -> Result<[u32; 2]> {
    let list = lower.ints(index)?;
    let numbers: Vec<u32> = list.iter().filter_map(|&n| u32::try_from(n).ok()).collect();
    match numbers[..] {
        [both] if list.len() == 1 => Ok([both; 2]),
        [y, x] if list.len() == 2 => Ok([y, x]),
        _ => Err(lower.refuse(format!("argument {index} is {list:?}, expected two numbers of at least 0"))),
    }
}

fn axes(lower: &mut Lower<'_>, dilation: usize) -> Result<[Axis; 2]> {
    let x = lower.tensor(0)?;
    let &[_, _, height, width] = &*x.dims else {
        return Err(lower.refuse(format!("the input is {}, expected rank 4", x.dims)));
    };
    let (kernel, stride, padding) = (pair(lower, 9)?, pair(lower, 10)?, pair(lower, 11)?);
    let dilation = pair(lower, dilation)?;
    let axis = |i: usize, input| Axis {
        input,
        kernel: kernel[i],
        stride: stride[i].max(1),
        padding: padding[i],
        dilation: dilation[i],
    };
    Ok([axis(0, height), axis(1, width)])
}

/// Elements of the weight between output channels and between taps, those of a tap's input channels lying together.
fn weight_strides(weight: Operand, [y, x]: [Axis; 2], (oc, inputs): (u32, u32)) -> Option<(u32, u32)> {
    match *weight.dims {
        [height, width, channels] if (height, width, inputs) == (y.kernel, x.kernel, 1) && channels >= oc => {
            Some((1, channels))
        }
        [rows, width]
            if rows >= oc && u64::from(width) >= u64::from(y.kernel) * u64::from(x.kernel) * u64::from(inputs) =>
        {
            Some((width, inputs))
        }
        _ => None,
    }
}

fn convolve(
    lower: &mut Lower<'_>,
    (axes, sizes): ([Axis; 2], [Option<u32>; 2]),
    groups: usize,
    requant: Requant,
    transposed: bool,
) -> Result<()> {
    let (x, weight) = (lower.tensor(0)?, lower.tensor(3)?);
    let groups = u32::try_from(lower.int(groups)?).unwrap_or(0);
    let (&[batch, ic, ..], &[_, oc, ..]) = (&*x.dims, &*lower.declared_output(0)?) else {
        return Err(lower.refuse("its input and its result have no channels"));
    };
    if groups == 0 || !ic.is_multiple_of(groups) || !oc.is_multiple_of(groups) {
        return Err(lower.refuse(format!("{ic} and {oc} channels in {groups} groups")));
    }
    let [Some(height), Some(width)] = sizes else {
        return Err(lower.refuse(format!("the kernel is larger than the padded input {}", x.dims)));
    };
    let (inputs, outputs) = (ic / groups, oc / groups);
    let terms = axes.iter().fold(u64::from(inputs), |terms, axis| terms.saturating_mul(axis.kernel.into()));
    if terms > u64::from(MOST_TERMS) {
        return Err(lower.unsupported(format!("sums of {terms} products of bytes, at most {MOST_TERMS} fit 32 bits")));
    }
    // Four results, each with loops over rows, columns and channels.
    lower.expect_turns(4 * (terms + 2 * u64::from(axes[0].kernel) * u64::from(axes[1].kernel)))?;
    let strides = weight_strides(weight, axes, (oc, inputs)).filter(|_| weight.elem == Elem::I8);
    let Some((w_channel, w_tap)) = strides else {
        return Err(
            lower.refuse(format!("the weight is {} {} for {inputs} to {oc} channels", weight.dtype, weight.dims))
        );
    };
    let out = lower.output(0, Dims::new(&[batch, oc, height, width])?)?;
    if out.elem != Elem::I8 {
        return Err(lower.unsupported(format!("the result is {}, expected int8", out.dtype)));
    }
    let (scales, bias) = (lower.channels(5, oc)?, lower.optional_channels(8, oc)?);
    let kernel = Kernel::new(source!("conv_q8"))
        .set("WG", WG)
        .flag("TRANSPOSED", transposed)
        .alias("T", "i32")
        .reads("x", x.elem)
        .reads("weight", weight.elem)
        .reads("scales", scales.elem);
    let kernel = finish(kernel, bias, Some(requant)).writes("out", out.elem);
    let mut binds: Vec<Bind> = vec![x.into(), weight.into(), scales.into()];
    binds.extend(bias.map(Bind::from));
    binds.push(out.into());
    let (total, [y, x]) = (out.dims.numel(), axes);
    let params = Params::new().u32(total).u32(oc).u32(height).u32(width);
    let params = params.u32(ic).u32(inputs).u32(outputs).u32(w_channel);
    let params = params.u32(w_tap).u32(y.kernel).u32(x.kernel).u32(y.input).u32(x.input);
    let params = params.u32(y.stride).u32(x.stride).u32(y.padding).u32(x.padding).u32(y.dilation).u32(x.dilation);
    let params = params.f32(lower.double(1)? as f32).i32(lower.int(2)? as i32).f32(requant.inverse).f32(requant.zero);
    lower.step(kernel, &binds, params, u64::from(total.div_ceil(4).div_ceil(WG)))
}
