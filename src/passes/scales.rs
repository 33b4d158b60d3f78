use crate::error::Result;
use crate::gpu::Caps;
use crate::graph::{Graph, Value, ValueId};
use crate::options::Options;

const LINEAR: &str = "et_vk.linear_q4gsw.default";
const SCALES: usize = 2;

/// Constant scales that only 4-bit linear layers read are kept `[columns, groups]` on the device: the scales of one column
/// lie side by side, as its weights do.
pub fn run(mut graph: Graph, _: &Caps, _: &Options) -> Result<Graph> {
    let layers = graph.nodes.iter().filter(|node| node.op == LINEAR);
    let scales: Vec<ValueId> = layers.filter_map(|node| node.args.get(SCALES).copied()).collect();
    for id in scales {
        if only_scales(&graph, id)
            && let Some(Value::Tensor(tensor)) = graph.values.get_mut(id.index())
        {
            tensor.swapped = tensor.constant.is_some() && tensor.max.len() == 2;
        }
    }
    Ok(graph)
}

fn only_scales(graph: &Graph, id: ValueId) -> bool {
    let uses = |node: &crate::graph::Node| {
        graph.reads(node).into_iter().chain(graph.defines(node)).filter(|&v| v == id).count()
    };
    let as_scales = |node: &crate::graph::Node| usize::from(node.op == LINEAR && node.args.get(SCALES) == Some(&id));
    !graph.inputs.contains(&id)
        && !graph.outputs.contains(&id)
        && graph.nodes.iter().all(|node| uses(node) == as_scales(node))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Builder;
    use super::*;

    fn layer(also_read: bool) -> (Graph, ValueId) {
        let mut b = Builder::default();
        let (x, y, w) = (b.tensor(&[1, 64], None), b.tensor(&[1, 8], None), b.constant(&[8, 32], "w"));
        let scales = b.constant(&[2, 8], "s");
        b.0.inputs.push(x);
        b.node(LINEAR, &[x, w, scales, y]);
        if also_read {
            let z = b.tensor(&[2, 8], None);
            b.node("aten.relu.default", &[scales, z]);
        }
        (b.0, scales)
    }

    #[test]
    fn scales_are_swapped_unless_something_else_reads_them() {
        for also_read in [false, true] {
            let (graph, scales) = layer(also_read);
            let graph = run(graph, &Caps::minimal(), &Options::default()).unwrap();
            assert_eq!(graph.tensor(scales).unwrap().swapped, !also_read);
        }
    }
}
