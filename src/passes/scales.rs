use crate::error::Result;
use crate::gpu::Caps;
use crate::graph::{Graph, Value, ValueId};
use crate::options::Options;

const LINEAR: &str = "et_vk.linear_q4gsw.default";
const SCALES: usize = 2;

/// Constant scales that only 4-bit linear layers read are kept `[columns, groups]` on the device: the scales of one column
/// lie side by side, as its weights do.
pub fn run(mut graph: Graph, _: &Caps, _: &Options) -> Result<Graph> {
    let mut uses = vec![0u32; graph.values.len()];
    let mut as_scales = uses.clone();
    let count = |counts: &mut Vec<u32>, id: ValueId| counts.get_mut(id.index()).into_iter().for_each(|n| *n += 1);
    graph.inputs.iter().chain(&graph.outputs).for_each(|&id| count(&mut uses, id));
    for node in &graph.nodes {
        graph.reads(node).into_iter().chain(graph.defines(node)).for_each(|id| count(&mut uses, id));
        let scales = node.args.get(SCALES).filter(|_| node.op == LINEAR);
        scales.into_iter().for_each(|&id| count(&mut as_scales, id));
    }
    for (value, (uses, as_scales)) in graph.values.iter_mut().zip(uses.into_iter().zip(as_scales)) {
        if let Value::Tensor(tensor) = value {
            tensor.swapped = as_scales > 0 && uses == as_scales && tensor.constant.is_some() && tensor.max.len() == 2;
        }
    }
    Ok(graph)
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
