use executorch_webgpu::graph::DType;

use crate::cases::{FLOATS, check_in_turn, sizes};
use crate::common::writer::Entry;
use crate::common::{Data, Model, assert_close, tolerance};

/// Tests with a case for each type of each operator.
pub const TESTS: &[fn()] = &[rows_of_any_number_and_width_have_parameters, a_tensor_has_one_pair, symmetric_blocks];

const EPS: f64 = f32::EPSILON as f64;

/// The extremes of numbers and 0.
fn extremes(x: &[f64]) -> (f64, f64) {
    (x.iter().copied().fold(0.0, f64::min), x.iter().copied().fold(0.0, f64::max))
}

fn asymmetric(x: &[f64], [low, high]: [f64; 2], eps: f64) -> (f64, f64) {
    let (least, most) = extremes(x);
    let scale = ((most - least) / (high - low)).max(eps);
    (scale, (low - (least / scale).round_ties_even()).clamp(low, high))
}

fn nearer(x: &[f64]) -> (f64, f64) {
    let (least, most) = extremes(x);
    let scale = ((most - least) / 255.0).max(EPS);
    let (a, b) = (least / scale, most / scale);
    let zero = if (-128.0 + a) + (127.0 + b) > 0.0 { -128.0 - a } else { 127.0 - b };
    (scale, zero.clamp(-128.0, 127.0).round_ties_even())
}

/// Rows of every kind: of both signs, of one, all zero, tiny.
fn rows(dtype: DType, count: u32, width: u32, seed: u64) -> Data {
    let mut x = Data::random(dtype, &[count, width], (-1.0, 1.0), seed);
    for (row, x) in x.values.chunks_mut(width.max(1) as usize).enumerate() {
        let kinds: [fn(f64) -> f64; 5] = [|x| x, |x| x.abs() * 3.0, |x| -x.abs(), |_| 0.0, |x| x / 1024.0];
        x.iter_mut().for_each(|x| *x = kinds[row % 5](*x));
    }
    Data::new(dtype, &[count, width], x.values)
}

fn model(op: &str, x: &Data, args: &[Entry], outs: [(DType, &[u32]); 2]) -> Model {
    let mut m = Model::new();
    let mut ids = vec![m.input(x.dtype, &x.dims)];
    ids.extend(args.iter().map(|entry| m.add(entry.clone())).collect::<Vec<_>>());
    let outs = outs.map(|(dtype, dims)| m.tensor(dtype, dims));
    ids.push(m.list(&outs));
    m.op(op, &ids);
    outs.iter().for_each(|&out| m.output(out));
    m
}

#[track_caller]
fn assert_parameters(got: &[Data], dims: &[u32], want: &[(f64, f64)]) {
    let (scales, zeros): (Vec<f64>, Vec<f64>) = want.iter().copied().unzip();
    let (_, rel) = tolerance(DType::F32, 1);
    assert_close(&got[0], dims, &scales, (0.0, rel));
    assert_close(&got[1], dims, &zeros, (0.0, 0.0));
}

fn by_rows(x: &Data, width: u32, rule: impl Fn(&[f64]) -> (f64, f64)) -> Vec<(f64, f64)> {
    x.values.chunks(width as usize).map(rule).collect()
}

fn affine(mapping: &str, block: &[i64], [low, high]: [Entry; 2], eps: Entry, keep: bool) -> Vec<Entry> {
    let block = Entry::Ints(block.to_vec());
    let none = || Entry::Null;
    vec![Entry::Text(mapping.into()), block, none(), low, high, eps, none(), none(), Entry::Bool(keep)]
}

const AFFINE: &str = "torchao.choose_qparams_affine.default";

#[test]
fn rows_of_any_number_and_width_have_parameters() {
    let op = "quantized_decomposed.choose_qparams_per_token_asymmetric.default";
    for (count, width) in [(1, 1), (1, 4096), (2, 3), (5, 64), (7, 257), (37, 41)] {
        for dtype in [DType::F32, DType::F16] {
            let x = rows(dtype, count, width, 1);
            let want = by_rows(&x, width, nearer);
            let out: &[u32] = &[count, 1];
            model(op, &x, &[Entry::Null], [(DType::F64, out), (DType::I64, out)])
                .check(&[&x], |got| assert_parameters(got, out, &want));
            let range = [-128.0, 127.0];
            let want = by_rows(&x, width, |x| asymmetric(x, range, EPS));
            let args = affine(
                "ASYMMETRIC",
                &[1, i64::from(width)],
                [Entry::Int(-128), Entry::Int(127)],
                Entry::Double(EPS),
                false,
            );
            // A row of one element is no block of its own: torchao keeps the dimension.
            let out: &[u32] = if width == 1 { &[count, 1] } else { &[count] };
            for zero in [DType::I8, DType::I32] {
                model(AFFINE, &x, &args, [(DType::F32, out), (zero, out)])
                    .check(&[&x], |got| assert_parameters(got, out, &want));
            }
        }
    }
}

