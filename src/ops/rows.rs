//! What kernels share that give a row of elements to a workgroup.

use super::Lower;
use crate::error::Result;
use crate::shader::Source;
use crate::source;

/// Turns of its loops after which a software adapter leaves a kernel's loops without a word, and some room.
pub(super) const SOFTWARE_TURNS: u64 = 65_535 - 1_024;

/// Who computes a result from the elements of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Team {
    /// One invocation.
    One,
    /// All of a workgroup.
    Workgroup,
    /// Invocations of a workgroup that computes so many neighbouring results.
    Columns(u32),
}

impl Team {
    /// For many lines whose elements are apart, and those of neighbouring lines side by side: as many results across as
    /// leave enough workgroups.
    pub fn columns(lines: u32) -> Team {
        Team::Columns(if lines >= 8192 { 32 } else { 8 })
    }
}

/// A team in invocations.
pub(super) struct Threads {
    /// Those of a workgroup.
    pub workgroup: u32,
    /// Those of a result.
    pub team: u32,
    /// The linked piece that tells them apart.
    pub piece: Source,
}

impl Lower<'_> {
    /// The invocations of a team for lines of `length` elements, each of which turns its loops `turns` times.
    pub(super) fn threads(&self, team: Team, length: u32, turns: u32) -> Result<Threads> {
        let piece = source!("lib/team_rows");
        match team {
            Team::One => Ok(Threads { workgroup: 64, team: 1, piece }),
            Team::Workgroup => {
                let workgroup = self.row_threads(length, turns)?;
                Ok(Threads { workgroup, team: workgroup, piece })
            }
            Team::Columns(across) => {
                let workgroup = 1 << self.caps().max_invocations.min(self.caps().max_size_x).clamp(32, 256).ilog2();
                let team = workgroup / across;
                self.expect_turns(u64::from(length.div_ceil(team)) * u64::from(turns))?;
                Ok(Threads { workgroup, team, piece: source!("lib/team_columns") })
            }
        }
    }

    /// The linked piece that reduces over a workgroup of `WG` invocations: `reduce_add`, `reduce_max`.
    pub(super) fn reduction(&self) -> Source {
        match self.caps().subgroup {
            Some(_) => source!("lib/reduce_subgroup"),
            None => source!("lib/reduce_workgroup"),
        }
    }

    /// Refuses a kernel in which an invocation's loops turn so many times on a software adapter that would leave them early.
    pub(super) fn expect_turns(&self, turns: u64) -> Result<()> {
        if !self.caps().cpu || turns <= SOFTWARE_TURNS {
            return Ok(());
        }
        Err(self.unsupported(format!("{turns} terms of one result, at most {SOFTWARE_TURNS} on a software adapter")))
    }

    /// Invocations for a row of `steps` steps, in which kernels' loops turn `turns` times each: a power of two, about two steps
    /// each, within the device's limit; more on a software adapter that would leave its loops early.
    pub(super) fn row_threads(&self, steps: u32, turns: u32) -> Result<u32> {
        let most = self.caps().max_invocations.min(self.caps().max_size_x).max(1);
        let most = 1 << most.ilog2();
        let threads = steps.div_ceil(2).next_power_of_two().clamp(32, 256).min(most);
        if !self.caps().cpu {
            return Ok(threads);
        }
        let done = |threads: &u32| u64::from(steps.div_ceil(*threads)) * u64::from(turns) <= SOFTWARE_TURNS;
        std::iter::successors(Some(threads), |threads| Some(threads * 2).filter(|&more| more <= most))
            .find(done)
            .ok_or_else(|| {
                self.unsupported(format!("{steps} elements of one result are too many for a software adapter"))
            })
    }
}
