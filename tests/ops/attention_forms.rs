//! Forms of attention over a KV cache besides one causal sequence: batches, masks, keys on both sides.

use executorch_webgpu::gpu::Profile;
use executorch_webgpu::graph::DType;
use executorch_webgpu::ops::attention::Cut;
use executorch_webgpu::options::Options;

use crate::attention::{F16_TOLERANCE, F32_TOLERANCE, Shape, shape};
use crate::common::model::Running;
use crate::common::writer::Entry;
use crate::common::{Data, Model, assert_close};

/// Which keys a query sees.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sight {
    /// Those up to its position.
    Causal,
    /// Those that are written.
    Written,
    /// All of the cache, plus a mask.
    Masked,
}

/// One program, and its caches on the host.
struct Case {
    s: Shape,
    batch: u32,
    sight: Sight,
    caches: [Data; 2],
}

impl Case {
    /// Unwritten rows hold NaN, unless a mask adds them to what is seen.
    fn new(s: Shape, batch: u32, sight: Sight) -> Case {
        let dims = [batch, s.capacity, s.heads_kv, s.d];
        let random = |seed| Data::random(DType::F32, &dims, (-1.0, 1.0), seed);
        let nan = || Data::f32(&dims, vec![f64::NAN; dims.iter().product::<u32>() as usize]);
        let caches = if sight == Sight::Masked { [random(1), random(2)] } else { [nan(), nan()] };
        Case { s, batch, sight, caches }
    }

    fn dims(&self, seq: u32, heads: u32) -> [u32; 4] {
        [self.batch, seq, heads, self.s.d]
    }

    fn model(&self) -> Model {
        let Shape { heads_q, heads_kv, seq, capacity, .. } = self.s;
        let mut m = Model::new();
        let [q, k, v] = [heads_q, heads_kv, heads_kv].map(|heads| m.input(DType::F32, &self.dims(seq, heads)));
        let pos_tensor = m.input(DType::I64, &[1]);
        let mask = if self.sight == Sight::Masked { m.input(DType::F32, &[seq, capacity]) } else { m.null() };
        let (zero, pos) = (m.int(0), m.symint());
        m.op("et_vk.select_as_symint.default", &[pos_tensor, zero, zero, pos]);
        let [k_cache, v_cache] = [&self.caches[0], &self.caches[1]].map(|cache| m.constant(cache));
        let (one, none, causal) = (m.int(1), m.null(), m.boolean(self.sight == Sight::Causal));
        let out = m.tensor(DType::F32, &self.dims(seq, heads_q));
        m.op("sdpa_with_kv_cache.default", &[q, k, v, k_cache, v_cache, pos, one, mask, none, causal, none, out]);
        m.output(out);
        m
    }

    fn inputs(&self, seq: u32, seed: u64) -> Vec<Data> {
        let heads = [self.s.heads_q, self.s.heads_kv, self.s.heads_kv];
        let random = |(n, heads)| Data::random(DType::F32, &self.dims(seq, heads), (-1.0, 1.0), 10 * seed + n);
        let mut x: Vec<Data> = (1..).zip(heads).map(random).collect();
        if self.sight == Sight::Masked {
            let mut mask = Data::random(DType::F32, &[seq, self.s.capacity], (-2.0, 1.0), seed);
            mask.values.iter_mut().filter(|x| **x < -1.0).for_each(|x| *x = f64::NEG_INFINITY);
            x.push(mask);
        }
        x
    }

