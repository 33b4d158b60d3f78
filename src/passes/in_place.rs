use crate::error::Result;
use crate::gpu::Caps;
use crate::graph::{Graph, Node, Value, ValueId};
use crate::ops;
use crate::options::Options;

/// A node whose output is one of its inputs gets an output of its own and a copy back: no kernel ever reads and writes
/// one buffer under two bindings. Arguments that the operator writes by design stay.
pub fn run(mut graph: Graph, _: &Caps, _: &Options) -> Result<Graph> {
    for mut node in std::mem::take(&mut graph.nodes) {
        let mut copies = Vec::new();
        for output in graph.defines(&node) {
            if graph.tensor(output).is_some() && reads_by_kernel(&graph, &node).contains(&output) {
                let fresh = graph.push(fresh(&graph, output));
                replace_output(&mut graph, &mut node, output, fresh);
                copies.push((fresh, output));
            }
        }
        graph.nodes.push(node);
        for (from, to) in copies {
            let blocking = graph.push(Value::Null);
            graph.nodes.push(Node { op: "aten.copy.default".into(), args: vec![to, from, blocking, to] });
        }
    }
    Ok(graph)
}

fn reads_by_kernel(graph: &Graph, node: &Node) -> Vec<ValueId> {
    let writes = ops::find(&node.op).map_or(&[][..], |op| op.writes);
    let written: Vec<ValueId> = writes.iter().filter_map(|&i| node.args.get(i).copied()).collect();
    graph.reads(node).into_iter().filter(|id| !written.contains(id)).collect()
}

fn fresh(graph: &Graph, like: ValueId) -> Value {
    let mut value = graph.value(like).clone();
    if let Value::Tensor(tensor) = &mut value {
        tensor.constant = None;
    }
    value
}

fn replace_output(graph: &mut Graph, node: &mut Node, old: ValueId, new: ValueId) {
    let Some(last) = node.args.last_mut() else { return };
    if *last == old {
        *last = new;
    } else if let Value::List(items) = graph.value(*last).clone() {
        let items = items.into_iter().map(|id| if id == old { new } else { id }).collect();
        *last = graph.push(Value::List(items));
    }
}
