use executorch_webgpu::graph::DType;

use crate::cases::{ALL, FLOATS, INTEGERS, SPECIAL, broadcast, check_in_turn, hold, pick, sizes};
use crate::common::writer::Entry;
use crate::common::{Data, Model, assert_close, tolerance};

/// Tests with a case for each type of each operator.
pub const TESTS: &[fn()] = &[
    sums_and_differences,
    products,
    quotients,
    minima_carry_nan,
    powers,
    comparisons_of_tensors,
    comparisons_with_numbers,
    logic,
    mixed_types_promote,
    a_selection_broadcasts_three_ways,
];

type Args<'a> = &'a [Entry];

/// Same shape, a number as tensor, rows, columns, both sides repeating, vectors of four and not, rank 8, nothing at all.
const PAIRS: [(&[u32], &[u32]); 14] = [
    (&[], &[]),
    (&[1], &[1]),
    (&[37, 41], &[37, 41]),
    (&[5, 7], &[]),
    (&[1], &[3, 1, 2]),
    (&[6, 8], &[8]),
    (&[6, 8], &[6, 1]),
    (&[3, 5, 7, 11], &[1, 5, 1, 11]),
    (&[4, 1], &[1, 4]),
    (&[2, 1, 8], &[4, 1]),
    (&[4], &[3, 4]),
    (&[2, 1, 2, 1, 3, 1, 2, 4], &[1, 3, 1, 2, 1, 2, 1, 4]),
    (&[0, 3], &[1, 3]),
    (&[65, 4], &[65, 4]),
];

/// One of each way of addressing, for operators that share their kernel with one that saw all pairs.
const FEW: [(&[u32], &[u32]); 4] = [(&[7], &[7]), (&[2, 1, 3], &[3, 1]), (&[6, 8], &[8]), (&[5, 3], &[])];

fn expected(a: &Data, b: &Data, out: DType, f: impl Fn(f64, f64) -> f64) -> (Vec<u32>, Vec<f64>) {
    let dims = broadcast(&[&a.dims, &b.dims]);
    let count = dims.iter().product::<u32>() as usize;
    let want = (0..count).map(|i| hold(out, f(pick(a, &dims, i), pick(b, &dims, i)))).collect();
    (dims, want)
}

fn compare(op: &str, args: Args<'_>, a: &Data, b: &Data, out: DType, f: impl Fn(f64, f64) -> f64) {
    let (dims, want) = expected(a, b, out, f);
    Model::single(op, &[a, b], args, out, &dims)
        .check(&[a, b], |got| assert_close(&got[0], &dims, &want, tolerance(out, 1)));
}

fn few_pairs(op: &str, (dtype, out): (DType, DType), range: (f64, f64), f: impl Fn(f64, f64) -> f64) {
    for (a, b) in FEW {
        compare(op, &[], &Data::random(dtype, a, range, 1), &Data::random(dtype, b, range, 2), out, &f);
    }
}

fn every_pair(op: &str, args: Args<'_>, dtype: DType, range: (f64, f64), f: impl Fn(f64, f64) -> f64 + Copy) {
    for (a, b) in PAIRS {
        let out = dtype;
        let (a, b) = (Data::random(dtype, a, range, 1), Data::random(dtype, b, range, 2));
        compare(op, args, &a, &b, out, f);
        compare(op, args, &b, &a, out, f);
    }
}

/// Both floats over all pairs of shapes, special numbers against each other, and a model whose size changes.
fn floats(op: &str, args: Args<'_>, range: (f64, f64), f: impl Fn(f64, f64) -> f64 + Copy) {
    for dtype in FLOATS {
        every_pair(op, args, dtype, range, f);
        let rows = Data::new(dtype, &[16, 1], SPECIAL.to_vec());
        let columns = Data::new(dtype, &[16], SPECIAL.to_vec());
        compare(op, args, &rows, &columns, dtype, f);
    }
    changing_sizes(op, args, range, f);
}

fn changing_sizes(op: &str, args: Args<'_>, range: (f64, f64), f: impl Fn(f64, f64) -> f64 + Copy) {
    let make = |n: u32, seed| {
        [Data::random(DType::F32, &[2, n, 4], range, seed), Data::random(DType::F32, &[n, 1], range, seed + 1)]
    };
    let [a, b] = &make(9, 0);
    let model = Model::single(op, &[a, b], args, DType::F32, &[2, 9, 4]);
    let calls = sizes(9).map(|n| make(n, u64::from(n)));
    check_in_turn(&model, &calls, |[a, b], got| {
        let (dims, want) = expected(a, b, DType::F32, f);
        assert_close(&got[0], &dims, &want, tolerance(DType::F32, 1));
    });
}