    /// Appends the keys and values, and attends.
    fn formula(&mut self, x: &[Data], pos: usize) -> Vec<f64> {
        let Shape { heads_q, heads_kv, d, capacity, .. } = self.s;
        let [heads_q, heads_kv, d, capacity] = [heads_q, heads_kv, d, capacity].map(|n| n as usize);
        let (seq, row) = (x[0].dims[1] as usize, heads_kv * d);
        for (cache, new) in self.caches.iter_mut().zip(&x[1..]) {
            for (b, rows) in new.values.chunks(seq * row).enumerate() {
                cache.values[(b * capacity + pos) * row..][..rows.len()].copy_from_slice(rows);
            }
        }
        let [keys, values] = &self.caches;
        let mut out = Vec::new();
        for (index, q) in x[0].values.chunks(d).enumerate() {
            let (b, s, h) = (index / heads_q / seq, index / heads_q % seq, index % heads_q);
            let seen = match self.sight {
                Sight::Causal => pos + s + 1,
                Sight::Written => pos + seq,
                Sight::Masked => capacity,
            };
            let at = |c: usize| (b * capacity + c) * row + h / (heads_q / heads_kv) * d;
            let score = |c: usize| {
                let dot: f64 = q.iter().zip(&keys.values[at(c)..]).map(|(a, b)| a * b).sum();
                dot / (d as f64).sqrt() + x.get(3).map_or(0.0, |mask| mask.values[s * capacity + c])
            };
            let scores: Vec<f64> = (0..seen).map(score).collect();
            let top = scores.iter().cloned().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = scores.iter().map(|s| (s - top).exp()).collect();
            let total: f64 = weights.iter().sum();
            out.extend((0..d).map(|i| (0..seen).map(|c| weights[c] / total * values.values[at(c) + i]).sum::<f64>()));
        }
        out
    }

    #[track_caller]
    fn replay(mut self, calls: &[(u32, usize)], options: &Options, profile: Profile) {
        let mut running = self.model().load_with(options.clone(), profile).unwrap();
        let halves = options.enable_f16_kv_cache || !running.program.gpu().caps().coop.is_empty();
        for (index, &(seq, pos)) in calls.iter().enumerate() {
            running.program.fill_activations(0xFF).unwrap();
            let x = self.inputs(seq, index as u64 + 1);
            let want = self.formula(&x, pos);
            let got = call(&mut running, &x, pos as i64).unwrap();
            let tolerance = if halves { F16_TOLERANCE } else { F32_TOLERANCE };
            assert_close(&got, &self.dims(seq, self.s.heads_q), &want, tolerance);
        }
    }
}

fn call(running: &mut Running, x: &[Data], pos: i64) -> executorch_webgpu::error::Result<Data> {
    let pos = Data::i64(&[1], &[pos]);
    let inputs: Vec<&Data> = x[..3].iter().chain([&pos]).chain(&x[3..]).collect();
    running.run(&inputs).map(|mut out| out.remove(0))
}

#[test]
fn every_sight_of_every_batch() {
    for sight in [Sight::Causal, Sight::Written, Sight::Masked] {
        for batch in [1, 2, 5] {
            for (heads_q, heads_kv, d) in [(4, 2, 16), (3, 3, 20), (7, 1, 64)] {
                let s = shape(heads_q, heads_kv, d, 19, 150);
                for profile in [Profile::Full, Profile::Minimal] {
                    let calls = [(19, 0), (1, 19), (3, 64), (19, 131)];
                    // A hole in the cache is seen by a causal row, too.
                    let calls = if sight == Sight::Masked { &calls[..] } else { &calls[..2] };
                    Case::new(s, batch, sight).replay(calls, &Options::default(), profile);
                }
            }
        }
    }
}

#[test]
fn every_sight_at_every_cut() {
    let s = shape(6, 2, 8, 65, 400);
    for sight in [Sight::Causal, Sight::Written, Sight::Masked] {
        for (rows, splits) in [(1, 1), (4, 3), (32, 2), (16, 7)] {
            let options = Options { force_attention: Some(Cut::Tile { rows, splits }), ..Options::default() };
            let calls = [(65, 0), (2, 65), (33, 67), (65, 100)];
            Case::new(s, 2, sight).replay(&calls, &options, Profile::Full);
        }
    }
}

#[test]
fn half_caches_of_every_sight() {
    let s = shape(4, 2, 32, 9, 80);
    let options = Options { enable_f16_kv_cache: true, ..Options::default() };
    for sight in [Sight::Causal, Sight::Written, Sight::Masked] {
        Case::new(s, 3, sight).replay(&[(9, 0), (1, 9), (5, 10)], &options, Profile::Full);
    }
}

#[test]
fn many_rows_of_every_sight() {
    let s = shape(4, 2, 64, 70, 160);
    for sight in [Sight::Causal, Sight::Written, Sight::Masked] {
        Case::new(s, 2, sight).replay(&[(70, 0), (70, 70)], &Options::default(), Profile::Full);
    }
}

