//! Elementwise functions of one tensor: rows of (name, WGSL expression in `x`, with scalar arguments `p.a` and `p.b`).

use super::{FLOATS, Lower, Op, Params};
use crate::error::Result;
use crate::shader::Kernel;
use crate::source;

/// Rows of this family.
pub const OPS: &[Op] = &[
    Op::new("aten.sigmoid.default", FLOATS, plain).formula("1.0 / (1.0 + exp(-x))"),
    Op::new("aten.relu.default", FLOATS, plain).formula("select(x, 0.0, x < 0.0)"),
];

fn plain(lower: &mut Lower<'_>) -> Result<()> {
    lower_unary(lower, 0.0, 0.0)
}

fn lower_unary(lower: &mut Lower<'_>, a: f32, b: f32) -> Result<()> {
    let x = lower.tensor(0)?;
    let out = lower.output(0, x.dims)?;
    let (from, to) = (x.elem.compute_type(), out.elem.compute_type());
    let n4 = x.dims.numel().div_ceil(4);
    let wg = 64;
    let kernel = Kernel::new(source!("unary"))
        .set("WG", wg)
        .alias("R", to)
        .reads("x", x.elem)
        .writes("out", out.elem)
        .function(format!("fn f(x: {from}) -> {to} {{ return {}; }}", lower.op.formula));
    let params = Params::new().u32(n4).f32(a).f32(b);
    lower.step(kernel, &[x.into(), out.into()], params, u64::from(n4.div_ceil(wg)))
}
