use executorch_webgpu::gpu::Profile;
use executorch_webgpu::graph::DType;
use executorch_webgpu::ops::attention::Cut;
use executorch_webgpu::options::Options;

use crate::cases::FLOATS;
use crate::common::model::Running;
use crate::common::writer::Entry;
use crate::common::{Data, Model, assert_close};

/// Tests with a case for each type of each operator.
pub const TESTS: &[fn()] = &[both_floats_are_taken, update_cache_writes_its_rows_and_no_others];

pub const F32_TOLERANCE: (f64, f64) = (1e-4, 1e-3);
pub const F16_TOLERANCE: (f64, f64) = (2e-3, 1e-2);

#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub heads_q: u32,
    pub heads_kv: u32,
    pub d: u32,
    pub seq: u32,
    pub capacity: u32,
}

/// A program with its caches inside: q, k, v and the position (int64 [1]) in, attention out. Cache rows hold NaN at first.
fn model_of(dtype: DType, s: Shape, scale: Option<f64>) -> Model {
    let mut m = Model::new();
    let q = m.input(dtype, &[1, s.seq, s.heads_q, s.d]);
    let k = m.input(dtype, &[1, s.seq, s.heads_kv, s.d]);
    let v = m.input(dtype, &[1, s.seq, s.heads_kv, s.d]);
    let pos_tensor = m.input(DType::I64, &[1]);
    let (zero, pos) = (m.int(0), m.symint());
    m.op("et_vk.select_as_symint.default", &[pos_tensor, zero, zero, pos]);
    let cache = [1, s.capacity, s.heads_kv, s.d];
    let unused = Data::new(dtype, &cache, vec![f64::NAN; cache.iter().product::<u32>() as usize]);
    let (k_cache, v_cache) = (m.constant(&unused), m.constant(&unused));
    let out = m.tensor(dtype, &[1, s.seq, s.heads_q, s.d]);
    let (one, none, causal) = (m.int(1), m.null(), m.boolean(true));
    let scale = scale.map(|x| m.double(x)).unwrap_or(none);
    m.op("sdpa_with_kv_cache.default", &[q, k, v, k_cache, v_cache, pos, one, none, none, causal, scale, out]);
    m.output(out);
    m
}

fn model(s: Shape, scale: Option<f64>) -> Model {
    model_of(DType::F32, s, scale)
}

/// The cache and the formula on the host.
pub struct Reference {
    shape: Shape,
    scale: f64,
    kept: DType,
    pub keys: Vec<f64>,
    pub values: Vec<f64>,
}

impl Reference {
    pub fn new(shape: Shape, scale: Option<f64>) -> Reference {
        let size = (shape.capacity * shape.heads_kv * shape.d) as usize;
        let scale = scale.unwrap_or(1.0 / f64::from(shape.d).sqrt());
        Reference { shape, scale, kept: DType::F32, keys: vec![f64::NAN; size], values: vec![f64::NAN; size] }
    }

    /// The same with rows that are rounded to a type.
    pub fn kept_in(self, kept: DType) -> Reference {
        Reference { kept, ..self }
    }

    /// Writes rows to the cache from row `pos` on.
    pub fn append(&mut self, k: &Data, v: &Data, pos: usize) {
        let row = (self.shape.heads_kv * self.shape.d) as usize;
        for (cache, new) in [(&mut self.keys, k), (&mut self.values, v)] {
            let held = Data::new(self.kept, &new.dims, new.values.clone());
            cache[pos * row..][..held.values.len()].copy_from_slice(&held.values);
        }
    }

