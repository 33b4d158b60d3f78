use executorch_webgpu::graph::DType;

use crate::cases::{ALL, check_in_turn, coordinates, flat, sizes};
use crate::common::writer::Entry;
use crate::common::{Data, Model, assert_close};

/// Tests with a case for each type of each operator.
pub const TESTS: &[fn()] = &[embeddings, index_select, one_index_on_any_dimension, gathers];

/// What `x` has where dimension `axis` is replaced by the dimensions of `index`.
fn along(x: &Data, axis: usize, index: &Data) -> (Vec<u32>, Vec<f64>) {
    let mut dims = x.dims.clone();
    dims.splice(axis..=axis, index.dims.iter().copied());
    let rank = index.dims.len();
    let extent = f64::from(x.dims[axis]);
    let count = dims.iter().product::<u32>() as usize;
    let at = |i| {
        let mut from = coordinates(i, &dims);
        let n = index.values[flat(&from[axis..axis + rank], &index.dims)];
        let n = if n < 0.0 { n + extent } else { n }.clamp(0.0, extent - 1.0);
        from.splice(axis..axis + rank, [n as usize]);
        x.values[flat(&from, &x.dims)]
    };
    (dims.clone(), (0..count).map(at).collect())
}

fn embedding(table: &Data, index: &Data) -> Model {
    let (dims, _) = along(table, 0, index);
    let args = [Entry::Int(-1), Entry::Bool(false), Entry::Bool(false)];
    Model::single("aten.embedding.default", &[table, index], &args, table.dtype, &dims)
}

#[test]
fn embeddings() {
    for dtype in ALL {
        for (rows, width, shape) in [(16, 8, &[4][..]), (37, 41, &[1, 5]), (5, 1, &[2, 3]), (7, 6, &[]), (7, 12, &[0])]
        {
            for kind in [DType::I32, DType::I64] {
                let table = Data::random(dtype, &[rows, width], (0.0, 100.0), 1);
                let index = Data::random(kind, shape, (0.0, f64::from(rows - 1)), 2);
                let (dims, want) = along(&table, 0, &index);
                embedding(&table, &index)
                    .check(&[&table, &index], |got| assert_close(&got[0], &dims, &want, (0.0, 0.0)));
            }
        }
    }
}

#[test]
fn an_index_outside_is_clamped_and_a_negative_one_counts_from_the_end() {
    let table = Data::random(DType::F32, &[5, 4], (0.0, 1.0), 1);
    let index = Data::i64(&[6], &[0, 5, 1 << 30, -1, -5, -7]);
    let (dims, want) = along(&table, 0, &index);
    embedding(&table, &index).check(&[&table, &index], |got| assert_close(&got[0], &dims, &want, (0.0, 0.0)));
}

#[test]
fn embeddings_of_changing_sequences() {
    let make = |n: u32| {
        [
            Data::random(DType::F16, &[11, 6], (0.0, 1.0), 1),
            Data::random(DType::I64, &[1, n], (0.0, 10.0), u64::from(n)),
        ]
    };
    let [table, index] = &make(9);
    check_in_turn(&embedding(table, index), &sizes(9).map(make), |[table, index], got| {
        let (dims, want) = along(table, 0, index);
        assert_close(&got[0], &dims, &want, (0.0, 0.0));
    });
}

#[test]
fn index_select() {
    let cases: [(&[u32], i64); 6] =
        [(&[9], 0), (&[5, 8], 0), (&[5, 8], 1), (&[3, 5, 7], 1), (&[3, 5, 7], -1), (&[2, 3, 4, 4], 1)];
    for dtype in ALL {
        for (shape, dim) in cases {
            let axis = dim.rem_euclid(shape.len() as i64) as usize;
            let x = Data::random(dtype, shape, (0.0, 100.0), 1);
            let index = Data::random(DType::I32, &[6], (0.0, f64::from(shape[axis] - 1)), 2);
            let (dims, want) = along(&x, axis, &index);
            let mut m = Model::new();
            let (a, d, i) = (m.input(dtype, shape), m.int(dim), m.input(DType::I32, &[6]));
            let out = m.tensor(dtype, &dims);
            m.op("aten.index_select.default", &[a, d, i, out]);
            m.output(out);
            m.check(&[&x, &index], |got| assert_close(&got[0], &dims, &want, (0.0, 0.0)));
        }
    }
}

