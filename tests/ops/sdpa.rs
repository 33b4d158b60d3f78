//! `et_vk.sdpa`: attention whose keys and values are arguments.

use executorch_webgpu::gpu::Profile;
use executorch_webgpu::graph::DType;
use executorch_webgpu::ops::attention::Cut;
use executorch_webgpu::options::Options;

use crate::attention::{F16_TOLERANCE, F32_TOLERANCE};
use crate::cases::{broadcast, check_in_turn, coordinates, pick, sizes};
use crate::common::writer::Entry;
use crate::common::{Data, Model, assert_close};

/// Tests with a case for each type of each operator.
pub const TESTS: &[fn()] = &[every_length_and_head_size, heads_that_are_no_fours];

const OP: &str = "et_vk.sdpa.default";

/// softmax(scale * q k^T + mask) v, its shape first.
fn formula(q: &Data, k: &Data, v: &Data, mask: Option<&Data>, scale: f64) -> (Vec<u32>, Vec<f64>) {
    let tail = |x: &Data| (x.dims[..x.dims.len() - 2].to_vec(), x.dims[x.dims.len() - 2] as usize);
    let ((q_lead, seq), (k_lead, keys), (v_lead, _)) = (tail(q), tail(k), tail(v));
    let (d, width) = (q.dims[q.dims.len() - 1] as usize, v.dims[v.dims.len() - 1] as usize);
    let lead = broadcast(&[&q_lead, &k_lead, &v_lead]);
    let full = |tail: [usize; 2]| [&lead[..], &tail.map(|n| n as u32)].concat();
    let (q_dims, k_dims, v_dims, scores) = (full([seq, d]), full([keys, d]), full([keys, width]), full([seq, keys]));
    let mut out = Vec::new();
    for row in 0..lead.iter().product::<u32>() as usize * seq {
        let team = row / seq;
        let score = |c: usize| {
            let dot = |i| pick(q, &q_dims, row * d + i) * pick(k, &k_dims, (team * keys + c) * d + i);
            let sum = scale * (0..d).map(dot).sum::<f64>() + mask.map_or(0.0, |m| pick(m, &scores, row * keys + c));
            // f32 has no room for a score beside its lowest number.
            if sum < -1e38 { f64::from(sum as f32) } else { sum }
        };
        let line: Vec<f64> = (0..keys).map(score).collect();
        let top = line.iter().cloned().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = line.iter().map(|s| (s - top).exp()).collect();
        let total: f64 = weights.iter().sum();
        let value = |c: usize, i: usize| pick(v, &v_dims, (team * keys + c) * width + i);
        out.extend((0..width).map(|i| (0..keys).map(|c| weights[c] / total * value(c, i)).sum::<f64>()));
    }
    (full([seq, width]), out)
}

fn floats(dims: &[u32], seed: u64) -> Data {
    Data::random(DType::F32, dims, (-1.0, 1.0), seed)
}

fn heads(lead: &[u32], seq: u32, keys: u32, d: u32) -> [Data; 3] {
    let dims = |rows: u32| [lead, &[rows, d]].concat();
    [floats(&dims(seq), 1), floats(&dims(keys), 2), floats(&dims(keys), 3)]
}

#[track_caller]
fn check_with(options: &Options, x: &[Data; 3], mask: Option<&Data>, scale: Option<f64>) {
    let [q, k, v] = x;
    let default = 1.0 / f64::from(q.dims[q.dims.len() - 1]).sqrt();
    let (dims, want) = formula(q, k, v, mask, scale.unwrap_or(default));
    let mut m = Model::new();
    let mut ids: Vec<usize> = x.iter().chain(mask).map(|x| m.input(x.dtype, &x.dims)).collect();
    ids.extend(mask.is_none().then(|| m.null()));
    ids.push(scale.map(|x| m.double(x)).unwrap_or_else(|| m.null()));
    let out = m.tensor(q.dtype, &dims);
    ids.push(out);
    m.op(OP, &ids);
    m.output(out);
    let inputs: Vec<&Data> = x.iter().chain(mask).collect();
    let tolerance = if q.dtype == DType::F16 { F16_TOLERANCE } else { F32_TOLERANCE };
    m.check_with(options, &inputs, |got| assert_close(&got[0], &dims, &want, tolerance));
}

