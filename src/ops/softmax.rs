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
fn choose(steps: Steps, lines: u32, length: u32, inner: u32) -> Team {
    match () {
        () if length <= 16 || (inner > 1 && lines >= 1024 && length < 64) => Team::One,
        () if steps == Steps::Across => Team::Columns(if lines >= 8192 { 8 } else { 4 }),
        () if inner >= 8 && lines >= 256 => Team::columns(lines),
        () => Team::Workgroup,
    }
}

/// What an invocation takes at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Steps {
    /// An element.
    One,
    /// Four elements of a line.
    Along,
    /// An element of each of four neighbouring lines.
    Across,
}

impl Steps {
    fn of(lines: u32, length: u32, inner: u32) -> Steps {
        match () {
            () if inner == 1 && length >= 64 && length.is_multiple_of(4) => Steps::Along,
            () if inner.is_multiple_of(32) && lines >= 1024 => Steps::Across,
            () => Steps::One,
        }
    }

    /// Lines, their length and the distance of their elements in steps.
    fn count(self, lines: u32, length: u32, inner: u32) -> (u32, u32, u32) {
        match self {
            Steps::One => (lines, length, inner),
            Steps::Along => (lines, length / 4, 1),
            Steps::Across => (lines / 4, length, inner / 4),
        }
    }

    /// Names the type of a step, how it is read and written, and what becomes of those of a team.
    fn name(self, kernel: Kernel) -> Kernel {
        let (wgsl, suffix) = if self == Steps::One { ("f32", "") } else { ("vec4<f32>", "4") };
        let (reduced, highest, added) = match self {
            Steps::Along => {
                ("f32", "V(reduce_max(max(max(v.x, v.y), max(v.z, v.w)), lane))", "V(reduce_add(dot(v, V(1.0)), lane))")
            }
            _ => (wgsl, "reduce_max(v, lane)", "reduce_add(v, lane)"),
        };
        kernel
            .alias("V", wgsl)
            .alias("Reduced", reduced)
            .function(format!("fn item_of_x(i: u32) -> V {{ return load{suffix}_x(i); }}"))
            .function(format!("fn put(i: u32, v: V) {{ store{suffix}_out(i, v); }}"))
            .function(format!("fn highest(v: V, lane: u32) -> V {{ return {highest}; }}"))
            .function(format!("fn added(v: V, lane: u32) -> V {{ return {added}; }}"))
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
    let steps = Steps::of(lines, length, inner);
    let (lines, length, inner) = steps.count(lines, length, inner);
    let team = choose(steps, lines, length, inner);
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
        .function(format!("fn finish(d: V, total: V) -> V {{ return {formula}; }}"));
    let kernel = steps.name(kernel);
    let params = Params::new().u32(lines).u32(length).u32(inner);
    lower.step(kernel, &[x.into(), out.into()], params, u64::from(lines.div_ceil(threads.workgroup / threads.team)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_get_a_workgroup_and_short_ones_an_invocation() {
        assert_eq!(choose(Steps::Along, 1, 32064, 1), Team::Workgroup);
        assert_eq!(choose(Steps::One, 100_000, 8, 1), Team::One);
        assert_eq!(choose(Steps::One, 100_000, 512, 60), Team::Columns(32));
        assert_eq!(choose(Steps::One, 1024, 512, 60), Team::Columns(8));
        assert_eq!(choose(Steps::Across, 1024, 512, 64), Team::Columns(4));
        assert_eq!(choose(Steps::One, 100_000, 32, 60), Team::One);
        assert_eq!(choose(Steps::One, 64, 512, 60), Team::Workgroup);
    }

    #[test]
    fn fours_lie_along_lines_or_across_them() {
        assert_eq!(Steps::of(8, 512, 1), Steps::Along);
        assert_eq!(Steps::of(8, 510, 1), Steps::One);
        assert_eq!(Steps::of(4096, 10, 64), Steps::Across);
        assert_eq!(Steps::of(4096, 10, 48), Steps::One);
        assert_eq!(Steps::Across.count(4096, 10, 64), (1024, 10, 16));
    }
}
