use std::collections::{BTreeSet, HashMap};

use super::{Plan, limits};
use crate::error::{Error, Result};
use crate::gpu::Caps;
use crate::graph::Graph;
use crate::graph::{Dims, Value, ValueId};
use crate::ops::{Lower, Lowered};
use crate::options::Options;

/// An input dimension whose size the program asks for, so that it may be smaller than its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DynamicAxis {
    /// Position among the inputs.
    pub input: usize,
    /// Dimension.
    pub axis: usize,
}

/// The whole graph lowered at one combination of input shapes.
#[derive(Debug)]
pub struct Probe {
    /// Live shape of each input.
    pub inputs: Vec<Dims>,
    /// One lowering per node.
    pub lowered: Vec<Lowered>,
}

/// The dimensions of inputs that `sym_size.int` reads.
pub(super) fn dynamic_axes(graph: &Graph) -> Vec<DynamicAxis> {
    let inputs: HashMap<ValueId, usize> = graph.inputs.iter().copied().zip(0..).collect();
    let mut axes = BTreeSet::new();
    for node in graph.nodes.iter().filter(|node| node.op == "sym_size.int") {
        let [tensor, dim, ..] = node.args[..] else { continue };
        let Some(&input) = inputs.get(&tensor) else { continue };
        let dims = graph.tensor(tensor).map(|t| t.max).unwrap_or_default();
        let Value::Int(dim) = graph.value(dim) else { continue };
        let axis = dims.axis(*dim).filter(|&axis| axis < dims.len());
        axes.extend(axis.map(|axis| DynamicAxis { input, axis }));
    }
    axes.into_iter().collect()
}

/// Lowers the graph at its largest shape and, when it is dynamic, at both sides of every power of two below, so that every
/// kernel that a call can need is known before the first call.
pub(super) fn run(plan: &Plan, caps: &Caps, options: &Options) -> Result<Vec<Probe>> {
    let largest = lower_all(plan, &plan.max_shapes(), caps, options)?;
    let mut probes = vec![largest];
    for size in sizes(plan) {
        let mut shapes = plan.max_shapes();
        for axis in &plan.dynamic {
            let id = plan.graph.inputs.get(axis.input).map_or(0, |id| id.index());
            if let Some(dims) = shapes.get_mut(id) {
                let max = dims.get(axis.axis).copied().unwrap_or(1);
                *dims = dims.with(axis.axis, size.min(max))?;
            }
        }
        // A size that the program itself excludes is refused again, with its sentence, when a call asks for it.
        probes.extend(lower_all(plan, &shapes, caps, options));
    }
    Ok(probes)
}

fn sizes(plan: &Plan) -> Vec<u32> {
    let bound = |axis: &super::DynamicAxis| {
        let id = plan.graph.inputs.get(axis.input)?;
        plan.graph.tensor(*id)?.max.get(axis.axis).copied()
    };
    let largest = plan.dynamic.iter().filter_map(bound).max().unwrap_or(0);
    let mut sizes: Vec<u32> = (0..31).flat_map(|bit| [1u32 << bit, (1 << bit) + 1]).filter(|&n| n < largest).collect();
    sizes.dedup();
    sizes
}

fn lower_all(plan: &Plan, shapes: &[Dims], caps: &Caps, options: &Options) -> Result<Probe> {
    let mut shapes = shapes.to_vec();
    let inputs = plan.graph.inputs.iter().map(|id| shapes.get(id.index()).copied().unwrap_or_default()).collect();
    let mut symints = vec![0; plan.graph.values.len()];
    let host = |_: ValueId, _: usize| Ok(0);
    let lowered = plan.lower_all(&mut shapes, &mut symints, &host, (caps, options))?;
    Ok(Probe { inputs, lowered })
}

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
                let lowered = Lower::run(&self.env(shapes, symints, host, device), node, op)?;
                limits::check(self, node, &lowered, device.0)?;
                Ok(lowered)
            }
            _ => Err(Error::Internal(format!("node {index} does not exist"))),
        }
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
