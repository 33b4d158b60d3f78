//! Attention on ramps, after rows that the cache already holds: the shapes of language models and small odd ones, caches in
//! f32 and f16, inside the program or carried by the host.

use executorch_webgpu::exec::{HostTensor, HostValue};
use executorch_webgpu::gpu::{MemoryKind, Profile, Timed};
use executorch_webgpu::graph::DType;
use executorch_webgpu::options::Options;

use crate::attention::{F16_TOLERANCE, F32_TOLERANCE, Reference, Shape, halves, shape};
use crate::common::model::Running;
use crate::common::writer::Id;
use crate::common::{Data, Model, assert_close, q4, tolerance_of_halves};
use crate::linear::product;
use crate::q4_layer::PROFILES;

const UPDATE_TOLERANCE: (f64, f64) = (1e-6, 0.0);

/// `((i + phase) mod period - shift) / denominator` at flat index `i`.
fn ramp(dims: &[u32], (period, shift): (u32, f64), denominator: f64, phase: u32) -> Data {
    let count = dims.iter().product::<u32>();
    Data::f32(dims, (0..count).map(|i| (f64::from((i + phase) % period) - shift) / denominator).collect())
}

/// Calls of (rows, position) on one program whose cache holds ramps up to the first position and NaN from there on.
struct Case {
    shape: Shape,
    denominator: f64,
    scale: Option<f64>,
    calls: Vec<(u32, usize)>,
}

fn case(shape: Shape, calls: &[(u32, usize)]) -> Case {
    Case { shape, denominator: 16.0, scale: None, calls: calls.to_vec() }
}

/// Calls of so many rows each, one after another.
fn growing(shape: Shape, lengths: &[u32]) -> Case {
    let mut pos = 0;
    let calls = lengths.iter().map(|&length| {
        let call = (length, pos);
        pos += length as usize;
        call
    });
    case(shape, &calls.collect::<Vec<_>>())
}

/// Rows of a call that are compared: all, or of many those at edges of tiles.
fn compared(rows: u32) -> Vec<usize> {
    let rows = rows as usize;
    let is_edge =
        |row: &usize| rows <= 64 || row % 64 <= 1 && row.is_power_of_two() || row % 16 == 15 && row + 16 > rows;
    (0..rows).filter(is_edge).collect()
}

impl Case {
    /// New rows of q, k and v for the call number `index`.
    fn inputs(&self, seq: u32, index: usize) -> [Data; 3] {
        let (s, phase) = (self.shape, 31 * index as u32);
        let make = |heads, form| ramp(&[1, seq, heads, s.d], form, self.denominator, phase);
        [make(s.heads_q, (17, 8.0)), make(s.heads_kv, (13, 6.0)), make(s.heads_kv, (11, 5.0))]
    }

    /// The caches before the first call.
    fn prior(&self) -> [Data; 2] {
        let s = self.shape;
        let held = self.calls[0].1 * (s.heads_kv * s.d) as usize;
        [(7, 3.0), (5, 2.0)].map(|form| {
            let mut cache = ramp(&[1, s.capacity, s.heads_kv, s.d], form, self.denominator, 0);
            cache.values[held..].fill(f64::NAN);
            cache
        })
    }

    fn longest(&self) -> u32 {
        self.calls.iter().map(|call| call.0).max().unwrap()
    }

    /// `q, k, v -> attention`, with the caches and the position that `rest` adds after the three inputs.
    fn attention(&self, rest: impl FnOnce(&mut Model) -> [Id; 3]) -> (Model, [Id; 3]) {
        let (s, seq, mut m) = (self.shape, self.longest(), Model::new());
        let [q, k, v] = [s.heads_q, s.heads_kv, s.heads_kv].map(|heads| m.input(DType::F32, &[1, seq, heads, s.d]));
        let [k_cache, v_cache, pos] = rest(&mut m);
        let out = m.tensor(DType::F32, &[1, seq, s.heads_q, s.d]);
        let (one, none, causal) = (m.int(1), m.null(), m.boolean(true));
        let scale = self.scale.map_or(none, |scale| m.double(scale));
        m.op("sdpa_with_kv_cache.default", &[q, k, v, k_cache, v_cache, pos, one, none, none, causal, scale, out]);
        m.output(out);
        (m, [k_cache, v_cache, pos])
    }