#[test]
fn a_tensor_has_one_pair() {
    for (dims, low, high) in [(&[5, 7, 3][..], -128, 127), (&[1000], 0, 255), (&[], -8, 7)] {
        for dtype in FLOATS {
            let x = Data::random(dtype, dims, (-1.0, 2.0), 3);
            let args = [Entry::Int(low), Entry::Int(high), Entry::Double(1e-3), Entry::Null];
            let want = [asymmetric(&x.values, [low as f64, high as f64], 1e-3)];
            model("quantized_decomposed.choose_qparams.tensor", &x, &args, [(DType::F64, &[1]), (DType::I64, &[1])])
                .check(&[&x], |got| assert_parameters(got, &[1], &want));
        }
    }
}

#[test]
fn the_least_scale_is_honoured() {
    let x = Data::f32(&[3, 2], vec![0.0, 0.0, 1e-9, -1e-9, -10.0, 0.0]);
    for (eps, least) in [(Entry::Double(0.25), 0.25), (Entry::Null, f64::from(f32::MIN_POSITIVE))] {
        let want = by_rows(&x, 2, |x| asymmetric(x, [-128.0, 127.0], least));
        let args = affine("ASYMMETRIC", &[1, 2], [Entry::Null, Entry::Null], eps, false);
        model(AFFINE, &x, &args, [(DType::F32, &[3]), (DType::I32, &[3])])
            .check(&[&x], |got| assert_parameters(got, &[3], &want));
    }
}

#[test]
fn symmetric_blocks() {
    let x = rows(DType::F32, 6, 40, 4);
    let [low, high] = [-8.0, 7.0];
    type Rule = fn(f64, f64) -> f64;
    let rules: [(&str, Rule); 2] = [
        ("SYMMETRIC", |least, most| most.max(-least) / 7.5),
        ("SYMMETRIC_NO_CLIPPING_ERR", |least, most| (least / -8.0).max(most / 7.0)),
    ];
    for (mapping, rule) in rules {
        for keep in [false, true] {
            let mut want = Vec::new();
            for (row, part) in (0..3).flat_map(|row| (0..4).map(move |part| (row, part))) {
                let block: Vec<f64> = (0..20).map(|i| x.values[(row * 2 + i / 10) * 40 + part * 10 + i % 10]).collect();
                let (least, most) = extremes(&block);
                want.push((rule(least, most).max(EPS), ((high + low + 1.0) / 2.0_f64).trunc()));
            }
            let args = affine(mapping, &[2, 10], [Entry::Int(-8), Entry::Int(7)], Entry::Double(EPS), keep);
            model(AFFINE, &x, &args, [(DType::F32, &[3, 4]), (DType::I8, &[3, 4])])
                .check(&[&x], |got| assert_parameters(got, &[3, 4], &want));
        }
    }
}

#[test]
fn whole_dimensions_go_or_stay_as_one() {
    let x = rows(DType::F32, 6, 8, 5);
    let x = Data { dims: vec![2, 3, 8], ..x };
    let want = by_rows(&x, 8, |x| asymmetric(x, [0.0, 255.0], EPS));
    for (keep, out) in [(false, &[2, 3][..]), (true, &[2, 3, 1])] {
        let args = affine("ASYMMETRIC", &[1, 1, 8], [Entry::Int(0), Entry::Int(255)], Entry::Double(EPS), keep);
        model(AFFINE, &x, &args, [(DType::F32, out), (DType::U8, out)])
            .check(&[&x], |got| assert_parameters(got, out, &want));
    }
}

#[test]
fn rows_come_and_go() {
    let make = |n: u32| [rows(DType::F32, n, 33, u64::from(n))];
    let args = affine("ASYMMETRIC", &[1, 33], [Entry::Int(-128), Entry::Int(127)], Entry::Double(EPS), false);
    let m = model(AFFINE, &make(13)[0], &args, [(DType::F32, &[13]), (DType::I8, &[13])]);
    check_in_turn(&m, &sizes(13).map(make), |[x], got| {
        let want = by_rows(x, 33, |x| asymmetric(x, [-128.0, 127.0], EPS));
        assert_parameters(got, &x.dims[..1], &want);
    });
}

#[test]
fn blocks_of_nothing_have_no_parameters() {
    for keep in [false, true] {
        let x = Data::f32(&[0, 64], vec![]);
        let range = [Entry::Int(-128), Entry::Int(127)];
        let args = affine("ASYMMETRIC", &[4, 64], range, Entry::Double(EPS), keep);
        let out: &[u32] = if keep { &[0, 1] } else { &[0] };
        let model = model(AFFINE, &x, &args, [(DType::F32, out), (DType::I32, out)]);
        model.check(&[&x], |got| assert_eq!(got[0].dims, out));
    }
}
