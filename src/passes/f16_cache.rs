use std::collections::BTreeSet;

use crate::error::{Error, Result};
use crate::gpu::Caps;
use crate::graph::{DType, Graph, Node, Value, ValueId};
use crate::ops::attention::SDPA;
use crate::options::Options;

/// With `enable_f16_kv_cache`, the K and V caches of `sdpa_with_kv_cache` become f16 tensors. Without the f16 feature the
/// option is logged and ignored. A cache that another operator reads, or that leaves the program, is refused by name.
pub fn run(mut graph: Graph, caps: &Caps, options: &Options) -> Result<Graph> {
    if !options.enable_f16_kv_cache {
        return Ok(graph);
    }
    if !caps.f16 {
        log::warn!("enable_f16_kv_cache: the device has no shader-f16, caches stay f32");
        return Ok(graph);
    }
    let attentions = graph.nodes.iter().filter(|node| node.op == SDPA);
    let caches: BTreeSet<ValueId> = attentions.flat_map(|node| caches_of(node).to_vec()).collect();
    refuse_other_uses(&graph, &caches)?;
    for id in caches {
        if let Some(Value::Tensor(tensor)) = graph.values.get_mut(id.index()) {
            tensor.dtype = DType::F16;
        }
    }
    Ok(graph)
}

fn caches_of(node: &Node) -> &[ValueId] {
    node.args.get(3..5).unwrap_or_default()
}

fn refuse_other_uses(graph: &Graph, caches: &BTreeSet<ValueId>) -> Result<()> {
    let refuse = |cache: ValueId, why: &str| {
        let what = graph.describe(cache);
        Err(Error::unsupported("enable_f16_kv_cache", format!("the cache {what} {why}")))
    };
    for &cache in caches {
        match graph.tensor(cache) {
            Some(tensor) if tensor.dtype == DType::F32 || tensor.dtype == DType::F16 => {}
            _ => return refuse(cache, "is no float32 tensor"),
        }
    }
    if let Some(&cache) = graph.inputs.iter().chain(&graph.outputs).find(|id| caches.contains(id)) {
        return refuse(cache, "is also used by the caller");
    }
    for node in &graph.nodes {
        let mut left = if node.op == SDPA { caches_of(node).to_vec() } else { Vec::new() };
        for id in graph.reads(node).into_iter().chain(graph.defines(node)).filter(|id| caches.contains(id)) {
            match left.iter().position(|&cache| cache == id) {
                Some(use_) => drop(left.swap_remove(use_)),
                None => return refuse(id, &format!("is also used by {}", node.op)),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::Builder;
    use super::*;

    fn graph(extra_reader: bool) -> (Graph, ValueId) {
        let mut b = Builder::default();
        let (k, v) = (b.constant(&[1, 8, 1, 4], "zeros"), b.constant(&[1, 8, 1, 4], "zeros"));
        let (q, out) = (b.tensor(&[1, 2, 1, 4], None), b.tensor(&[1, 2, 1, 4], None));
        b.0.inputs.push(q);
        b.node(SDPA, &[q, q, q, k, v, out]);
        if extra_reader {
            let y = b.tensor(&[1, 8, 1, 4], None);
            b.node("aten.relu.default", &[k, y]);
        }
        (b.0, k)
    }

    fn half() -> Caps {
        Caps { f16: true, ..Caps::minimal() }
    }

    #[test]
    fn caches_become_half_only_when_asked_and_possible() {
        let on = Options { enable_f16_kv_cache: true, ..Options::default() };
        let (g, k) = graph(false);
        assert_eq!(run(g.clone(), &half(), &Options::default()).unwrap(), g);
        assert_eq!(run(g.clone(), &Caps::minimal(), &on).unwrap(), g);
        assert_eq!(run(g, &half(), &on).unwrap().tensor(k).unwrap().dtype, DType::F16);
    }

    #[test]
    fn a_cache_that_another_operator_reads_is_refused_by_name() {
        let on = Options { enable_f16_kv_cache: true, ..Options::default() };
        let text = run(graph(true).0, &half(), &on).unwrap_err().to_string();
        assert!(text.contains("aten.relu.default"), "{text}");
    }
}
