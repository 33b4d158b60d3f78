use super::uses::{Rewrite, Uses};
use crate::error::Result;
use crate::gpu::Caps;
use crate::graph::{Graph, Node, Value, ValueId};
use crate::ops::linear::{LINEAR_ADD, LINEAR_Q4};
use crate::options::Options;

/// A 4-bit layer without a bias whose only reader adds a tensor of the same shape to it adds that tensor itself.
///
/// `linear_q4gsw(x, weight, scales, group, None) -> y; add(y, r, 1) -> z` becomes one node
/// `(x, weight, scales, group, r) -> z`.
pub fn run(graph: Graph, _: &Caps, _: &Options) -> Result<Graph> {
    let uses = Uses::of(&graph);
    let mut rewrite = Rewrite::default();
    for (index, node) in graph.nodes.iter().enumerate().filter(|(_, node)| node.op == "aten.add.Tensor") {
        let [a, b, alpha, out] = node.args[..] else { continue };
        if !is_one(graph.value(alpha)) || !uses.are_steady(&graph, node) {
            continue;
        }
        for (sum, addend) in [(b, a), (a, b)] {
            let Some((maker, layer)) = layer(&graph, &uses, sum) else { continue };
            if !alike(&graph, [sum, addend, out]) {
                continue;
            }
            let mut args = layer.args.clone();
            args.iter_mut().skip(4).zip([addend, out]).for_each(|(argument, id)| *argument = id);
            if rewrite.replace(&[maker, index], index, Node { op: LINEAR_ADD.into(), args }) {
                break;
            }
        }
    }
    Ok(rewrite.apply(graph))
}

/// The layer without a bias that makes a value with only one reader.
fn layer<'a>(graph: &'a Graph, uses: &Uses, sum: ValueId) -> Option<(usize, &'a Node)> {
    let maker = uses.maker(sum).filter(|_| uses.reader(sum).is_some())?;
    let node = graph.nodes.get(maker).filter(|node| node.op == LINEAR_Q4 && uses.are_steady(graph, node))?;
    let plain = matches!(node.args[..], [_, _, _, _, bias, _] if *graph.value(bias) == Value::Null);
    plain.then_some((maker, node))
}

fn is_one(value: &Value) -> bool {
    matches!(value, Value::Int(1) | Value::Null) || *value == Value::Double(1.0)
}

fn alike(graph: &Graph, [a, b, c]: [ValueId; 3]) -> bool {
    let form = |id| graph.tensor(id).map(|tensor| (tensor.max, tensor.dtype));
    form(a).is_some() && a != b && form(a) == form(b) && form(b) == form(c)
}

#[cfg(test)]
mod tests {
    use super::super::testing::Builder;
    use super::*;

    struct Case {
        b: Builder,
        args: [ValueId; 5],
        r: ValueId,
        y: ValueId,
        z: ValueId,
    }

    fn case() -> Case {
        let mut b = Builder::default();
        let (x, r) = (b.tensor(&[3, 64], None), b.tensor(&[3, 8], None));
        b.0.inputs.extend([x, r]);
        let (w, s) = (b.constant(&[8, 32], "w"), b.constant(&[2, 8], "s"));
        let (group, bias) = (b.0.push(Value::Int(32)), b.0.push(Value::Null));
        let (y, z) = (b.tensor(&[3, 8], None), b.tensor(&[3, 8], None));
        b.0.outputs.push(z);
        Case { b, args: [x, w, s, group, bias], r, y, z }
    }

    impl Case {
        fn layer(&mut self) {
            self.b.node(LINEAR_Q4, &[&self.args[..], &[self.y]].concat());
        }

        fn add(&mut self, a: ValueId, b: ValueId, alpha: Value) {
            let alpha = self.b.0.push(alpha);
            self.b.node("aten.add.Tensor", &[a, b, alpha, self.z]);
        }

        fn ops(self) -> Vec<String> {
            let graph = run(self.b.0, &Caps::minimal(), &Options::default()).unwrap();
            graph.check().unwrap();
            graph.nodes.into_iter().map(|node| node.op).collect()
        }
    }

    #[test]
    fn a_layer_takes_what_is_added_to_it_from_either_side() {
        for (swapped, alpha) in [(false, Value::Int(1)), (true, Value::Double(1.0)), (true, Value::Null)] {
            let mut c = case();
            c.layer();
            let (a, b) = if swapped { (c.y, c.r) } else { (c.r, c.y) };
            c.add(a, b, alpha);
            assert_eq!(c.ops(), [LINEAR_ADD]);
        }
    }

    #[test]
    fn it_stays_where_the_sum_is_another() {
        type Change = fn(&mut Case);
        let changes: [(&str, Change); 6] = [
            ("the layer has a bias", |c| {
                c.args[4] = c.b.constant(&[8], "b");
                c.layer();
                c.add(c.r, c.y, Value::Int(1));
            }),
            ("alpha is 2", |c| {
                c.layer();
                c.add(c.r, c.y, Value::Int(2));
            }),
            ("the addend repeats", |c| {
                c.r = c.b.constant(&[1, 8], "r");
                c.layer();
                c.add(c.r, c.y, Value::Int(1));
            }),
            ("the layer has another reader", |c| {
                c.layer();
                c.add(c.r, c.y, Value::Int(1));
                let other = c.b.tensor(&[3, 8], None);
                c.b.node("aten.relu.default", &[c.y, other]);
            }),
            ("the layer is an output", |c| {
                c.layer();
                c.add(c.r, c.y, Value::Int(1));
                c.b.0.outputs.push(c.y);
            }),
            ("the addend is overwritten", |c| {
                c.layer();
                c.b.node("aten.relu.default", &[c.y, c.r]);
                c.add(c.r, c.y, Value::Int(1));
            }),
        ];
        for (why, change) in changes {
            let mut c = case();
            change(&mut c);
            assert!(!c.ops().contains(&LINEAR_ADD.to_string()), "{why}");
        }
        let mut c = case();
        c.layer();
        c.add(c.y, c.y, Value::Int(1));
        assert_eq!(c.ops(), [LINEAR_Q4, "aten.add.Tensor"], "it is added to itself");
    }
}
