//! Graph to graph, without a device: each pass is a pure function, and the graph is checked after each.

mod f16_cache;
mod gate;
mod in_place;
mod layers;
mod prepack;
mod residual;
mod rotary;
mod scales;
mod uses;
mod views;

use crate::error::{Error, Result};
use crate::gpu::Caps;
use crate::graph::{Graph, Node};
use crate::ops::INTERNAL;
use crate::options::Options;

type Pass = fn(Graph, &Caps, &Options) -> Result<Graph>;

/// The first four change how values are held, the others fuse: the later two find what the views no longer part.
const PASSES: &[(&str, Pass)] = &[
    ("prepack", prepack::run),
    ("scales", scales::run),
    ("f16_cache", f16_cache::run),
    ("in_place", in_place::run),
    ("views", views::run),
    ("residual", residual::run),
    ("gate", gate::run),
    ("layers", layers::run),
    ("rotary", rotary::run),
];

/// Runs all passes in order. A graph that names an operator that is for passes alone is refused.
pub fn run(mut graph: Graph, caps: &Caps, options: &Options) -> Result<Graph> {
    let internal = |node: &&Node| INTERNAL.iter().any(|family| family.iter().any(|op| op.name == node.op));
    if let Some(node) = graph.nodes.iter().find(internal) {
        return Err(Error::unsupported(&node.op, "it is no operator of a payload, there is no kernel for it"));
    }
    for (name, pass) in PASSES {
        graph = pass(graph, caps, options)?;
        graph.check().map_err(|e| Error::Internal(format!("after pass {name}: {e}")))?;
    }
    Ok(graph)
}

#[cfg(test)]
pub(crate) mod testing {
    use crate::graph::{Constant, DType, Dims, Graph, Node, Tensor, Value, ValueId};

    /// Builds small graphs: each method returns the id of what it added.
    #[derive(Default)]
    pub struct Builder(pub Graph);

    impl Builder {
        pub fn tensor(&mut self, sizes: &[u32], constant: Option<u32>) -> ValueId {
            let max = Dims::new(sizes).unwrap();
            self.0.push(Value::Tensor(Tensor { dtype: DType::F32, stored: DType::F32, swapped: false, max, constant }))
        }

        pub fn constant(&mut self, sizes: &[u32], key: &str) -> ValueId {
            let index = self.0.constants.len() as u32;
            self.0.constants.push(Constant::Named { key: key.into() });
            self.tensor(sizes, Some(index))
        }

        pub fn node(&mut self, op: &str, args: &[ValueId]) {
            self.0.nodes.push(Node { op: op.into(), args: args.to_vec() });
        }
    }
}
