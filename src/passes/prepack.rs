use crate::error::{Error, Result};
use crate::gpu::Caps;
use crate::graph::{Graph, Value, ValueId};
use crate::options::Options;

/// `et_vk.prepack(constant) -> tensor`: the tensor becomes the constant, and the node goes.
pub fn run(mut graph: Graph, _: &Caps, _: &Options) -> Result<Graph> {
    let nodes = std::mem::take(&mut graph.nodes);
    for node in nodes {
        if node.op != "et_vk.prepack.default" {
            graph.nodes.push(node);
            continue;
        }
        let [source, packed] = node.args[..] else {
            return Err(Error::shape(node.op, format!("{} arguments, expected 2", node.args.len())));
        };
        pack(&mut graph, source, packed)?;
    }
    Ok(graph)
}

fn pack(graph: &mut Graph, source: ValueId, packed: ValueId) -> Result<()> {
    let (from, to) = (graph.describe(source), graph.describe(packed));
    let refuse = |why: &str| Err(Error::shape("et_vk.prepack.default", format!("{from} to {to}: {why}")));
    let (Some(a), Some(b)) = (graph.tensor(source).cloned(), graph.tensor(packed).cloned()) else {
        return refuse("both must be tensors");
    };
    if a.max != b.max || a.dtype != b.dtype {
        return refuse("shapes and types must be equal");
    }
    if a.constant.is_none() {
        return refuse("the source must be a constant");
    }
    if graph.inputs.contains(&packed) {
        return refuse("the target is an input");
    }
    if let Some(Value::Tensor(tensor)) = graph.values.get_mut(packed.index()) {
        tensor.constant = a.constant;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::Builder;
    use super::*;

    #[test]
    fn a_packed_tensor_is_the_constant() {
        let mut b = Builder::default();
        let (source, packed, y) = (b.constant(&[4], "k"), b.tensor(&[4], None), b.tensor(&[4], None));
        b.node("et_vk.prepack.default", &[source, packed]);
        b.node("aten.relu.default", &[packed, y]);
        let graph = run(b.0, &Caps::minimal(), &Options::default()).unwrap();
        assert_eq!(graph.nodes.len(), 1);
        assert_eq!(graph.tensor(packed).unwrap().constant, Some(0));
    }

    #[test]
    fn unequal_shapes_and_computed_sources_are_refused() {
        let mut b = Builder::default();
        let (source, packed) = (b.constant(&[4], "k"), b.tensor(&[5], None));
        b.node("et_vk.prepack.default", &[source, packed]);
        assert!(run(b.0, &Caps::minimal(), &Options::default()).is_err());
        let mut b = Builder::default();
        let (source, packed) = (b.tensor(&[4], None), b.tensor(&[4], None));
        b.node("et_vk.prepack.default", &[source, packed]);
        assert!(run(b.0, &Caps::minimal(), &Options::default()).is_err());
    }
}
