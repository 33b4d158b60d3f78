use std::collections::{BTreeMap, HashSet};

use crate::error::Result;
use crate::gpu::Caps;
use crate::graph::{Graph, Node, Value, ValueId};
use crate::ops;
use crate::options::Options;

/// A node whose output is one of its inputs gets an output of its own and a copy back: no kernel ever reads and writes
/// one buffer under two bindings. Arguments that the operator writes by design stay.
pub fn run(mut graph: Graph, _: &Caps, _: &Options) -> Result<Graph> {
    for mut node in std::mem::take(&mut graph.nodes) {
        let read = reads_by_kernel(&graph, &node);
        let mut copies = BTreeMap::new();
        for id in graph.defines(&node).into_iter().filter(|id| read.contains(id)) {
            if graph.tensor(id).is_some() {
                copies.insert(id, own(&mut graph, id));
            }
        }
        if !copies.is_empty() {
            replace_outputs(&mut graph, &mut node, &copies);
        }
        graph.nodes.push(node);
        for (to, from) in copies {
            let blocking = graph.push(Value::Null);
            graph.nodes.push(Node { op: "aten.copy.default".into(), args: vec![to, from, blocking, to] });
        }
    }
    Ok(graph)
}

fn reads_by_kernel(graph: &Graph, node: &Node) -> HashSet<ValueId> {
    let writes = ops::find(&node.op).map_or(&[][..], |op| op.writes);
    let written: Vec<ValueId> = writes.iter().filter_map(|&i| node.args.get(i).copied()).collect();
    graph.reads(node).into_iter().filter(|id| !written.contains(id)).collect()
}

/// A tensor like `id`, but with no content of its own.
fn own(graph: &mut Graph, id: ValueId) -> ValueId {
    let mut value = graph.value(id).clone();
    if let Value::Tensor(tensor) = &mut value {
        tensor.constant = None;
    }
    graph.push(value)
}

fn replace_outputs(graph: &mut Graph, node: &mut Node, copies: &BTreeMap<ValueId, ValueId>) {
    let Some(last) = node.args.last_mut() else { return };
    let replaced = |id: ValueId| copies.get(&id).copied().unwrap_or(id);
    *last = match graph.value(*last) {
        Value::List(items) => {
            let items = items.iter().map(|&id| replaced(id)).collect();
            graph.push(Value::List(items))
        }
        _ => replaced(*last),
    };
}
