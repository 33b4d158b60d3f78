use super::uses::{Rewrite, Uses};
use crate::error::Result;
use crate::gpu::Caps;
use crate::graph::{Constant, Dims, Graph, Node, Tensor, Value, ValueId};
use crate::ops::linear::{LINEAR_Q4, MOST_RESULTS, NORM_GATE, NORM_LAYERS};
use crate::ops::{RMS_NORM, SILU_MUL};
use crate::options::Options;
use crate::shader::Elem;

/// x, the norm's weight, weights, scales and bias.
const BINDINGS: usize = 5;

/// A norm that only 4-bit layers read becomes one node with them, their weights joined into one table; with a gate and what
/// it gates, their product too.
pub fn run(mut graph: Graph, caps: &Caps, _: &Options) -> Result<Graph> {
    let uses = Uses::of(&graph);
    let mut rewrite = Rewrite::default();
    for index in 0..graph.nodes.len() {
        let Some(found) = Found::at(&graph, &uses, index) else { continue };
        let Some(mut joined) = join(&graph, &uses, &found, caps) else { continue };
        let mut args = found.norm.clone();
        for part in &mut joined {
            args.push(part.add(&mut graph)?);
        }
        args.insert(5, found.group);
        args.push(graph.push(Value::List(found.outputs)));
        rewrite.replace(&found.nodes, index, Node { op: found.op.into(), args });
    }
    Ok(rewrite.apply(graph))
}

/// A norm and its readers.
struct Found {
    op: &'static str,
    nodes: Vec<usize>,
    /// x, weight and eps.
    norm: Vec<ValueId>,
    /// Weight, scales, bias and result of each layer.
    layers: Vec<[ValueId; 4]>,
    /// The places of the layers.
    places: Vec<usize>,
    group: ValueId,
    outputs: Vec<ValueId>,
}

impl Found {
    fn at(graph: &Graph, uses: &Uses, index: usize) -> Option<Found> {
        let node = graph.nodes.get(index).filter(|node| node.op == RMS_NORM && uses.are_steady(graph, node))?;
        let [x, weight, eps, normalised] = node.args[..] else { return None };
        let alike = graph.tensor(x)?.max == graph.tensor(normalised)?.max;
        let places = uses.readers(normalised).filter(|places| alike && !places.is_empty())?.to_vec();
        let (mut layers, mut groups) = (Vec::new(), Vec::new());
        for &place in &places {
            let node = graph.nodes.get(place).filter(|node| node.op == LINEAR_Q4 && uses.are_steady(graph, node))?;
            let [input, weight, scales, group, bias, out] = node.args[..] else { return None };
            let constants = [weight, scales].into_iter().all(|id| is_constant(graph, id));
            let bias_fits = *graph.value(bias) == Value::Null || is_constant(graph, bias);
            let plain = input == normalised && graph.tensor(out).is_some();
            let whole = matches!(graph.value(group), Value::Int(_));
            (plain && whole && constants && bias_fits).then(|| layers.push([weight, scales, bias, out]))?;
            groups.push(group);
        }
        let group = *groups.first()?;
        groups.iter().all(|id| graph.value(*id) == graph.value(group)).then_some(())?;
        let outputs = layers.iter().map(|layer| layer[3]).chain([normalised]).collect();
        let nodes = [&[index], &places[..]].concat();
        let norm = vec![x, weight, eps];
        let found = Found { op: NORM_LAYERS, nodes, norm, layers, places, group, outputs };
        Some(found.gated(graph, uses))
    }

    /// With the product of the two layers as a gate and what it gates, if that is what reads them.
    fn gated(mut self, graph: &Graph, uses: &Uses) -> Found {
        let &[a, b] = &self.layers[..] else { return self };
        let product = uses.reader(a[3]).filter(|place| uses.reader(b[3]) == Some(*place));
        let Some((place, node)) = product.and_then(|place| Some((place, graph.nodes.get(place)?))) else { return self };
        let [gate, up, out] = node.args[..] else { return self };
        let swapped = (gate, up) == (b[3], a[3]);
        if node.op != SILU_MUL
            || !(swapped || (gate, up) == (a[3], b[3]))
            || !uses.is_steady(out)
            || graph.tensor(out).is_none()
        {
            return self;
        }
        if swapped {
            self.layers.swap(0, 1);
            self.places.swap(0, 1);
            self.outputs.swap(0, 1);
        }
        self.outputs.insert(0, out);
        self.nodes.push(place);
        Found { op: NORM_GATE, ..self }
    }
}

