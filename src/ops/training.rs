//! What training on the device needs besides the operators of inference: a loss with its gradient, gradients of layers, the
//! optimiser's step, and 4-bit codes of changed weights.

use super::copy::{Walk, gather};
use super::{Bind, FLOATS, Lower, Op, Operand, Params};
use crate::error::Result;
use crate::graph::{DType, Dims};
use crate::shader::{Elem, Kernel};
use crate::source;

/// Rows of this family.
pub const OPS: &[Op] = &[
    Op::new("et_vk.fused_ce.default", FLOATS, cross_entropy).notes("a negative label leaves its row out"),
    Op::new("et_vk.adamw_step.default", FLOATS, adamw).writes(&[0, 1, 2]),
    Op::new("et_vk.linear_q4gsw_backward.default", FLOATS, backward),
    Op::new("et_vk.linear_dW.default", FLOATS, weight_gradient),
    Op::new("et_vk.q4gsw_requant.default", FLOATS, requantize),
];

const WG: u32 = 64;

/// `(logits [N, V], labels [N], count) -> loss, gradient of the logits`
fn cross_entropy(lower: &mut Lower<'_>) -> Result<()> {
    let (x, labels, count) = (lower.tensor(0)?, lower.tensor(1)?, lower.double(2)?);
    let &[rows, length] = &*x.dims else {
        return Err(lower.refuse(format!("the logits are {}, expected two dimensions", x.dims)));
    };
    if labels.dims.numel() != rows || labels.elem != Elem::I32 || length == 0 {
        return Err(lower.refuse(format!("labels {} {} for {rows} rows of {length}", labels.dtype, labels.dims)));
    }
    let (loss, gradient) = (lower.output(0, lower.declared_output(0)?)?, lower.output(1, x.dims)?);
    lower.expect_floating_output()?;
    if loss.dims.numel() != 1 {
        return Err(lower.refuse(format!("the loss is {}, expected one number", loss.dims)));
    }
    let losses = lower.scratch(u64::from(rows.max(4)) * 4);
    let kernel = Kernel::new(source!("cross_entropy")).set("WG", lower.row_threads(length, 3)?).link(lower.reduction());
    let kernel = kernel.reads("x", x.elem).reads("labels", labels.elem);
    let kernel = kernel.writes("losses", Elem::F32).writes("gradient", gradient.elem);
    let params = Params::new().u32(rows).u32(length).f32((1.0 / count) as f32);
    lower.step(kernel, &[x.into(), labels.into(), losses, gradient.into()], params, u64::from(rows))?;
    let kernel = Kernel::new(source!("sum_all")).set("WG", lower.row_threads(rows, 1)?).link(lower.reduction());
    let kernel = kernel.reads("x", Elem::F32).writes("out", loss.elem);
    lower.step(kernel, &[losses, loss.into()], Params::new().u32(rows), 1)
}

/// `(parameter, mean, variance, gradient, rate, beta 1, beta 2, eps, decay, correction 1, correction 2) -> the first three`
fn adamw(lower: &mut Lower<'_>) -> Result<()> {
    let state = [lower.tensor(0)?, lower.tensor(1)?, lower.tensor(2)?];
    let gradient = lower.tensor(3)?;
    let dims = gradient.dims;
    if state.iter().any(|tensor| tensor.dims != dims || !tensor.elem.is_float()) || !gradient.elem.is_float() {
        let state = state.map(|tensor| tensor.to_string()).join(", ");
        return Err(lower.refuse(format!("{state} with a gradient {gradient}, expected floats of one shape")));
    }
    let [rate, beta_1, beta_2, eps, decay, correction_1, correction_2] =
        [4, 5, 6, 7, 8, 9, 10].map(|i| lower.double(i));
    let (rate, beta_1, beta_2, correction_1, correction_2) = (rate?, beta_1?, beta_2?, correction_1?, correction_2?);
    if correction_1 == 0.0 || correction_2 == 0.0 {
        return Err(lower.refuse("a bias correction is 0"));
    }
    let [parameter, mean, variance] = state;
    let kernel = Kernel::new(source!("adamw"))
        .set("WG", WG)
        .writes("parameter", parameter.elem)
        .writes("mean", mean.elem)
        .writes("variance", variance.elem)
        .reads("gradient", gradient.elem);
    let quads = dims.numel().div_ceil(4);
    let numbers =
        [rate, 1.0 - rate * decay?, eps?, beta_1, 1.0 - beta_1, beta_2, 1.0 - beta_2, correction_1, correction_2];
    let params = numbers.iter().fold(Params::new().u32(quads), |params, &number| params.f32(number as f32));
    let binds = [parameter, mean, variance, gradient].map(Bind::from);
    lower.step(kernel, &binds, params, u64::from(quads.div_ceil(WG)))?;
    for (index, tensor) in state.into_iter().enumerate().take(lower.outputs()) {
        let out = lower.output(index, dims)?;
        if !lower.same_storage(tensor, out) {
            gather(lower, tensor, out, &Walk::through(tensor))?;
        }
    }
    Ok(())
}

