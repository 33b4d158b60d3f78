//! The operators that are products: how each one's arguments become a [`Product`].

use super::layers::{self, NORM_GATE, NORM_LAYERS};
use super::{Product, WeightLayout, Weights, lower_product};
use crate::error::Result;
use crate::graph::{DType, Dims};
use crate::ops::{FLOATS, Lower, Op, Operand};

/// The 4-bit layer: `(x, weight, scales, group, bias or None) -> out`.
pub const LINEAR_Q4: &str = "et_vk.linear_q4gsw.default";
/// The 4-bit layer that adds a tensor of its result's shape: `(x, weight, scales, group, addend) -> out`.
pub const LINEAR_ADD: &str = "et_vk.linear_q4gsw.default+aten.add.Tensor";

/// Rows that only passes name.
pub const INTERNAL: &[Op] = &[
    Op::new(LINEAR_ADD, FLOATS, linear_add),
    Op::new(NORM_LAYERS, FLOATS, layers::side_by_side),
    Op::new(NORM_GATE, FLOATS, layers::gated),
];

/// Rows of this family.
pub const OPS: &[Op] = &[
    Op::new(LINEAR_Q4, FLOATS, linear_q4gsw).notes("any M, K, N; groups of any size that divides K"),
    Op::new("aten.linear.default", FLOATS, linear),
    Op::new("aten.mm.default", FLOATS, mm),
    Op::new("aten.bmm.default", FLOATS, bmm),
    Op::new("aten.addmm.default", FLOATS, addmm),
];

/// Shape of `x` with `n` in place of its last dimension, and the number of rows before it.
pub(super) fn replace_last(lower: &Lower<'_>, x: Operand, n: u32) -> Result<(Dims, u32)> {
    let rank = x.dims.len();
    let Some(last) = rank.checked_sub(1) else { return Err(lower.refuse("its input has rank 0")) };
    let rows = x.dims.iter().take(last).product();
    Ok((x.dims.with(last, n)?, rows))
}

fn sizes<const N: usize>(lower: &Lower<'_>, x: Operand, what: &str) -> Result<[u32; N]> {
    <[u32; N]>::try_from(&x.dims[..]).map_err(|_| lower.refuse(format!("{what} is {}, expected rank {N}", x.dims)))
}

pub(super) fn float(lower: &Lower<'_>, x: Operand, what: &str) -> Result<Operand> {
    if x.elem.is_float() {
        return Ok(x);
    }
    Err(lower.refuse(format!("{what} is {}, expected a floating-point tensor", x.dtype)))
}

fn linear_q4gsw(lower: &mut Lower<'_>) -> Result<()> {
    let product = q4_product(lower)?;
    let bias = q4_bias(lower, 4, product.n)?;
    lower_product(lower, Product { bias, ..product })
}

/// Equal bounds are equal shapes: the exporter fixes every dimension that repeats.
fn linear_add(lower: &mut Lower<'_>) -> Result<()> {
    let product = q4_product(lower)?;
    let addend = lower.tensor(4)?;
    if addend.dims != product.out.dims || !addend.elem.is_float() {
        let (dtype, dims, out) = (addend.dtype, addend.dims, product.out.dims);
        return Err(lower.refuse(format!("{dtype} {dims} is added to a result of {out}")));
    }
    lower_product(lower, Product { bias: Some((addend, product.n, 1)), ..product })
}

/// The product of arguments x, weight, scales, group, without a bias; its result is output 0.
fn q4_product(lower: &mut Lower<'_>) -> Result<Product> {
    let x = lower.tensor(0)?;
    let x = float(lower, x, "the input")?;
    let declared = lower.declared_output(0)?.last();
    let weights = q4_weights(lower, 1, x.dims.last(), declared)?;
    let (dims, m) = replace_last(lower, x, declared)?;
    let out = lower.output(0, dims)?;
    Ok(q4_layer(weights, x, m, declared, out))
}

/// The product of `x`, as `m` rows, with `n` columns of 4-bit weights, without a bias.
pub(super) fn q4_layer(weights: Weights, x: Operand, m: u32, n: u32, out: Operand) -> Product {
    let (k, x_batch, w_batch, batch) = (x.dims.last(), 0, 0, 1);
    let (bias, alpha, beta) = (None, 1.0, 1.0);
    Product { m, n, k, batch, x_batch, w_batch, x, weights, bias, alpha, beta, bounds: None, out }
}

/// Arguments weight, scales and group, from argument `first` on, for sums of `k` and a width of `declared`; packed rows
/// beyond it are padding.
pub(super) fn q4_weights(lower: &mut Lower<'_>, first: usize, k: u32, declared: u32) -> Result<Weights> {
    let (packed, scales) = (lower.tensor(first)?, lower.tensor(first + 1)?);
    let scales = float(lower, scales, "scales")?;
    let group = lower.int(first + 2)?;
    let [n, width] = sizes(lower, packed, "the packed weight")?;
    let [groups, padded] = sizes(lower, scales, "scales")?;
    if !matches!(packed.dtype, DType::U8 | DType::I8) || width != k.div_ceil(8) * 4 {
        let wanted = k.div_ceil(8) * 4;
        return Err(
            lower.refuse(format!("the weight is {} {}, K = {k} needs uint8 [N, {wanted}]", packed.dtype, packed.dims))
        );
    }
    let group = u32::try_from(group).ok().filter(|&g| g > 0);
    let group = group.ok_or_else(|| lower.refuse("the group size is not positive"))?;
    if u64::from(groups) * u64::from(group) < u64::from(k) {
        return Err(lower.refuse(format!("{groups} groups of {group} do not cover K = {k}")));
    }
    if declared > n || declared > padded {
        return Err(lower.refuse(format!("{declared} outputs, but {n} packed rows and {padded} scales a group")));
    }
    Ok(Weights::Q4 { packed, scales, group })
}

