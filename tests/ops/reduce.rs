use executorch_webgpu::gpu::Profile;
use executorch_webgpu::graph::DType;
use executorch_webgpu::options::Options;

use crate::cases::{ALL, FLOATS, INTEGERS, check_in_turn, coordinates, flat, hold, sizes};
use crate::common::writer::Entry;
use crate::common::{Data, Model, assert_close, tolerance};

/// Tests with a case for each type of each operator.
pub const TESTS: &[fn()] = &[floats, integers_and_bools, every_type_has_a_largest_element];

/// The elements that each result is made of, in row-major order, and the shape of the result.
fn groups(x: &Data, axes: &[i64], keep: bool) -> (Vec<u32>, Vec<Vec<f64>>) {
    let rank = x.dims.len();
    let axes: Vec<usize> = axes.iter().map(|d| d.rem_euclid(rank.max(1) as i64) as usize).collect();
    let goes = |axis: usize| axes.is_empty() || axes.contains(&axis);
    let kept: Vec<u32> = (0..rank).map(|axis| if goes(axis) { 1 } else { x.dims[axis] }).collect();
    let mut lists = vec![Vec::new(); kept.iter().product::<u32>() as usize];
    for (i, &value) in x.values.iter().enumerate() {
        let at: Vec<usize> =
            coordinates(i, &x.dims).iter().enumerate().map(|(axis, &c)| if goes(axis) { 0 } else { c }).collect();
        lists[flat(&at, &kept)].push(value);
    }
    let dims = (0..rank).filter(|&axis| keep || !goes(axis)).map(|axis| kept[axis]).collect();
    (dims, lists)
}

type Fold = fn(&[f64]) -> f64;

fn sum(v: &[f64]) -> f64 {
    v.iter().sum()
}

fn mean(v: &[f64]) -> f64 {
    v.iter().sum::<f64>() / v.len() as f64
}

fn most(v: &[f64]) -> f64 {
    v.iter().copied().reduce(|a, b| if b > a || b.is_nan() { b } else { a }).unwrap()
}

fn least(v: &[f64]) -> f64 {
    -most(&v.iter().map(|x| -x).collect::<Vec<_>>())
}

/// The first position of the largest element; NaN is the largest.
fn place_of_most(v: &[f64]) -> f64 {
    let beats = |a: f64, b: f64| a > b || (a.is_nan() && !b.is_nan());
    (0..v.len()).reduce(|best, k| if beats(v[k], v[best]) { k } else { best }).unwrap() as f64
}

fn place_of_least(v: &[f64]) -> f64 {
    place_of_most(&v.iter().map(|x| -x).collect::<Vec<_>>())
}

const FOLDS: [(&str, Fold); 6] = [
    ("aten.sum.dim_IntList", sum),
    ("aten.mean.dim", mean),
    ("aten.amax.default", most),
    ("aten.amin.default", least),
    ("aten.argmax.default", place_of_most),
    ("aten.argmin.default", place_of_least),
];

fn arguments(op: &str, axes: &[i64], keep: bool) -> Vec<Entry> {
    let dims = match (op.contains("arg"), axes) {
        (_, []) => Entry::Null,
        (true, [axis, ..]) => Entry::Int(*axis),
        _ => Entry::Ints(axes.to_vec()),
    };
    let mut args = vec![dims, Entry::Bool(keep)];
    if op.contains("sum") || op.contains("mean") {
        args.push(Entry::Null);
    }
    args
}

fn check(op: &str, fold: Fold, x: &Data, out: DType, axes: &[i64], keep: bool) {
    let (dims, lists) = groups(x, axes, keep);
    let terms = lists.first().map_or(1, Vec::len);
    let want: Vec<f64> = lists.iter().map(|list| hold(out, fold(list))).collect();
    Model::single(op, &[x], &arguments(op, axes, keep), out, &dims)
        .check(&[x], |got| assert_close(&got[0], &dims, &want, tolerance(out, terms)));
}

const CASES: [(&[u32], &[i64]); 19] = [
    (&[], &[]),
    (&[1], &[0]),
    (&[37, 41], &[1]),
    (&[37, 41], &[0]),
    (&[37, 41], &[]),
    (&[5, 7, 11], &[-1]),
    (&[5, 7, 11], &[1]),
    (&[5, 7, 11], &[0, 2]),
    (&[2, 3, 5, 7], &[1, 3]),
    (&[3, 63], &[1]),
    (&[2, 255], &[1]),
    (&[2, 257], &[1]),
    (&[3, 1031], &[1]),
    (&[5, 1300], &[1]),
    (&[2, 3, 20, 25], &[2, -1]),
    (&[70, 301], &[0]),
    (&[2, 65, 4100], &[1]),
    (&[3, 300, 30], &[0, 1]),
    (&[0, 4], &[1]),
];

fn result_type(op: &str, dtype: DType) -> DType {
    match op {
        _ if op.contains("arg") => DType::I64,
        "aten.sum.dim_IntList" if !dtype.is_float() => DType::I64,
        "aten.mean.dim" if !dtype.is_float() => DType::F32,
        _ => dtype,
    }
}

