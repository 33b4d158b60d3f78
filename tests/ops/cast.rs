use executorch_webgpu::graph::DType;

use crate::cases::{ALL, SHAPES, check_in_turn, hold, pick, sizes};
use crate::common::writer::Entry;
use crate::common::{Data, Model, assert_close};

/// Tests with a case for each type of each operator.
pub const TESTS: &[fn()] =
    &[every_type_converts_to_every_type, a_copy_takes_the_second_tensor_in_the_shape_of_the_first];

fn converted(x: f64, to: DType) -> f64 {
    match to {
        DType::Bool => f64::from(x != 0.0),
        d if d.is_float() => hold(d, x),
        d => hold(d, x.trunc()),
    }
}

fn arguments(op: &str) -> Vec<Entry> {
    let (none, no) = (Entry::Null, Entry::Bool(false));
    match op {
        "aten._to_copy.default" => vec![none.clone(), none.clone(), none.clone(), none.clone(), no, none],
        _ => vec![none.clone(), none.clone(), none.clone(), none, no, Entry::Ints(vec![0, 1])],
    }
}

fn check(op: &str, x: &Data, to: DType) {
    let want: Vec<f64> = x.values.iter().map(|&x| converted(x, to)).collect();
    Model::single(op, &[x], &arguments(op), to, &x.dims)
        .check(&[x], |got| assert_close(&got[0], &x.dims, &want, (0.0, 0.0)));
}

#[test]
fn every_type_converts_to_every_type() {
    for from in ALL {
        for to in ALL {
            let low = if from == DType::U8 || to == DType::U8 { 0.0 } else { -100.0 };
            check("aten._to_copy.default", &Data::random(from, &[37, 3], (low, 100.0), 4), to);
            check("dim_order_ops._to_dim_order_copy.default", &Data::random(from, &[5], (low, 100.0), 4), to);
        }
    }
    for dims in SHAPES {
        check("dim_order_ops._to_dim_order_copy.default", &Data::random(DType::F32, dims, (-9.0, 9.0), 4), DType::I64);
    }
}

#[test]
fn fractions_are_cut_off_and_integers_wrap() {
    let x = Data::f32(&[6], vec![-1.9, -0.5, 0.0, 0.5, 1.9, 127.5]);
    check("aten._to_copy.default", &x, DType::I32);
    check("aten._to_copy.default", &x, DType::I8);
    check("aten._to_copy.default", &x, DType::Bool);
    check("aten._to_copy.default", &Data::f32(&[3], vec![f64::NAN, f64::INFINITY, -0.0]), DType::Bool);
    let n = Data::new(DType::I32, &[5], vec![300.0, -1.0, 256.0, 65537.0, -129.0]);
    check("aten._to_copy.default", &n, DType::U8);
    check("aten._to_copy.default", &n, DType::I8);
    check("aten._to_copy.default", &n, DType::Bool);
}

/// A bool that a kernel made is read as numbers.
#[test]
fn computed_bools_convert() {
    let mut m = Model::new();
    let (x, zero) = (m.input(DType::F32, &[67]), m.int(0));
    let (positive, y) = (m.tensor(DType::Bool, &[67]), m.tensor(DType::F32, &[67]));
    m.op("aten.gt.Scalar", &[x, zero, positive]);
    let none = m.null();
    m.op("aten._to_copy.default", &[positive, none, none, none, none, none, none, y]);
    m.output(y);
    let make = |n: u32| [Data::random(DType::F32, &[n], (-1.0, 1.0), u64::from(n))];
    check_in_turn(&m, &sizes(67).map(make), |[x], got| {
        let want: Vec<f64> = x.values.iter().map(|&x| f64::from(x > 0.0)).collect();
        assert_close(&got[0], &x.dims, &want, (0.0, 0.0));
    });
}

#[test]
fn a_copy_takes_the_second_tensor_in_the_shape_of_the_first() {
    for (from, shape) in [(DType::F32, &[5, 3][..]), (DType::F32, &[3]), (DType::I32, &[5, 1]), (DType::Bool, &[])] {
        let like = Data::random(DType::F32, &[5, 3], (0.0, 1.0), 1);
        let source = Data::random(from, shape, (-9.0, 9.0), 2);
        let want: Vec<f64> = (0..15).map(|i| pick(&source, &[5, 3], i)).collect();
        Model::single("aten.copy.default", &[&like, &source], &[Entry::Bool(false)], DType::F32, &[5, 3])
            .check(&[&like, &source], |got| assert_close(&got[0], &[5, 3], &want, (0.0, 0.0)));
    }
    for dtype in ALL {
        let (like, source) = (Data::random(dtype, &[5, 3], (0.0, 1.0), 1), Data::random(dtype, &[3], (0.0, 9.0), 2));
        let want: Vec<f64> = (0..15).map(|i| pick(&source, &[5, 3], i)).collect();
        Model::single("aten.copy.default", &[&like, &source], &[Entry::Bool(false)], dtype, &[5, 3])
            .check(&[&like, &source], |got| assert_close(&got[0], &[5, 3], &want, (0.0, 0.0)));
    }
}

/// A result that is also the operand is computed beside it and copied back.
#[test]
fn an_operator_may_write_over_its_operand() {
    let mut m = Model::new();
    let x = m.input(DType::F32, &[7, 5]);
    m.op("aten.neg.default", &[x, x]);
    m.output(x);
    let data = Data::random(DType::F32, &[7, 5], (-1.0, 1.0), 1);
    let want: Vec<f64> = data.values.iter().map(|x| -x).collect();
    m.check(&[&data], |got| assert_close(&got[0], &[7, 5], &want, (0.0, 0.0)));
}
