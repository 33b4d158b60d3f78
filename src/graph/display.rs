use std::fmt;

use super::{Graph, Value, ValueId};

impl Graph {
    /// One value in words: `%7 float32[1, 64]`, `3`, `None`.
    pub fn describe(&self, id: ValueId) -> String {
        match self.value(id) {
            Value::Null => "None".to_string(),
            Value::Int(n) => n.to_string(),
            Value::Double(x) => format!("{x:?}"),
            Value::Bool(b) => b.to_string(),
            Value::Str(s) => format!("{s:?}"),
            Value::Ints(items) => format!("{items:?}"),
            Value::Doubles(items) => format!("{items:?}"),
            Value::Bools(items) => format!("{items:?}"),
            Value::List(items) => {
                let items: Vec<String> = items.iter().map(|&item| self.describe(item)).collect();
                format!("[{}]", items.join(", "))
            }
            Value::SymInt => format!("%{} SymInt", id.0),
            Value::Tensor(t) => {
                let constant = t.constant.map_or(String::new(), |c| format!(" const {c}"));
                format!("%{} {}{}{constant}", id.0, t.dtype, t.max)
            }
        }
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &id in &self.inputs {
            writeln!(f, "in   {}", self.describe(id))?;
        }
        for node in &self.nodes {
            let (out, args) = match node.args.split_last() {
                Some((out, args)) => (self.describe(*out), args),
                None => (String::new(), &[][..]),
            };
            let args: Vec<String> = args.iter().map(|&id| self.describe(id)).collect();
            writeln!(f, "{out} = {}({})", node.op, args.join(", "))?;
        }
        for &id in &self.outputs {
            writeln!(f, "out  {}", self.describe(id))?;
        }
        Ok(())
    }
}
