//! Softmax and its logarithm along any dimension.

use super::rows::Team;
use super::{FLOATS, Lower, Op, Params};
use crate::error::Result;
use crate::shader::Kernel;
use crate::source;

/// Rows of this family; the formula is in `d`, the distance to the maximum, and `total`, the sum of exponentials.
pub const OPS: &[Op] = &[
    Op::new("aten._softmax.default", FLOATS, |lower| softmax(lower, "exp(d) / total")),
    Op::new("aten._log_softmax.default", FLOATS, |lower| softmax(lower, "d - log(total)")),
];

/// Lines whose neighbours lie side by side are left to one invocation each when they are short, to some when there are many.
fn choose(lines: u32, length: u32, inner: u32) -> Team {
    match () {
        () if length <= 16 || (inner > 1 && lines >= 1024 && length < 64) => Team::One,
        () if inner >= 8 && lines >= 256 => Team::columns(lines),
        () => Team::Workgroup,
    }
}

fn softmax(lower: &mut Lower<'_>, formula: &str) -> Result<()> {
    let x = lower.tensor(0)?;
    let axis = lower.axis(1, x.dims.len())?;
    let out = lower.output(0, x.dims)?;
    lower.expect_floating_output()?;
    let length = x.dims.get(axis).copied().unwrap_or(1);
    let inner: u32 = x.dims.iter().skip(axis + 1).product();
    let lines = x.dims.numel().checked_div(length).unwrap_or(0);
    let team = choose(lines, length, inner);
    let reduce = match team {
        Team::One => source!("lib/reduce_alone"),
        Team::Workgroup => lower.reduction(),
        Team::Columns(_) => source!("lib/reduce_columns"),
    };
    let threads = lower.threads(team, length, 3)?;
    let kernel = Kernel::new(source!("softmax"))
        .set("WG", threads.workgroup)
        .set("TEAM", threads.team)
        .link(threads.piece)
        .link(reduce)
        .reads("x", x.elem)
        .writes("out", out.elem)
        .function(format!("fn finish(d: f32, total: f32) -> f32 {{ return {formula}; }}"));
    let params = Params::new().u32(lines).u32(length).u32(inner);
    lower.step(kernel, &[x.into(), out.into()], params, u64::from(lines.div_ceil(threads.workgroup / threads.team)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_get_a_workgroup_and_short_ones_an_invocation() {
        assert_eq!(choose(1, 128256, 1), Team::Workgroup);
        assert_eq!(choose(100_000, 8, 1), Team::One);
        assert_eq!(choose(100_000, 512, 64), Team::Columns(32));
        assert_eq!(choose(1024, 512, 64), Team::Columns(8));
        assert_eq!(choose(100_000, 32, 64), Team::One);
        assert_eq!(choose(64, 512, 64), Team::Workgroup);
    }
}
