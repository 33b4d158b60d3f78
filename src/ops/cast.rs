//! Conversion between element types, and copies into a tensor of another shape or type.

use super::copy::{Walk, gather};
use super::elementwise::{Input, Map, compute_type, map};
use super::{ALL, Lower, Op, Operand};
use crate::error::Result;
use crate::shader::Elem;

/// Rows of this family.
pub const OPS: &[Op] = &[
    Op::new("aten._to_copy.default", ALL, convert).view(),
    Op::new("dim_order_ops._to_dim_order_copy.default", ALL, convert).view(),
    Op::new("aten.copy.default", ALL, copy).writes(&[0]),
];

fn convert(lower: &mut Lower<'_>) -> Result<()> {
    let x = lower.tensor(0)?;
    let out = lower.output(0, x.dims)?;
    if lower.same_storage(x, out) { Ok(()) } else { assign(lower, x, out) }
}

fn copy(lower: &mut Lower<'_>) -> Result<()> {
    let (like, source) = (lower.tensor(0)?, lower.tensor(1)?);
    if lower.broadcast(&[like, source])? != like.dims {
        return Err(lower.refuse(format!("{} does not expand to {}", source.dims, like.dims)));
    }
    let out = lower.output(0, like.dims)?;
    assign(lower, source, out)
}

/// `out = x`, repeated and converted where needed: floats are cut off towards zero, a bool is what differs from zero.
fn assign(lower: &mut Lower<'_>, x: Operand, out: Operand) -> Result<()> {
    if x.elem == out.elem && x.dims == out.dims {
        return gather(lower, x, out, &Walk::through(x));
    }
    let formula = if out.elem == Elem::Bool { "!(x == C())" } else { "x" };
    let compute = compute_type(&[Input::Tensor(x)], out.elem);
    map(lower, out, &Map { formula, inputs: &[("x", Input::Tensor(x))], compute, scalars: [0.0; 2] })
}