#[track_caller]
fn check(x: &[Data; 3], mask: Option<&Data>, scale: Option<f64>) {
    check_with(&Options::default(), x, mask, scale);
}

#[test]
fn every_length_and_head_size() {
    for (lead, seq, keys, d) in [
        (&[1, 4][..], 8, 8, 16),
        (&[1, 8], 4, 16, 16),
        (&[1, 4], 6, 6, 128),
        (&[1, 8], 32, 256, 64),
        (&[2, 3], 17, 63, 4),
        (&[3, 1], 1, 64, 20),
        (&[1, 2], 65, 65, 80),
        (&[2, 1], 2, 1, 256),
        (&[1, 1], 131, 127, 36),
        (&[1, 2], 3, 700, 32),
        (&[], 16, 129, 8),
        (&[2, 1, 3, 2, 1], 5, 7, 12),
    ] {
        check(&heads(lead, seq, keys, d), None, None);
    }
}

#[test]
fn heads_that_are_no_fours() {
    for d in [1, 2, 3, 5, 7, 33, 127, 513] {
        let x = heads(&[1, 2], 5, 66, d);
        check(&x, None, None);
        check(&x.map(|x| Data::new(DType::F16, &x.dims, x.values)), None, None);
    }
    for (d, width) in [(8, 20), (20, 8), (3, 16), (16, 3), (1024, 4)] {
        let [q, k, _] = heads(&[2, 2], 9, 67, d);
        check(&[q, k, floats(&[2, 2, 67, width], 4)], None, Some(0.3));
    }
}

#[test]
fn every_cut_of_the_work() {
    let x = heads(&[2, 3], 37, 300, 24);
    let mask = floats(&[37, 300], 5);
    for rows in [1, 2, 8, 16, 32] {
        for splits in [1, 3, 7] {
            let options = Options { force_attention: Some(Cut::Tile { rows, splits }), ..Options::default() };
            check_with(&options, &x, Some(&mask), None);
        }
    }
}

#[test]
fn masks_repeat_over_what_they_lack() {
    let x = heads(&[2, 3], 5, 67, 16);
    for dims in [
        &[2, 3, 5, 67][..],
        &[1, 1, 5, 67],
        &[2, 1, 5, 67],
        &[2, 1, 1, 67],
        &[1, 3, 5, 1],
        &[3, 1, 67],
        &[5, 67],
        &[67],
        &[1],
        &[],
    ] {
        check(&x, Some(&Data::random(DType::F32, dims, (-5.0, 5.0), 6)), Some(0.5));
    }
    check(&x, Some(&Data::random(DType::F16, &[5, 67], (-5.0, 5.0), 6)), None);
    // As everywhere in this operator, a mask is added, so that true counts as 1.
    check(&x, Some(&Data::random(DType::Bool, &[5, 67], (0.0, 1.0), 7)), None);
}

#[test]
fn leading_dimensions_repeat() {
    for (q, k, v) in [
        (&[2, 4][..], &[1, 1][..], &[1, 1][..]),
        (&[2, 4], &[2, 1], &[4]),
        (&[1, 4], &[3, 1], &[3, 4]),
        (&[], &[2], &[3, 1]),
    ] {
        let of = |lead: &[u32], rows, seed| floats(&[lead, &[rows, 8]].concat(), seed);
        check(&[of(q, 5, 1), of(k, 70, 2), of(v, 70, 3)], Some(&floats(&[5, 70], 4)), None);
    }
}

