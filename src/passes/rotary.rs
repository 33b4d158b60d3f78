use super::uses::{Rewrite, Uses};
use crate::error::Result;
use crate::gpu::Caps;
use crate::graph::{Graph, Node, Value, ValueId};
use crate::ops::ROPE;
use crate::ops::attention::{ROTARY, SDPA};
use crate::options::Options;

/// q, k, v, both tables, the rotated q and both caches.
const BINDINGS: u32 = 8;

/// A rotary embedding whose results only one attention reads, as its q and k, becomes part of it: keys go straight to their
/// cache.
pub fn run(mut graph: Graph, caps: &Caps, _: &Options) -> Result<Graph> {
    if caps.max_storage_buffers < BINDINGS {
        return Ok(graph);
    }
    let uses = Uses::of(&graph);
    let mut rewrite = Rewrite::default();
    for index in 0..graph.nodes.len() {
        let Some((group, mut node, outputs)) = embedding(&graph, &uses, index) else { continue };
        let none = graph.push(Value::Null);
        node.args.resize(14, none);
        node.args.push(graph.push(Value::List(outputs)));
        rewrite.replace(&group, group[1], node);
    }
    Ok(rewrite.apply(graph))
}

/// The embedding at `index` and its attention; the node that takes their place, without None and outputs; its outputs.
fn embedding(graph: &Graph, uses: &Uses, index: usize) -> Option<([usize; 2], Node, Vec<ValueId>)> {
    let rope = graph.nodes.get(index)?;
    let style = ROPE.iter().position(|name| *name == rope.op)?;
    let (&outputs, tables) = rope.args.split_last()?;
    let [q_out, k_out] = graph.flatten(outputs)[..] else { return None };
    let (&[q, k], tables) = tables.split_first_chunk()?;
    let place = uses.reader(q_out).filter(|place| uses.reader(k_out) == Some(*place))?;
    let attention = graph.nodes.get(place).filter(|node| node.op == SDPA && tables.len() == 2 + style)?;
    let (out, arguments) = attention.args.split_last().filter(|(_, arguments)| arguments.len() == 11)?;
    let (&[q_in, k_in], rest) = arguments.split_first_chunk()?;
    let [_, k_cache, v_cache, ..] = *rest else { return None };
    let mut read = rest.iter().flat_map(|&id| graph.flatten(id));
    let alone = k_cache != v_cache && !read.any(|id| id == q_out || id == k_out);
    let form = |id| graph.tensor(id).map(|tensor| (tensor.max, tensor.dtype));
    let alike = graph.tensor(*out).is_some() && form(q) == form(q_out) && form(k) == form(k_out);
    let single = graph.tensor(q).is_some_and(|tensor| tensor.max.iter().rev().skip(3).all(|&n| n == 1));
    let fits = alone && alike && single && (q_in, k_in) == (q_out, k_out) && uses.are_steady(graph, rope);
    let args = [&[q, k], rest, tables].concat();
    fits.then(|| ([index, place], Node { op: ROTARY[style].into(), args }, vec![*out, q_out]))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Builder;
    use super::*;

    struct Case {
        b: Builder,
        q: ValueId,
        k: ValueId,
        v: ValueId,
        caches: [ValueId; 2],
        turned: [ValueId; 2],
        out: ValueId,
    }

    fn case() -> Case {
        case_of(1)
    }

    fn case_of(batch: u32) -> Case {
        let mut b = Builder::default();
        let [q, k, v] = [4, 2, 2].map(|heads| b.tensor(&[batch, 3, heads, 8], None));
        b.0.inputs.extend([q, k, v]);
        let caches = [(); 2].map(|()| b.constant(&[batch, 16, 2, 8], "zeros"));
        let turned = [4, 2].map(|heads| b.tensor(&[batch, 3, heads, 8], None));
        let out = b.tensor(&[batch, 3, 4, 8], None);
        b.0.outputs.push(out);
        Case { b, q, k, v, caches, turned, out }
    }

    impl Case {
        fn rope(&mut self, style: usize) {
            let tables = [(); 2].map(|()| self.b.constant(&[3, 4], "table"));
            let mut args = [&[self.q, self.k], &tables[..]].concat();
            if style == 1 {
                args.push(self.b.0.push(Value::Int(0)));
            }
            args.push(self.b.0.push(Value::List(self.turned.to_vec())));
            self.b.node(ROPE[style], &args);
        }

        fn attention(&mut self, [q, k, v]: [ValueId; 3]) {
            let [pos, one, none, truth] =
                [Value::Int(0), Value::Int(1), Value::Null, Value::Bool(true)].map(|value| self.b.0.push(value));
            let [kc, vc] = self.caches;
            self.b.node(SDPA, &[q, k, v, kc, vc, pos, one, none, none, truth, none, self.out]);
        }

        fn usual(&mut self) {
            self.rope(0);
            self.attention([self.turned[0], self.turned[1], self.v]);
        }

        fn ops(self) -> Vec<String> {
            let graph = run(self.b.0, &Caps::minimal(), &Options::default()).unwrap();
            graph.check().unwrap();
            graph.nodes.into_iter().map(|node| node.op).collect()
        }
    }

    #[test]
    fn both_styles_become_part_of_attention() {
        for (style, name) in ROTARY.iter().enumerate() {
            let mut c = case();
            c.rope(style);
            c.attention([c.turned[0], c.turned[1], c.v]);
            assert_eq!(c.ops(), [*name]);
        }
    }

    #[test]
    fn others_stay() {
        type Change = fn(&mut Case);
        let changes: [(&str, Change); 8] = [
            ("q and k are exchanged", |c| {
                c.rope(0);
                c.attention([c.turned[1], c.turned[0], c.v]);
            }),
            ("the rotated k is the value too", |c| {
                c.rope(0);
                c.attention([c.turned[0], c.turned[1], c.turned[1]]);
            }),
            ("the rotated k has another reader", |c| {
                c.usual();
                let other = c.b.tensor(&[1, 3, 2, 8], None);
                c.b.node("aten.relu.default", &[c.turned[1], other]);
            }),
            ("the rotated q is an output", |c| {
                c.usual();
                c.b.0.outputs.push(c.turned[0]);
            }),
            ("the mask is a list with the rotated k", |c| {
                c.usual();
                let mask = c.b.0.push(Value::List(vec![c.turned[1]]));
                c.b.0.nodes[1].args[7] = mask;
            }),
            ("one cache is for both", |c| {
                c.caches = [c.caches[0]; 2];
                c.usual();
            }),
            ("there are two sequences", |c| {
                *c = case_of(2);
                c.usual();
            }),
            ("k is overwritten", |c| {
                c.rope(0);
                c.b.node("aten.relu.default", &[c.v, c.k]);
                c.attention([c.turned[0], c.turned[1], c.v]);
            }),
        ];
        let few = Caps { max_storage_buffers: BINDINGS - 1, ..Caps::minimal() };
        let mut c = case();
        c.usual();
        assert_eq!(run(c.b.0, &few, &Options::default()).unwrap().nodes.len(), 2);
        for (why, change) in changes {
            let mut c = case();
            change(&mut c);
            assert!(c.ops().contains(&SDPA.to_string()), "{why}");
        }
    }
}