fn index_model(x: &Data, before: usize, index: &Data, dims: &[u32]) -> Model {
    let mut m = Model::new();
    let (a, i) = (m.input(x.dtype, &x.dims), m.input(index.dtype, &index.dims));
    let mut items: Vec<usize> = (0..before).map(|_| m.null()).collect();
    items.push(i);
    let (list, out) = (m.list(&items), m.tensor(x.dtype, dims));
    m.op("aten.index.Tensor", &[a, list, out]);
    m.output(out);
    m
}

#[test]
fn one_index_on_any_dimension() {
    let cases: [(&[u32], usize, &[u32]); 6] = [
        (&[16], 0, &[5]),
        (&[5, 8], 0, &[2, 3]),
        (&[5, 8], 1, &[4]),
        (&[3, 5, 7], 1, &[2, 2]),
        (&[3, 5, 7], 2, &[]),
        (&[3, 5, 8], 1, &[0]),
    ];
    for dtype in ALL {
        for (shape, axis, index) in cases {
            let x = Data::random(dtype, shape, (0.0, 100.0), 1);
            let last = f64::from(shape[axis]) - 1.0;
            let index = Data::random(DType::I64, index, (-last, last), 2);
            let (dims, want) = along(&x, axis, &index);
            index_model(&x, axis, &index, &dims)
                .check(&[&x, &index], |got| assert_close(&got[0], &dims, &want, (0.0, 0.0)));
        }
    }
    let (x, mask) = (Data::random(DType::F32, &[4], (0.0, 1.0), 1), Data::random(DType::Bool, &[4], (0.0, 1.0), 1));
    let text = index_model(&x, 0, &mask, &[4]).load().err().unwrap().to_string();
    assert!(text.contains("the index is bool"), "{text}");
}

fn gathered(x: &Data, axis: usize, index: &Data) -> Vec<f64> {
    let at = |i| {
        let mut from = coordinates(i, &index.dims);
        if let Some(slot) = from.get_mut(axis) {
            *slot = index.values[i] as usize;
        }
        x.values[flat(&from, &x.dims)]
    };
    (0..index.values.len()).map(at).collect()
}

fn gather_model(x: &Data, dim: i64, index: &Data) -> Model {
    let mut m = Model::new();
    let (a, d, i) = (m.input(x.dtype, &x.dims), m.int(dim), m.input(index.dtype, &index.dims));
    let (sparse, out) = (m.boolean(false), m.tensor(x.dtype, &index.dims));
    m.op("aten.gather.default", &[a, d, i, sparse, out]);
    m.output(out);
    m
}

#[test]
fn gathers() {
    let cases: [(&[u32], i64, &[u32]); 6] = [
        (&[9], 0, &[4]),
        (&[5, 8], 0, &[3, 8]),
        (&[5, 8], 1, &[4, 20]),
        (&[3, 5, 7], 1, &[2, 9, 7]),
        (&[3, 5, 7], -1, &[3, 1, 2]),
        (&[], 0, &[]),
    ];
    for dtype in ALL {
        for (shape, dim, index) in cases {
            let axis = dim.rem_euclid(shape.len().max(1) as i64) as usize;
            let x = Data::random(dtype, shape, (0.0, 100.0), 1);
            let index = Data::random(DType::I64, index, (0.0, shape.get(axis).map_or(0.0, |&n| f64::from(n - 1))), 2);
            let want = gathered(&x, axis, &index);
            gather_model(&x, dim, &index)
                .check(&[&x, &index], |got| assert_close(&got[0], &index.dims, &want, (0.0, 0.0)));
        }
    }
}

#[test]
fn gathers_of_changing_tensors() {
    let make = |n: u32| {
        [Data::random(DType::F32, &[n, 3], (0.0, 1.0), 1), Data::random(DType::I32, &[n, 2], (0.0, 2.0), u64::from(n))]
    };
    let [x, index] = &make(9);
    check_in_turn(&gather_model(x, 1, index), &sizes(9).map(make), |[x, index], got| {
        assert_close(&got[0], &index.dims, &gathered(x, 1, index), (0.0, 0.0));
    });
}