#[test]
fn a_position_beyond_the_cache_is_refused_for_a_batch() {
    let mut case = Case::new(shape(2, 1, 8, 4, 16), 2, Sight::Masked);
    let mut running = case.model().load().unwrap();
    let x = case.inputs(4, 1);
    let want = case.formula(&x, 12);
    assert!(call(&mut running, &x, 13).unwrap_err().to_string().contains("13"));
    assert!(call(&mut running, &x, -1).unwrap_err().to_string().contains("-1"));
    assert_close(&call(&mut running, &x, 12).unwrap(), &[2, 4, 2, 8], &want, F32_TOLERANCE);
}

#[test]
fn a_batch_of_rows_goes_to_a_symbolic_position() {
    for (batch, rows, heads, d, capacity) in [(2, 3, 2, 4, 9), (3, 1, 4, 8, 5), (1, 2, 3, 4, 2)] {
        let initial = Data::random(DType::F32, &[batch, capacity, heads, d], (-1.0, 1.0), 81);
        let mut m = Model::new();
        let (value, pos_tensor) = (m.input(DType::F32, &[batch, rows, heads, d]), m.input(DType::I64, &[1]));
        let (zero, pos, cache) = (m.int(0), m.symint(), m.constant(&initial));
        let (ignored, copy, none) =
            (m.tensor(DType::F32, &initial.dims), m.tensor(DType::F32, &initial.dims), m.null());
        m.op("et_vk.select_as_symint.default", &[pos_tensor, zero, zero, pos]);
        m.op("update_cache.default", &[value, cache, pos, ignored]);
        m.op("aten.clone.default", &[cache, none, copy]);
        m.output(copy);
        for profile in [Profile::Full, Profile::Minimal] {
            let mut running = m.load_with(Options::default(), profile).unwrap();
            let mut want = initial.values.clone();
            for (live, at) in [(rows, 0), (1, capacity - 1), (rows, capacity - rows)] {
                let new = Data::random(DType::F32, &[batch, live, heads, d], (-1.0, 1.0), u64::from(at));
                let row = (heads * d) as usize;
                for (b, rows) in new.values.chunks(live as usize * row).enumerate() {
                    want[(b * capacity as usize + at as usize) * row..][..rows.len()].copy_from_slice(rows);
                }
                let out = running.run(&[&new, &Data::i64(&[1], &[i64::from(at)])]).unwrap();
                assert_close(&out[0], &initial.dims, &want, (0.0, 0.0));
            }
            let new = Data::random(DType::F32, &[batch, rows, heads, d], (-1.0, 1.0), 1);
            let at = capacity - rows + 1;
            let text = running.run(&[&new, &Data::i64(&[1], &[i64::from(at)])]).err().unwrap().to_string();
            assert!(text.contains(&at.to_string()), "{text}");
        }
    }
}

#[test]
fn forms_that_do_not_run_are_refused_by_name() {
    let load = |mask: Option<&[u32]>, causal: Entry, cache_batch: u32| {
        let mut m = Model::new();
        let [q, k, v] = [0; 3].map(|_| m.input(DType::F32, &[2, 3, 2, 8]));
        let mask = mask.map(|dims| m.input(DType::F32, dims)).unwrap_or_else(|| m.null());
        let empty = Data::f32(&[cache_batch, 9, 2, 8], vec![0.0; cache_batch as usize * 144]);
        let (k_cache, v_cache) = (m.constant(&empty), m.constant(&empty));
        let (pos, one, none, causal) = (m.int(1), m.int(1), m.null(), m.add(causal));
        let out = m.tensor(DType::F32, &[2, 3, 2, 8]);
        m.op("sdpa_with_kv_cache.default", &[q, k, v, k_cache, v_cache, pos, one, mask, none, causal, none, out]);
        m.output(out);
        m.load().err().map(|e| e.to_string())
    };
    assert_eq!(load(Some(&[3, 9]), Entry::Null, 2), None);
    for (text, expected) in [
        (load(Some(&[3, 9]), Entry::Bool(true), 2), "a mask besides causality"),
        (load(Some(&[3, 4]), Entry::Bool(false), 2), "the mask is [3, 4], expected [3, 9]"),
        (load(Some(&[1, 3, 9]), Entry::Bool(false), 2), "the mask is [1, 3, 9]"),
        (load(None, Entry::Bool(true), 3), "the caches are [3, 9, 2, 8]"),
    ] {
        let text = text.unwrap();
        assert!(text.contains(expected) && text.contains("sdpa_with_kv_cache"), "{text}");
    }
}
