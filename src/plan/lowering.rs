use super::{Plan, limits};
use crate::error::{Error, Result};
use crate::gpu::Caps;
use crate::graph::{Dims, ValueId};
use crate::ops::{Lower, Lowered, Op};
use crate::options::Options;

impl Plan {
    /// Lowers every node in order, starting from the inputs' live shapes in `shapes`; fills in all other shapes and the
    /// SymInts on the way.
    pub fn lower_all(
        &self,
        shapes: &mut [Dims],
        symints: &mut [i32],
        host: &dyn Fn(ValueId, usize) -> Result<i64>,
        device: (&Caps, &Options),
    ) -> Result<Vec<Lowered>> {
        let mut all = Vec::with_capacity(self.graph.nodes.len());
        for index in 0..self.graph.nodes.len() {
            let lowered = self.lower_one(index, shapes, symints, host, device)?;
            apply(&lowered, shapes, symints);
            all.push(lowered);
        }
        Ok(all)
    }

    /// Lowers one node.
    pub fn lower_one(
        &self,
        index: usize,
        shapes: &[Dims],
        symints: &[i32],
        host: &dyn Fn(ValueId, usize) -> Result<i64>,
        device: (&Caps, &Options),
    ) -> Result<Lowered> {
        match (self.graph.nodes.get(index), self.ops.get(index)) {
            (Some(node), Some(op)) => {
                let lowered = Lower::run(&self.env(shapes, symints, host, device), node, op);
                let lowered = lowered.map_err(|error| named(error, op))?;
                limits::check(self, node, &lowered, device.0)?;
                Ok(lowered)
            }
            _ => Err(Error::Internal(format!("node {index} does not exist"))),
        }
    }
}

/// A shape that does not exist knows no operator: this one asked for it.
fn named(error: Error, op: &Op) -> Error {
    match error {
        Error::Shape { op: what, why } if what == Dims::NAME => Error::shape(op.name, why),
        other => other,
    }
}

/// Records what a lowering found out.
pub(crate) fn apply(lowered: &Lowered, shapes: &mut [Dims], symints: &mut [i32]) {
    for (id, dims) in &lowered.shapes {
        if let Some(slot) = shapes.get_mut(id.index()) {
            *slot = *dims;
        }
    }
    if let Some((id, number)) = lowered.symint
        && let Some(slot) = symints.get_mut(id.index())
    {
        *slot = number;
    }
}