    /// What the row of `q` at `row` gives, the rows being at `pos` and after.
    pub fn attend(&self, q: &Data, pos: usize, row: usize) -> Vec<f64> {
        let (hq, hkv, d) = (self.shape.heads_q as usize, self.shape.heads_kv as usize, self.shape.d as usize);
        let mut out = Vec::with_capacity(hq * d);
        for (h, q) in q.values[row * hq * d..][..hq * d].chunks(d).enumerate() {
            let at = |c: usize| (c * hkv + h / (hq / hkv)) * d;
            let scores: Vec<f64> = (0..=pos + row)
                .map(|c| self.scale * q.iter().zip(&self.keys[at(c)..]).map(|(a, b)| a * b).sum::<f64>())
                .collect();
            let top = scores.iter().cloned().fold(f64::MIN, f64::max);
            let weights: Vec<f64> = scores.iter().map(|s| (s - top).exp()).collect();
            let total: f64 = weights.iter().sum();
            let mut sums = vec![0.0; d];
            for (c, w) in weights.iter().enumerate() {
                sums.iter_mut().zip(&self.values[at(c)..]).for_each(|(sum, v)| *sum += w * v);
            }
            out.extend(sums.into_iter().map(|sum| sum / total));
        }
        out
    }

    pub fn step(&mut self, q: &Data, k: &Data, v: &Data, pos: usize) -> Vec<f64> {
        self.append(k, v, pos);
        let rows = q.values.len() / (self.shape.heads_q * self.shape.d) as usize;
        (0..rows).flat_map(|row| self.attend(q, pos, row)).collect()
    }
}

pub fn inputs(s: Shape, seq: u32, range: f64, seed: u64) -> [Data; 3] {
    let make = |heads, n| Data::random(DType::F32, &[1, seq, heads, s.d], (-range, range), seed * 10 + n);
    [make(s.heads_q, 1), make(s.heads_kv, 2), make(s.heads_kv, 3)]
}

fn call(running: &mut Running, [q, k, v]: &[Data; 3], pos: i64) -> executorch_webgpu::error::Result<Data> {
    running.run(&[q, k, v, &Data::i64(&[1], &[pos])]).map(|mut out| out.remove(0))
}

/// Calls of (rows, position) on one program, each compared with the formula.
fn replay(s: Shape, calls: &[(u32, usize)], options: &Options, profile: Profile, tolerance: (f64, f64)) {
    let mut reference = Reference::new(s, None);
    let mut running = model(s, None).load_with(options.clone(), profile).unwrap();
    let tolerance = if halves(&running) { F16_TOLERANCE } else { tolerance };
    for (index, &(seq, pos)) in calls.iter().enumerate() {
        running.program.fill_activations(0xFF).unwrap();
        let x = inputs(s, seq, 1.0, index as u64 + 1);
        let want = reference.step(&x[0], &x[1], &x[2], pos);
        let got = call(&mut running, &x, pos as i64).unwrap();
        assert_close(&got, &[1, seq, s.heads_q, s.d], &want, tolerance);
    }
}

/// True where cooperative matrices multiply halves.
pub fn halves(running: &Running) -> bool {
    !running.program.gpu().caps().coop.is_empty()
}

pub fn shape(heads_q: u32, heads_kv: u32, d: u32, seq: u32, capacity: u32) -> Shape {
    Shape { heads_q, heads_kv, d, seq, capacity }
}

#[test]
fn every_head_size_and_group() {
    for (d, heads_q, heads_kv) in [
        (4, 4, 4),
        (8, 4, 2),
        (20, 3, 1),
        (64, 8, 2),
        (80, 7, 1),
        (96, 2, 2),
        (128, 8, 1),
        (132, 4, 2),
        (192, 3, 3),
        (256, 4, 1),
    ] {
        let s = shape(heads_q, heads_kv, d, 17, 96);
        let calls = [(17, 0), (1, 17), (3, 18), (1, 21), (2, 22)];
        for profile in [Profile::Full, Profile::Minimal] {
            replay(s, &calls, &Options::default(), profile, F32_TOLERANCE);
        }
        for splits in [1, 2] {
            let options = Options { force_attention: Some(Cut::Few { splits }), ..Options::default() };
            replay(s, &calls, &options, Profile::Full, F32_TOLERANCE);
        }
    }
}

#[test]
fn every_cut_of_the_work() {
    let s = shape(6, 2, 32, 65, 700);
    let calls =
        [(65, 0), (64, 65), (1, 129), (2, 130), (65, 132), (63, 197), (65, 260), (65, 325), (65, 390), (1, 455)];
    for splits in [1, 3, 6] {
        let tiles = [1, 2, 8, 16, 32].map(|rows| Cut::Tile { rows, splits });
        for cut in tiles.into_iter().chain([Cut::Few { splits }]) {
            let options = Options { force_attention: Some(cut), ..Options::default() };
            replay(s, &calls[..if splits == 1 { 3 } else { 10 }], &options, Profile::Full, F32_TOLERANCE);
        }
    }
}

