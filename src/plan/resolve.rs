use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result};
use crate::graph::{Graph, Node};
use crate::ops::{self, Op};

/// Missing operators that an error names.
const NAMES: usize = 64;
/// Forms of one missing operator that it shows.
const FORMS: usize = 4;
/// Arguments of one form, and characters of a name.
const ARGUMENTS: usize = 16;
const CHARACTERS: usize = 80;

/// The operator of each node. Fails with all that are missing at once: their names, and the types and shapes that they
/// are called with.
pub(super) fn run(graph: &Graph) -> Result<Vec<&'static Op>> {
    let mut missing: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut found = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        match ops::find(&node.op) {
            Some(op) => found.push(op),
            None => {
                let forms = missing.entry(&node.op).or_default();
                if forms.len() < FORMS {
                    forms.insert(form(graph, node));
                }
            }
        }
    }
    if missing.is_empty() {
        return Ok(found);
    }
    let rest = missing.len().saturating_sub(NAMES);
    let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    let shown = missing.iter().take(NAMES);
    let names: Vec<String> = shown.clone().map(|(name, _)| cut(name)).collect();
    let forms: Vec<String> = shown.flat_map(|(_, forms)| forms).cloned().collect();
    let why = format!(
        "no kernel for {}{rest}; keep them off the delegate with the partitioner's operator_blocklist",
        forms.join("; ")
    );
    Err(Error::unsupported(names.join(", ") + &rest, why))
}

fn form(graph: &Graph, node: &Node) -> String {
    let describe = |&id| match graph.tensor(id) {
        Some(tensor) => format!("{}{}", tensor.dtype, tensor.max),
        None => graph.describe(id),
    };
    let (out, args) = match node.args.split_last() {
        Some((out, args)) => (describe(out), args),
        None => (String::new(), &[][..]),
    };
    let args: Vec<String> = args.iter().take(ARGUMENTS).map(describe).collect();
    format!("{}({}) -> {out}", cut(&node.op), args.join(", "))
}

fn cut(name: &str) -> String {
    name.chars().take(CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::testing::Builder;

    #[test]
    fn all_missing_operators_are_listed_once_per_form() {
        let mut b = Builder::default();
        let (x, y) = (b.tensor(&[2, 3], None), b.tensor(&[2, 3], None));
        b.0.inputs.push(x);
        for op in ["aten.nothing.default", "aten.relu.default", "zzz.default", "aten.nothing.default"] {
            b.node(op, &[x, y]);
        }
        b.node("aten.nothing.default", &[y, x]);
        let text = run(&b.0).unwrap_err().to_string();
        let form = |op: &str| format!("{op}(float32[2, 3]) -> float32[2, 3]");
        assert!(text.starts_with("aten.nothing.default, zzz.default is not supported"), "{text}");
        assert!(text.contains(&format!("{}; {};", form("aten.nothing.default"), form("zzz.default"))), "{text}");
        assert!(text.contains("operator_blocklist"), "{text}");
    }

    #[test]
    fn hostile_names_do_not_make_endless_errors() {
        let mut b = Builder::default();
        let many = b.tensor(&[1], None);
        for index in 0..1000 {
            b.node(&format!("{index} {}", "x".repeat(10_000)), &[many; 1000]);
        }
        let text = run(&b.0).unwrap_err().to_string();
        assert!(text.len() < 64 << 10 && text.contains("and 936 more"), "{}", text.len());
    }
}
