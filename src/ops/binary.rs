//! Elementwise functions of two or three tensors with broadcasting: rows of (name, WGSL expression in `a`, `b`, `cond`).

use super::elementwise::{Input, Map, compute_type, map};
use super::{ALL, FLOATS, INTEGERS, Lower, NUMBERS, Op, Operand};
use crate::error::Result;
use crate::graph::DType;
use crate::shader::Elem;

/// Arithmetic: the result has the type that the operands promote to.
pub const OPS: &[Op] = &[
    Op::new("aten.add.Tensor", ALL, scaled).formula("a + p.s * b"),
    Op::new("aten.sub.Tensor", NUMBERS, scaled).formula("a - p.s * b"),
    Op::new("aten.mul.Tensor", ALL, plain).formula("a * b"),
    Op::new("aten.div.Tensor_mode", NUMBERS, rounded).formula("quotient(a, b, p.s)"),
    Op::new("aten.minimum.default", ALL, plain).formula("lowest(a, b)"),
    Op::new("aten.pow.Tensor_Tensor", NUMBERS, plain).formula("power(a, b)"),
];

/// Arithmetic with a floating-point result.
pub const FLOATING: &[Op] = &[Op::new("aten.div.Tensor", ALL, divided).formula("a / b")];

/// Comparisons and logic with a bool result.
pub const LOGICAL: &[Op] = &[
    Op::new("aten.eq.Tensor", ALL, compare).formula("a == b"),
    Op::new("aten.lt.Tensor", ALL, compare).formula("a < b"),
    Op::new("aten.le.Tensor", ALL, compare).formula("a <= b"),
    Op::new("aten.gt.Tensor", ALL, compare).formula("a > b"),
    Op::new("aten.ge.Tensor", ALL, compare).formula("a >= b"),
    Op::new("aten.eq.Scalar", ALL, compare).formula("a == b"),
    Op::new("aten.ne.Scalar", ALL, compare).formula("!(a == b)"),
    Op::new("aten.lt.Scalar", ALL, compare).formula("a < b"),
    Op::new("aten.le.Scalar", ALL, compare).formula("a <= b"),
    Op::new("aten.gt.Scalar", ALL, compare).formula("a > b"),
    Op::new("aten.ge.Scalar", ALL, compare).formula("a >= b"),
    Op::new("aten.logical_and.default", ALL, compare).formula("!(a == C()) && !(b == C())"),
    Op::new("aten.logical_or.default", ALL, compare).formula("!(a == C()) || !(b == C())"),
];

/// `silu(a) * b`: `(a, b) -> out`.
pub const SILU_MUL: &str = "aten.sigmoid.default+aten.mul.Tensor";

/// Rows that only passes name.
pub const INTERNAL: &[Op] = &[Op::new(SILU_MUL, FLOATS, plain).formula(SILU)];

/// Bit operations.
pub const BITWISE: &[Op] = &[
    Op::new("aten.bitwise_and.Tensor", INTEGERS, bits).formula("a & b"),
    Op::new("aten.bitwise_or.Tensor", INTEGERS, bits).formula("a | b"),
];

/// Selection.
pub const SELECT: &[Op] = &[Op::new("aten.where.self", &[DType::Bool, DType::U8], select)
    .formula(SELECTION)
    .notes("the types are those of the condition")];

const SILU: &str = "a / (1.0 + exp(-a)) * b";
const SELECTION: &str = "select(b, a, cond != C())";

/// Adds the step `out = silu(gate) * up`.
pub(super) fn silu_mul(lower: &mut Lower<'_>, gate: Operand, up: Operand, out: Operand) -> Result<()> {
    let inputs = [("a", Input::Tensor(gate)), ("b", Input::Tensor(up))];
    map(lower, out, &Map { formula: SILU, inputs: &inputs, compute: "f32", scalars: [0.0; 2] })
}

fn plain(lower: &mut Lower<'_>) -> Result<()> {
    let inputs = operands(lower)?;
    arithmetic(lower, &inputs, 0.0)
}

fn scaled(lower: &mut Lower<'_>) -> Result<()> {
    let alpha = lower.double_or(2, 1.0)?;
    let inputs = operands(lower)?;
    arithmetic(lower, &inputs, alpha)
}

fn divided(lower: &mut Lower<'_>) -> Result<()> {
    let inputs = operands(lower)?;
    apply(lower, &inputs, 0.0)?;
    lower.expect_floating_output()
}