fn is_constant(graph: &Graph, id: ValueId) -> bool {
    graph.tensor(id).is_some_and(|tensor| tensor.constant.is_some())
}

/// A value to name as an argument: one that is there, or a constant to be made of several.
enum Part {
    Known(ValueId),
    Joined(Tensor, Vec<ValueId>),
}

impl Part {
    fn add(&mut self, graph: &mut Graph) -> Result<ValueId> {
        match self {
            Part::Known(id) => Ok(*id),
            Part::Joined(tensor, parts) => {
                graph.constants.push(Constant::Joined(std::mem::take(parts)));
                let constant = u32::try_from(graph.constants.len() - 1).ok();
                Ok(graph.push(Value::Tensor(Tensor { constant, ..tensor.clone() })))
            }
        }
    }
}

/// Weights, scales and bias of all layers; `None` when they cannot lie one after the other: another node reads them too,
/// they are padded, or a layer would not start at a multiple of the alignment.
fn join(graph: &Graph, uses: &Uses, found: &Found, caps: &Caps) -> Option<[Part; 3]> {
    let [weights, scales, biases] =
        [0, 1, 2].map(|which| found.layers.iter().map(|layer| layer[which]).collect::<Vec<_>>());
    let no_bias = biases.iter().all(|&id| *graph.value(id) == Value::Null);
    if let ([weight], [scales], [bias]) = (&weights[..], &scales[..], &biases[..]) {
        return Some([weight, scales, bias].map(|id| Part::Known(*id)));
    }
    if found.layers.len() > MOST_RESULTS || BINDINGS + found.layers.len() > caps.max_storage_buffers as usize {
        return None;
    }
    let own = |ids: &[ValueId]| ids.iter().zip(&found.places).all(|(&id, &place)| uses.reader(id) == Some(place));
    let widths: Vec<u32> =
        found.layers.iter().map(|layer| graph.tensor(layer[3]).map(|out| out.max.last())).collect::<Option<_>>()?;
    let by_column = scales.iter().all(|&id| graph.tensor(id).is_some_and(|tensor| tensor.swapped));
    (own(&weights) && own(&scales) && by_column).then_some(())?;
    let weights = joined(graph, weights, &widths, caps)?;
    let scales = joined(graph, scales, &widths, caps)?;
    let biases = match biases.first() {
        Some(&none) if no_bias => Part::Known(none),
        _ if own(&biases) => joined(graph, biases, &widths, caps)?,
        _ => return None,
    };
    Some([weights, scales, biases])
}

/// Constants one after the other whose numbers of rows, as the device holds them, are `rows`.
fn joined(graph: &Graph, ids: Vec<ValueId>, rows: &[u32], caps: &Caps) -> Option<Part> {
    let first = graph.tensor(*ids.first()?)?;
    let size = u64::from(Elem::of(first.dtype, caps.f16).size());
    let mut total = 0;
    for (id, &rows) in ids.iter().zip(rows) {
        let tensor = graph.tensor(*id)?;
        let shape = (tensor.dtype, tensor.stored, tensor.swapped, tensor.max.len());
        let alike = shape == (first.dtype, first.stored, first.swapped, first.max.len());
        let bytes = u64::from(tensor.max.numel()) * size;
        let whole = bytes.is_multiple_of(u64::from(caps.storage_alignment)) && of(tensor, rows) == Some(tensor.max);
        let same_width = of(tensor, 1) == of(first, 1);
        (alike && whole && same_width).then_some(())?;
        total += rows;
    }
    let max = of(first, total)?;
    let fits = u64::from(max.numel()) * size <= caps.binding();
    fits.then(|| Part::Joined(Tensor { max, ..first.clone() }, ids))
}

