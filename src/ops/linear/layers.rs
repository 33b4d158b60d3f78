//! 4-bit layers that share a normalised input. With few rows the norm is part of the products: each team has all of a row,
//! so it sums the squares beside its products. With more rows the norm is a step of its own.

use std::ops::Range;

use super::algorithm::GemvQ4;
use super::forms::{float, q4_bias, q4_layer, q4_weights, replace_last};
use super::q4::{self, Columns, Extra, Norm};
use super::{Algorithm, Product, algorithm, lower_part};
use crate::error::Result;
use crate::ops::binary::silu_mul;
use crate::ops::norm::{rms_arguments, rms_rows};
use crate::ops::{Lower, Operand};

/// A norm and the layers that read it, their weights joined: `(x, norm weight or None, eps, weight, scales, group, bias or
/// None) -> [a result of each layer.., the normalised x]`.
pub const NORM_LAYERS: &str = "et_vk.rms_norm.default+et_vk.linear_q4gsw.default";

/// A norm, a gate and what it gates, with their weights joined: the same arguments `-> [silu(gate) * up, gate, up, the
/// normalised x]`.
pub const NORM_GATE: &str = "et_vk.rms_norm.default+et_vk.linear_q4gsw.default+aten.sigmoid.default+aten.mul.Tensor";

struct Layers {
    norm: Norm,
    /// All columns of all layers.
    whole: Product,
    /// The result of each layer.
    outs: Vec<Operand>,
    normalised: Operand,
}

/// The arguments, and the outputs but for the first `others`.
fn read(lower: &mut Lower<'_>, others: usize) -> Result<Layers> {
    let x = lower.tensor(0)?;
    let x = float(lower, x, "the input")?;
    let (k, (weight, eps)) = (x.dims.last(), rms_arguments(lower)?);
    if let Some(weight) = weight.filter(|weight| weight.dims.numel() != k || !weight.elem.is_float()) {
        return Err(lower.refuse(format!("the norm's weight is {} {}, the rows have {k}", weight.dtype, weight.dims)));
    }
    let mut outs = Vec::new();
    let (mut m, mut n) = (0, 0);
    for index in others..lower.outputs().saturating_sub(1) {
        let width = lower.declared_output(index)?.last();
        let (dims, rows) = replace_last(lower, x, width)?;
        outs.push(lower.output(index, dims)?);
        m = rows;
        n += width;
    }
    let normalised = lower.output(others + outs.len(), x.dims)?;
    let Some(&out) = outs.first() else { return Err(lower.refuse("it has no results")) };
    let weights = q4_weights(lower, 3, k, n)?;
    let bias = q4_bias(lower, 6, n)?;
    let whole = Product { bias, ..q4_layer(weights, x, m, n, out) };
    Ok(Layers { norm: Norm { weight, eps }, whole, outs, normalised })
}

impl Layers {
    /// The columns of each layer.
    fn columns(&self) -> Vec<Range<u32>> {
        let ends = self.outs.iter().scan(0, |end, out| {
            *end += out.dims.last();
            Some(*end)
        });
        ends.zip(&self.outs).map(|(end, out)| end - out.dims.last()..end).collect()
    }

    /// The norm as a step, then each layer as it would be alone.
    fn one_by_one(&self, lower: &mut Lower<'_>) -> Result<()> {
        let Layers { norm, whole, outs, normalised } = self;
        rms_rows(lower, whole.x, norm.weight, norm.eps, *normalised)?;
        let whole = Product { x: *normalised, ..*whole };
        if let [_] = outs[..] {
            return whole.parts(lower)?.into_iter().try_for_each(|part| lower_part(lower, part));
        }
        for (columns, &out) in self.columns().into_iter().zip(outs) {
            let layer = Product { out, ..whole.part(lower, columns) };
            lower_part(lower, layer)?;
        }
        Ok(())
    }
}

/// The shape of the streaming GEMV, if that is how a product is computed here.
fn streaming(lower: &Lower<'_>, product: &Product) -> Option<GemvQ4> {
    match algorithm(lower, product) {
        Algorithm::GemvQ4(shape) => Some(shape),
        _ => None,
    }
}

pub(super) fn side_by_side(lower: &mut Lower<'_>) -> Result<()> {
    let layers = read(lower, 0)?;
    lower.expect_floating_output()?;
    if layers.whole.m == 0 {
        return Ok(());
    }
    let parts = match layers.outs[..] {
        [_] => layers.whole.parts(lower)?,
        _ => vec![layers.whole],
    };
    let shapes: Option<Vec<GemvQ4>> = parts.iter().map(|part| streaming(lower, part)).collect();
    let Some(shapes) = shapes else { return layers.one_by_one(lower) };
    let extra = Extra { norm: Some(layers.norm), columns: Columns::of(&layers.outs) };
    parts.iter().zip(shapes).try_for_each(|(part, shape)| q4::lower(lower, part, shape, &extra))
}

pub(super) fn gated(lower: &mut Lower<'_>) -> Result<()> {
    let layers = read(lower, 1)?;
    let [gate, up] = layers.outs[..] else { return Err(lower.refuse("it has no gate")) };
    let out = lower.output(0, up.dims)?;
    lower.expect_floating_output()?;
    if layers.whole.m == 0 {
        return Ok(());
    }
    let pairs = |shape: &GemvQ4| shape.columns > 1 && gate.dims == up.dims;
    match streaming(lower, &layers.whole).filter(pairs) {
        Some(shape) => {
            let product = Product { n: layers.whole.n / 2, out, ..layers.whole };
            let extra = Extra { norm: Some(layers.norm), columns: Columns::Gated };
            q4::lower(lower, &product, shape, &extra)
        }
        None => {
            layers.one_by_one(lower)?;
            silu_mul(lower, gate, up, out)
        }
    }
}
