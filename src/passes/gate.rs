use super::uses::{Rewrite, Uses};
use crate::error::Result;
use crate::gpu::Caps;
use crate::graph::{Graph, Node, ValueId};
use crate::ops::SILU_MUL;
use crate::options::Options;

/// `sigmoid(g) -> s; mul(g, s) -> t; mul(t, u) -> out`, with factors in any order, becomes one node
/// `(g, u) -> out`.
pub fn run(graph: Graph, _: &Caps, _: &Options) -> Result<Graph> {
    let uses = Uses::of(&graph);
    let mut rewrite = Rewrite::default();
    for (index, node) in graph.nodes.iter().enumerate().filter(|(_, node)| node.op == "aten.sigmoid.default") {
        let Some((group, fused)) = gate(&graph, &uses, index, node) else { continue };
        rewrite.replace(&group, group[2], fused);
    }
    Ok(rewrite.apply(graph))
}

fn gate(graph: &Graph, uses: &Uses, index: usize, sigmoid: &Node) -> Option<([usize; 3], Node)> {
    let [g, s] = sigmoid.args[..] else { return None };
    let (first, t) = factor(graph, uses, s).filter(|(_, [other, _])| *other == g).map(|(at, [_, out])| (at, out))?;
    let (last, [u, out]) = factor(graph, uses, t).filter(|(_, [other, _])| *other != t)?;
    let form = |id| graph.tensor(id).map(|tensor| (tensor.max, tensor.dtype));
    let alike = graph.tensor(g)?.dtype.is_float() && [s, t, u, out].into_iter().all(|id| form(id) == form(g));
    let steady = [g, u, out].into_iter().all(|id| uses.is_steady(id));
    (alike && steady).then(|| ([index, first, last], Node { op: SILU_MUL.into(), args: vec![g, u, out] }))
}

/// The product that alone reads a value: its place, its other factor and its result.
fn factor(graph: &Graph, uses: &Uses, id: ValueId) -> Option<(usize, [ValueId; 2])> {
    let reader = uses.reader(id)?;
    let node = graph.nodes.get(reader).filter(|node| node.op == "aten.mul.Tensor")?;
    match node.args[..] {
        [a, b, out] if a == id => Some((reader, [b, out])),
        [a, b, out] if b == id => Some((reader, [a, out])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Builder;
    use super::*;
    use crate::graph::{DType, Value};

    struct Case {
        b: Builder,
        g: ValueId,
        u: ValueId,
        s: ValueId,
        t: ValueId,
        out: ValueId,
    }

    fn case() -> Case {
        let mut b = Builder::default();
        let [g, u, s, t, out] = [(); 5].map(|()| b.tensor(&[3, 8], None));
        b.0.inputs.extend([g, u]);
        b.0.outputs.push(out);
        Case { b, g, u, s, t, out }
    }

    impl Case {
        fn nodes(&mut self, first: [ValueId; 2], second: [ValueId; 2]) {
            self.b.node("aten.sigmoid.default", &[self.g, self.s]);
            self.b.node("aten.mul.Tensor", &[&first[..], &[self.t]].concat());
            self.b.node("aten.mul.Tensor", &[&second[..], &[self.out]].concat());
        }

        fn fires(self) -> bool {
            let graph = run(self.b.0, &Caps::minimal(), &Options::default()).unwrap();
            graph.check().unwrap();
            graph.nodes.iter().any(|node| node.op == SILU_MUL)
        }
    }

    #[test]
    fn factors_may_stand_in_any_order() {
        for order in 0..4 {
            let mut c = case();
            let (first, second) = ([c.g, c.s], [c.t, c.u]);
            let turned = |mut pair: [ValueId; 2], turn: bool| {
                pair.rotate_left(usize::from(turn));
                pair
            };
            c.nodes(turned(first, order & 1 == 1), turned(second, order & 2 == 2));
            assert!(c.fires(), "order {order}");
        }
    }

    #[test]
    fn other_products_stay() {
        type Change = fn(&mut Case);
        let changes: [(&str, Change); 6] = [
            ("the first product is of something else", |c| c.nodes([c.u, c.s], [c.t, c.u])),
            ("the second product is a square", |c| c.nodes([c.g, c.s], [c.t, c.t])),
            ("the sigmoid has another reader", |c| {
                c.nodes([c.g, c.s], [c.t, c.u]);
                let other = c.b.tensor(&[3, 8], None);
                c.b.node("aten.relu.default", &[c.s, other]);
            }),
            ("the inner product is an output", |c| {
                c.nodes([c.g, c.s], [c.t, c.u]);
                c.b.0.outputs.push(c.t);
            }),
            ("the other factor repeats", |c| {
                c.u = c.b.constant(&[8], "u");
                c.nodes([c.g, c.s], [c.t, c.u]);
            }),
            ("the result is of another type", |c| {
                c.nodes([c.g, c.s], [c.t, c.u]);
                let Value::Tensor(tensor) = &mut c.b.0.values[c.out.index()] else { panic!() };
                tensor.dtype = DType::F16;
            }),
        ];
        for (why, change) in changes {
            let mut c = case();
            change(&mut c);
            assert!(!c.fires(), "{why}");
        }
    }
}
