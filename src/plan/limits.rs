use super::{NONE, Plan};
use crate::error::{Error, Result};
use crate::gpu::Caps;
use crate::graph::{Node, ValueId};
use crate::ops::{Bind, Lowered, Step};
use crate::shader::Access;

/// Refuses a lowering that the device cannot run: a binding that is too large, too many of them, a buffer that one kernel
/// both reads and writes. Nothing is allocated yet when a program is refused here.
pub(super) fn check(plan: &Plan, node: &Node, lowered: &Lowered, caps: &Caps) -> Result<()> {
    for &bytes in &lowered.scratch {
        fits(node, "scratch", bytes, caps)?;
    }
    for step in &lowered.steps {
        let bindings = step.kernel.roles.len();
        if bindings > caps.max_storage_buffers as usize {
            let limit = caps.max_storage_buffers;
            return Err(Error::unsupported(&node.op, format!("it binds {bindings} buffers, the device takes {limit}")));
        }
        for bind in &step.binds {
            if let Bind::Value(id) | Bind::Range(id, ..) = *bind {
                fits(node, &plan.graph.describe(id), plan.bound(*bind).1, caps)?;
            }
        }
        conflicts(plan, node, step)?;
    }
    Ok(())
}

fn fits(node: &Node, what: &str, bytes: u64, caps: &Caps) -> Result<()> {
    let limit = caps.max_binding.min(caps.max_buffer);
    if bytes <= limit {
        return Ok(());
    }
    Err(Error::unsupported(&node.op, format!("{what} has {bytes} bytes, one binding covers {limit}")))
}

fn conflicts(plan: &Plan, node: &Node, step: &Step) -> Result<()> {
    let place = |bind: &Bind| match *bind {
        Bind::Value(id) | Bind::Range(id, ..) => plan.storage_of(id),
        Bind::Scratch(_) => None,
    };
    for (index, (bind, role)) in step.binds.iter().zip(&step.kernel.roles).enumerate() {
        let Some(storage) = place(bind).filter(|_| role.access == Access::Write) else { continue };
        let again = step.binds.iter().enumerate().any(|(other, bind)| other != index && place(bind) == Some(storage));
        if again {
            let owner = plan.storages.get(storage as usize).map_or(String::new(), |s| plan.graph.describe(s.owner));
            return Err(Error::unsupported(&node.op, format!("it reads and writes {owner} in one step")));
        }
    }
    Ok(())
}

impl Plan {
    /// Storage of a value, if it has one.
    pub(super) fn storage_of(&self, id: ValueId) -> Option<u32> {
        self.storage.get(id.index()).copied().filter(|&storage| storage != NONE)
    }

    /// First byte and length of the range of its storage that a binding covers; nothing for scratch.
    pub(crate) fn bound(&self, bind: Bind) -> (u64, u64) {
        let (offset, bytes) = match bind {
            Bind::Range(_, offset, bytes) => (offset, bytes),
            Bind::Value(id) => {
                let storage = self.storage_of(id).and_then(|storage| self.storages.get(storage as usize));
                (0, storage.map_or(0, |s| s.bytes))
            }
            Bind::Scratch(_) => return (0, 0),
        };
        (offset, bytes.max(16).next_multiple_of(16))
    }
}
