//! Nothing grows. These tests count what the whole process holds, so each has a process of its own.

use executorch_webgpu::error::Result;
use executorch_webgpu::exec::{DataSource, Program};
use executorch_webgpu::gpu::{self, Timed};
use executorch_webgpu::graph::DType;
use executorch_webgpu::options::Options;

use crate::child::alone;
use crate::common::Data;
use crate::common::model::{Model, Running};
use crate::{exported, host, seeds};

/// Memory of this process that is in RAM, in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn step(running: &mut Running, seq: u32, pos: i64) {
    let inputs = seeds::decoder_inputs(seq, pos);
    running.run(&inputs.iter().collect::<Vec<_>>()).unwrap();
}

#[test]
fn a_hundred_programs_leave_nothing_behind() {
    alone("memory::a_hundred_programs_leave_nothing_behind", &[], || {
        let round = || {
            let mut running = seeds::decoder().load().unwrap();
            step(&mut running, 4, 0);
            running.program.gpu().clone()
        };
        let device = round();
        (0..20).for_each(|_| drop(round()));
        let (held, pipelines, before) = (gpu::memory().total(), device.pipeline_count(), resident());
        (0..80).for_each(|_| drop(round()));
        assert_eq!(gpu::memory().total(), held);
        assert_eq!(held, 0);
        assert_eq!(device.pipeline_count(), pipelines);
        let grown = resident().saturating_sub(before);
        println!("{grown} KiB more after 80 programs");
        assert!(grown < 8 << 10, "{grown} KiB more after 80 programs");
    });
}

#[test]
fn refused_programs_leave_nothing_behind() {
    alone("memory::refused_programs_leave_nothing_behind", &[], || {
        let mut broken = seeds::decoder();
        let longest = broken.named.iter().max_by_key(|(_, bytes)| bytes.len()).map(|(key, _)| key.clone()).unwrap();
        broken.named.insert(longest, vec![0; 4]);
        let refused = || assert!(broken.load().is_err());
        (0..20).for_each(|_| refused());
        let before = resident();
        (0..80).for_each(|_| refused());
        assert_eq!(gpu::memory().total(), 0);
        let grown = resident().saturating_sub(before);
        assert!(grown < 8 << 10, "{grown} KiB more after 80 refusals");
    });
}

/// A prompt of four and single tokens up to position 10,000, twice: the second time gives the bytes of the first.
#[test]
fn ten_thousand_steps_make_no_device_objects_and_repeat() {
    alone("memory::ten_thousand_steps_make_no_device_objects_and_repeat", &[], || {
        let mut running = seeds::decoder_of(2, 8, 10_000, 12).load().unwrap();
        let device = running.program.gpu().clone();
        let (objects, held) = (device.objects_made(), gpu::memory());
        let mut at = |seq: u32, pos: i64| {
            let q = Data::random(DType::F32, &[1, seq, 2, 8], (-1.0, 1.0), pos as u64);
            running.run(&[&q, &Data::i64(&[1], &[pos])]).unwrap().remove(0).bytes()
        };
        let first: Vec<_> = std::iter::once((4, 0)).chain((4..1004).map(|pos| (1, pos))).collect();
        let results: Vec<_> = first.iter().map(|&(seq, pos)| at(seq, pos)).collect();
        let before = resident();
        (1004..10_000).for_each(|pos| drop(at(1, pos)));
        let grown = resident().saturating_sub(before);
        for (&(seq, pos), result) in first.iter().zip(&results) {
            assert_eq!(&at(seq, pos), result, "{seq} rows at {pos}");
        }
        for (seq, pos) in [(3, 1004), (2, 1007), (4, 0), (1, 4), (2, 5), (3, 7)] {
            at(seq, pos);
        }
        assert_eq!(device.objects_made(), objects);
        assert_eq!(gpu::memory(), held);
        assert!(grown < 4 << 10, "{grown} KiB more after 9,000 steps");
    });
}

#[test]
fn only_calls_that_are_timed_make_queries() {
    alone("memory::only_calls_that_are_timed_make_queries", &[], || {
        let mut running = seeds::decoder().load().unwrap();
        let device = running.program.gpu().clone();
        let inputs = seeds::decoder_inputs(1, 0);
        let inputs: Vec<_> = inputs.iter().collect();
        let mut made = |timed| {
            let before = device.objects_made();
            let steps = running.profile(&inputs, timed).unwrap();
            (device.objects_made() - before, steps.iter().filter(|step| step.time() > 0).count())
        };
        assert_eq!(made(Timed::Nothing), (0, 0));
        let (objects, steps) = made(Timed::Steps);
        assert!(objects > 0 && steps > 0 || !device.caps().timestamps);
        assert_eq!(made(Timed::Nothing), (0, 0));
    });
}