/// A mask of `hide` where a query must not see a key.
fn hiding(seq: u32, keys: u32, hide: f64, hidden: impl Fn(usize, usize) -> bool) -> Data {
    let dims = [seq, keys];
    let at = |i| coordinates(i, &dims);
    let cell = |i| if hidden(at(i)[0], at(i)[1]) { hide } else { 0.0 };
    Data::f32(&dims, (0..(seq * keys) as usize).map(cell).collect())
}

#[test]
fn whole_tiles_may_be_hidden() {
    let (seq, keys) = (20, 400);
    let x = heads(&[1, 2], seq, keys, 16);
    for hide in [f64::NEG_INFINITY, -1e30, f64::from(f32::MIN)] {
        for mask in [
            hiding(seq, keys, hide, |s, c| c > s),
            hiding(seq, keys, hide, |_, c| c < 256),
            hiding(seq, keys, hide, |s, c| c / 64 != s % 6),
            hiding(seq, keys, hide, |s, c| c != 399 - s),
        ] {
            for splits in [1, 4] {
                let options = Options { force_attention: Some(Cut::Tile { rows: 8, splits }), ..Options::default() };
                check_with(&options, &x, Some(&mask), None);
            }
        }
    }
}

#[test]
fn a_row_that_sees_nothing_is_nan_and_one_of_equal_lowest_scores_the_mean() {
    let (seq, keys) = (7, 200);
    let x = heads(&[2, 1], seq, keys, 12);
    let mask = |hide| hiding(seq, keys, hide, |s, _| s == 3);
    let (nothing, lowest) = (mask(f64::NEG_INFINITY), mask(f64::from(f32::MIN)));
    let of = |mask| formula(&x[0], &x[1], &x[2], Some(mask), 1.0).1;
    assert_eq!(of(&nothing).iter().filter(|x| x.is_nan()).count(), 2 * 12);
    let mean = x[2].values.iter().step_by(12).take(200).sum::<f64>() / 200.0;
    assert!((of(&lowest)[3 * 12] - mean).abs() < 1e-12);
    for splits in [1, 3] {
        let options = Options { force_attention: Some(Cut::Tile { rows: 4, splits }), ..Options::default() };
        check_with(&options, &x, Some(&nothing), None);
        check_with(&options, &x, Some(&lowest), None);
    }
}

#[test]
fn nan_and_infinity_reach_the_rows_that_meet_them() {
    let (seq, keys, d) = (6, 150, 8);
    for splits in [1, 2] {
        let options = Options { force_attention: Some(Cut::Tile { rows: 4, splits }), ..Options::default() };
        let clean = || heads(&[1, 1], seq, keys, d);
        let mut x = clean();
        x[0].values[2 * 8] = f64::NAN;
        check_with(&options, &x, None, None);
        x = clean();
        x[1].values[140 * 8 + 1] = f64::NAN;
        check_with(&options, &x, None, None);
        x = clean();
        x[2].values[70 * 8 + 5] = f64::NAN;
        check_with(&options, &x, Some(&hiding(seq, keys, f64::NEG_INFINITY, |_, c| c == 70)), None);
        x = clean();
        x[2].values[3] = f64::INFINITY;
        check_with(&options, &x, None, None);
        let mut mask = floats(&[seq, keys], 9);
        mask.values[150 + 100] = f64::NAN;
        mask.values[4 * 150 + 3] = f64::INFINITY;
        check_with(&options, &clean(), Some(&mask), None);
    }
}

#[test]
fn large_scores() {
    let [q, k, v] = heads(&[1, 2], 9, 130, 32).map(|x| Data::f32(&x.dims, x.values.iter().map(|v| v * 8.0).collect()));
    let (dims, want) = formula(&q, &k, &v, None, 20.0);
    let inputs = [&q, &k, &v];
    let m = Model::single(OP, &inputs, &[Entry::Null, Entry::Double(20.0)], DType::F32, &dims);
    m.check(&inputs, |got| assert_close(&got[0], &dims, &want, (2e-2, 2e-2)));
}

