//! Which algorithm each matrix product of a program takes, for the log.

use std::collections::BTreeMap;

use super::Plan;
use crate::ops::Step;
use crate::shader::Const;

/// Constants that say how a product is cut; the others follow from its sizes and from the device.
const CUT: [&str; 9] = ["BM", "BN", "SLICES", "MB", "NR", "WORDS", "SPLIT", "BLOCKS", "HALF_SUMS"];

impl Plan {
    /// One line for each size of product: columns, length of the sum, how many there are, and the kernel from each number of
    /// rows on that was probed.
    pub fn products(&self) -> Vec<String> {
        let mut found: BTreeMap<(u32, u32), BTreeMap<u32, (String, usize)>> = BTreeMap::new();
        for step in self.probes.iter().flat_map(|probe| &probe.lowered).flat_map(|lowered| &lowered.steps) {
            if let Some((rows, size)) = product(step) {
                let known = found.entry(size).or_default().entry(rows).or_insert_with(|| (label(step), 0));
                known.1 += 1;
            }
        }
        let line = |((columns, terms), ways): ((u32, u32), BTreeMap<u32, (String, usize)>)| {
            let count = ways.values().map(|(_, count)| *count).min().unwrap_or(0);
            let mut parts: Vec<String> = Vec::new();
            let mut last = None;
            for (rows, (label, _)) in &ways {
                if last != Some(label) {
                    parts.push(format!("{rows}: {label}"));
                }
                last = Some(label);
            }
            format!("{count} of {columns} columns by {terms}, from rows {}", parts.join(", from "))
        };
        found.into_iter().map(line).collect()
    }
}

/// Rows, and columns and length of the sum, if the step is a product.
fn product(step: &Step) -> Option<(u32, (u32, u32))> {
    let is_product = step.kernel.links.iter().any(|link| link.name() == "lib/product");
    match step.params.get(..3)? {
        &[m, n, k] if is_product => Some((m, (n, k))),
        _ => None,
    }
}

fn label(step: &Step) -> String {
    let links = step.kernel.links.iter().map(|link| link.name());
    let dot =
        links.clone().find_map(|name| name.strip_prefix("lib/dot_")).map_or(String::new(), |dot| format!(" {dot}"));
    let consts = step.kernel.consts.iter().filter(|(name, _)| CUT.contains(name));
    let cut: String = consts
        .map(|(name, value)| match value {
            Const::U32(n) => format!(" {name}={n}"),
            Const::Bool(b) => format!(" {name}={b}"),
        })
        .collect();
    format!("{}{dot}{cut}", step.kernel.body.name())
}