#[test]
fn many_rows_of_every_head_size() {
    for (d, heads_q, heads_kv) in [(32, 4, 2), (64, 8, 2), (96, 3, 1), (128, 4, 4), (80, 2, 1)] {
        let s = shape(heads_q, heads_kv, d, 97, 300);
        replay(
            s,
            &[(97, 0), (96, 97), (33, 193), (1, 226), (64, 5)],
            &Options::default(),
            Profile::Full,
            F32_TOLERANCE,
        );
    }
}

#[test]
fn many_rows_of_any_magnitude() {
    let s = shape(4, 2, 64, 80, 200);
    for (k_scale, v_scale) in [(1.0, 1e5), (1e-3, 1e-6), (30.0, 1.0), (1.0, 1e9)] {
        let mut running = model(s, None).load().unwrap();
        let mut reference = Reference::new(s, None);
        for (index, pos) in [0usize, 80].into_iter().enumerate() {
            let mut x = inputs(s, 80, 1.0, 100 + index as u64);
            // Rows grow along the sequence: weights outgrow their first maximum again and again.
            let grown = |i: usize, per_row: usize| 0.1 + (i / per_row) as f64 / 40.0;
            x[1].values.iter_mut().enumerate().for_each(|(i, v)| *v *= k_scale * grown(i, 2 * 64));
            x[2].values.iter_mut().for_each(|v| *v *= v_scale);
            let x = x.map(|x| Data::f32(&x.dims, x.values));
            let want = reference.step(&x[0], &x[1], &x[2], pos);
            let range = if halves(&running) { 4e-3 } else { 1e-5 } * k_scale.max(1.0) * v_scale;
            assert_close(&call(&mut running, &x, pos as i64).unwrap(), &[1, 80, 4, 64], &want, (range, 1e-3));
        }
    }
}

#[test]
fn half_caches_are_close() {
    let s = shape(8, 2, 64, 33, 300);
    let options = Options { enable_f16_kv_cache: true, ..Options::default() };
    let calls = [(33, 0), (1, 33), (17, 34), (1, 51)];
    replay(s, &calls, &options, Profile::Full, F16_TOLERANCE);
    replay(s, &calls, &options, Profile::Minimal, F32_TOLERANCE);
    let half = model(s, None).load_with(options, Profile::Full).unwrap().program.memory();
    let full = model(s, None).load().unwrap().program.memory();
    let caches = |m: executorch_webgpu::gpu::Memory| m.of(executorch_webgpu::gpu::MemoryKind::Caches);
    assert_eq!(2 * caches(half), caches(full));
}

#[test]
fn chunks_rewinds_and_restarts_equal_one_piece() {
    let s = shape(4, 2, 16, 24, 64);
    let [q, k, v] = inputs(s, 24, 1.0, 40);
    let rows = |x: &Data, heads: u32, from: usize, to: usize| {
        let row = (heads * s.d) as usize;
        Data::f32(&[1, (to - from) as u32, heads, s.d], x.values[from * row..to * row].to_vec())
    };
    let piece = |from, to| [rows(&q, 4, from, to), rows(&k, 2, from, to), rows(&v, 2, from, to)];
    let mut whole = model(s, None).load().unwrap();
    let want = call(&mut whole, &piece(0, 24), 0).unwrap();
    let mut parts = model(s, None).load().unwrap();
    call(&mut parts, &inputs(s, 24, 1.0, 41), 0).unwrap();
    for attempt in 0..2 {
        let mut got = Vec::new();
        for (from, to) in [(0, 7), (7, 8), (8, 23), (23, 24)] {
            got.extend(call(&mut parts, &piece(from, to), from as i64).unwrap().values);
        }
        let got = Data::f32(&[1, 24, 4, 16], got);
        assert_close(&got, &[1, 24, 4, 16], &want.values, (1e-6, 1e-6));
        call(&mut parts, &inputs(s, 3, 1.0, 42 + attempt), 5).unwrap();
    }
}