/// `out[r, c] = sum over t of a(t, r) * b(t, c)`, both linked as functions.
fn sum_of_outer_products(
    lower: &mut Lower<'_>,
    kernel: Kernel,
    binds: &[Bind],
    sizes: [u32; 3],
    more: &[u32],
) -> Result<()> {
    let [rows, cols, terms] = sizes;
    lower.expect_turns(terms.into())?;
    let tiles = cols.div_ceil(4);
    let params = Params::new().u32(rows).u32(cols).u32(terms).u32(tiles);
    let params = more.iter().fold(params, |params, &word| params.u32(word));
    let blocks = u64::from(rows.div_ceil(4)) * u64::from(tiles);
    lower.step(kernel.set("WG", WG), binds, params, blocks.div_ceil(u64::from(WG)))
}

/// Rows of the last dimension, and its size.
fn flat(x: Operand) -> (u32, u32) {
    x.dims.split_last().map_or((1, 1), |(&width, rows)| (rows.iter().product(), width))
}

/// `(gradient of the result [.., N], weight, scales, group) -> gradient of the input [.., K]`
fn backward(lower: &mut Lower<'_>) -> Result<()> {
    let (gradient, packed, scales) = (lower.tensor(0)?, lower.tensor(1)?, lower.tensor(2)?);
    let group = u32::try_from(lower.int(3)?).unwrap_or(0);
    let ((m, n), k) = (flat(gradient), lower.declared_output(0)?.last());
    let Some(last) = gradient.dims.len().checked_sub(1) else { return Err(lower.refuse("its input has rank 0")) };
    let out = lower.output(0, gradient.dims.with(last, k)?)?;
    lower.expect_floating_output()?;
    let (&[rows, bytes], &[groups, width]) = (&*packed.dims, &*scales.dims) else {
        return Err(lower.refuse(format!("weight {} and scales {}, expected two dimensions", packed.dims, scales.dims)));
    };
    let covered = groups.checked_mul(group).is_some_and(|terms| terms > 0 && u64::from(terms) + 8 > u64::from(k));
    let whole = bytes.is_multiple_of(4) && u64::from(bytes) * 2 >= u64::from(k) && packed.elem.size() == 1;
    if rows < n || width < n || !covered || !whole || !scales.elem.is_float() {
        return Err(
            lower.refuse(format!("weight {packed} and scales {scales} for {n} sums of {k} in groups of {group}"))
        );
    }
    let kernel = Kernel::new(source!("outer"))
        .flag("WHOLE", group.is_multiple_of(4))
        .link(source!("lib/outer_backward"))
        .reads("a", gradient.elem)
        .array("weight", "u32")
        .reads("scales", scales.elem)
        .writes("out", out.elem);
    let binds = [gradient, packed, scales, out].map(Bind::from);
    sum_of_outer_products(lower, kernel, &binds, [m, k, n], &[bytes / 4, group, groups, width])
}

/// `(gradient of the result [.., N], input [.., K]) -> gradient of the weight [N, K]`
fn weight_gradient(lower: &mut Lower<'_>) -> Result<()> {
    let (gradient, x) = (lower.tensor(0)?, lower.tensor(1)?);
    let ((m, n), (rows, k)) = (flat(gradient), flat(x));
    if m != rows || !x.elem.is_float() {
        return Err(lower.refuse(format!("a gradient {} for an input {} {}", gradient.dims, x.dtype, x.dims)));
    }
    let out = lower.output(0, Dims::new(&[n, k])?)?;
    lower.expect_floating_output()?;
    let kernel = Kernel::new(source!("outer"))
        .flag("WHOLE", k.is_multiple_of(4))
        .link(source!("lib/outer_weight"))
        .reads("a", gradient.elem)
        .reads("b", x.elem)
        .writes("out", out.elem);
    sum_of_outer_products(lower, kernel, &[gradient, x, out].map(Bind::from), [n, k, m], &[0; 4])
}

/// `(weights [N, K], scales [groups, N or more], group) -> codes [N, K / 2]`
fn requantize(lower: &mut Lower<'_>) -> Result<()> {
    let (x, scales) = (lower.tensor(0)?, lower.tensor(1)?);
    let group = u32::try_from(lower.int(2)?).unwrap_or(0);
    let (&[n, k], &[groups, width]) = (&*x.dims, &*scales.dims) else {
        return Err(lower.refuse(format!("weights {} and scales {}, expected two dimensions", x.dims, scales.dims)));
    };
    if u64::from(groups) * u64::from(group) < u64::from(k) || width < n || !scales.elem.is_float() {
        return Err(lower.refuse(format!("scales {scales} for weights {x} in groups of {group}")));
    }
    let out = lower.output(0, Dims::new(&[n, k.div_ceil(2)])?)?;
    if !matches!(out.dtype, DType::U8 | DType::I8) {
        return Err(lower.unsupported(format!("the codes are {}, expected uint8", out.dtype)));
    }
    let total = out.dims.numel();
    let kernel = Kernel::new(source!("requant_q4")).set("WG", WG).reads("x", x.elem).reads("scales", scales.elem);
    let kernel = kernel.writes("out", out.elem);
    let params = Params::new().u32(total).u32(k).u32(group.max(1)).u32(width);
    lower.step(kernel, &[x, scales, out].map(Bind::from), params, u64::from(total.div_ceil(4).div_ceil(WG)))
}