/// Numbers for `quotient`'s kind.
fn rounded(lower: &mut Lower<'_>) -> Result<()> {
    let kind = match lower.optional_text(2)? {
        None => 0.0,
        Some("floor") => 1.0,
        Some("trunc") => 2.0,
        Some(other) => return Err(lower.unsupported(format!("rounding mode {other:?}"))),
    };
    let inputs = operands(lower)?;
    arithmetic(lower, &inputs, kind)?;
    if kind == 0.0 { lower.expect_floating_output() } else { Ok(()) }
}

/// A number is compared in the tensor's own type.
fn compare(lower: &mut Lower<'_>) -> Result<()> {
    let mut inputs = operands(lower)?;
    if let [(_, Input::Tensor(a)), (_, Input::Number(number))] = &mut inputs
        && a.dtype == DType::F16
    {
        *number = half::f16::from_f64(*number).to_f64();
    }
    apply(lower, &inputs, 0.0)?;
    lower.expect_bool_output()
}

fn bits(lower: &mut Lower<'_>) -> Result<()> {
    let inputs = operands(lower)?;
    if let Some(x) = inputs.iter().filter_map(|(_, input)| input.tensor()).find(|x| x.elem.is_float()) {
        return Err(lower.unsupported(format!("an operand is {}, expected an integer type", x.dtype)));
    }
    let inexact = |input: &Input| compute_type(std::slice::from_ref(input), Elem::Bool) == "f32";
    if let Some((_, Input::Number(number))) = inputs.iter().find(|(_, input)| inexact(input)) {
        return Err(lower.refuse(format!("an operand is {number}, expected an integer of 32 bits")));
    }
    apply(lower, &inputs, 0.0)?;
    lower.expect_integer_output()
}

fn select(lower: &mut Lower<'_>) -> Result<()> {
    let [a, b] = [lower.input(1)?, lower.input(2)?];
    apply(lower, &[("cond", lower.input(0)?), ("a", a), ("b", b)], 0.0)?;
    lower.expect_room_for(&[a, b])
}

fn operands(lower: &Lower<'_>) -> Result<[(&'static str, Input); 2]> {
    Ok([("a", Input::Tensor(lower.tensor(0)?)), ("b", lower.input(1)?)])
}

/// What is a fraction among operands and `scalar` takes a floating-point result.
fn arithmetic(lower: &mut Lower<'_>, inputs: &[(&'static str, Input); 2], scalar: f64) -> Result<()> {
    let [(_, a), (_, b)] = *inputs;
    apply(lower, inputs, scalar)?;
    let whole = scalar.fract() == 0.0;
    if whole { lower.expect_room_for(&[a, b]) } else { lower.expect_floating_output() }
}

fn apply(lower: &mut Lower<'_>, inputs: &[(&'static str, Input)], scalar: f64) -> Result<()> {
    let values: Vec<Input> = inputs.iter().map(|(_, input)| *input).collect();
    let tensors: Vec<Operand> = values.iter().filter_map(Input::tensor).collect();
    let dims = lower.broadcast(&tensors)?;
    let out = lower.output(0, dims)?;
    let compute = compute_type(&values, out.elem);
    map(lower, out, &Map { formula: lower.op.formula, inputs, compute, scalars: [scalar, 0.0] })
}

#[cfg(test)]
mod tests {
    use super::super::elementwise::testing::assert_sound;
    use super::*;

    #[test]
    fn formulas_are_sound_for_every_type_of_their_row() {
        for elem in ALL.iter().map(|&dtype| Elem::of(dtype, true)) {
            let compute = elem.compute_type();
            for op in OPS {
                assert_sound(op.formula, &["a", "b"], elem, compute, elem);
            }
            assert_sound(FLOATING[0].formula, &["a", "b"], elem, "f32", Elem::F32);
            assert_sound(INTERNAL[0].formula, &["a", "b"], elem, "f32", Elem::F16);
            for op in LOGICAL {
                assert_sound(op.formula, &["a", "b"], elem, compute, Elem::Bool);
            }
            for op in BITWISE.iter().filter(|_| !elem.is_float()) {
                assert_sound(op.formula, &["a", "b"], elem, "i32", elem);
            }
            assert_sound(SELECTION, &["cond", "a", "b"], elem, compute, elem);
        }
    }
}