#[test]
fn floats() {
    for (op, fold) in FOLDS {
        for dtype in FLOATS {
            for (dims, axes) in CASES.into_iter().filter(|(_, axes)| axes.len() < 2 || !op.contains("arg")) {
                let x = Data::random(dtype, dims, (-1.0, 1.0), 3);
                check(op, fold, &x, result_type(op, dtype), axes, dims.len() % 2 == 0);
            }
        }
    }
}

#[test]
fn integers_and_bools() {
    for (op, fold) in FOLDS {
        for dtype in INTEGERS.into_iter().chain([DType::Bool]).filter(|&d| d != DType::Bool || !op.contains("mean")) {
            for (dims, axes) in [(&[5, 7][..], &[1][..]), (&[3, 1031], &[1]), (&[3, 1036], &[1]), (&[2, 9, 5], &[1])] {
                let low = if dtype == DType::U8 { 0.0 } else { -100.0 };
                let x = Data::random(dtype, dims, (low, 100.0), 3);
                check(op, fold, &x, result_type(op, dtype), axes, true);
            }
        }
    }
}

#[test]
fn ties_nan_and_infinities() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let rows = [
        [3.0, 7.0, 7.0, 1.0, 1.0],
        [nan, 1.0, nan, 2.0, 0.0],
        [1.0, nan, 5.0, inf, -inf],
        [-inf; 5],
        [-0.0, 0.0, 0.0, -0.0, 0.0],
    ];
    for repeats in [1, 30] {
        let values: Vec<f64> = rows.iter().flat_map(|row| row.repeat(repeats)).collect();
        let x = Data::f32(&[5, 5 * repeats as u32], values);
        for (op, fold) in FOLDS.into_iter().skip(2) {
            check(op, fold, &x, result_type(op, DType::F32), &[1], false);
        }
    }
}

#[test]
fn large_integers_add_exactly() {
    let x = Data::new(DType::I32, &[1, 3], vec![16777216.0, 1.0, 1.0]);
    check("aten.sum.dim_IntList", sum, &x, DType::I64, &[1], false);
}

#[test]
fn many_results() {
    let x = Data::random(DType::F32, &[5000, 65], (-1.0, 1.0), 1);
    check("aten.sum.dim_IntList", sum, &x, DType::F32, &[1], false);
    let x = Data::random(DType::F32, &[65, 5000], (-1.0, 1.0), 1);
    check("aten.mean.dim", mean, &x, DType::F32, &[0], true);
    check("aten.argmax.default", place_of_most, &x, DType::I32, &[0], false);
}

#[test]
fn reductions_of_changing_tensors() {
    for (op, fold) in FOLDS {
        for (axes, bound) in [(&[1][..], vec![9, 1]), (&[0], vec![1, 9])] {
            let make = |n: u32| [Data::random(DType::F32, &[n, n], (-1.0, 1.0), u64::from(n))];
            let out = result_type(op, DType::F32);
            let m = Model::single(op, &[&make(9)[0]], &arguments(op, axes, true), out, &bound);
            check_in_turn(&m, &sizes(9).map(make), |[x], got| {
                let (dims, lists) = groups(x, axes, true);
                let want: Vec<f64> = lists.iter().map(|list| fold(list)).collect();
                assert_close(&got[0], &dims, &want, tolerance(out, 9));
            });
        }
    }
}

#[test]
fn nothing_to_reduce() {
    let x = Data::random(DType::F32, &[3, 0], (0.0, 1.0), 1);
    check("aten.sum.dim_IntList", sum, &x, DType::F32, &[1], false);
    check("aten.mean.dim", mean, &x, DType::F32, &[1], false);
    let m = Model::single("aten.amax.default", &[&x], &arguments("aten.amax.default", &[1], false), DType::F32, &[3]);
    let text = m.load().err().unwrap().to_string();
    assert!(text.contains("no element to choose"), "{text}");
}

#[test]
fn every_type_has_a_largest_element() {
    for dtype in ALL {
        check("aten.amax.default", most, &Data::random(dtype, &[67], (0.0, 100.0), 8), dtype, &[], false);
    }
}

/// A software adapter leaves a kernel's loops early: workgroups grow, and what is still too much is refused, not left out.
#[test]
fn sums_of_more_than_a_loop_has_turns() {
    let count = 20 << 20;
    let mut m = Model::new();
    let none = m.null();
    let ones = m.tensor(DType::F32, &[count]);
    let (size, one) = (m.ints(&[i64::from(count)]), m.double(1.0));
    m.op("aten.full.default", &[size, one, none, none, none, none, ones]);
    let (axes, keep) = (m.ints(&[0]), m.boolean(true));
    let out = m.tensor(DType::F32, &[1]);
    m.op("aten.sum.dim_IntList", &[ones, axes, keep, none, out]);
    m.output(out);
    for profile in [Profile::Full, Profile::Minimal] {
        match m.load_with(Options::default(), profile) {
            Ok(mut running) => assert_eq!(running.run(&[]).unwrap()[0].values, [f64::from(count)]),
            Err(e) => {
                assert_eq!(profile, Profile::Minimal, "{e}");
                assert!(e.to_string().contains("too many for a software adapter"), "{e}");
            }
        }
    }
}
