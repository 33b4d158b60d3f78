//! What the fuzz targets do for ever, done for a while from fixed seeds.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use executorch_webgpu::error::Result;
use executorch_webgpu::graph::{DType, Dims, Graph, Value, ValueId};
use executorch_webgpu::payload;

use crate::common::data::Rng;
use crate::{corpus, targets};

/// Runs one case per seed; collects panics and slow cases and fails with the first few of them. With `CASE` in the
/// environment it runs only that one.
fn survive(cases: u64, case: impl Fn(&mut Rng) -> Result<()>) {
    let only = std::env::var("CASE").ok().and_then(|text| text.parse::<u64>().ok());
    let (mut accepted, mut bad) = (0, Vec::new());
    for seed in only.map_or(0..cases, |seed| seed..seed + 1) {
        let start = Instant::now();
        match catch_unwind(AssertUnwindSafe(|| case(&mut Rng::new(seed)))) {
            Ok(result) => accepted += usize::from(result.is_ok()),
            Err(_) => bad.push(format!("case {seed} panics")),
        }
        if start.elapsed() > Duration::from_secs(5) {
            bad.push(format!("case {seed} takes {:?}", start.elapsed()));
        }
    }
    println!("{accepted} of {cases} cases are sound");
    assert!(bad.is_empty(), "{} of {cases} cases: {:?}", bad.len(), &bad[..bad.len().min(8)]);
    assert!(accepted > 0 || only.is_some(), "no case gets through");
}

#[test]
fn graphs_from_random_choices() {
    survive(100_000, |rng| {
        let recipe: Vec<u8> = (0..200).map(|_| rng.below(256) as u8).collect();
        targets::graph(&recipe)
    });
}

#[test]
fn payloads_with_some_bytes_changed() {
    let all = corpus::all();
    survive(10_000, |rng| {
        let mut bytes = all[rng.below(all.len() as u64) as usize].clone();
        for _ in 0..1 + rng.below(4) {
            let place = rng.below(bytes.len() as u64) as usize;
            match rng.below(4) {
                0 => bytes[place] = rng.below(256) as u8,
                1 => bytes[place] ^= 1 << rng.below(8),
                2 => bytes[place] = bytes[place].wrapping_add(1),
                _ => bytes[place] = [0, 0xFF, 0x7F, 0x80][rng.below(4) as usize],
            }
        }
        targets::payload(&bytes)
    });
}

#[test]
fn patches_of_a_real_payload() {
    survive(2_000, |rng| {
        let changes: Vec<u8> = (0..3 + rng.below(9)).map(|_| rng.below(256) as u8).collect();
        targets::patched(&changes)
    });
}

#[test]
fn programs_with_some_parts_changed() {
    let all: Vec<Graph> = corpus::all().iter().map(|bytes| payload::parse(bytes).unwrap()).collect();
    survive(20_000, |rng| {
        let graph = changed(&all, rng);
        graph.check()?;
        targets::plan(&graph)
    });
}

/// One of the graphs after one to three changes.
pub fn changed(all: &[Graph], rng: &mut Rng) -> Graph {
    let mut graph = all[rng.below(all.len() as u64) as usize].clone();
    for _ in 0..1 + rng.below(3) {
        if !graph.nodes.is_empty() {
            change(&mut graph, rng);
        }
    }
    graph
}

fn change(graph: &mut Graph, rng: &mut Rng) {
    let id = ValueId(rng.below(graph.values.len() as u64) as u32);
    let index = rng.below(graph.nodes.len() as u64) as usize;
    let args = &mut graph.nodes[index].args;
    let place = rng.below(args.len() as u64) as usize;
    match rng.below(9) {
        0 if args.len() > 1 => drop(args.remove(place)),
        1 => args[place] = id,
        2 => args.insert(place, id),
        3 => args.swap(place, 0),
        0 | 4 => graph.nodes[index].op = graph.nodes[rng.below(graph.nodes.len() as u64) as usize].op.clone(),
        5 => drop(graph.nodes.remove(index)),
        6 => graph.outputs.push(id),
        7 => graph.values[id.index()] = scalar(rng),
        _ => reshape(&mut graph.values[id.index()], rng),
    }
}

fn scalar(rng: &mut Rng) -> Value {
    let number = [0, 1, -1, 7, 1 << 31, i64::MIN, i64::MAX][rng.below(7) as usize];
    match rng.below(8) {
        0 => Value::Null,
        1 => Value::Double(number as f64 + 0.5),
        2 => Value::Double(f64::NAN),
        3 => Value::Str("none".into()),
        4 => Value::Ints(vec![number; rng.below(5) as usize]),
        5 => Value::List(Vec::new()),
        6 => Value::SymInt,
        _ => Value::Int(number),
    }
}

fn reshape(value: &mut Value, rng: &mut Rng) {
    let Value::Tensor(tensor) = value else { return };
    let mut sizes = tensor.max.to_vec();
    let size = [0, 1, 2, 3, 5, 65536, i32::MAX as u32][rng.below(7) as usize];
    match rng.below(4) {
        0 => sizes.push(size),
        1 => drop(sizes.pop()),
        2 => tensor.dtype = [DType::F16, DType::I64, DType::Bool, DType::U8, DType::F64][rng.below(5) as usize],
        _ => sizes.iter_mut().rev().take(1 + rng.below(4) as usize).for_each(|n| *n = size),
    }
    tensor.max = Dims::new(&sizes).unwrap_or(tensor.max);
    tensor.stored = tensor.dtype;
}