/// The shape of a tensor with other rows.
fn of(tensor: &Tensor, rows: u32) -> Option<Dims> {
    let axis = if tensor.swapped { 1 } else { 0 };
    tensor.max.with(axis, rows).ok()
}

#[cfg(test)]
mod tests {
    use super::super::testing::Builder;
    use super::*;

    struct Case {
        b: Builder,
        x: ValueId,
        h: ValueId,
        layers: Vec<[ValueId; 4]>,
        group: ValueId,
    }

    /// A norm and two layers of 64 columns.
    fn case(biased: bool) -> Case {
        several(2, biased)
    }

    fn several(count: usize, biased: bool) -> Case {
        let mut b = Builder::default();
        let (x, h) = (b.tensor(&[3, 64], None), b.tensor(&[3, 64], None));
        b.0.inputs.push(x);
        let group = b.0.push(Value::Int(32));
        let layers = (0..count).map(|_| {
            let (weight, scales) = (b.constant(&[64, 32], "w"), b.constant(&[2, 64], "s"));
            let bias = if biased { b.constant(&[64], "b") } else { b.0.push(Value::Null) };
            if let Value::Tensor(tensor) = &mut b.0.values[scales.index()] {
                tensor.swapped = true;
            }
            let y = b.tensor(&[3, 64], None);
            b.0.outputs.push(y);
            [weight, scales, bias, y]
        });
        let layers = layers.collect();
        Case { b, x, h, layers, group }
    }

    impl Case {
        fn norm(&mut self) {
            let (weight, eps) = (self.b.constant(&[64], "n"), self.b.0.push(Value::Double(1e-5)));
            self.b.node(RMS_NORM, &[self.x, weight, eps, self.h]);
        }

        fn layer(&mut self, index: usize) {
            let [weight, scales, bias, y] = self.layers[index];
            self.b.node(LINEAR_Q4, &[self.h, weight, scales, self.group, bias, y]);
        }

        fn usual(&mut self) {
            self.norm();
            (0..self.layers.len()).for_each(|index| self.layer(index));
        }

        fn graph(self, caps: &Caps) -> Graph {
            let graph = run(self.b.0, caps, &Options::default()).unwrap();
            graph.check().unwrap();
            graph
        }

        fn ops(self) -> Vec<String> {
            self.graph(&Caps::minimal()).nodes.into_iter().map(|node| node.op).collect()
        }

        /// A product that a gate makes of the layers.
        fn gate(&mut self, gate: usize) {
            let out = self.b.tensor(&[3, 64], None);
            let (gate, up) = (self.layers[gate][3], self.layers[1 - gate][3]);
            self.b.node(SILU_MUL, &[gate, up, out]);
            self.b.0.outputs = vec![out];
        }
    }

    #[test]
    fn a_norm_and_its_layers_are_one_node_with_joined_constants() {
        for biased in [false, true] {
            let mut c = case(biased);
            c.usual();
            let layers = c.layers.clone();
            let graph = c.graph(&Caps::minimal());
            let [node] = &graph.nodes[..] else { panic!("{graph}") };
            assert_eq!(node.op, NORM_LAYERS);
            let shapes: Vec<Dims> = [3, 4].iter().map(|&at| graph.tensor(node.args[at]).unwrap().max).collect();
            assert_eq!(shapes, [Dims::new(&[128, 32]).unwrap(), Dims::new(&[2, 128]).unwrap()]);
            let constant = graph.tensor(node.args[3]).unwrap().constant.unwrap();
            let weights = Constant::Joined(layers.iter().map(|layer| layer[0]).collect());
            assert_eq!(graph.constants[constant as usize], weights);
        }
    }

