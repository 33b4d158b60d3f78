//! Numbers as integers, `q = clamp(round(x / scale) + zero, low, high)`, and back, `x = (q - zero) * scale`: with one scale and
//! zero point for a tensor, or for each channel, row or block of it.

use super::elementwise::{Input, Map, map};
use super::{DType, FLOATS, Lower, Op, Operand};
use crate::error::Result;
use crate::graph::{Dims, Value};
use crate::shader::Elem;

/// Rows of this family.
pub const OPS: &[Op] = &[
    Op::new("quantized_decomposed.quantize_per_tensor.default", FLOATS, |lower| quantize(lower, Per::Tensor)),
    Op::new("quantized_decomposed.quantize_per_tensor.tensor", FLOATS, |lower| quantize(lower, Per::Tensor)),
    Op::new("quantized_decomposed.quantize_per_channel.default", FLOATS, |lower| quantize(lower, Per::Channel)),
    Op::new("quantized_decomposed.quantize_per_token.default", FLOATS, |lower| quantize(lower, Per::Token)),
    Op::new("torchao.quantize_affine.default", FLOATS, |lower| quantize(lower, Per::Block)),
    Op::new("quantized_decomposed.dequantize_per_tensor.default", BYTES, |lower| dequantize(lower, Per::Tensor)),
    Op::new("quantized_decomposed.dequantize_per_tensor.tensor", BYTES, |lower| dequantize(lower, Per::Tensor)),
    Op::new("quantized_decomposed.dequantize_per_channel.default", BYTES, |lower| dequantize(lower, Per::Channel)),
    Op::new("quantized_decomposed.dequantize_per_token.default", BYTES, |lower| dequantize(lower, Per::Token)),
    Op::new("torchao.dequantize_affine.default", BYTES, |lower| dequantize(lower, Per::Block)),
];

/// Types of quantised numbers.
const BYTES: &[DType] = &[DType::I8, DType::U8, DType::I32];

/// What shares a scale.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Per {
    /// `(x, scale, zero, low, high, ..)`, scale and zero as numbers or tensors of one
    Tensor,
    /// `(x, scales, zeros, axis, low, high, ..)`
    Channel,
    /// `(x, scales, zeros, low, high, ..)`: everything but the last dimension counts rows
    Token,
    /// `(x, block shape, scales, zeros, type, low, high, ..)`
    Block,
}

/// A tensor cut into blocks.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Blocks {
    /// The tensor's shape with every dimension that a block does not cover whole in two: blocks, elements of a block.
    pub sizes: Vec<u32>,
    /// For each of these, whether it runs inside of a block.
    pub inside: Vec<bool>,
}

impl Blocks {
    /// The same shape, with one element for each block.
    fn parameters(&self) -> Vec<u32> {
        self.sizes.iter().zip(&self.inside).map(|(&size, &inside)| if inside { 1 } else { size }).collect()
    }

    /// Adds a dimension.
    pub fn push(&mut self, size: u32, inside: bool) {
        self.sizes.push(size);
        self.inside.push(inside);
    }
}

