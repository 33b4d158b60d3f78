//! Text about the table and about programs.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;

use executorch_webgpu::error::Error;
use executorch_webgpu::gpu::{Caps, Memory, MemoryKind};
use executorch_webgpu::graph::{Constant, Graph};
use executorch_webgpu::ops::{Op, TABLE};
use executorch_webgpu::options::Options;
use executorch_webgpu::plan::{Plan, refusals};
use executorch_webgpu::{passes, payload};

use crate::pte::Delegate;

/// The operator table of the README.
pub fn table() -> String {
    let row = |op: &Op| {
        let dtypes: Vec<String> = op.dtypes.iter().map(ToString::to_string).collect();
        let dtypes = if dtypes.is_empty() { "SymInt".into() } else { dtypes.join(", ") };
        format!("| `{}` | {dtypes} | {} |\n", op.name, op.notes)
    };
    let head = "| operator | types of the first operand, else of the result | notes |\n|---|---|---|\n".to_string();
    head + &TABLE.iter().flat_map(|family| family.iter()).map(row).collect::<String>()
}

/// What delegates are looked at with.
pub struct Look<'a> {
    pub caps: &'a Caps,
    pub options: &'a Options,
    pub keys: &'a HashSet<&'a str>,
    pub steps: bool,
}

impl Look<'_> {
    /// Operators, memory and plan of a delegate; as an error when it would not load.
    pub fn delegate(&self, delegate: &Delegate<'_>) -> Result<String, String> {
        let (options, graph) = self.read(delegate).map_err(|error| format!("  does not load: {error}\n"))?;
        let mut text = operators(&graph);
        text += &self.constants(&graph);
        let refused = |graph: Graph, first: Error| {
            let all = refusals(graph, self.caps, &options);
            if all.is_empty() { vec![first] } else { all }
        };
        let planned = passes::run(graph, self.caps, &options)
            .map_err(|error| vec![error])
            .and_then(|graph| Plan::new(graph.clone(), self.caps, &options).map_err(|e| refused(graph, e)));
        match planned {
            Ok(plan) => Ok(text + &self.plan(&plan)),
            Err(errors) => {
                errors.iter().for_each(|error| text += &format!("  does not load: {error}\n"));
                Err(text)
            }
        }
    }

    /// The graph, and the options with those of the program.
    fn read(&self, delegate: &Delegate<'_>) -> Result<(Options, Graph), Error> {
        let mut options = self.options.clone();
        delegate.specs.iter().try_for_each(|(key, value)| options.compile_spec(key, value))?;
        Ok((options, payload::parse(delegate.payload)?))
    }

    fn constants(&self, graph: &Graph) -> String {
        let elsewhere = |constant: &&Constant| match constant {
            Constant::Named { key } => !self.keys.contains(key.as_str()),
            _ => false,
        };
        let missing = graph.constants.iter().filter(elsewhere).count();
        let count = graph.constants.len();
        let rest = if missing > 0 { format!(", {missing} of them in another file") } else { String::new() };
        format!("  {count} constants{rest}\n")
    }

    fn plan(&self, plan: &Plan) -> String {
        let mut text = "  all of them run\n".to_string();
        text += &memory(&plan.memory());
        for probe in &plan.probes {
            let inputs: Vec<String> = probe.inputs.iter().map(ToString::to_string).collect();
            text += &format!("  inputs {}: {}\n", inputs.join(", "), plan.depth(probe));
        }
        plan.products().iter().for_each(|line| text += &format!("  products: {line}\n"));
        if self.steps {
            text += &plan.to_string();
        }
        text
    }
}

fn operators(graph: &Graph) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    graph.nodes.iter().for_each(|node| *counts.entry(&node.op).or_default() += 1);
    let mut text = format!("  {} operators\n", graph.nodes.len());
    counts.iter().for_each(|(op, count)| text += &format!("  {count:6} {op}\n"));
    text
}

fn memory(memory: &Memory) -> String {
    let mut text = format!("  memory {} bytes:", memory.total());
    for (kind, name) in [
        (MemoryKind::Weights, "weights"),
        (MemoryKind::Caches, "caches"),
        (MemoryKind::Activations, "activations"),
        (MemoryKind::Scratch, "scratch"),
        (MemoryKind::Staging, "staging"),
    ] {
        // Writing to a string never fails.
        let _ = write!(text, " {name} {}", memory.of(kind));
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pte::Program;

    const LLAMA: &[u8] = include_bytes!("../../../tests/fixtures/tiny_llama.pte");

    fn look(text: impl Fn(&mut Vec<u8>)) -> Result<String, String> {
        let mut file = LLAMA.to_vec();
        text(&mut file);
        let program = Program::parse(&file).unwrap();
        let look = Look { caps: &Caps::minimal(), options: &Options::default(), keys: &program.keys, steps: true };
        look.delegate(&program.delegates[0])
    }

    #[test]
    fn a_program_that_loads_has_operators_memory_and_steps() {
        let text = look(|_| {}).unwrap();
        for word in ["sdpa_with_kv_cache.default", "all of them run", " waits", "staging", "buffer 0"] {
            assert!(text.contains(word), "{word} is not in {text}");
        }
    }

    #[test]
    fn a_missing_operator_is_named_with_the_sentence_of_loading() {
        let name = b"et_vk.rms_norm.default";
        let text = look(|file| {
            let at = file.windows(name.len()).position(|word| word == name).unwrap();
            file[at] = b'z';
        });
        let text = text.unwrap_err();
        assert!(text.contains("does not load: zt_vk.rms_norm.default is not supported: no kernel"), "{text}");
    }
}