fn integers(op: &str, args: Args<'_>, f: impl Fn(f64, f64) -> f64 + Copy) {
    for dtype in INTEGERS {
        let low = if dtype == DType::U8 { 0.0 } else { -100.0 };
        for (a, b) in PAIRS {
            let (a, b) = (Data::random(dtype, a, (low, 100.0), 1), Data::random(dtype, b, (1.0, 100.0), 2));
            compare(op, args, &a, &b, dtype, f);
        }
    }
}

fn none() -> Entry {
    Entry::Null
}

#[test]
fn sums_and_differences() {
    floats("aten.add.Tensor", &[Entry::Int(1)], (-3.0, 3.0), |a, b| a + b);
    floats("aten.sub.Tensor", &[Entry::Double(0.5)], (-3.0, 3.0), |a, b| a - 0.5 * b);
    integers("aten.add.Tensor", &[Entry::Int(3)], |a, b| a + 3.0 * b);
    integers("aten.sub.Tensor", &[Entry::Double(1.0)], |a, b| a - b);
    every_pair("aten.add.Tensor", &[Entry::Int(1)], DType::Bool, (0.0, 1.0), f64::max);
}

#[test]
fn products() {
    floats("aten.mul.Tensor", &[], (-3.0, 3.0), |a, b| a * b);
    integers("aten.mul.Tensor", &[], |a, b| a * b);
    every_pair("aten.mul.Tensor", &[], DType::Bool, (0.0, 1.0), |a, b| a * b);
}

#[test]
fn int32_wraps() {
    let a = Data::new(DType::I32, &[4], vec![2147483647.0, -2147483648.0, 65536.0, 16777217.0]);
    let b = Data::new(DType::I32, &[4], vec![1.0, 1.0, 65536.0, 2.0]);
    compare("aten.add.Tensor", &[Entry::Int(1)], &a, &b, DType::I32, |a, b| a + b);
    compare("aten.sub.Tensor", &[Entry::Int(1)], &a, &b, DType::I32, |a, b| a - b);
    compare("aten.mul.Tensor", &[], &a, &b, DType::I32, |a, b| a * b);
}

#[test]
fn quotients() {
    floats("aten.div.Tensor", &[], (0.5, 3.0), |a, b| a / b);
    floats("aten.div.Tensor_mode", &[none()], (0.5, 3.0), |a, b| a / b);
    for dtype in INTEGERS {
        few_pairs("aten.div.Tensor", (dtype, DType::F32), (1.0, 100.0), |a, b| a / b);
    }
    few_pairs("aten.div.Tensor", (DType::Bool, DType::F32), (0.0, 1.0), |a, b| a / b);
    integers("aten.div.Tensor_mode", &[Entry::Text("floor".into())], |a, b| (a / b).floor());
    integers("aten.div.Tensor_mode", &[Entry::Text("trunc".into())], |a, b| (a / b).trunc());
    let (a, b) = (Data::random(DType::I32, &[40], (-9.0, 9.0), 1), Data::random(DType::I32, &[40], (-5.0, -1.0), 2));
    compare("aten.div.Tensor_mode", &[Entry::Text("floor".into())], &a, &b, DType::I32, |a, b| (a / b).floor());
}

/// The floor of the exact quotient, as PyTorch's remainder-based division gives it.
fn floor_quotient(a: f64, b: f64) -> f64 {
    let rest = a % b;
    if b == 0.0 {
        return a / b;
    }
    if rest.is_nan() {
        return f64::NAN;
    }
    let whole = ((a - rest) / b).round();
    if rest != 0.0 && (rest < 0.0) != (b < 0.0) { whole - 1.0 } else { whole }
}

#[test]
fn rounded_quotients_of_floats() {
    for dtype in FLOATS {
        let a = Data::new(dtype, &[8], vec![7.0, -7.0, 7.5, -7.5, 0.0, f64::INFINITY, f64::NEG_INFINITY, 1e3]);
        let b = Data::new(dtype, &[6, 1], vec![2.0, -2.0, 0.75, 0.0, -3.0, f64::INFINITY]);
        compare("aten.div.Tensor_mode", &[Entry::Text("floor".into())], &a, &b, dtype, floor_quotient);
        compare("aten.div.Tensor_mode", &[Entry::Text("trunc".into())], &a, &b, dtype, |a, b| (a / b).trunc());
    }
    changing_sizes("aten.div.Tensor_mode", &[Entry::Text("trunc".into())], (0.5, 3.0), |a, b| (a / b).trunc());
}