    /// The caches are inside, the position is a scalar; `copies` of the caches are results too.
    fn inside(&self, copies: usize) -> Model {
        let prior = self.prior();
        let (mut m, caches) = self.attention(|m| {
            let [k, v] = prior.each_ref().map(|cache| m.constant(cache));
            let pos = m.symint();
            m.payload.inputs.push(pos);
            [k, v, pos]
        });
        for &cache in &caches[..copies] {
            let (none, copy) = (m.null(), m.tensor(DType::F32, &prior[0].dims));
            m.op("aten.clone.default", &[cache, none, copy]);
            m.output(copy);
        }
        m
    }

    /// The host carries the caches, which come in and go out, and gives the position as a tensor.
    fn carried(&self) -> Model {
        let dims = self.prior()[0].dims.clone();
        let (mut m, [k, v, _]) = self.attention(|m| {
            let [k, v] = [(); 2].map(|()| m.input(DType::F32, &dims));
            let at = m.input(DType::I64, &[1]);
            let (zero, pos) = (m.int(0), m.symint());
            m.op("et_vk.select_as_symint.default", &[at, zero, zero, pos]);
            [k, v, pos]
        });
        m.output(k);
        m.output(v);
        m
    }

    fn reference(&self, kept: DType) -> Reference {
        let mut reference = Reference::new(self.shape, self.scale).kept_in(kept);
        let [k, v] = self.prior();
        reference.append(&k, &v, 0);
        reference
    }

    #[track_caller]
    fn check_rows(&self, got: &Data, reference: &Reference, q: &Data, pos: usize, tolerance: (f64, f64)) {
        let width = (self.shape.heads_q * self.shape.d) as usize;
        assert_eq!(got.dims, q.dims);
        for row in compared(q.dims[1]) {
            let found = Data::f32(&[width as u32], got.values[row * width..][..width].to_vec());
            assert_close(&found, &[width as u32], &reference.attend(q, pos, row), tolerance);
        }
    }

    /// All calls with the caches inside, kept in f32 and in f16.
    #[track_caller]
    fn check(&self, profile: Profile) {
        for kept in [DType::F32, DType::F16] {
            let options = Options { enable_f16_kv_cache: kept == DType::F16, ..Options::default() };
            let mut running = self.inside(0).load_with(options, profile).unwrap();
            let (held, s) = (running.program.memory().of(MemoryKind::Caches), self.shape);
            let followed = if running.program.gpu().caps().f16 { kept } else { DType::F32 };
            let bytes = u64::from(s.capacity * s.heads_kv * s.d) * followed.size() as u64;
            assert_eq!(held, 2 * bytes.next_multiple_of(16));
            let mut reference = self.reference(followed);
            for (index, &(seq, pos)) in self.calls.iter().enumerate() {
                running.program.fill_activations(0xFF).unwrap();
                let [q, k, v] = self.inputs(seq, index);
                reference.append(&k, &v, pos);
                let got = call(&mut running, [&q, &k, &v], pos as i64);
                let exact = followed == DType::F32 && !halves(&running);
                self.check_rows(&got[0], &reference, &q, pos, if exact { F32_TOLERANCE } else { F16_TOLERANCE });
            }
        }
    }

    /// All calls with caches that the host sees; its rows are those that were given.
    #[track_caller]
    fn check_caches(&self, profile: Profile) {
        let mut inside = self.inside(2).load_with(Options::default(), profile).unwrap();
        let mut carried = self.carried().load_with(Options::default(), profile).unwrap();
        let (mut reference, [mut k_cache, mut v_cache]) = (self.reference(DType::F32), self.prior());
        for (index, &(seq, pos)) in self.calls.iter().enumerate() {
            let [q, k, v] = self.inputs(seq, index);
            reference.append(&k, &v, pos);
            let own = call(&mut inside, [&q, &k, &v], pos as i64);
            let position = Data::i64(&[1], &[pos as i64]);
            let given = carried.run(&[&q, &k, &v, &k_cache, &v_cache, &position]).unwrap();
            for got in [&own, &given] {
                let tolerance = if halves(&inside) { F16_TOLERANCE } else { F32_TOLERANCE };
                self.check_rows(&got[0], &reference, &q, pos, tolerance);
                assert_close(&got[1], &k_cache.dims, &reference.keys, UPDATE_TOLERANCE);
                assert_close(&got[2], &v_cache.dims, &reference.values, UPDATE_TOLERANCE);
            }
            [k_cache, v_cache] = [given[1].clone(), given[2].clone()];
        }
    }
}

