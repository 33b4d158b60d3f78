use super::{Plan, probe};
use crate::error::Error;
use crate::gpu::Caps;
use crate::graph::Graph;
use crate::ops;
use crate::options::Options;

/// Everything that [`Plan::new`] would refuse in a graph at its largest shape: all missing operators in one sentence, and
/// one for each node that its operator refuses.
pub fn refusals(mut graph: Graph, caps: &Caps, options: &Options) -> Vec<Error> {
    let mut found: Vec<Error> = super::resolve::run(&graph).err().into_iter().collect();
    graph.nodes.retain(|node| ops::find(&node.op).is_some());
    let plan = match Plan::unlowered(graph, caps) {
        Ok(plan) => plan,
        Err(error) => {
            found.push(error);
            return found;
        }
    };
    let mut note = |error| {
        found.push(error);
        Ok(())
    };
    let lowered = probe::lower_all(&plan, &plan.max_shapes(), (caps, options), &mut note);
    found.extend(lowered.err());
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{DType, Value};
    use crate::passes::testing::Builder;

    #[test]
    fn every_refused_node_has_a_sentence() {
        let mut b = Builder::default();
        let ids = [0; 4].map(|_| b.tensor(&[2, 3], None));
        b.0.inputs.push(ids[0]);
        for id in [ids[1], ids[3]] {
            let Some(Value::Tensor(tensor)) = b.0.values.get_mut(id.index()) else { panic!("no tensor") };
            tensor.dtype = DType::Bool;
        }
        b.node("zzz.default", &[ids[0], ids[1]]);
        b.node("et_vk.rms_norm.default", &[ids[1], ids[2]]);
        b.node("aten.relu.default", &[ids[2], ids[0]]);
        b.node("aten._softmax.default", &[ids[3], ids[2]]);
        let texts: Vec<String> =
            refusals(b.0, &Caps::minimal(), &Options::default()).iter().map(Error::to_string).collect();
        let starts = ["zzz.default is not", "et_vk.rms_norm.default is not", "aten._softmax.default is not"];
        assert_eq!(texts.len(), starts.len(), "{texts:?}");
        assert!(texts.iter().zip(starts).all(|(text, start)| text.starts_with(start)), "{texts:?}");
    }
}