#[test]
fn minima_carry_nan() {
    let lowest = |a: f64, b: f64| if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) };
    floats("aten.minimum.default", &[], (-3.0, 3.0), lowest);
    integers("aten.minimum.default", &[], f64::min);
    every_pair("aten.minimum.default", &[], DType::Bool, (0.0, 1.0), f64::min);
}

#[test]
fn powers() {
    for dtype in FLOATS {
        every_pair("aten.pow.Tensor_Tensor", &[], dtype, (0.3, 2.5), f64::powf);
    }
    let specials = |values: &[f64], dims: &[u32]| Data::new(DType::F32, dims, values.to_vec());
    let a = specials(&[-2.0, -0.5, 0.0, 1.0, 3.0, f64::NAN, f64::INFINITY, -1.0, f64::NEG_INFINITY], &[9]);
    let b = specials(&[2.0, 3.0, -1.0, 0.5, 0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -2.5], &[9, 1]);
    compare("aten.pow.Tensor_Tensor", &[], &a, &b, DType::F32, f64::powf);
    for dtype in INTEGERS {
        let low = if dtype == DType::U8 { 0.0 } else { -9.0 };
        let (a, b) = (Data::random(dtype, &[40], (low, 9.0), 1), Data::random(dtype, &[40], (0.0, 8.0), 2));
        compare("aten.pow.Tensor_Tensor", &[], &a, &b, dtype, f64::powf);
    }
    changing_sizes("aten.pow.Tensor_Tensor", &[], (0.3, 2.5), f64::powf);
}

fn truth(b: bool) -> f64 {
    f64::from(u8::from(b))
}

type Relation = fn(&f64, &f64) -> bool;

const RELATIONS: [(&str, Relation); 6] =
    [("eq", f64::eq), ("ne", f64::ne), ("lt", f64::lt), ("le", f64::le), ("gt", f64::gt), ("ge", f64::ge)];

#[test]
fn comparisons_of_tensors() {
    for (name, relation) in RELATIONS.into_iter().filter(|(name, _)| *name != "ne") {
        let op = format!("aten.{name}.Tensor");
        for dtype in ALL {
            few_pairs(&op, (dtype, DType::Bool), (0.0, 4.0), |a, b| truth(relation(&a, &b)));
        }
        let rows = Data::new(DType::F32, &[16, 1], SPECIAL.to_vec());
        let columns = Data::new(DType::F32, &[16], SPECIAL.to_vec());
        compare(&op, &[], &rows, &columns, DType::Bool, |a, b| truth(relation(&a, &b)));
    }
}

#[test]
fn comparisons_with_numbers() {
    for (name, relation) in RELATIONS {
        let op = format!("aten.{name}.Scalar");
        for dtype in ALL {
            let x = Data::random(dtype, &[5, 7], (0.0, 4.0), 3);
            for (entry, number) in [(Entry::Int(1), 1.0), (Entry::Double(2.0), 2.0), (Entry::Double(1.5), 1.5)] {
                let want: Vec<f64> = x.values.iter().map(|x| truth(relation(x, &number))).collect();
                Model::single(&op, &[&x], &[entry], DType::Bool, &x.dims)
                    .check(&[&x], |got| assert_close(&got[0], &x.dims, &want, (0.0, 0.0)));
            }
        }
        let x = Data::f32(&[16], SPECIAL.to_vec());
        let want: Vec<f64> = x.values.iter().map(|x| truth(relation(x, &f64::INFINITY))).collect();
        Model::single(&op, &[&x], &[Entry::Double(f64::INFINITY)], DType::Bool, &[16])
            .check(&[&x], |got| assert_close(&got[0], &[16], &want, (0.0, 0.0)));
    }
}

#[test]
fn large_integers_compare_exactly() {
    let a = Data::new(DType::I64, &[3], vec![16777217.0, 16777216.0, -2147483648.0]);
    let b = Data::new(DType::I64, &[3], vec![16777216.0, 16777217.0, 2147483647.0]);
    compare("aten.eq.Tensor", &[], &a, &b, DType::Bool, |a, b| truth(a == b));
    compare("aten.lt.Tensor", &[], &a, &b, DType::Bool, |a, b| truth(a < b));
}

#[test]
fn logic() {
    for dtype in ALL {
        let both = (dtype, DType::Bool);
        few_pairs("aten.logical_and.default", both, (0.0, 1.4), |a, b| truth(a != 0.0 && b != 0.0));
        few_pairs("aten.logical_or.default", both, (0.0, 1.4), |a, b| truth(a != 0.0 || b != 0.0));
    }
    for dtype in INTEGERS.into_iter().chain([DType::Bool]) {
        let both = (dtype, dtype);
        few_pairs("aten.bitwise_and.Tensor", both, (0.0, 100.0), |a, b| f64::from(a as i32 & b as i32));
        few_pairs("aten.bitwise_or.Tensor", both, (0.0, 100.0), |a, b| f64::from(a as i32 | b as i32));
    }
}