fn arguments<'a>(inputs: [&Data; 3], bytes: &'a [Vec<u8>; 3], pos: i64) -> Vec<HostValue<'a>> {
    let tensor = |(x, bytes): (&Data, &'a Vec<u8>)| HostTensor { dtype: x.dtype, dims: x.shape(), bytes };
    let tensors = inputs.into_iter().zip(bytes).map(|input| HostValue::Tensor(tensor(input)));
    tensors.chain([HostValue::Int(pos)]).collect()
}

fn call(running: &mut Running, inputs: [&Data; 3], pos: i64) -> Vec<Data> {
    running.run_values(&arguments(inputs, &inputs.map(|x| x.bytes()), pos)).unwrap()
}

#[test]
fn small_heads_and_odd_contexts() {
    for case in [
        case(shape(6, 2, 8, 4, 16), &[(4, 0)]),
        case(shape(6, 2, 8, 2, 16), &[(2, 2)]),
        case(shape(4, 4, 16, 3, 8), &[(3, 0)]),
        case(shape(8, 4, 4, 5, 16), &[(5, 0)]),
        Case { denominator: 0.5, ..case(shape(4, 4, 32, 4, 16), &[(4, 0)]) },
    ] {
        PROFILES.into_iter().for_each(|profile| case.check(profile));
        PROFILES.into_iter().for_each(|profile| case.check_caches(profile));
    }
}

#[test]
fn positions_that_grow_on_one_program() {
    for (case, profiles) in [
        (growing(shape(8, 4, 4, 5, 16), &[3, 1, 1, 5, 1, 1, 2]), &PROFILES[..]),
        (growing(shape(6, 2, 8, 5, 16), &[3, 1, 1, 5, 1, 1]), &PROFILES),
        (growing(shape(24, 8, 128, 111, 256), &[111, 1, 1, 1, 57, 1, 1]), &PROFILES[..1]),
        (growing(shape(16, 8, 128, 17, 64), &[17, 1]), &PROFILES),
        (growing(shape(8, 4, 4, 1, 16), &[1, 1, 1, 1, 1, 1]), &PROFILES),
    ] {
        profiles.iter().for_each(|&profile| case.check(profile));
        profiles.iter().for_each(|&profile| case.check_caches(profile));
    }
}

#[test]
fn lengths_that_shrink_and_grow_on_one_program() {
    let at = |pos: usize, lengths: &[u32]| lengths.iter().map(|&length| (length, pos)).collect::<Vec<_>>();
    for case in [
        case(shape(8, 2, 16, 64, 64), &at(0, &[64, 16, 1, 64])),
        case(shape(8, 2, 132, 64, 64), &at(0, &[64, 16, 1, 64])),
        case(shape(16, 8, 128, 128, 128), &at(0, &[128, 17, 1, 128])),
        Case { scale: Some(0.1254), ..case(shape(32, 8, 64, 65, 80), &at(3, &[65, 16, 1])) },
    ] {
        case.check(Profile::Full);
    }
}

#[test]
fn prompts_of_language_models() {
    for case in [
        case(shape(24, 8, 128, 128, 256), &[(128, 0)]),
        case(shape(16, 8, 128, 128, 256), &[(128, 0)]),
        Case { denominator: 10.0, ..case(shape(16, 8, 128, 17, 64), &[(17, 31)]) },
        case(shape(32, 8, 64, 128, 128), &[(128, 0)]),
        case(shape(32, 8, 64, 512, 525), &[(512, 13), (508, 13), (128, 13), (127, 13), (16, 13), (1, 13), (512, 13)]),
    ] {
        case.check(Profile::Full);
    }
}

#[test]
fn a_long_prompt() {
    case(shape(32, 8, 64, 2048, 2048), &[(2048, 0)]).check(Profile::Full);
}

#[test]
fn single_tokens_on_long_caches() {
    for (capacity, pos) in [(512, 127), (4096, 4095), (8192, 8191)] {
        case(shape(32, 8, 64, 1, capacity), &[(1, pos)]).check(Profile::Full);
    }
}

#[test]
fn equal_logits_and_one_key() {
    // A scale of zero weighs all keys the same; the first row of a prompt sees one key alone.
    let case = Case { scale: Some(0.0), ..case(shape(4, 2, 8, 3, 600), &[(3, 590), (3, 0), (1, 0)]) };
    PROFILES.into_iter().for_each(|profile| case.check(profile));
}