#[test]
fn lengths_that_no_probe_had_make_no_device_objects() {
    alone("memory::lengths_that_no_probe_had_make_no_device_objects", &[], || {
        let bound = 150;
        let mut running = seeds::decoder_with_bound(bound, (2, 8), 1024, 12).load().unwrap();
        let device = running.program.gpu().clone();
        let (objects, held) = (device.objects_made(), gpu::memory());
        for seq in (1..=bound).chain([bound, 1, 97, 6]) {
            step(&mut running, seq, i64::from(seq));
        }
        assert_eq!(device.objects_made(), objects);
        assert_eq!(gpu::memory(), held);
    });
}

/// Gives zeros for every constant.
struct Zeros;

impl DataSource for Zeros {
    fn with(&self, _: &str, read: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        read(&[0; 1 << 20])
    }
}

#[test]
fn an_exported_llama_makes_no_device_objects_at_any_length_or_position() {
    alone("memory::an_exported_llama_makes_no_device_objects_at_any_length_or_position", &[], || {
        let mut program = Program::load(exported::payload(), &Zeros, Options::default()).unwrap();
        let graph = &program.plan().graph;
        let bound = graph.tensor(graph.inputs[0]).unwrap().max[1];
        let device = program.gpu().clone();
        let (objects, held) = (device.objects_made(), gpu::memory());
        let mut call = |length: u32, pos: i64| {
            let tokens = Data::i64(&[1, length], &vec![1; length as usize]);
            host::call(&mut program, &[&tokens, &Data::i64(&[1], &[pos])], &[DType::F32]).unwrap();
        };
        (1..=bound).step_by(11).for_each(|length| call(length, 0));
        (0..40).for_each(|pos| call(1, pos));
        [(bound, 0), (1, 3), (2, 4), (bound, 1)].into_iter().for_each(|(length, pos)| call(length, pos));
        assert_eq!(device.objects_made(), objects);
        assert_eq!(gpu::memory(), held);
    });
}

/// A sum with a constant called `key` whose numbers are all `value`, from a source of this number.
fn named(source: u64, key: &str, value: f32) -> Model {
    let mut m = Model::new();
    m.source = source;
    let x = m.input(DType::F32, &[1, 64]);
    let constant = m.constant_bytes(key, DType::F32, &[1, 64], value.to_le_bytes().repeat(64));
    let (one, out) = (m.int(1), m.tensor(DType::F32, &[1, 64]));
    m.op("aten.add.Tensor", &[x, constant, one, out]);
    m.output(out);
    m
}

#[test]
fn programs_of_one_source_share_constants() {
    alone("memory::programs_of_one_source_share_constants", &[], || {
        let held = || gpu::memory().of(gpu::MemoryKind::Weights) / 256;
        let sum =
            |running: &mut Running| running.run(&[&Data::f32(&[1, 64], vec![1.0; 64])]).unwrap().remove(0).values[0];
        let mut first = named(1, "a", 1.0).load().unwrap();
        let mut second = named(1, "a", 1.0).load().unwrap();
        assert_eq!(held(), 1);
        let mut other_key = named(1, "b", 2.0).load().unwrap();
        let mut other_source = named(2, "a", 3.0).load().unwrap();
        let mut without = [named(0, "a", 4.0).load().unwrap(), named(0, "a", 5.0).load().unwrap()];
        assert_eq!(held(), 5);
        assert_eq!([sum(&mut first), sum(&mut other_key), sum(&mut other_source)], [2.0, 3.0, 4.0]);
        assert_eq!(without.each_mut().map(sum), [5.0, 6.0]);
        drop((first, other_key, other_source, without));
        assert_eq!((held(), sum(&mut second)), (1, 2.0), "the second has it still");
        drop(second);
        assert_eq!(held(), 0);
        let mut again = named(1, "a", 6.0).load().unwrap();
        assert_eq!((held(), sum(&mut again)), (1, 7.0), "a number may be another source's once no program is left");
    });
}
