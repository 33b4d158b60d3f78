use executorch_webgpu::graph::DType;

use crate::cases::{ALL, check_in_turn, sizes};
use crate::common::writer::Entry;
use crate::common::{Data, Model, assert_close};

/// Tests with a case for each type of each operator.
pub const TESTS: &[fn()] = &[views, squeezes_and_clones];

/// The elements keep their order, whether the result is an output of its own, shares memory with an intermediate tensor, or
/// copies an input that is also an output.
fn check(op: &str, shape: &[u32], args: &[Entry], dims: &[u32]) {
    for dtype in ALL {
        let x = Data::random(dtype, shape, (0.0, 100.0), 2);
        let m = Model::single(op, &[&x], args, dtype, dims);
        m.check(&[&x], |got| assert_close(&got[0], dims, &x.values, (0.0, 0.0)));
    }
}

fn ints(items: &[i64]) -> Entry {
    Entry::Ints(items.to_vec())
}

#[test]
fn views() {
    let op = "aten.view_copy.default";
    check(op, &[2, 3, 4], &[ints(&[6, 4])], &[6, 4]);
    check(op, &[2, 3, 4], &[ints(&[-1])], &[24]);
    check(op, &[2, 3, 4], &[ints(&[1, 2, 3, 4])], &[1, 2, 3, 4]);
    check(op, &[5, 7], &[ints(&[7, -1])], &[7, 5]);
    check(op, &[1], &[ints(&[])], &[]);
    check(op, &[0, 4], &[ints(&[2, 0])], &[2, 0]);
}

#[test]
fn squeezes_and_clones() {
    check("aten.squeeze_copy.dims", &[1, 3, 1, 4], &[ints(&[0, 2])], &[3, 4]);
    check("aten.squeeze_copy.dims", &[2, 1, 4], &[ints(&[0, -2])], &[2, 4]);
    check("aten.unsqueeze_copy.default", &[3, 5], &[Entry::Int(0)], &[1, 3, 5]);
    check("aten.unsqueeze_copy.default", &[3, 5], &[Entry::Double(-1.0)], &[3, 5, 1]);
    check("aten.unsqueeze_copy.default", &[], &[Entry::Int(0)], &[1]);
    check("aten.clone.default", &[3, 5], &[Entry::Null], &[3, 5]);
    check("aten.alias_copy.default", &[7], &[], &[7]);
    check("dim_order_ops._clone_dim_order.default", &[3, 5], &[Entry::Bool(false), ints(&[0, 1])], &[3, 5]);
}

/// `x -> relu -> view -> relu`, sizes given in every way that the exporter knows.
#[test]
fn views_of_changing_tensors() {
    for form in ["literal", "inferred", "symbolic"] {
        let mut m = Model::new();
        let x = m.input(DType::F32, &[1, 9, 6]);
        let (one, size, two, three, minus) = (m.int(1), m.symint(), m.int(2), m.int(3), m.int(-1));
        m.op("sym_size.int", &[x, one, size]);
        let y = m.tensor(DType::F32, &[1, 9, 6]);
        m.op("aten.relu.default", &[x, y]);
        let shape = match form {
            "literal" => m.ints(&[9, 2, 3]),
            "inferred" => m.list(&[minus, two, three]),
            _ => m.list(&[size, two, three]),
        };
        let (view, z) = (m.tensor(DType::F32, &[9, 2, 3]), m.tensor(DType::F32, &[9, 2, 3]));
        m.op("aten.view_copy.default", &[y, shape, view]);
        m.op("aten.neg.default", &[view, z]);
        m.output(z);
        let make = |n: u32| [Data::random(DType::F32, &[1, n, 6], (-1.0, 1.0), u64::from(n))];
        check_in_turn(&m, &sizes(9).map(make), |[x], got| {
            let want: Vec<f64> = x.values.iter().map(|x| -x.max(0.0)).collect();
            assert_close(&got[0], &[x.dims[1], 2, 3], &want, (0.0, 0.0));
        });
    }
}

#[test]
fn a_dynamic_dimension_of_one_is_not_squeezed() {
    let m = {
        let x = Data::random(DType::F32, &[9, 1, 3], (0.0, 1.0), 1);
        Model::single("aten.squeeze_copy.dims", &[&x], &[ints(&[0, 1])], DType::F32, &[9, 3])
    };
    let make = |n: u32| [Data::random(DType::F32, &[n, 1, 3], (0.0, 1.0), u64::from(n))];
    check_in_turn(&m, &sizes(9).map(make), |[x], got| {
        assert_close(&got[0], &[x.dims[0], 3], &x.values, (0.0, 0.0));
    });
}

#[test]
fn a_view_with_another_count_is_refused() {
    let x = Data::random(DType::F32, &[2, 3], (0.0, 1.0), 1);
    let m = Model::single("aten.view_copy.default", &[&x], &[ints(&[4, -1])], DType::F32, &[4, 2]);
    let text = m.load().err().unwrap().to_string();
    assert!(text.contains("[2, 3] does not view as [4, -1]"), "{text}");
}
