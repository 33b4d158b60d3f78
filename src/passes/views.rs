use std::collections::HashMap;

use super::uses::Uses;
use crate::error::Result;
use crate::gpu::Caps;
use crate::graph::{Dims, Graph, Node, Value, ValueId};
use crate::ops;
use crate::options::Options;

/// A view that changes no shape goes, and what read its result reads its operand.
pub fn run(mut graph: Graph, _: &Caps, _: &Options) -> Result<Graph> {
    let uses = Uses::of(&graph);
    let mut same: HashMap<ValueId, ValueId> = HashMap::new();
    for mut node in std::mem::take(&mut graph.nodes) {
        node.args = node.args.iter().map(|&id| renamed(&mut graph, &same, id)).collect();
        match (identity(&graph, &node), node.args.last()) {
            (Some(from), Some(&to)) if uses.is_steady(from) && uses.readers(to).is_some() => {
                same.insert(to, from);
            }
            _ => graph.nodes.push(node),
        }
    }
    Ok(graph)
}

/// An argument with its new name; a list is copied when one of its items has one.
fn renamed(graph: &mut Graph, same: &HashMap<ValueId, ValueId>, id: ValueId) -> ValueId {
    let new = |id: ValueId| same.get(&id).copied().unwrap_or(id);
    match graph.value(id) {
        Value::List(items) if items.iter().any(|item| same.contains_key(item)) => {
            let items = items.iter().map(|&item| new(item)).collect();
            graph.push(Value::List(items))
        }
        _ => new(id),
    }
}

/// The operand of a view whose result has the same shape, whatever the live shape is: of the sizes that it asks for, all
/// but one are those of the bound. The open one must be a SymInt that a dimension of some tensor or the caller gives, at a
/// bound that no other dimension has: else it may be another dimension of the operand that shrinks, and the view moves it.
fn identity(graph: &Graph, node: &Node) -> Option<ValueId> {
    let (&from, &to) = (node.args.first()?, node.args.last()?);
    let (a, b) = (graph.tensor(from)?, graph.tensor(to)?);
    let op = ops::find(&node.op).filter(|op| op.is_view)?;
    let equal = a.max == b.max && a.dtype == b.dtype && from != to && b.constant.is_none();
    let sizes = match graph.value(*node.args.get(1)?) {
        Value::Ints(sizes) => sizes.iter().map(|&size| Some(size)).collect(),
        Value::List(items) => items.iter().map(|&id| literal(graph.value(id))).collect(),
        _ => Vec::new(),
    };
    let bound = |(size, max): &(&Option<i64>, &u32)| **size == Some(i64::from(**max));
    let fixed = sizes.iter().zip(a.max.iter()).filter(bound).count();
    let open = sizes.iter().zip(a.max.iter()).position(|pair| !bound(&pair));
    let certain = open.is_none_or(|axis| is_dimension(graph, node, axis) && is_alone(&a.max, axis));
    let keeps = match op.name {
        "aten.view_copy.default" => sizes.len() == a.max.len() && fixed + 1 >= sizes.len() && certain,
        "aten.squeeze_copy.dims" | "aten.unsqueeze_copy.default" => false,
        _ => true,
    };
    (equal && keeps).then_some(from)
}

/// True when a view's size along `axis` is a SymInt that is a dimension of a tensor, or an input.
fn is_dimension(graph: &Graph, view: &Node, axis: usize) -> bool {
    let size = match view.args.get(1).map(|&id| graph.value(id)) {
        Some(Value::List(items)) => items.get(axis).copied(),
        _ => None,
    };
    let Some(size) = size.filter(|&id| *graph.value(id) == Value::SymInt) else { return false };
    let made = graph.nodes.iter().find(|node| node.args.last() == Some(&size));
    made.map_or(graph.inputs.contains(&size), |node| node.op == "sym_size.int")
}

/// True when no other dimension, but for those of one element, has the same bound.
fn is_alone(max: &Dims, axis: usize) -> bool {
    let own = max.get(axis);
    max.iter().enumerate().all(|(other, bound)| other == axis || *bound == 1 || Some(bound) != own)
}

fn literal(value: &Value) -> Option<i64> {
    match value {
        Value::Int(n) => Some(*n),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Builder;
    use super::*;

    fn nodes_left(view: impl Fn(&mut Builder, ValueId) -> ValueId, is_output: bool) -> usize {
        let mut b = Builder::default();
        let x = b.tensor(&[1, 8, 4], None);
        b.0.inputs.push(x);
        let y = view(&mut b, x);
        let z = b.tensor(&[1, 8, 4], None);
        b.node("aten.relu.default", &[y, z]);
        b.0.outputs.push(if is_output { y } else { z });
        let graph = run(b.0, &Caps::minimal(), &Options::default()).unwrap();
        graph.check().unwrap();
        graph.nodes.len()
    }

    fn view(b: &mut Builder, x: ValueId, sizes: &[Value], to: &[u32]) -> ValueId {
        let items = sizes.iter().map(|size| b.0.push(size.clone())).collect();
        let (sizes, y) = (b.0.push(Value::List(items)), b.tensor(to, None));
        let numbers: Vec<ValueId> = b.0.flatten(sizes);
        b.0.inputs.extend(numbers);
        b.node("aten.view_copy.default", &[x, sizes, y]);
        y
    }

    #[test]
    fn only_a_view_that_changes_no_shape_goes() {
        let int = Value::Int;
        let dynamic = [int(1), Value::SymInt, int(4)];
        assert_eq!(nodes_left(|b, x| view(b, x, &dynamic, &[1, 8, 4]), false), 1);
        assert_eq!(nodes_left(|b, x| view(b, x, &[int(1), int(-1), int(4)], &[1, 8, 4]), false), 2, "any may shrink");
        assert_eq!(nodes_left(|b, x| view(b, x, &dynamic, &[1, 8, 4]), true), 2, "it is an output");
        assert_eq!(nodes_left(|b, x| view(b, x, &[Value::SymInt, int(4)], &[8, 4]), false), 2, "it changes the rank");
        assert_eq!(nodes_left(|b, x| view(b, x, &dynamic, &[1, 4, 4]), false), 2, "another bound");
        let two = [int(1), Value::SymInt, Value::SymInt];
        assert_eq!(nodes_left(|b, x| view(b, x, &two, &[1, 8, 4]), false), 2, "two sizes are open");
    }

    #[test]
    fn a_view_that_may_move_a_dimension_stays() {
        let mut b = Builder::default();
        let x = b.tensor(&[8, 8], None);
        b.0.inputs.push(x);
        let y = view(&mut b, x, &[Value::SymInt, Value::Int(8)], &[8, 8]);
        let z = b.tensor(&[8, 8], None);
        b.node("aten.relu.default", &[y, z]);
        b.0.outputs.push(z);
        assert_eq!(run(b.0, &Caps::minimal(), &Options::default()).unwrap().nodes.len(), 2);
    }

    #[test]
    fn clones_go_unless_their_content_changes() {
        let clone = |b: &mut Builder, x: ValueId| {
            let (none, y) = (b.0.push(Value::Null), b.tensor(&[1, 8, 4], None));
            b.node("aten.clone.default", &[x, none, y]);
            y
        };
        assert_eq!(nodes_left(clone, false), 1);
        let overwritten = |b: &mut Builder, x: ValueId| {
            let y = clone(b, x);
            b.node("aten.neg.default", &[x, y]);
            y
        };
        assert_eq!(nodes_left(overwritten, false), 3);
    }
}
