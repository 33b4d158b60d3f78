use std::collections::{BTreeMap, BTreeSet};

use crate::graph::{Graph, Node, ValueId};
use crate::ops;

/// Who makes and who reads each value of a graph.
pub(super) struct Uses {
    readers: Vec<Vec<usize>>,
    makers: Vec<Vec<usize>>,
    /// How often a value gets its content: as a constant or an input, and from nodes.
    contents: Vec<u32>,
    outputs: Vec<bool>,
}

impl Uses {
    pub fn of(graph: &Graph) -> Uses {
        let count = graph.values.len();
        let constant = |id: u32| graph.tensor(ValueId(id)).is_some_and(|tensor| tensor.constant.is_some());
        let mut uses = Uses {
            readers: vec![Vec::new(); count],
            makers: vec![Vec::new(); count],
            contents: (0..count as u32).map(|id| u32::from(constant(id))).collect(),
            outputs: vec![false; count],
        };
        let mut fill = |id: ValueId| uses.contents.get_mut(id.index()).into_iter().for_each(|n| *n += 1);
        graph.inputs.iter().for_each(|&id| fill(id));
        for node in &graph.nodes {
            let writes = ops::find(&node.op).map_or(&[][..], |op| op.writes);
            writes.iter().filter_map(|&argument| node.args.get(argument)).for_each(|&id| fill(id));
            graph.defines(node).into_iter().for_each(&mut fill);
        }
        let enter = |lists: &mut Vec<Vec<usize>>, id: ValueId, index: usize| {
            let list = lists.get_mut(id.index()).filter(|list| list.last() != Some(&index));
            list.into_iter().for_each(|list| list.push(index));
        };
        for (index, node) in graph.nodes.iter().enumerate() {
            graph.reads(node).into_iter().for_each(|id| enter(&mut uses.readers, id, index));
            graph.defines(node).into_iter().for_each(|id| enter(&mut uses.makers, id, index));
        }
        let outputs = graph.outputs.iter().flat_map(|&id| graph.flatten(id));
        outputs.for_each(|id| uses.outputs.get_mut(id.index()).into_iter().for_each(|flag| *flag = true));
        uses
    }

    /// The nodes that read a value in order, if it has one content for the whole call and is no output of the graph.
    pub fn readers(&self, id: ValueId) -> Option<&[usize]> {
        let inner = self.is_steady(id) && !self.outputs.get(id.index()).copied().unwrap_or(true);
        self.readers.get(id.index()).filter(|_| inner).map(Vec::as_slice)
    }

    /// The only node that reads a value, under the same conditions.
    pub fn reader(&self, id: ValueId) -> Option<usize> {
        match self.readers(id)? {
            &[reader] => Some(reader),
            _ => None,
        }
    }

    /// The node that makes a value, if it has one content for the whole call.
    pub fn maker(&self, id: ValueId) -> Option<usize> {
        match self.makers.get(id.index())?[..] {
            [maker] if self.is_steady(id) => Some(maker),
            _ => None,
        }
    }

    /// True when a value has one content for the whole call: a node may read it later than it did.
    pub fn is_steady(&self, id: ValueId) -> bool {
        self.contents.get(id.index()).is_some_and(|&contents| contents <= 1)
    }

    /// True when all values that a node reads and defines are steady.
    pub fn are_steady(&self, graph: &Graph, node: &Node) -> bool {
        graph.reads(node).into_iter().chain(graph.defines(node)).all(|id| self.is_steady(id))
    }
}

/// Nodes that go, and those that come in their place.
#[derive(Default)]
pub(super) struct Rewrite {
    come: BTreeMap<usize, Node>,
    go: BTreeSet<usize>,
}

impl Rewrite {
    /// Puts `node` in the place of one of the nodes that it replaces; false, and nothing happens, when one of them is
    /// gone already.
    pub fn replace(&mut self, group: &[usize], place: usize, node: Node) -> bool {
        if group.iter().any(|index| self.go.contains(index)) {
            return false;
        }
        self.go.extend(group);
        self.come.insert(place, node);
        true
    }

    /// The graph with all replacements made.
    pub fn apply(mut self, mut graph: Graph) -> Graph {
        let nodes = std::mem::take(&mut graph.nodes).into_iter().enumerate();
        let keep = |(index, node)| self.come.remove(&index).or((!self.go.contains(&index)).then_some(node));
        graph.nodes = nodes.filter_map(keep).collect();
        graph
    }
}
