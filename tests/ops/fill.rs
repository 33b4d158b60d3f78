use executorch_webgpu::graph::DType;

use crate::cases::{ALL, SHAPES, check_in_turn, hold, sizes};
use crate::common::writer::Entry;
use crate::common::{Data, Model, assert_close, tolerance};

/// Tests with a case for each type of each operator.
pub const TESTS: &[fn()] = &[constant_tensors_of_every_type, tensors_like_another, ranges];

fn sizes_of(dims: &[u32]) -> Entry {
    Entry::Ints(dims.iter().map(|&n| i64::from(n)).collect())
}

fn check(op: &str, args: &[Entry], dtype: DType, dims: &[u32], value: f64) {
    let mut all = args.to_vec();
    all.extend([Entry::Null, Entry::Null, Entry::Null, Entry::Bool(false)]);
    let held = if dtype == DType::Bool { f64::from(value != 0.0) } else { hold(dtype, value) };
    let want = vec![held; dims.iter().product::<u32>() as usize];
    Model::single(op, &[], &all, dtype, dims).check(&[], |got| assert_close(&got[0], dims, &want, (0.0, 0.0)));
}

#[test]
fn constant_tensors_of_every_type() {
    for dtype in ALL {
        for dims in SHAPES {
            check("aten.full.default", &[sizes_of(dims), Entry::Int(3)], dtype, dims, 3.0);
        }
        let small = sizes_of(&[3, 5]);
        check("aten.zeros.default", std::slice::from_ref(&small), dtype, &[3, 5], 0.0);
        check("aten.ones.default", &[small], dtype, &[3, 5], 1.0);
        check("aten.scalar_tensor.default", &[Entry::Double(2.0)], dtype, &[], 2.0);
        check("aten.scalar_tensor.default", &[Entry::Bool(true)], dtype, &[], 1.0);
    }
    check("aten.full.default", &[sizes_of(&[5]), Entry::Double(-0.5)], DType::F16, &[5], -0.5);
    check("aten.full.default", &[sizes_of(&[5]), Entry::Double(0.5)], DType::Bool, &[5], 1.0);
    check(
        "aten.full.default",
        &[sizes_of(&[5]), Entry::Double(f64::NEG_INFINITY)],
        DType::F32,
        &[5],
        f64::NEG_INFINITY,
    );
    let wide = [sizes_of(&[5]), Entry::Int(i64::MAX), Entry::Null, Entry::Null, Entry::Null, Entry::Bool(false)];
    let refused = Model::single("aten.full.default", &[], &wide, DType::I64, &[5]).load().err().unwrap();
    assert!(refused.to_string().contains("does not fit"), "{refused}");
}

#[test]
fn tensors_like_another() {
    let none = Entry::Null;
    for (op, args, value) in [
        ("aten.full_like.default", vec![Entry::Double(2.5), none.clone()], 2.5),
        ("aten.zeros_like.default", vec![none.clone()], 0.0),
        ("aten.ones_like.default", vec![none.clone()], 1.0),
    ] {
        for dtype in ALL {
            let held = if dtype == DType::Bool { f64::from(value != 0.0) } else { hold(dtype, value) };
            let make = |n: u32| [Data::random(dtype, &[n, 3], (0.0, 1.0), 1)];
            let m = Model::single(op, &[&make(9)[0]], &args, dtype, &[9, 3]);
            check_in_turn(&m, &sizes(9).map(make), |[x], got| {
                assert_close(&got[0], &x.dims, &vec![held; x.values.len()], (0.0, 0.0));
            });
        }
    }
}

#[test]
fn ranges() {
    let cases: [(f64, f64, f64); 5] =
        [(0.0, 7.0, 1.0), (-3.0, 10.0, 4.0), (5.0, -6.0, -2.0), (0.25, 3.0, 0.5), (2.0, 2.0, 1.0)];
    for dtype in ALL.into_iter().filter(|dtype| *dtype != DType::Bool) {
        for (start, end, step) in cases {
            if !dtype.is_float() && (step == 0.5 || dtype == DType::U8 && end < 0.0) {
                continue;
            }
            let count = ((end - start) / step).ceil() as u32;
            let want: Vec<f64> = (0..count).map(|i| hold(dtype, start + f64::from(i) * step)).collect();
            let args = [Entry::Double(start), Entry::Double(end), Entry::Double(step)];
            Model::single("aten.arange.start_step", &[], &args, dtype, &[count])
                .check(&[], |got| assert_close(&got[0], &[count], &want, tolerance(dtype, 1)));
        }
    }
}

/// The end of a range is the size of an input.
#[test]
fn a_range_over_a_changing_dimension() {
    let mut m = Model::new();
    let (x, zero, one, size) = (m.input(DType::F32, &[9]), m.int(0), m.int(1), m.symint());
    m.op("sym_size.int", &[x, zero, size]);
    let out = m.tensor(DType::I64, &[9]);
    m.op("aten.arange.start_step", &[zero, size, one, out]);
    m.output(out);
    let make = |n: u32| [Data::random(DType::F32, &[n], (0.0, 1.0), 1)];
    check_in_turn(&m, &sizes(9).map(make), |[x], got| {
        let want: Vec<f64> = (0..x.dims[0]).map(f64::from).collect();
        assert_close(&got[0], &x.dims, &want, (0.0, 0.0));
    });
}
