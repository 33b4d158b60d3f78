//! Programs that are large, or pretend to be: the time and memory they cost is in proportion to their bytes.

use std::time::{Duration, Instant};

use executorch_webgpu::error::{Error, Result};
use executorch_webgpu::graph::DType::F32;
use executorch_webgpu::payload::parse;
use flatbuffers::FlatBufferBuilder;

use crate::common::Model;
use crate::common::writer::{Entry, wrap};
use crate::{heap, seeds, targets};

#[allow(
    dead_code,
    unused_imports,
    clippy::all,
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    mismatched_lifetime_syntaxes,
    deprecated,
    unsafe_op_in_unsafe_fn
)]
#[path = "../../schema/vulkan_payload_generated.rs"]
mod schema;
use schema::vkgraph as vk;

/// Runs `work` on the bytes. It may take ten seconds and `factor` times their size.
#[track_caller]
fn bounded(bytes: &[u8], factor: usize, work: impl Fn(&[u8]) -> Result<()>) -> Result<()> {
    let start = Instant::now();
    let (result, held) = heap::most(|| work(bytes));
    let (time, size) = (start.elapsed(), bytes.len());
    println!("{size} bytes: {held} bytes of memory, {time:?}");
    assert!(held <= factor * size + (64 << 10), "{held} bytes held for {size}");
    assert!(time < Duration::from_secs(10), "{time:?} for {size} bytes");
    result
}

#[test]
fn what_is_shared_a_thousand_times_is_refused() {
    let write = |calls: usize, values: usize| {
        let mut b = FlatBufferBuilder::new();
        let name = b.create_string(&"x".repeat(1 << 20));
        let args = b.create_vector(&[0i32]);
        let call =
            vk::OperatorCall::create(&mut b, &vk::OperatorCallArgs { node_id: 0, name: Some(name), args: Some(args) });
        let chain = b.create_vector(&vec![call; calls]);
        let items = b.create_vector(&vec![vk::Word64::new(7, 0); 1 << 17]);
        let list = vk::IntList::create(&mut b, &vk::IntListArgs { items: Some(items) }).as_union_value();
        let value = vk::VkValueArgs { value_type: vk::GraphTypes::IntList, value: Some(list) };
        let value = vk::VkValue::create(&mut b, &value);
        let values = b.create_vector(&vec![value; values]);
        let graph = vk::VkGraphArgs { chain: Some(chain), values: Some(values), ..Default::default() };
        let graph = vk::VkGraph::create(&mut b, &graph);
        b.finish(graph, Some("VK00"));
        wrap(b.finished_data(), &[])
    };
    for (calls, values) in [(10_000, 1), (1, 10_000)] {
        let error = bounded(&write(calls, values), 1, |bytes| parse(bytes).map(|_| ())).unwrap_err();
        assert!(matches!(error, Error::Payload(_)), "{error}");
    }
}

#[test]
fn one_long_list_named_by_every_call_is_refused() {
    let mut m = seeds::smallest();
    let list = m.list(&vec![0; 100_000]);
    for _ in 0..1000 {
        m.op("aten.relu.default", &[list, 1]);
    }
    let error = bounded(&m.payload.write(), 16, targets::payload).unwrap_err();
    assert!(error.to_string().contains("arguments, lists expanded"), "{error}");
}

/// `x -> op -> op -> ...`, each result an output too when `kept`.
fn chain(nodes: usize, kept: bool) -> Model {
    let mut m = Model::new();
    let mut x = m.input(F32, &[2, 3]);
    for _ in 0..nodes {
        let y = m.tensor(F32, &[2, 3]);
        m.op("aten.relu.default", &[x, y]);
        if kept {
            m.output(y);
        }
        x = y;
    }
    m.output(x);
    m
}

#[test]
fn long_programs_are_planned_in_proportion() {
    for kept in [false, true] {
        bounded(&chain(10_000, kept).payload.write(), 128, targets::payload).unwrap();
    }
}

#[test]
fn a_long_program_of_changing_length_is_planned_in_proportion() {
    let mut m = chain(2_000, false);
    m.payload.values.iter_mut().for_each(|value| {
        if let Entry::Tensor { dims, .. } = value {
            *dims = vec![1 << 20, 3];
        }
    });
    let (zero, length) = (m.int(0), m.symint());
    m.op("sym_size.int", &[0, zero, length]);
    m.output(length);
    bounded(&m.payload.write(), 1024, targets::payload).unwrap();
}

#[test]
fn a_wide_program_is_planned_in_proportion() {
    let mut m = Model::new();
    let inputs: Vec<usize> = (0..20_000).map(|_| m.input(F32, &[1])).collect();
    let (list, zero, y) = (m.list(&inputs), m.int(0), m.tensor(F32, &[20_000]));
    m.op("aten.cat.default", &[list, zero, y]);
    m.output(y);
    bounded(&m.payload.write(), 128, targets::payload).unwrap();
}

#[test]
fn ten_thousand_missing_operators_are_one_short_error() {
    let mut m = Model::new();
    let x = m.input(F32, &[2, 3]);
    for index in 0..10_000 {
        m.op(&format!("custom.operator_{index}.default"), &[x, x]);
    }
    let error = bounded(&m.payload.write(), 64, targets::payload).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("and 9936 more") && text.len() < 16 << 10, "{} bytes", text.len());
}

#[test]
fn many_caches_are_planned_in_proportion() {
    let mut m = seeds::decoder();
    let attention = m.payload.calls.iter().find(|(name, _)| name.starts_with("sdpa")).unwrap().1.clone();
    for _ in 0..500 {
        let mut args = attention.clone();
        for place in [3, 4] {
            let cache = m.payload.values[args[place]].clone();
            args[place] = m.add(cache);
        }
        args[11] = m.tensor(F32, &[1, 4, 2, 8]);
        m.op("sdpa_with_kv_cache.default", &args);
    }
    bounded(&m.payload.write(), 1024, targets::payload).unwrap();
}