#[test]
fn a_long_cache_is_read_only_as_far_as_it_is_filled() {
    let s = shape(4, 1, 64, 1, 4096);
    for pos in [0usize, 1, 31, 32, 63, 64, 511] {
        let mut running = model(s, None).load().unwrap();
        let mut reference = Reference::new(s, None);
        for c in 0..=pos {
            let x = inputs(s, 1, 1.0, c as u64);
            let want = reference.step(&x[0], &x[1], &x[2], c);
            let got = call(&mut running, &x, c as i64).unwrap();
            if c == pos {
                assert_close(&got, &[1, 1, 4, 64], &want, F32_TOLERANCE);
            }
        }
    }
}

#[test]
fn large_logits_and_any_scale() {
    let s = shape(4, 4, 32, 9, 16);
    for (scale, range) in [(0.25, 1.0), (2.0, 20.0), (1.0, 30.0)] {
        let mut reference = Reference::new(s, Some(scale));
        let mut running = model(s, Some(scale)).load().unwrap();
        let x = inputs(s, 9, range, 50);
        let want = reference.step(&x[0], &x[1], &x[2], 0);
        assert_close(&call(&mut running, &x, 0).unwrap(), &[1, 9, 4, 32], &want, (2e-3, 2e-3));
    }
}

#[test]
fn positions_outside_the_cache_are_refused_and_change_nothing() {
    let s = shape(4, 2, 8, 4, 16);
    let mut running = model(s, None).load().unwrap();
    let x = inputs(s, 4, 1.0, 60);
    call(&mut running, &x, 0).unwrap();
    call(&mut running, &x, 4).unwrap();
    let first = call(&mut running, &x, 8).unwrap();
    for pos in [13, 16, -1, 1 << 20] {
        let text = call(&mut running, &x, pos).unwrap_err().to_string();
        assert!(text.contains(&pos.to_string()) && text.contains("16"), "{text}");
    }
    let text = call(&mut running, &x, 1 << 40).unwrap_err().to_string();
    assert!(text.contains("32 bits"), "{text}");
    assert_eq!(call(&mut running, &x, 8).unwrap(), first);
    call(&mut running, &x, 12).unwrap();
}

#[test]
fn two_programs_do_not_share_a_cache() {
    let s = shape(2, 1, 8, 2, 8);
    let (mut a, mut b) = (model(s, None).load().unwrap(), model(s, None).load().unwrap());
    let (x, y) = (inputs(s, 2, 1.0, 70), inputs(s, 2, 1.0, 71));
    let first = call(&mut a, &x, 0).unwrap();
    call(&mut b, &y, 0).unwrap();
    let mut reference = Reference::new(s, None);
    assert_close(&first, &[1, 2, 2, 8], &reference.step(&x[0], &x[1], &x[2], 0), F32_TOLERANCE);
    let z = inputs(s, 2, 1.0, 72);
    let want = reference.step(&z[0], &z[1], &z[2], 2);
    assert_close(&call(&mut a, &z, 2).unwrap(), &[1, 2, 2, 8], &want, F32_TOLERANCE);
}

