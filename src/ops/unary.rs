//! Elementwise functions of one tensor: rows of (name, WGSL expression in `x`, with scalar arguments `p.s` and `p.t`).

use super::elementwise::{Input, Map, compute_type, map};
use super::{FLOATS, INTEGERS, Lower, NUMBERS, Op};
use crate::error::Result;

/// Functions whose result is floating-point, whatever they are given.
pub const FLOATING: &[Op] = &[
    Op::new("aten.exp.default", NUMBERS, floating).formula("exp(x)"),
    Op::new("aten.log10.default", NUMBERS, floating).formula("log2(x) * 0.30102999566"),
    Op::new("aten.sqrt.default", NUMBERS, floating).formula("sqrt(x)"),
    Op::new("aten.rsqrt.default", NUMBERS, floating).formula("inverseSqrt(x)"),
    Op::new("aten.sin.default", NUMBERS, floating).formula("sine(x)"),
    Op::new("aten.cos.default", NUMBERS, floating).formula("cosine(x)"),
    Op::new("aten.tanh.default", NUMBERS, floating).formula("hyperbolic(x)"),
    Op::new("aten.sigmoid.default", NUMBERS, floating).formula("1.0 / (1.0 + exp(-x))"),
    Op::new("aten.hardswish.default", FLOATS, floating).formula("x * clamp(x + 3.0, 0.0, 6.0) / 6.0"),
    Op::new("aten.gelu.default", FLOATS, gelu).formula("gelu(x, p.s)"),
    Op::new("aten.leaky_relu.default", FLOATS, leaky_relu).formula("select(x * p.s, x, x > 0.0)"),
    Op::new("aten.hardshrink.default", FLOATS, hardshrink).formula("select(x, 0.0, x >= -p.s && x <= p.s)"),
];

/// Functions that stay in the type of their operand.
pub const OPS: &[Op] = &[
    Op::new("aten.abs.default", NUMBERS, plain).formula("abs(x)"),
    Op::new("aten.neg.default", NUMBERS, plain).formula("-x"),
    Op::new("aten.round.default", NUMBERS, plain).formula("nearest(x)"),
    Op::new("aten.relu.default", NUMBERS, plain).formula("positive(x)"),
    Op::new("aten.clamp.default", NUMBERS, clamp).formula(CLAMP),
    Op::new("aten.hardtanh.default", NUMBERS, clamp).formula(CLAMP),
    Op::new("aten.pow.Tensor_Scalar", NUMBERS, power).formula("power(x, p.s)"),
];

/// Functions of integers and bools.
pub const LOGICAL: &[Op] = &[
    Op::new("aten.logical_not.default", super::ALL, negation).formula("x == C()"),
    Op::new("aten.bitwise_not.default", INTEGERS, complement).formula("x ^ p.s"),
];

const CLAMP: &str = "bounded(x, p.s, p.t)";

fn plain(lower: &mut Lower<'_>) -> Result<()> {
    numbers(lower, [0.0; 2])
}

fn negation(lower: &mut Lower<'_>) -> Result<()> {
    apply(lower, [0.0; 2])?;
    lower.expect_bool_output()
}

fn floating(lower: &mut Lower<'_>) -> Result<()> {
    apply_floating(lower, [0.0; 2])
}

fn gelu(lower: &mut Lower<'_>) -> Result<()> {
    let tangent = match lower.text(1)? {
        "none" => 0.0,
        "tanh" => 1.0,
        other => return Err(lower.unsupported(format!("approximation {other:?}"))),
    };
    apply_floating(lower, [tangent, 0.0])
}

fn leaky_relu(lower: &mut Lower<'_>) -> Result<()> {
    let slope = lower.double_or(1, 0.01)?;
    apply_floating(lower, [slope, 0.0])
}

fn hardshrink(lower: &mut Lower<'_>) -> Result<()> {
    let limit = lower.double_or(1, 0.5)?;
    apply_floating(lower, [limit, 0.0])
}

/// The upper bound wins where the bounds cross.
fn clamp(lower: &mut Lower<'_>) -> Result<()> {
    let floats = lower.tensor(0)?.elem.is_float();
    let (low, high) = (lower.double_or(1, f64::NEG_INFINITY)?, lower.double_or(2, f64::INFINITY)?);
    // Beyond the range of the type a bound is no bound.
    let reach = |x: f64| if floats { x } else { x.clamp(f64::from(i32::MIN), f64::from(i32::MAX)) };
    numbers(lower, [reach(low.min(high)), reach(high)])
}

fn power(lower: &mut Lower<'_>) -> Result<()> {
    let exponent = lower.double(1)?;
    numbers(lower, [exponent, 0.0])
}

/// Fractions among operand and numbers take a floating-point result.
fn numbers(lower: &mut Lower<'_>, scalars: [f64; 2]) -> Result<()> {
    let finite = scalars.into_iter().filter(|x| x.is_finite()).map(Input::Number);
    let inputs: Vec<Input> = [Input::Tensor(lower.tensor(0)?)].into_iter().chain(finite).collect();
    apply(lower, scalars)?;
    lower.expect_room_for(&inputs)
}

/// Bits that a complement flips: the only one of a bool, all of an integer.
fn complement(lower: &mut Lower<'_>) -> Result<()> {
    let bits = if lower.tensor(0)?.elem == crate::shader::Elem::Bool { 1.0 } else { -1.0 };
    apply(lower, [bits, 0.0])?;
    lower.expect_integer_output()
}

fn apply_floating(lower: &mut Lower<'_>, scalars: [f64; 2]) -> Result<()> {
    apply(lower, scalars)?;
    lower.expect_floating_output()
}

fn apply(lower: &mut Lower<'_>, scalars: [f64; 2]) -> Result<()> {
    let x = lower.tensor(0)?;
    let out = lower.output(0, x.dims)?;
    let inputs = [("x", Input::Tensor(x))];
    let compute = compute_type(&[Input::Tensor(x)], out.elem);
    map(lower, out, &Map { formula: lower.op.formula, inputs: &inputs, compute, scalars })
}

#[cfg(test)]
mod tests {
    use super::super::ALL;
    use super::super::elementwise::testing::assert_sound;
    use super::*;
    use crate::shader::Elem;

    #[test]
    fn formulas_are_sound_for_every_type_of_their_row() {
        for elem in ALL.iter().map(|&dtype| Elem::of(dtype, true)) {
            for op in FLOATING.iter().filter(|_| elem != Elem::Bool) {
                assert_sound(op.formula, &["x"], elem, "f32", Elem::F16);
            }
            for op in OPS.iter().filter(|_| elem != Elem::Bool) {
                assert_sound(op.formula, &["x"], elem, elem.compute_type(), elem);
            }
            assert_sound(LOGICAL[0].formula, &["x"], elem, elem.compute_type(), Elem::Bool);
            if !elem.is_float() {
                assert_sound(LOGICAL[1].formula, &["x"], elem, "i32", elem);
            }
        }
    }
}
