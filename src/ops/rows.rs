//! What kernels share that give a row of elements to a workgroup.

use super::Lower;
use crate::shader::Source;
use crate::source;

impl Lower<'_> {
    /// The linked piece that reduces over a workgroup of `WG` invocations: `reduce_add`, `reduce_max`.
    pub(super) fn reduction(&self) -> Source {
        match self.caps().subgroup {
            Some(_) => source!("lib/reduce_subgroup"),
            None => source!("lib/reduce_workgroup"),
        }
    }

    /// Invocations for a row of `steps` steps: a power of two, about two steps each, within the device's limit.
    pub(super) fn row_threads(&self, steps: u32) -> u32 {
        let most = self.caps().max_invocations.min(self.caps().max_size_x).max(1);
        let most = 1 << most.ilog2();
        steps.div_ceil(2).next_power_of_two().clamp(32, 256).min(most)
    }
}