    #[test]
    fn more_layers_than_one_step_has_results_keep_their_constants() {
        let caps = Caps { max_storage_buffers: 64, ..Caps::minimal() };
        for (count, joined) in [(MOST_RESULTS, true), (MOST_RESULTS + 1, false)] {
            let mut c = several(count, false);
            c.usual();
            let graph = c.graph(&caps);
            let any = graph.constants.iter().any(|constant| matches!(constant, Constant::Joined(_)));
            assert_eq!(any, joined, "{count} layers");
        }
    }

    #[test]
    fn one_layer_keeps_its_constants() {
        let mut c = case(false);
        c.layers.pop();
        c.b.0.outputs.pop();
        c.usual();
        let weight = c.layers[0][0];
        let graph = c.graph(&Caps::minimal());
        assert_eq!((graph.nodes[0].op.as_str(), graph.nodes[0].args[3]), (NORM_LAYERS, weight));
    }

    #[test]
    fn a_gate_comes_first_whichever_layer_it_is() {
        for gate in 0..2 {
            let mut c = case(false);
            c.usual();
            c.gate(gate);
            let (first, h) = (c.layers[gate][3], c.h);
            let graph = c.graph(&Caps::minimal());
            let [node] = &graph.nodes[..] else { panic!("{graph}") };
            let outputs = graph.defines(node);
            assert_eq!((node.op.as_str(), outputs[1], outputs[3]), (NORM_GATE, first, h));
        }
    }

    #[test]
    fn a_gate_whose_layers_are_read_elsewhere_stays() {
        let mut c = case(false);
        c.usual();
        c.gate(0);
        let other = c.layers[0][3];
        c.b.0.outputs.push(other);
        assert_eq!(c.ops(), [NORM_LAYERS, SILU_MUL]);
    }

    #[test]
    fn others_stay() {
        type Change = fn(&mut Case);
        let tensor = |c: &mut Case, id: ValueId, change: fn(&mut Tensor)| {
            let Value::Tensor(tensor) = &mut c.b.0.values[id.index()] else { panic!() };
            change(tensor);
        };
        let changes: [(&str, Change); 8] = [
            ("the norm is an output", |c| {
                c.usual();
                c.b.0.outputs.push(c.h);
            }),
            ("something else reads the norm", |c| {
                c.usual();
                let other = c.b.tensor(&[3, 64], None);
                c.b.node("aten.relu.default", &[c.h, other]);
            }),
            ("a weight has another reader", |c| {
                c.usual();
                let other = c.b.tensor(&[64, 32], None);
                c.b.node("aten.relu.default", &[c.layers[0][0], other]);
            }),
            ("a layer is padded", |c| {
                c.layers[0][0] = c.b.constant(&[72, 32], "w");
                c.usual();
            }),
            ("only one layer has a bias", |c| {
                c.layers[0][2] = c.b.constant(&[64], "b");
                c.usual();
            }),
            ("a weight is computed", |c| {
                let weight = c.b.tensor(&[64, 32], None);
                c.b.node("aten.relu.default", &[c.layers[0][0], weight]);
                c.layers[0][0] = weight;
                c.usual();
            }),
            ("the group is a list with the norm", |c| {
                c.group = c.b.0.push(Value::List(vec![c.h]));
                c.usual();
            }),
            ("x is overwritten", |c| {
                c.usual();
                c.b.node("aten.relu.default", &[c.layers[0][3], c.x]);
            }),
        ];
        for (why, change) in changes {
            let mut c = case(false);
            change(&mut c);
            assert!(c.ops().contains(&RMS_NORM.to_string()), "{why}");
        }
        let mut c = case(false);
        c.usual();
        let scales = c.layers[0][1];
        tensor(&mut c, scales, |scales| scales.swapped = false);
        assert_eq!(c.ops().len(), 3, "scales lie in another order");
        for caps in [
            Caps { max_storage_buffers: 6, ..Caps::minimal() },
            Caps { max_binding: 8 << 10, ..Caps::minimal() },
            Caps { storage_alignment: 1024, ..Caps::minimal() },
        ] {
            let mut c = case(false);
            c.usual();
            assert_eq!(c.graph(&caps).nodes.len(), 3, "{caps}");
        }
    }
}
