//! Tensors made from numbers alone.

use super::elementwise::{Input, Map, compute_type, map};
use super::{ALL, Lower, NUMBERS, Op};
use crate::error::Result;
use crate::graph::Dims;
use crate::shader::Elem;

/// Rows of this family.
pub const OPS: &[Op] = &[
    Op::new("aten.full.default", ALL, |lower| sized(lower, None)),
    Op::new("aten.zeros.default", ALL, |lower| sized(lower, Some(0.0))),
    Op::new("aten.ones.default", ALL, |lower| sized(lower, Some(1.0))),
    Op::new("aten.full_like.default", ALL, |lower| like(lower, None)),
    Op::new("aten.zeros_like.default", ALL, |lower| like(lower, Some(0.0))),
    Op::new("aten.ones_like.default", ALL, |lower| like(lower, Some(1.0))),
    Op::new("aten.scalar_tensor.default", ALL, scalar),
    Op::new("aten.arange.start_step", NUMBERS, range),
];

fn number(lower: &mut Lower<'_>, argument: usize) -> Result<f64> {
    lower.int(argument).map(|n| n as f64).or_else(|_| lower.double(argument))
}

fn sized(lower: &mut Lower<'_>, value: Option<f64>) -> Result<()> {
    let requested = lower.ints(0)?;
    let sizes: Option<Vec<u32>> = requested.iter().map(|&n| u32::try_from(n).ok()).collect();
    let sizes = sizes.ok_or_else(|| lower.refuse(format!("{requested:?} is no shape")))?;
    fill(lower, Dims::new(&sizes)?, value)
}

fn like(lower: &mut Lower<'_>, value: Option<f64>) -> Result<()> {
    let x = lower.tensor(0)?;
    fill(lower, x.dims, value)
}

fn scalar(lower: &mut Lower<'_>) -> Result<()> {
    let value = number(lower, 0)?;
    fill(lower, Dims::default(), Some(value))
}

/// Fills the result with `value`, or with argument 1.
fn fill(lower: &mut Lower<'_>, dims: Dims, value: Option<f64>) -> Result<()> {
    let value = match value {
        Some(value) => value,
        None => number(lower, 1)?,
    };
    let out = lower.output(0, dims)?;
    let value = if out.elem == Elem::Bool { f64::from(value != 0.0) } else { value };
    let compute = compute_type(&[], out.elem);
    map(lower, out, &Map { formula: "p.s", inputs: &[], compute, scalars: [value, 0.0] })
}

fn range(lower: &mut Lower<'_>) -> Result<()> {
    let (start, end, step) = (number(lower, 0)?, number(lower, 1)?, number(lower, 2)?);
    let count = ((end - start) / step).ceil();
    if !(0.0..=f64::from(i32::MAX)).contains(&count) {
        return Err(lower.refuse(format!("no range from {start} to {end} in steps of {step}")));
    }
    let out = lower.output(0, Dims::new(&[count as u32])?)?;
    let compute = compute_type(&[], out.elem);
    let inputs = [("i", Input::Index)];
    map(lower, out, &Map { formula: "p.s + i * p.t", inputs: &inputs, compute, scalars: [start, step] })
}
