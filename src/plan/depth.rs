use std::collections::HashMap;
use std::fmt;

use super::{Plan, Probe, StorageKind};
use crate::ops::Bind;
use crate::shader::Access;

/// How long a device waits for itself in one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Dispatches.
    pub steps: u32,
    /// Dispatches in the longest chain in which each touches a buffer that an earlier one writes.
    pub levels: u32,
    /// Dispatches before which the device waits for all earlier ones, as the use of one of their buffers changes.
    pub waits: u32,
}

impl fmt::Display for Depth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} steps in {} levels with {} waits", self.steps, self.levels, self.waits)
    }
}

/// Memory that dispatches may share: a shared buffer, or a storage of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Memory {
    Shared(u32),
    Own(u32),
}

/// What was last done to a buffer.
#[derive(Clone, Copy)]
struct Use {
    access: Access,
    /// The level of the last step that wrote it.
    level: u32,
}

impl Plan {
    /// The depth of a call of the shape of `probe`.
    pub fn depth(&self, probe: &Probe) -> Depth {
        let mut depth = Depth::default();
        let mut uses: HashMap<Memory, Use> = HashMap::new();
        for (node, lowered) in probe.lowered.iter().enumerate() {
            for step in &lowered.steps {
                let roles = step.binds.iter().zip(&step.kernel.roles);
                let places: Vec<(Memory, Access)> =
                    roles.filter_map(|(&bind, role)| Some((self.touched(node, bind)?, role.access))).collect();
                let known: Vec<(Use, Access)> =
                    places.iter().filter_map(|(memory, now)| Some((*uses.get(memory)?, *now))).collect();
                let level = 1 + known.iter().map(|(last, _)| last.level).max().unwrap_or(0);
                let waits = known.iter().any(|(last, now)| last.access == Access::Write || *now == Access::Write);
                for (memory, access) in places {
                    let level = if access == Access::Write { level } else { uses.get(&memory).map_or(0, |u| u.level) };
                    uses.insert(memory, Use { access, level });
                }
                depth.steps += 1;
                depth.levels = depth.levels.max(level);
                depth.waits += u32::from(waits);
            }
        }
        depth
    }

    fn touched(&self, node: usize, bind: Bind) -> Option<Memory> {
        let id = match bind {
            Bind::Scratch(n) => return self.scratch.get(node)?.get(n as usize).copied().map(Memory::Shared),
            Bind::Value(id) | Bind::Range(id, ..) => id,
        };
        let storage = self.storage_of(id)?;
        match self.storages.get(storage as usize)?.kind {
            StorageKind::Activation(buffer) => Some(Memory::Shared(buffer)),
            _ => Some(Memory::Own(storage)),
        }
    }
}
