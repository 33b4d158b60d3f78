//! Changed programs that are accepted, on the device: they load and run, or are refused; the graphics API never complains.

use std::panic::{AssertUnwindSafe, catch_unwind};

use executorch_webgpu::error::{Error, Result};
use executorch_webgpu::exec::{DataSource, HostTensor, HostValue, Outputs, Program};
use executorch_webgpu::gpu::{Caps, MemoryKind, Profile};
use executorch_webgpu::graph::{Constant, DType, Dims, Graph, Value, ValueId};
use executorch_webgpu::options::Options;
use executorch_webgpu::passes;
use executorch_webgpu::payload::parse;
use executorch_webgpu::plan::Plan;

use crate::common::data::Rng;
use crate::common::writer::{Bytes, Entry, Payload};
use crate::recipe::Recipe;
use crate::seeds;
use crate::{corpus, mutations};

/// Cases that get through the plan, for each kind of change. The device sees only these.
const CASES: usize = 800;

struct Zeros;

impl DataSource for Zeros {
    fn with(&self, _: &str, read: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        read(&[0; 1 << 20])
    }
}

/// The payload that parses to this graph; bools become integers.
fn payload(graph: &Graph) -> Payload {
    let ids = |items: &[ValueId]| items.iter().map(|id| id.index()).collect::<Vec<_>>();
    let entry = |value: &Value| match value {
        Value::Null => Entry::Null,
        Value::Int(n) => Entry::Int(*n),
        Value::Double(x) => Entry::Double(*x),
        Value::Bool(b) => Entry::Bool(*b),
        Value::Str(text) => Entry::Text(text.clone()),
        Value::Ints(items) => Entry::Ints(items.clone()),
        Value::Doubles(items) => Entry::Doubles(items.clone()),
        Value::Bools(items) => Entry::Ints(items.iter().map(|&b| i64::from(b)).collect()),
        Value::List(items) => Entry::List(ids(items)),
        Value::SymInt => Entry::SymInt,
        Value::Tensor(t) => {
            Entry::Tensor { dtype: t.dtype, dims: t.max.to_vec(), constant: t.constant.map_or(-1, |c| c as i32) }
        }
    };
    let constant = |constant: &Constant| match constant {
        Constant::Named { key } => Bytes::Named(key.clone()),
        _ => Bytes::Named("inline".into()),
    };
    Payload {
        values: graph.values.iter().map(entry).collect(),
        calls: graph.nodes.iter().map(|node| (node.op.clone(), ids(&node.args))).collect(),
        inputs: ids(&graph.inputs),
        outputs: ids(&graph.outputs),
        constants: graph.constants.iter().map(constant).collect(),
        data: Vec::new(),
    }
}

/// True when the plan is worth a device: accepted, and small enough to run at once.
fn is_small(graph: &Graph) -> bool {
    let (caps, options) = (Caps::minimal(), Options::default());
    let plan = passes::run(graph.clone(), &caps, &options).and_then(|graph| Plan::new(graph, &caps, &options));
    let steps = |plan: &Plan| plan.probes[0].lowered.iter().flat_map(|l| &l.steps).map(|s| s.grid[0] * s.grid[1]).max();
    plan.is_ok_and(|plan| {
        let bytes: u64 = plan.storages.iter().map(|storage| storage.bytes).sum();
        bytes < 1 << 20 && steps(&plan).unwrap_or(0) < 256 && !plan.graph.nodes.is_empty()
    })
}

/// An input at a live shape: element type, shape, zeros; a SymInt is a scalar of 1.
type Input = (DType, Dims, Vec<u8>);

fn input(graph: &Graph, id: ValueId, size: u32) -> Input {
    let Some(tensor) = graph.tensor(id) else { return (DType::I32, Dims::default(), 1i32.to_le_bytes().to_vec()) };
    let live: Vec<u32> = tensor.max.iter().map(|&max| max.min(size)).collect();
    let dims = Dims::new(&live).unwrap();
    (tensor.dtype, dims, vec![0; dims.numel() as usize * tensor.dtype.size()])
}

