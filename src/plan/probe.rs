use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Plan, apply};
use crate::error::{Error, Result};
use crate::gpu::Caps;
use crate::graph::{Dims, Graph, Node, Value, ValueId};
use crate::ops::Lowered;
use crate::options::Options;

/// An input dimension whose size the program asks for, so that it may be smaller than its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DynamicAxis {
    /// Position among the inputs.
    pub input: usize,
    /// Dimension.
    pub axis: usize,
}

/// The whole graph lowered at one combination of input shapes, with 0 for every number that only a call can tell.
#[derive(Debug)]
pub struct Probe {
    /// Live shape of each input.
    pub inputs: Vec<Dims>,
    /// Live shape of each value.
    pub shapes: Vec<Dims>,
    /// Number of each SymInt.
    pub symints: Vec<i32>,
    /// One lowering per node.
    pub lowered: Vec<Lowered>,
    /// False when a node could not be lowered without a number that only a call can tell; it has no steps then, and the
    /// largest shape.
    pub complete: bool,
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
    let largest = lower_all(plan, &plan.max_shapes(), (caps, options), &mut Err)?;
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
        probes.extend(lower_all(plan, &shapes, (caps, options), &mut Err));
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

/// Lowers every node in order. What `refused` makes of a refusal is returned, or the node gets no steps.
pub(super) fn lower_all(
    plan: &Plan,
    shapes: &[Dims],
    device: (&Caps, &Options),
    refused: &mut dyn FnMut(Error) -> Result<()>,
) -> Result<Probe> {
    let inputs = plan.graph.inputs.iter().map(|id| shapes.get(id.index()).copied().unwrap_or_default()).collect();
    let (shapes, symints) = (shapes.to_vec(), vec![0; plan.graph.values.len()]);
    let mut probe = Probe { inputs, shapes, symints, lowered: Vec::new(), complete: true };
    let is_symint = |id: &ValueId| matches!(plan.graph.value(*id), Value::SymInt);
    let mut unknown: HashSet<ValueId> = plan.graph.inputs.iter().copied().filter(is_symint).collect();
    for (index, node) in plan.graph.nodes.iter().enumerate() {
        let reads = plan.graph.reads(node);
        let numbers: Vec<ValueId> = reads.iter().copied().filter(is_symint).collect();
        let late: Vec<ValueId> = numbers.iter().copied().filter(|id| unknown.contains(id)).collect();
        let late_shape = reads.iter().any(|id| !is_symint(id) && unknown.contains(id));
        let host = |_: ValueId, _: usize| Ok(0);
        let lower = |symints: &[i32]| plan.lower_one(index, &probe.shapes, symints, &host, device);
        let lowered = match lower(&probe.symints) {
            // A tensor whose shape hangs on a number that only a call brings may be anything yet.
            Err(_) if late_shape => {
                probe.complete = false;
                largest(plan, node)
            }
            // A refusal that other numbers would not change is final.
            Err(error) if !late.is_empty() && !lower(&others(&probe.symints, &late)).is_err_and(|e| e == error) => {
                probe.complete = false;
                largest(plan, node)
            }
            Err(error) => {
                refused(error)?;
                probe.complete = false;
                largest(plan, node)
            }
            Ok(lowered) => lowered,
        };
        if !late.is_empty() || late_shape || (lowered.volatile && numbers.is_empty()) {
            unknown.extend(lowered.symint.map(|(id, _)| id));
            let shrunk = |(id, dims): &(ValueId, Dims)| plan.graph.tensor(*id).is_some_and(|t| t.max != *dims);
            unknown.extend(lowered.shapes.iter().filter(|shape| shrunk(shape)).map(|(id, _)| *id));
        }
        apply(&lowered, &mut probe.shapes, &mut probe.symints);
        probe.lowered.push(lowered);
    }
    Ok(probe)
}

/// Other numbers for `late`: a refusal that stays the same has nothing to do with them.
fn others(symints: &[i32], late: &[ValueId]) -> Vec<i32> {
    let mut symints = symints.to_vec();
    for id in late {
        symints.get_mut(id.index()).into_iter().for_each(|number| *number = number.wrapping_add(1));
    }
    symints
}

/// In place of a lowering: the results at their largest, and no steps.
fn largest(plan: &Plan, node: &Node) -> Lowered {
    let outputs = plan.graph.defines(node);
    let shapes = outputs.iter().filter_map(|&id| Some((id, plan.graph.tensor(id)?.max))).collect();
    let symint = outputs.into_iter().find(|id| *plan.graph.value(*id) == Value::SymInt).map(|id| (id, 0));
    Lowered { shapes, symint, volatile: true, ..Lowered::default() }
}