/// Optional argument `index`, a bias of at least `n` numbers, with its strides.
pub(super) fn q4_bias(lower: &Lower<'_>, index: usize, n: u32) -> Result<Option<(Operand, u32, u32)>> {
    let bias = lower.optional_tensor(index)?;
    if let Some(bias) = bias.filter(|b| b.dims.numel() < n || !b.elem.is_float()) {
        return Err(lower.refuse(format!("the bias is {} {}, expected {n} numbers", bias.dtype, bias.dims)));
    }
    Ok(bias.map(|bias| (bias, 0, 1)))
}

fn linear(lower: &mut Lower<'_>) -> Result<()> {
    let (x, weight, bias) = (lower.tensor(0)?, lower.tensor(1)?, lower.optional_tensor(2)?);
    let (x, weight) = (float(lower, x, "the input")?, float(lower, weight, "the weight")?);
    let [n, k] = sizes(lower, weight, "the weight")?;
    if x.dims.last() != k {
        return Err(lower.refuse(format!("the input is {}, the weight {}", x.dims, weight.dims)));
    }
    if let Some(bias) = bias.filter(|b| b.dims.numel() != n || !b.elem.is_float()) {
        return Err(lower.refuse(format!("the bias is {} {}, expected {n} numbers", bias.dtype, bias.dims)));
    }
    let (dims, m) = replace_last(lower, x, n)?;
    let out = lower.output(0, dims)?;
    let weights = Weights::Dense { weight, layout: WeightLayout::ByColumn };
    let bias = bias.map(|b| (b, 0, 1));
    let (x_batch, w_batch, batch) = (0, 0, 1);
    let (alpha, beta) = (1.0, 1.0);
    lower_product(lower, Product { m, n, k, batch, x_batch, w_batch, x, weights, bias, alpha, beta, bounds: None, out })
}

fn mm(lower: &mut Lower<'_>) -> Result<()> {
    let (a, b) = (lower.tensor(0)?, lower.tensor(1)?);
    matrix_product(lower, a, b, None, 1.0, 1.0)
}

fn addmm(lower: &mut Lower<'_>) -> Result<()> {
    let (bias, a, b) = (lower.tensor(0)?, lower.tensor(1)?, lower.tensor(2)?);
    let (beta, alpha) = (lower.double_or(3, 1.0)?, lower.double_or(4, 1.0)?);
    // PyTorch ignores the added tensor altogether when beta is 0, even NaN in it.
    let bias = (beta != 0.0).then_some(bias);
    matrix_product(lower, a, b, bias, alpha, beta)
}

fn matrix_product(
    lower: &mut Lower<'_>,
    a: Operand,
    b: Operand,
    bias: Option<Operand>,
    alpha: f64,
    beta: f64,
) -> Result<()> {
    let (x, weight) = (float(lower, a, "the first factor")?, float(lower, b, "the second factor")?);
    let ([m, k], [k2, n]) = (sizes(lower, x, "the first factor")?, sizes(lower, weight, "the second factor")?);
    if k != k2 {
        return Err(lower.refuse(format!("{} times {}", x.dims, weight.dims)));
    }
    let bias = bias.map(|bias| added(lower, bias, m, n)).transpose()?;
    let out = lower.output(0, Dims::new(&[m, n])?)?;
    let weights = Weights::Dense { weight, layout: WeightLayout::ByTerm };
    let (x_batch, w_batch, batch) = (0, 0, 1);
    let (alpha, beta) = (alpha as f32, beta as f32);
    lower_product(lower, Product { m, n, k, batch, x_batch, w_batch, x, weights, bias, alpha, beta, bounds: None, out })
}

/// Strides along m and n of a tensor that broadcasts to `[m, n]`.
fn added(lower: &Lower<'_>, bias: Operand, m: u32, n: u32) -> Result<(Operand, u32, u32)> {
    let bias = float(lower, bias, "the added tensor")?;
    let (rows, columns) = match bias.dims[..] {
        [] => (1, 1),
        [columns] => (1, columns),
        [rows, columns] => (rows, columns),
        _ => (0, 0),
    };
    if (rows != 1 && rows != m) || (columns != 1 && columns != n) {
        return Err(lower.refuse(format!("{} does not broadcast to [{m}, {n}]", bias.dims)));
    }
    let stride_m = if rows == 1 { 0 } else { columns };
    Ok((bias, stride_m, u32::from(columns != 1)))
}

fn bmm(lower: &mut Lower<'_>) -> Result<()> {
    let (x, weight) = (lower.tensor(0)?, lower.tensor(1)?);
    let (x, weight) = (float(lower, x, "the first factor")?, float(lower, weight, "the second factor")?);
    let ([batch, m, k], [batch2, k2, n]) =
        (sizes(lower, x, "the first factor")?, sizes(lower, weight, "the second factor")?);
    if k != k2 || batch != batch2 {
        return Err(lower.refuse(format!("{} times {}", x.dims, weight.dims)));
    }
    let out = lower.output(0, Dims::new(&[batch, m, n])?)?;
    let weights = Weights::Dense { weight, layout: WeightLayout::ByTerm };
    let (x_batch, w_batch) = (m * k, k * n);
    let (bias, alpha, beta) = (None, 1.0, 1.0);
    lower_product(lower, Product { m, n, k, batch, x_batch, w_batch, x, weights, bias, alpha, beta, bounds: None, out })
}
