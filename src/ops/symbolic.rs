//! Integers that are computed on the host: sizes, positions and their arithmetic.

use super::{ALL, INTEGERS, Lower, Op};
use crate::error::Result;

/// Rows of this family.
pub const OPS: &[Op] = &[
    Op::new("sym_size.int", ALL, size),
    Op::new("et_vk.select_as_symint.default", INTEGERS, select).notes("the source is a graph input"),
    Op::new("add", &[], arithmetic),
    Op::new("sub", &[], arithmetic),
    Op::new("mul", &[], arithmetic),
    Op::new("floordiv", &[], arithmetic),
];

fn size(lower: &mut Lower<'_>) -> Result<()> {
    let x = lower.tensor(0)?;
    let axis = lower.axis(1, x.dims.len())?;
    lower.set_symint(x.dims.get(axis).map_or(1, |&n| i64::from(n)))
}

fn select(lower: &mut Lower<'_>) -> Result<()> {
    let x = lower.tensor(0)?;
    if !lower.env.graph.inputs.contains(&x.id) {
        return Err(lower.unsupported("its source is not a graph input"));
    }
    let axis = lower.axis(1, x.dims.len())?;
    let extent = i64::from(x.dims.get(axis).copied().unwrap_or(1));
    let index = lower.int(2)?;
    let wrapped = if index < 0 { index + extent } else { index };
    if !(0..extent).contains(&wrapped) {
        return Err(lower.refuse(format!("index {index} is outside the {extent} elements of {}", x.dims)));
    }
    let stride = x.dims.strides().get(axis).copied().unwrap_or(1).max(1);
    let number = (lower.env.host)(x.id, wrapped as usize * stride as usize)?;
    lower.answer.volatile = true;
    lower.answer.reads_input = true;
    lower.set_symint(number)
}

fn arithmetic(lower: &mut Lower<'_>) -> Result<()> {
    let (a, b) = (lower.int(0)?, lower.int(1)?);
    let result = match lower.op.name {
        "add" => a.checked_add(b),
        "sub" => a.checked_sub(b),
        "mul" => a.checked_mul(b),
        _ if b == 0 => return Err(lower.refuse("division by zero")),
        _ => a.checked_div_euclid(b).map(|q| q - i64::from(b < 0 && a.checked_rem_euclid(b) != Some(0))),
    };
    match result {
        Some(number) => lower.set_symint(number),
        None => Err(lower.refuse(format!("{a} {} {b} overflows", lower.op.name))),
    }
}
