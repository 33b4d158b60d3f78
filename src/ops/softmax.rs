//! Softmax and its logarithm along any dimension.

use super::{FLOATS, Lower, Op, Params};
use crate::error::Result;
use crate::shader::Kernel;
use crate::source;

/// Rows of this family; the formula is in `d`, the distance to the maximum, and `total`, the sum of exponentials.
pub const OPS: &[Op] = &[
    Op::new("aten._softmax.default", FLOATS, |lower| softmax(lower, "exp(d) / total")),
    Op::new("aten._log_softmax.default", FLOATS, |lower| softmax(lower, "d - log(total)")),
];

/// Who computes a line: one invocation, or all of a workgroup.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Team {
    One,
    Workgroup,
}

/// Lines whose neighbours lie side by side are left to one invocation each, when there are enough of them.
fn choose(lines: u32, length: u32, inner: u32) -> Team {
    if length <= 16 || (inner > 1 && lines >= 1024) { Team::One } else { Team::Workgroup }
}

fn softmax(lower: &mut Lower<'_>, formula: &str) -> Result<()> {
    let x = lower.tensor(0)?;
    let axis = lower.axis(1, x.dims.len())?;
    let out = lower.output(0, x.dims)?;
    lower.expect_floating_output()?;
    let length = x.dims.get(axis).copied().unwrap_or(1);
    let inner: u32 = x.dims.iter().skip(axis + 1).product();
    let lines = x.dims.numel().checked_div(length).unwrap_or(0);
    let (threads, team, piece) = match choose(lines, length, inner) {
        Team::One => (64, 1, source!("lib/reduce_alone")),
        Team::Workgroup => {
            let threads = lower.row_threads(length, 3)?;
            (threads, threads, lower.reduction())
        }
    };
    let kernel = Kernel::new(source!("softmax"))
        .set("WG", threads)
        .set("TEAM", team)
        .link(piece)
        .reads("x", x.elem)
        .writes("out", out.elem)
        .function(format!("fn finish(d: f32, total: f32) -> f32 {{ return {formula}; }}"));
    let params = Params::new().u32(lines).u32(length).u32(inner);
    lower.step(kernel, &[x.into(), out.into()], params, u64::from(lines.div_ceil(threads / team)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_get_a_workgroup_and_short_ones_an_invocation() {
        assert_eq!(choose(1, 128256, 1), Team::Workgroup);
        assert_eq!(choose(100_000, 8, 1), Team::One);
        assert_eq!(choose(100_000, 512, 64), Team::One);
        assert_eq!(choose(64, 512, 64), Team::Workgroup);
    }
}