#[test]
fn one_head_of_four_in_a_cache_of_one_row() {
    let case = case(shape(1, 1, 4, 1, 1), &[(1, 0), (1, 0)]);
    PROFILES.into_iter().for_each(|profile| case.check(profile));
    PROFILES.into_iter().for_each(|profile| case.check_caches(profile));
}

#[test]
fn caches_that_others_use_are_not_halved() {
    let case = case(shape(4, 2, 8, 4, 16), &[(4, 0)]);
    let options = Options { enable_f16_kv_cache: true, ..Options::default() };
    for (model, user) in [(case.inside(1), "aten.clone.default"), (case.carried(), "the caller")] {
        match model.load_with(options.clone(), Profile::Full) {
            Err(error) => {
                let text = error.to_string();
                assert!(
                    text.contains("enable_f16_kv_cache") && text.contains(&format!("also used by {user}")),
                    "{text}"
                );
            }
            Ok(running) => assert!(!running.program.gpu().caps().f16, "{user}"),
        }
        model.load_with(options.clone(), Profile::Minimal).unwrap();
    }
}

/// A layer of attention over 65,536 positions and a 4-bit product: right up to the last, in memory and time that follow the
/// context.
#[test]
fn a_context_of_65536() {
    let (capacity, n) = (1 << 16, 24);
    let s = shape(4, 2, 64, 64, capacity);
    let first = capacity as usize - 200;
    let layer = case(s, &[(64, first), (1, first + 64), (17, first + 65), (1, capacity as usize - 1)]);
    let w = q4::random(n, s.d, 32, 1);
    let attention = layer.inside(0);
    let attended = attention.payload.outputs[0];
    let mut m = attention.without_outputs();
    let (packed, scales, group) = (m.constant(&w.packed), m.constant(&w.scales), m.int(i64::from(w.group)));
    let (none, out) = (m.null(), m.tensor(DType::F32, &[1, s.seq, s.heads_q, n]));
    m.op("et_vk.linear_q4gsw.default", &[attended, packed, scales, group, none, out]);
    m.output(out);
    let mut running = m.load().unwrap();
    let memory = running.program.memory();
    assert_eq!(memory.of(MemoryKind::Caches), 2 * u64::from(capacity * s.heads_kv * s.d) * 4);
    let rest = memory.of(MemoryKind::Activations) + memory.of(MemoryKind::Scratch);
    // Cooperative matrices multiply halves of the cache.
    let halves = if halves(&running) { memory.of(MemoryKind::Caches) / 2 } else { 0 };
    assert!(rest < halves + (4 << 20), "{rest} bytes besides the caches, S x context is {}", s.seq * capacity * 4);
    let mut reference = layer.reference(DType::F32);
    for (index, &(seq, pos)) in layer.calls.iter().enumerate() {
        running.program.fill_activations(0xFF).unwrap();
        let [q, k, v] = layer.inputs(seq, index);
        reference.append(&k, &v, pos);
        let got = call(&mut running, [&q, &k, &v], pos as i64).remove(0);
        let width = (s.heads_q * n) as usize;
        for row in [0, seq as usize / 2, seq as usize - 1] {
            let want = product(&reference.attend(&q, pos, row), &w.dense, (s.heads_q, n, s.d));
            let found = Data::f32(&[s.heads_q, n], got.values[row * width..][..width].to_vec());
            assert_close(&found, &[s.heads_q, n], &want, tolerance_of_halves(s.d as usize, 1.0));
        }
    }
    let [near, far] = [300, capacity - 1].map(|pos| {
        let [q, k, v] = layer.inputs(1, 0);
        let (bytes, at) = ([&q, &k, &v].map(|x| x.bytes()), i64::from(pos));
        let mut timed = |timed| running.profile_values(&arguments([&q, &k, &v], &bytes, at), timed).unwrap();
        let names: Vec<String> = timed(Timed::Steps).into_iter().map(|step| step.name).collect();
        let fastest = (0..3).map(|_| timed(Timed::From(0))[0].time()).min();
        (names, fastest.unwrap())
    });
    assert_eq!(near.0, far.0, "steps do not depend on the position");
    println!("a token takes {} ns after 300 others and {} ns after {capacity}", near.1, far.1);
    assert!(3 * near.1 < 2 * far.1, "{} ns after 300 positions, {} ns after {capacity}", near.1, far.1);
}
