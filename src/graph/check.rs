use super::{Graph, Value, ValueId};
use crate::error::{Error, Result};

impl Graph {
    /// Checks what every later stage relies on: ids in range, lists that end, outputs that something defines, each value
    /// defined before it is read, constants that exist.
    pub fn check(&self) -> Result<()> {
        for (index, value) in self.values.iter().enumerate() {
            match value {
                Value::List(items) => {
                    for &item in items {
                        self.in_range(item, "a list item")?;
                        if matches!(self.value(item), Value::List(_)) {
                            return Err(Error::Payload(format!("value {index} is a list of lists")));
                        }
                    }
                }
                Value::Tensor(t) if t.constant.is_some_and(|c| c as usize >= self.constants.len()) => {
                    return Err(Error::Payload(format!(
                        "tensor {index} names constant {}, but there are {}",
                        t.constant.unwrap_or_default(),
                        self.constants.len()
                    )));
                }
                _ => {}
            }
        }
        self.check_order()
    }

    fn in_range(&self, id: ValueId, what: &str) -> Result<()> {
        if id.index() < self.values.len() {
            return Ok(());
        }
        Err(Error::Payload(format!("{what} is value {}, but there are {}", id.0, self.values.len())))
    }

    fn check_order(&self) -> Result<()> {
        let mut defined: Vec<bool> =
            self.values.iter().map(|v| matches!(v, Value::Tensor(t) if t.constant.is_some())).collect();
        for &id in &self.inputs {
            self.in_range(id, "an input")?;
            if !matches!(self.value(id), Value::Tensor(_) | Value::SymInt) {
                return Err(Error::Payload(format!("input {} is neither a tensor nor a SymInt", self.describe(id))));
            }
            mark(&mut defined, id);
        }
        for node in &self.nodes {
            for &id in &node.args {
                self.in_range(id, &node.op)?;
            }
            let reads = self.reads(node);
            let undefined = reads.iter().find(|id| !defined.get(id.index()).copied().unwrap_or(false));
            if let Some(&id) = undefined {
                return Err(Error::Payload(format!("{} reads {} before it is defined", node.op, self.describe(id))));
            }
            for id in self.defines(node) {
                mark(&mut defined, id);
            }
        }
        for &id in &self.outputs {
            self.in_range(id, "an output")?;
            if !defined.get(id.index()).copied().unwrap_or(false) {
                return Err(Error::Payload(format!("output {} is never defined", self.describe(id))));
            }
        }
        Ok(())
    }
}

fn mark(defined: &mut [bool], id: ValueId) {
    if let Some(slot) = defined.get_mut(id.index()) {
        *slot = true;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DType, Dims, Node, Tensor};
    use super::*;

    fn tensor(constant: Option<u32>) -> Value {
        Value::Tensor(Tensor { dtype: DType::F32, stored: DType::F32, max: Dims::new(&[2]).unwrap(), constant })
    }

    fn relu() -> Graph {
        let (x, y) = (ValueId(0), ValueId(1));
        Graph {
            values: vec![tensor(None), tensor(None)],
            nodes: vec![Node { op: "aten.relu.default".into(), args: vec![x, y] }],
            inputs: vec![x],
            outputs: vec![y],
            constants: vec![],
        }
    }

    #[test]
    fn a_sound_graph_passes_and_reads_well() {
        let graph = relu();
        graph.check().unwrap();
        assert!(graph.to_string().contains("%1 float32[2] = aten.relu.default(%0 float32[2])"));
    }

    #[test]
    fn broken_graphs_are_refused() {
        let cases: [(&str, fn(&mut Graph)); 6] = [
            ("but there are", |g| g.outputs.push(ValueId(9))),
            ("before it is defined", |g| g.inputs.clear()),
            ("but there are", |g| g.nodes.iter_mut().for_each(|n| n.args.push(ValueId(77)))),
            ("names constant", |g| g.values.push(tensor(Some(3)))),
            ("list of lists", |g| {
                let id = ValueId(g.values.len() as u32);
                g.values.push(Value::List(vec![id]));
            }),
            ("never defined", |g| g.nodes.clear()),
        ];
        for (expected, breakage) in cases {
            let mut graph = relu();
            breakage(&mut graph);
            let text = graph.check().unwrap_err().to_string();
            assert!(text.contains(expected), "{text}");
        }
    }
}
