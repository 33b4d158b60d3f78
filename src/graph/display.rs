use std::fmt;

use super::{Graph, Value, ValueId};

/// Items of a list, and characters of a string, that are worth printing.
const SHOWN: usize = 16;

impl Graph {
    /// One value in words: `%7 float32[1, 64]`, `3`, `None`. Long lists and strings are cut.
    pub fn describe(&self, id: ValueId) -> String {
        match self.value(id) {
            Value::Null => "None".to_string(),
            Value::Int(n) => n.to_string(),
            Value::Double(x) => format!("{x:?}"),
            Value::Bool(b) => b.to_string(),
            Value::Str(s) => format!("{:?}", s.chars().take(SHOWN).collect::<String>()),
            Value::Ints(items) => list(items, i64::to_string),
            Value::Doubles(items) => list(items, |x| format!("{x:?}")),
            Value::Bools(items) => list(items, bool::to_string),
            Value::List(items) => list(items, |&item| self.describe(item)),
            Value::SymInt => format!("%{} SymInt", id.0),
            Value::Tensor(t) => {
                let constant = t.constant.map_or(String::new(), |c| format!(" const {c}"));
                format!("%{} {}{}{constant}", id.0, t.dtype, t.max)
            }
        }
    }
}

fn list<T>(items: &[T], describe: impl Fn(&T) -> String) -> String {
    let mut words: Vec<String> = items.iter().take(SHOWN).map(describe).collect();
    if items.len() > SHOWN {
        words.push(format!("... {} in all", items.len()));
    }
    format!("[{}]", words.join(", "))
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
