use super::{Constant, Graph, Value, ValueId};
use crate::error::{Error, Result};

/// Arguments of all nodes together, lists expanded, that a graph may have. Far above any real program; it keeps a small
/// payload, whose nodes name one long list again and again, from costing hours.
const MOST_REFERENCES: usize = 1 << 22;

impl Graph {
    /// Checks what every later stage relies on: ids in range, lists that end, outputs that something defines, each value
    /// defined before it is read and once per node, inputs that are no constants, constants that exist.
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
        for constant in &self.constants {
            if let Constant::Joined(parts) = constant {
                parts.iter().try_for_each(|&part| self.check_part(part))?;
            }
        }
        self.check_size()?;
        self.check_order()
    }

    fn check_size(&self) -> Result<()> {
        let length = |id: &ValueId| match self.value(*id) {
            Value::List(items) => items.len() + 1,
            _ => 1,
        };
        let mut references = 0usize;
        for node in &self.nodes {
            references += node.args.iter().map(length).sum::<usize>();
            if references > MOST_REFERENCES {
                return Err(Error::Payload(format!("more than {MOST_REFERENCES} arguments, lists expanded")));
            }
        }
        Ok(())
    }

    fn check_part(&self, part: ValueId) -> Result<()> {
        let constant = self.tensor(part).and_then(|tensor| self.constants.get(tensor.constant? as usize));
        match constant {
            Some(Constant::Joined(_)) | None => {
                Err(Error::Payload(format!("{} is part of a constant", self.describe(part))))
            }
            Some(_) => Ok(()),
        }
    }

    fn in_range(&self, id: ValueId, what: &str) -> Result<()> {
        if id.index() < self.values.len() {
            return Ok(());
        }
        Err(Error::Payload(format!("{what} is value {}, but there are {}", id.0, self.values.len())))
    }

    fn check_input(&self, id: ValueId) -> Result<()> {
        self.in_range(id, "an input")?;
        let refuse = |why: &str| Err(Error::Payload(format!("input {} is {why}", self.describe(id))));
        match self.value(id) {
            Value::Tensor(tensor) if tensor.constant.is_some() => refuse("a constant"),
            Value::Tensor(_) | Value::SymInt => Ok(()),
            _ => refuse("neither a tensor nor a SymInt"),
        }
    }

    fn check_order(&self) -> Result<()> {
        let mut defined: Vec<bool> =
            self.values.iter().map(|v| matches!(v, Value::Tensor(t) if t.constant.is_some())).collect();
        for &id in &self.inputs {
            self.check_input(id)?;
            if mark(&mut defined, id) {
                return Err(Error::Payload(format!("input {} is listed twice", self.describe(id))));
            }
        }
        let mut definer = vec![usize::MAX; self.values.len()];
        for (index, node) in self.nodes.iter().enumerate() {
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
                if definer.get_mut(id.index()).is_some_and(|last| std::mem::replace(last, index) == index) {
                    return Err(Error::Payload(format!("{} defines {} twice", node.op, self.describe(id))));
                }
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

/// Marks a value as defined; true when it was already.
fn mark(defined: &mut [bool], id: ValueId) -> bool {
    defined.get_mut(id.index()).is_some_and(|slot| std::mem::replace(slot, true))
}

#[cfg(test)]
mod tests {
    use super::super::{DType, Dims, Node, Tensor};
    use super::*;

    fn tensor(constant: Option<u32>) -> Value {
        Value::Tensor(Tensor {
            dtype: DType::F32,
            stored: DType::F32,
            swapped: false,
            max: Dims::new(&[2]).unwrap(),
            constant,
        })
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
        type Breakage = fn(&mut Graph);
        let cases: [(&str, Breakage); 10] = [
            ("but there are", |g| g.outputs.push(ValueId(9))),
            ("before it is defined", |g| g.inputs.clear()),
            ("but there are", |g| g.nodes.iter_mut().for_each(|n| n.args.push(ValueId(77)))),
            ("names constant", |g| g.values.push(tensor(Some(3)))),
            ("list of lists", |g| {
                let id = ValueId(g.values.len() as u32);
                g.values.push(Value::List(vec![id]));
            }),
            ("never defined", |g| g.nodes.clear()),
            ("listed twice", |g| g.inputs.push(ValueId(0))),
            ("is a constant", |g| {
                g.constants.push(Constant::Empty);
                g.values[0] = tensor(Some(0));
            }),
            ("defines %1 float32[2] twice", |g| {
                g.values.push(Value::List(vec![ValueId(1), ValueId(1)]));
                g.nodes[0].args[1] = ValueId(2);
            }),
            ("more than 4194304 arguments", |g| {
                g.values.push(Value::List(vec![ValueId(0); 1 << 12]));
                g.nodes[0].args = vec![ValueId(2); 1 << 12];
            }),
        ];
        for (expected, breakage) in cases {
            let mut graph = relu();
            breakage(&mut graph);
            let text = graph.check().unwrap_err().to_string();
            assert!(text.contains(expected), "{text}");
        }
    }
}
