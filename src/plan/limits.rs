use super::{NONE, Plan, Storage};
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
                let (_, offset, bytes) = plan.bound(*bind);
                fits(node, &plan.graph.describe(id), bytes, caps)?;
                starts(plan, node, id, (offset, bytes), caps)?;
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

/// A binding starts at a multiple of the alignment and lies in one buffer.
fn starts(plan: &Plan, node: &Node, id: ValueId, (offset, bytes): (u64, u64), caps: &Caps) -> Result<()> {
    let (block, alignment) = (plan.block(id).max(16).next_multiple_of(16), u64::from(caps.storage_alignment));
    if offset.is_multiple_of(alignment) && offset + bytes <= block {
        return Ok(());
    }
    let what = plan.graph.describe(id);
    let why =
        format!("{what} is bound for {bytes} bytes at {offset}, of buffers of {block} at multiples of {alignment}");
    Err(Error::unsupported(&node.op, why))
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

    fn held(&self, id: ValueId) -> Option<&Storage> {
        self.storage_of(id).and_then(|storage| self.storages.get(storage as usize))
    }

    /// Bytes of each buffer that holds a value.
    fn block(&self, id: ValueId) -> u64 {
        self.held(id).map_or(0, |storage| storage.block)
    }

    /// Which buffer of its storage a binding covers, from which byte on and how many; nothing for scratch.
    pub(crate) fn bound(&self, bind: Bind) -> (u32, u64, u64) {
        let (id, start, bytes) = match bind {
            Bind::Range(id, start, bytes) => (id, start, bytes),
            Bind::Value(id) => (id, 0, self.held(id).map_or(0, |storage| storage.bytes)),
            Bind::Scratch(_) => return (0, 0, 0),
        };
        let block = self.block(id).max(1);
        ((start / block) as u32, start % block, bytes.max(16).next_multiple_of(16))
    }
}
