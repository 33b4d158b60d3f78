use std::fmt;

use super::{NONE, Plan, StorageKind};
use crate::graph::ValueId;
use crate::ops::{Bind, Lowered, Step};

impl Plan {
    fn place(&self, id: ValueId) -> String {
        let storage = self.storage.get(id.index()).copied().unwrap_or(NONE);
        match self.storages.get(storage as usize).map(|s| s.kind) {
            Some(StorageKind::Weight) => format!("weight {storage}"),
            Some(StorageKind::Cache) => format!("cache {storage}"),
            Some(StorageKind::Activation(buffer)) => format!("buffer {buffer}"),
            None => "-".into(),
        }
    }

    fn step(&self, f: &mut fmt::Formatter<'_>, step: &Step) -> fmt::Result {
        write!(f, "    {}", describe(step))?;
        for bind in &step.binds {
            match bind {
                Bind::Value(id) => write!(f, " | {} %{}", self.place(*id), id.0)?,
                Bind::Range(id, offset, bytes) => write!(f, " | {} %{} [{offset}+{bytes}]", self.place(*id), id.0)?,
                Bind::Scratch(n) => write!(f, " | scratch {n}")?,
            }
        }
        writeln!(f)
    }
}

/// One step in words: kernel, linked pieces, constants, grid.
pub(crate) fn describe(step: &Step) -> String {
    let kernel = &step.kernel;
    let mut text = kernel.body.name().to_string();
    for link in &kernel.links {
        text += &format!("+{}", link.name().rsplit('/').next().unwrap_or_default());
    }
    for (name, value) in &kernel.consts {
        text += &match value {
            crate::shader::Const::U32(n) => format!(" {name}={n}"),
            crate::shader::Const::Bool(b) => format!(" {name}={b}"),
        };
    }
    let [x, y, _] = step.grid;
    if y > 1 { text + &format!(" <{x}x{y}>") } else { text + &format!(" <{x}>") }
}

impl fmt::Display for Plan {
    /// The plan at the largest shape: one line per node, one per dispatch, then the memory.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let none: &[Lowered] = &[];
        let largest = self.probes.first().map_or(none, |probe| &probe.lowered);
        for (node, lowered) in self.graph.nodes.iter().zip(largest) {
            let out = node.args.last().map_or(String::new(), |&id| self.graph.describe(id));
            writeln!(f, "{out} = {}", node.op)?;
            for step in &lowered.steps {
                self.step(f, step)?;
            }
        }
        if let Some(probe) = self.probes.first() {
            writeln!(f, "{}", self.depth(probe))?;
        }
        let sum = |kind: fn(&StorageKind) -> bool| -> u64 {
            self.storages.iter().filter(|s| s.used && kind(&s.kind)).map(|s| s.bytes).sum()
        };
        writeln!(
            f,
            "memory: weights {} B, caches {} B, {} shared buffers {} B",
            sum(|kind| *kind == StorageKind::Weight),
            sum(|kind| *kind == StorageKind::Cache),
            self.buffers.len(),
            self.buffers.iter().sum::<u64>()
        )
    }
}