#[test]
fn mixed_types_promote() {
    let (a, b) = (Data::random(DType::I32, &[5, 3], (-9.0, 9.0), 1), Data::random(DType::F32, &[3], (-9.0, 9.0), 2));
    compare("aten.add.Tensor", &[Entry::Int(2)], &a, &b, DType::F32, |a, b| a + 2.0 * b);
    compare("aten.lt.Tensor", &[], &a, &b, DType::Bool, |a, b| truth(a < b));
    let (a, b) = (Data::random(DType::U8, &[5, 3], (0.0, 255.0), 1), Data::random(DType::I8, &[3], (-128.0, 127.0), 2));
    compare("aten.mul.Tensor", &[], &a, &b, DType::I32, |a, b| a * b);
    let (a, b) = (Data::random(DType::F16, &[5, 4], (-9.0, 9.0), 1), Data::random(DType::Bool, &[4], (0.0, 1.0), 2));
    compare("aten.mul.Tensor", &[], &a, &b, DType::F16, |a, b| a * b);
}

#[test]
fn a_number_may_stand_for_the_second_tensor() {
    let a = Data::random(DType::F32, &[3, 5], (-3.0, 3.0), 1);
    let want: Vec<f64> = a.values.iter().map(|a| a + 2.0 * 1.5).collect();
    Model::single("aten.add.Tensor", &[&a], &[Entry::Double(1.5), Entry::Int(2)], DType::F32, &a.dims)
        .check(&[&a], |got| assert_close(&got[0], &a.dims, &want, tolerance(DType::F32, 1)));
}

#[test]
fn a_selection_broadcasts_three_ways() {
    let shapes: [[&[u32]; 3]; 6] = [
        [&[37, 41], &[37, 41], &[37, 41]],
        [&[3, 1, 1], &[1, 5, 1], &[1, 1, 7]],
        [&[8], &[6, 8], &[]],
        [&[], &[6, 8], &[6, 8]],
        [&[2, 3], &[1], &[3]],
        [&[0], &[1], &[1]],
    ];
    for dtype in ALL {
        for ([c, a, b], held) in shapes.into_iter().zip([DType::Bool, DType::U8].into_iter().cycle()) {
            let cond = Data::random(held, c, (0.0, 1.0), 1);
            let (a, b) = (Data::random(dtype, a, (0.0, 9.0), 2), Data::random(dtype, b, (0.0, 9.0), 3));
            let dims = broadcast(&[c, &a.dims, &b.dims]);
            let count = dims.iter().product::<u32>() as usize;
            let choose = |i| if pick(&cond, &dims, i) != 0.0 { pick(&a, &dims, i) } else { pick(&b, &dims, i) };
            let want: Vec<f64> = (0..count).map(choose).collect();
            Model::single("aten.where.self", &[&cond, &a, &b], &[], dtype, &dims)
                .check(&[&cond, &a, &b], |got| assert_close(&got[0], &dims, &want, (0.0, 0.0)));
        }
    }
}

#[test]
fn shapes_that_do_not_broadcast_are_refused() {
    let (a, b) = (Data::random(DType::F32, &[2, 3], (0.0, 1.0), 1), Data::random(DType::F32, &[2, 4], (0.0, 1.0), 2));
    let text = Model::single("aten.mul.Tensor", &[&a, &b], &[], DType::F32, &[2, 4]).load().err().unwrap().to_string();
    assert!(text.contains("[2, 3], [2, 4] do not broadcast"), "{text}");
}

#[test]
fn integers_beyond_32_bits_are_refused_not_cut() {
    let x = Data::new(DType::I64, &[3], vec![1.0, 2.0, 3.0]);
    for (op, args) in [
        ("aten.add.Tensor", vec![Entry::Int(3_000_000_000), Entry::Int(1)]),
        ("aten.mul.Tensor", vec![Entry::Int(5_000_000_000)]),
    ] {
        let model = Model::single(op, &[&x], &args, DType::I64, &[3]);
        assert!(model.load().err().unwrap().to_string().contains("does not fit"), "{op}");
    }
    let bounds = [Entry::Int(-5_000_000_000), Entry::Int(2)];
    Model::single("aten.clamp.default", &[&x], &bounds, DType::I64, &[3])
        .check(&[&x], |out| assert_eq!(out[0].values, [1.0, 2.0, 2.0]));
}