#[test]
fn forms_that_do_not_run_are_refused_by_name() {
    for (s, expected) in
        [(shape(2, 2, 6, 2, 8), "head size 6"), (shape(3, 2, 8, 2, 8), "no multiple"), (shape(2, 2, 260, 1, 8), "260")]
    {
        let text = model(s, None).load().err().unwrap().to_string();
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_nan_that_a_row_sees_is_a_nan_and_one_that_it_does_not_see_is_nothing() {
    // The longer cache is cut into parts.
    for capacity in [16, 1024] {
        let s = shape(2, 1, 8, 4, capacity);
        let mut running = model(s, None).load().unwrap();
        let mut x = inputs(s, 4, 1.0, 90);
        let row = 8;
        x[1].values[2 * row] = f64::NAN;
        let got = call(&mut running, &x, 0).unwrap();
        for (index, values) in got.values.chunks(2 * row).enumerate() {
            assert_eq!(values.iter().all(|v| v.is_nan()), index >= 2, "row {index}: {values:?}");
            assert_eq!(values.iter().any(|v| v.is_nan()), index >= 2, "row {index}: {values:?}");
        }
    }
}

#[test]
fn an_infinite_value_of_the_newest_key_is_infinite() {
    for force_attention in [None, Some(Cut::Few { splits: 1 }), Some(Cut::Few { splits: 2 })] {
        let s = shape(2, 1, 8, 1, 64);
        let options = Options { force_attention, ..Options::default() };
        let mut running = model(s, None).load_with(options, Profile::Full).unwrap();
        for pos in 0..3 {
            let mut x = inputs(s, 1, 1.0, 95 + pos);
            x[2].values[0] = f64::INFINITY;
            let got = call(&mut running, &x, pos as i64).unwrap();
            for head in got.values.chunks(8) {
                assert!(head[0] == f64::INFINITY && head[1..].iter().all(|v| v.is_finite()), "{pos}: {head:?}");
            }
        }
    }
}

#[test]
fn a_nan_in_one_part_of_the_keys_is_a_nan_of_the_whole() {
    let s = shape(2, 1, 8, 100, 1024);
    let mut running = model(s, None).load().unwrap();
    let mut x = inputs(s, 100, 1.0, 91);
    x[1].values[70 * 8] = f64::NAN;
    call(&mut running, &x, 0).unwrap();
    let got = call(&mut running, &inputs(s, 1, 1.0, 92), 100).unwrap();
    assert!(got.values.iter().all(|v| v.is_nan()), "{:?}", got.values);
}

#[test]
fn the_unwritten_result_of_update_cache_is_not_handed_out() {
    let mut m = Model::new();
    let value = m.input(DType::F32, &[1, 1, 1, 4]);
    let initial = Data::f32(&[1, 2, 1, 4], vec![0.0; 8]);
    let (cache, at, out) = (m.constant(&initial), m.int(0), m.tensor(DType::F32, &initial.dims));
    m.op("update_cache.default", &[value, cache, at, out]);
    m.output(out);
    assert!(m.load().err().unwrap().to_string().contains("read the cache"));
}

#[test]
fn both_floats_are_taken() {
    let s = Shape { heads_q: 4, heads_kv: 2, d: 8, seq: 5, capacity: 9 };
    for (dtype, tolerance) in FLOATS.into_iter().zip([F32_TOLERANCE, F16_TOLERANCE]) {
        let [q, k, v] = inputs(s, s.seq, 1.0, 3).map(|x| Data::new(dtype, &x.dims, x.values));
        let want = Reference::new(s, None).kept_in(dtype).step(&q, &k, &v, 0);
        model_of(dtype, s, None)
            .check(&[&q, &k, &v, &Data::i64(&[1], &[0])], |got| assert_close(&got[0], &q.dims, &want, tolerance));
    }
}

#[test]
fn update_cache_writes_its_rows_and_no_others() {
    let sizes = [(2, 2, 4, 8, 0), (2, 2, 4, 8, 5), (3, 4, 8, 16, 10), (1, 1, 4, 1, 0)];
    for ((rows, heads, d, capacity, pos), dtype) in sizes.into_iter().zip(FLOATS.into_iter().cycle()) {
        let value = Data::random(dtype, &[1, rows, heads, d], (-1.0, 1.0), 80);
        let initial = Data::random(dtype, &[1, capacity, heads, d], (-1.0, 1.0), 81);
        let mut m = Model::new();
        let input = m.input(dtype, &value.dims);
        let (cache, at) = (m.constant(&initial), m.add(Entry::Int(pos)));
        let (ignored, copy, none) = (m.tensor(dtype, &initial.dims), m.tensor(dtype, &initial.dims), m.null());
        m.op("update_cache.default", &[input, cache, at, ignored]);
        m.op("aten.clone.default", &[cache, none, copy]);
        m.output(copy);
        let mut want = initial.values.clone();
        want[(pos as u32 * heads * d) as usize..][..value.values.len()].copy_from_slice(&value.values);
        m.check(&[&value], |out| assert_close(&out[0], &initial.dims, &want, (0.0, 0.0)));
    }
}