#[test]
fn one_program_runs_at_every_length() {
    let (seq, keys, d) = (40, 150, 20);
    let dims = [2, 3, seq, d];
    let x = heads(&[2, 3], seq, keys, d);
    let mask = floats(&[2, 1, seq, keys], 4);
    let m = Model::single(OP, &[&x[0], &x[1], &x[2], &mask], &[Entry::Null], DType::F32, &dims);
    let calls: Vec<[Data; 4]> = sizes(seq)
        .into_iter()
        .zip(sizes(keys).into_iter().rev())
        .map(|(s, c)| {
            let [q, k, v] = heads(&[2, 3], s, c, d);
            [q, k, v, floats(&[2, 1, s, c], u64::from(s))]
        })
        .collect();
    check_in_turn(&m, &calls, |[q, k, v, mask], got| {
        let (dims, want) = formula(q, k, v, Some(mask), 1.0 / 20f64.sqrt());
        assert_close(&got[0], &dims, &want, F32_TOLERANCE);
    });
}

#[test]
fn no_queries_or_values_of_no_length_give_nothing_and_no_keys_zeros() {
    let x = heads(&[1, 2], 4, 5, 8);
    let m = Model::single(OP, &[&x[0], &x[1], &x[2]], &[Entry::Null, Entry::Null], DType::F32, &[1, 2, 4, 8]);
    let calls = [(0, 5, 8), (4, 5, 0), (4, 0, 8), (4, 5, 8)].map(|(s, c, width)| {
        let [q, k, _] = heads(&[1, 2], s, c, 8);
        [q, k, floats(&[1, 2, c, width], 3)]
    });
    check_in_turn(&m, &calls, |[q, k, v], got| {
        let (dims, want) = formula(q, k, v, None, 1.0 / 8f64.sqrt());
        let want: Vec<f64> = if k.values.is_empty() { vec![0.0; want.len()] } else { want };
        assert_close(&got[0], &dims, &want, F32_TOLERANCE);
    });
}

#[test]
fn the_longest_sequences_need_no_room_for_scores() {
    let x = heads(&[1, 1], 70_000, 40_000, 1);
    let inputs = [&x[0], &x[1], &x[2]];
    let m = Model::single(OP, &inputs, &[Entry::Null, Entry::Null], DType::F32, &[1, 1, 70_000, 1]);
    let memory = m.load_with(Options::default(), Profile::Minimal).unwrap().program.memory();
    assert!(memory.total() < 8 << 20, "{memory:?}");
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let load = |dims: [&[u32]; 4], out: &[u32]| {
        let mut m = Model::new();
        let ids = dims.map(|dims| m.input(DType::F32, dims));
        let (none, out) = (m.null(), m.tensor(DType::F32, out));
        m.op(OP, &[ids[0], ids[1], ids[2], ids[3], none, out]);
        m.output(out);
        m.load().err().unwrap().to_string()
    };
    let good: &[u32] = &[1, 2, 3, 8];
    for (dims, expected) in [
        ([good, &[1, 2, 3, 12], good, &[3, 3]], "heads of 8"),
        ([good, good, &[1, 2, 4, 8], &[3, 3]], "as many values as keys"),
        ([good, good, good, &[3, 4]], "the mask is [3, 4]"),
        ([good, good, good, &[5, 2, 3, 3]], "the mask is [5, 2, 3, 3]"),
        ([good, &[1, 5, 3, 8], good, &[3, 3]], "broadcast"),
        ([&[8], good, good, &[3, 3]], "q is float32 [8]"),
    ] {
        let text = load(dims, good);
        assert!(text.contains(expected) && text.contains(OP), "{text}");
    }
    for d in [0, 4100] {
        let all: &[u32] = &[1, 1, 1, d];
        assert!(load([all, all, &[1, 1, 1, 4], &[1]], &[1, 1, 1, 4]).contains(&format!("heads of {d} and 4")));
    }
}

#[test]
fn parts_of_wide_values_are_merged_on_every_device() {
    check(&heads(&[1, 1], 1, 300, 2048), None, None);
}