impl Lower<'_> {
    /// The blocks of `x` whose shape is list argument `index`; a block may be larger than a live dimension.
    pub(super) fn blocks(&mut self, index: usize, x: Operand) -> Result<Blocks> {
        let shape = self.ints(index)?;
        let mut blocks = Blocks::default();
        let divides = |(&size, &block): (&u32, &i64)| {
            u32::try_from(block).is_ok_and(|block| block > 0 && size.is_multiple_of(block.min(size.max(1))))
        };
        if shape.len() != x.dims.len() || !x.dims.iter().zip(&shape).all(divides) {
            return Err(self.refuse(format!("blocks of {shape:?} do not divide {}", x.dims)));
        }
        for (&size, &block) in x.dims.iter().zip(&shape) {
            let length = u32::try_from(block).unwrap_or(u32::MAX).min(size.max(1));
            if block == 1 || length != size {
                blocks.push(size / length, false);
            }
            if block > 1 {
                blocks.push(length, true);
            }
        }
        Ok(blocks)
    }

    fn blocks_per(&mut self, per: Per, x: Operand) -> Result<Blocks> {
        let rank = x.dims.len();
        let channel = match per {
            Per::Block => return self.blocks(1, x),
            Per::Channel => Some(self.axis(3, rank)?),
            _ => None,
        };
        let mut blocks = Blocks::default();
        for (axis, &size) in x.dims.iter().enumerate() {
            let outside = if per == Per::Token { axis + 1 < rank } else { Some(axis) == channel };
            blocks.push(size, !outside);
        }
        Ok(blocks)
    }

    /// Argument `index` as a number, or as a tensor with an element for each block.
    fn parameter(&self, index: usize, blocks: &Blocks) -> Result<Input> {
        let input = match self.value(index)? {
            Value::Null => Input::Number(0.0),
            _ => self.input(index)?,
        };
        let Some(tensor) = input.tensor() else { return Ok(input) };
        let dims = Dims::new(&blocks.parameters())?;
        if tensor.dims.numel() != dims.numel() {
            return Err(self.refuse(format!("argument {index} has shape {}, expected {}", tensor.dims, dims.numel())));
        }
        Ok(Input::Tensor(Operand { dims, ..tensor }))
    }
}

/// The operand and the result in blocks, scale and zero point.
fn arguments(lower: &mut Lower<'_>, per: Per) -> Result<(Operand, Operand, [Input; 2])> {
    let x = lower.tensor(0)?;
    let blocks = lower.blocks_per(per, x)?;
    let first = if per == Per::Block { 2 } else { 1 };
    let parameters = [lower.parameter(first, &blocks)?, lower.parameter(first + 1, &blocks)?];
    let out = lower.output(0, x.dims)?;
    let dims = Dims::new(&blocks.sizes)?;
    Ok((Operand { dims, ..x }, Operand { dims, ..out }, parameters))
}

fn quantize(lower: &mut Lower<'_>, per: Per) -> Result<()> {
    let (x, out, [scale, zero]) = arguments(lower, per)?;
    lower.expect_integer_output()?;
    let (least, most) = match out.elem {
        Elem::I8 => (-128, 127),
        Elem::U8 => (0, 255),
        Elem::Bool => return Err(lower.unsupported("the result is bool, expected a type of numbers")),
        _ => (i64::from(i32::MIN), i64::from(i32::MAX)),
    };
    let first = match per {
        Per::Tensor | Per::Token => 3,
        Per::Channel => 4,
        Per::Block => 5,
    };
    let (low, high) = (lower.int_or(first, least)?, lower.int_or(first + 1, most)?);
    // A number is inverted here, as precisely as PyTorch does it.
    let (scale, factor) = match scale {
        Input::Number(scale) => (Input::Number(1.0 / scale), "s"),
        tensor => (tensor, "(1.0 / s)"),
    };
    let rounded =
        if per == Per::Token { format!("round(x * {factor} + z)") } else { format!("round(x * {factor}) + z") };
    let formula = format!("clamp({rounded}, {low}.0, {high}.0)");
    let inputs = [("x", Input::Tensor(x)), ("s", scale), ("z", zero)];
    map(lower, out, &Map { formula: &formula, inputs: &inputs, compute: "f32", scalars: [0.0; 2] })
}

fn dequantize(lower: &mut Lower<'_>, per: Per) -> Result<()> {
    let (x, out, [scale, zero]) = arguments(lower, per)?;
    lower.expect_floating_output()?;
    let inputs = [("x", Input::Tensor(x)), ("s", scale), ("z", zero)];
    map(lower, out, &Map { formula: "(x - z) * s", inputs: &inputs, compute: "f32", scalars: [0.0; 2] })
}
