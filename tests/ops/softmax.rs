use executorch_webgpu::graph::DType;

use crate::cases::{FLOATS, check_in_turn, sizes};
use crate::common::writer::Entry;
use crate::common::{Data, Model, assert_close, tolerance};

/// Tests with a case for each type of each operator.
pub const TESTS: &[fn()] = &[every_dimension];

const OPS: [&str; 2] = ["aten._softmax.default", "aten._log_softmax.default"];

fn reference(op: &str, x: &Data, axis: usize) -> Vec<f64> {
    let length = x.dims.get(axis).map_or(1, |&n| n.max(1) as usize);
    let inner = x.dims.iter().skip(axis + 1).product::<u32>() as usize;
    let mut want = x.values.clone();
    for line in 0..x.values.len() / length {
        let at = |k: usize| line / inner * inner * length + line % inner + k * inner;
        let values: Vec<f64> = (0..length).map(|k| x.values[at(k)]).collect();
        let top = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = values.iter().map(|v| (v - top).exp()).sum();
        for (k, v) in values.iter().enumerate() {
            want[at(k)] = if op == OPS[0] { (v - top).exp() / total } else { v - top - total.ln() };
        }
    }
    want
}

fn check(x: &Data, dim: i64, out: DType) {
    let axis = dim.rem_euclid(x.dims.len().max(1) as i64) as usize;
    for op in OPS {
        let want = reference(op, x, axis);
        Model::single(op, &[x], &[Entry::Int(dim), Entry::Bool(false)], out, &x.dims)
            .check(&[x], |got| assert_close(&got[0], &x.dims, &want, tolerance(out, 1)));
    }
}

#[test]
fn every_dimension() {
    let cases: [(&[u32], i64); 20] = [
        (&[], 0),
        (&[1], 0),
        (&[7], -1),
        (&[37, 41], 1),
        (&[37, 41], 0),
        (&[5, 16], 1),
        (&[5, 17], 1),
        (&[3, 2049], 1),
        (&[2, 3, 5, 7], 1),
        (&[2, 40, 600], -2),
        (&[3, 70, 101], 1),
        (&[66, 8200], 0),
        // Fours along lines and across them.
        (&[5, 64], 1),
        (&[5, 68], 1),
        (&[5, 300], 1),
        (&[2, 70, 1024], 1),
        (&[32, 9, 32], 1),
        (&[33, 9, 32], 1),
        (&[3, 0], 1),
        (&[0, 3], 1),
    ];
    for dtype in FLOATS {
        for (dims, dim) in cases {
            check(&Data::random(dtype, dims, (-5.0, 5.0), 1), dim, dtype);
        }
    }
    check(&Data::random(DType::F16, &[3, 100], (-5.0, 5.0), 1), 1, DType::F32);
}

#[test]
fn extreme_logits() {
    let nothing = f64::NEG_INFINITY;
    for row in [
        vec![3e4, -3e4, 0.0, 2.9999e4],
        vec![-3e4; 4],
        vec![7.0; 4],
        vec![nothing, 1.0, nothing, nothing],
        vec![nothing; 4],
        vec![f64::NAN, 1.0, 2.0, 3.0],
        vec![f64::INFINITY, 1.0, 2.0, 3.0],
    ] {
        for repeats in [1, 25] {
            let values: Vec<f64> = row.iter().copied().cycle().take(row.len() * repeats).collect();
            check(&Data::f32(&[1, values.len() as u32], values), 1, DType::F32);
        }
    }
}

#[test]
fn more_lines_than_one_dimension_of_workgroups() {
    check(&Data::random(DType::F32, &[65537, 17], (-5.0, 5.0), 1), 1, DType::F32);
}

#[test]
fn softmax_of_changing_tensors() {
    for dim in [0, 2] {
        let make = |n: u32| [Data::random(DType::F32, &[n, 3, n], (-5.0, 5.0), u64::from(n))];
        let args = [Entry::Int(dim), Entry::Bool(false)];
        let m = Model::single(OPS[0], &[&make(67)[0]], &args, DType::F32, &[67, 3, 67]);
        check_in_turn(&m, &sizes(67).map(make), |[x], got| {
            let want = reference(OPS[0], x, dim as usize);
            assert_close(&got[0], &x.dims, &want, tolerance(DType::F32, 1));
        });
    }
}