fn value((dtype, dims, bytes): &Input) -> HostValue<'_> {
    HostValue::Tensor(HostTensor { dtype: *dtype, dims: *dims, bytes })
}

/// Takes every result in its own type.
struct Sink<'a>(&'a Graph, Vec<u8>);

impl Outputs for Sink<'_> {
    fn dtype(&self, index: usize) -> Option<DType> {
        self.0.tensor(*self.0.outputs.get(index)?).map(|tensor| tensor.dtype)
    }

    fn tensor(&mut self, index: usize, dims: &Dims) -> Result<&mut [u8]> {
        self.1.resize(dims.numel() as usize * self.dtype(index).unwrap().size(), 0);
        Ok(&mut self.1)
    }

    fn scalar(&mut self, _: usize, _: i64) -> Result<()> {
        Ok(())
    }
}

fn run(graph: &Graph, profile: Profile) -> Result<()> {
    let mut program = Program::load_with(&payload(graph).write(), &Zeros, Options::default(), profile)?;
    program.fill_activations(0xFF)?;
    for size in [u32::MAX, 2, 1, 0] {
        let inputs: Vec<Input> = graph.inputs.iter().map(|&id| input(graph, id, size)).collect();
        let values: Vec<HostValue<'_>> = inputs.iter().map(value).collect();
        match program.execute(&values, &mut Sink(graph, Vec::new())) {
            Ok(()) | Err(Error::Shape { .. } | Error::Unsupported { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Runs the first [`CASES`] small ones on the device.
fn survive(make: impl Fn(&mut Rng) -> Graph) {
    let small = (0..).map(|seed| (seed, make(&mut Rng::new(seed)))).filter(|(_, graph)| is_small(graph));
    let mut bad = Vec::new();
    for (seed, graph) in small.take(CASES) {
        let profile = if seed % 2 == 0 { Profile::Full } else { Profile::Minimal };
        match catch_unwind(AssertUnwindSafe(|| run(&graph, profile))) {
            Ok(Err(error @ (Error::Device(_) | Error::Internal(_) | Error::OutOfMemory(_)))) => {
                bad.push(format!("case {seed}: {error}\n{graph}"));
            }
            Ok(_) => {}
            Err(_) => bad.push(format!("case {seed} panics\n{graph}")),
        }
    }
    assert!(bad.is_empty(), "{} of {CASES} cases\n{}", bad.len(), bad[..bad.len().min(4)].join("\n"));
}

#[test]
fn graphs_from_random_choices() {
    survive(|rng| {
        let recipe: Vec<u8> = (0..200).map(|_| rng.below(256) as u8).collect();
        let graph = Recipe::new(&recipe).graph();
        if graph.check().is_ok() { graph } else { Graph::default() }
    });
}

#[test]
fn programs_with_some_parts_changed() {
    let all: Vec<Graph> = corpus::all().iter().map(|bytes| parse(bytes).unwrap()).collect();
    survive(|rng| {
        let graph = mutations::changed(&all, rng);
        if graph.check().is_ok() { graph } else { Graph::default() }
    });
}

/// What a plan foretells of memory is what a device holds.
#[test]
fn a_plan_knows_the_memory_of_its_program() {
    for profile in [Profile::Full, Profile::Minimal] {
        let running = seeds::decoder().load_with(Options::default(), profile).unwrap();
        let (held, planned) = (running.program.memory(), running.program.plan().memory());
        use MemoryKind::{Activations, Caches, Scratch, Staging, Weights};
        for kind in [Weights, Caches, Activations, Scratch, Staging] {
            assert_eq!(planned.of(kind), held.of(kind), "{kind:?}");
        }
        assert!(planned.of(Weights) > 0 && planned.of(Caches) > 0 && planned.of(Activations) > 0);
    }
}
