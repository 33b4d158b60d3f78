use executorch_webgpu::graph::DType;

use crate::cases::{ALL, check_in_turn, coordinates, flat, sizes};
use crate::common::writer::Entry;
use crate::common::{Data, Model, assert_close};

/// Tests with a case for each type of each operator.
pub const TESTS: &[fn()] = &[concatenations, paddings];

fn concatenated(parts: &[&Data], axis: usize) -> (Vec<u32>, Vec<f64>) {
    let parts: Vec<&&Data> = parts.iter().filter(|x| x.dims != [0]).collect();
    let mut dims = parts[0].dims.clone();
    dims[axis] = parts.iter().map(|x| x.dims[axis]).sum();
    let count = dims.iter().product::<u32>() as usize;
    let at = |i| {
        let mut at = coordinates(i, &dims);
        let mut part = 0;
        while at[axis] >= parts[part].dims[axis] as usize {
            at[axis] -= parts[part].dims[axis] as usize;
            part += 1;
        }
        parts[part].values[flat(&at, &parts[part].dims)]
    };
    (dims.clone(), (0..count).map(at).collect())
}

fn model(parts: &[&Data], dim: Entry, dims: &[u32]) -> Model {
    let mut m = Model::new();
    let ids: Vec<usize> = parts.iter().map(|x| m.input(x.dtype, &x.dims)).collect();
    let (list, dim, out) = (m.list(&ids), m.add(dim), m.tensor(parts[0].dtype, dims));
    m.op("aten.cat.default", &[list, dim, out]);
    m.output(out);
    m
}

fn joined(dtype: DType, shapes: &[&[u32]], dim: Entry, axis: usize) {
    let parts: Vec<Data> = (0..).zip(shapes).map(|(i, s)| Data::random(dtype, s, (0.0, 100.0), i)).collect();
    let parts: Vec<&Data> = parts.iter().collect();
    let (dims, want) = concatenated(&parts, axis);
    model(&parts, dim, &dims).check(&parts, |got| assert_close(&got[0], &dims, &want, (0.0, 0.0)));
}

#[test]
fn concatenations() {
    for dtype in ALL {
        joined(dtype, &[&[2, 3], &[2, 3], &[2, 3]], Entry::Int(0), 0);
        joined(dtype, &[&[1, 4, 8], &[1, 4, 8]], Entry::Double(1.0), 1);
        joined(dtype, &[&[2, 3, 4], &[2, 3, 4], &[2, 3, 4]], Entry::Int(-1), 2);
        joined(dtype, &[&[2, 1, 4], &[2, 3, 4], &[2, 2, 4]], Entry::Int(1), 1);
        joined(dtype, &[&[5, 1], &[5, 2], &[5, 3], &[5, 1]], Entry::Int(1), 1);
        joined(dtype, &[&[0], &[3], &[0], &[1], &[5]], Entry::Int(0), 0);
        joined(dtype, &[&[3, 0], &[3, 7]], Entry::Int(1), 1);
        joined(dtype, &[&[37, 41]], Entry::Int(0), 0);
    }
    joined(DType::Bool, &[&[3, 1][..]; 20], Entry::Int(1), 1);
    joined(DType::F16, &[&[3, 1][..]; 20], Entry::Int(1), 1);
}

#[test]
fn concatenations_of_changing_tensors() {
    for dtype in [DType::F32, DType::I8] {
        let make = |n: u32| {
            let random = |dims: &[u32], seed| Data::random(dtype, dims, (0.0, 100.0), seed);
            [random(&[n, 3], 1), random(&[2, 3], 2), random(&[n, 3], 3)]
        };
        let [a, b, c] = &make(9);
        let m = model(&[a, b, c], Entry::Int(0), &[20, 3]);
        check_in_turn(&m, &sizes(9).map(make), |[a, b, c], got| {
            let (dims, want) = concatenated(&[a, b, c], 0);
            assert_close(&got[0], &dims, &want, (0.0, 0.0));
        });
    }
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let data = |dims: &[u32]| Data::random(DType::F32, dims, (0.0, 1.0), 1);
    let text = model(&[&data(&[2, 3]), &data(&[2, 4])], Entry::Int(0), &[4, 3]).load().err().unwrap().to_string();
    assert!(text.contains("[2, 3] and [2, 4] differ"), "{text}");
    let integers = Data::random(DType::I32, &[2, 3], (0.0, 1.0), 1);
    let text = model(&[&data(&[2, 3]), &integers], Entry::Int(0), &[4, 3]).load().err().unwrap().to_string();
    assert!(text.contains("int32"), "{text}");
}

fn padded(x: &Data, amounts: &[i64], value: f64) -> (Vec<u32>, Vec<f64>) {
    let rank = x.dims.len();
    let low = |axis: usize| amounts.get(2 * (rank - 1 - axis)).copied().unwrap_or(0);
    let high = |axis: usize| amounts.get(2 * (rank - 1 - axis) + 1).copied().unwrap_or(0);
    let dims: Vec<u32> = (0..rank).map(|a| (i64::from(x.dims[a]) + low(a) + high(a)) as u32).collect();
    let count = dims.iter().product::<u32>() as usize;
    let at = |i| {
        let from: Vec<i64> = coordinates(i, &dims).iter().enumerate().map(|(a, &c)| c as i64 - low(a)).collect();
        let inside = from.iter().zip(&x.dims).all(|(&c, &n)| (0..i64::from(n)).contains(&c));
        let from: Vec<usize> = from.iter().map(|&c| c as usize).collect();
        if inside { x.values[flat(&from, &x.dims)] } else { value }
    };
    (dims.clone(), (0..count).map(at).collect())
}

fn pad_args(amounts: &[i64], value: Entry) -> [Entry; 2] {
    [Entry::Ints(amounts.to_vec()), value]
}

#[test]
fn paddings() {
    let cases: [(&[u32], &[i64]); 7] = [
        (&[3, 8], &[1, 2]),
        (&[2, 4, 8], &[1, 1, 2, 0]),
        (&[37, 41], &[3, 0, 0, 5]),
        (&[5, 7], &[-1, 2, 1, -2]),
        (&[3], &[0, 0]),
        (&[2, 1, 2, 1, 3, 2, 2, 2], &[1, 0, 0, 1, 1, 1]),
        (&[0, 3], &[1, 1, 2, 0]),
    ];
    for dtype in ALL {
        for (shape, amounts) in cases {
            let x = Data::random(dtype, shape, (0.0, 100.0), 3);
            let number = if dtype == DType::Bool { 1.0 } else { 3.0 };
            let (dims, want) = padded(&x, amounts, number);
            Model::single(
                "aten.constant_pad_nd.default",
                &[&x],
                &pad_args(amounts, Entry::Double(number)),
                dtype,
                &dims,
            )
            .check(&[&x], |got| assert_close(&got[0], &dims, &want, (0.0, 0.0)));
        }
    }
}

#[test]
fn paddings_with_nothing_given_infinity_and_changing_sizes() {
    let x = Data::random(DType::F32, &[2, 3], (0.0, 1.0), 1);
    for (entry, value) in [(Entry::Null, 0.0), (Entry::Double(f64::NEG_INFINITY), f64::NEG_INFINITY)] {
        let (dims, want) = padded(&x, &[1, 1], value);
        Model::single("aten.constant_pad_nd.default", &[&x], &pad_args(&[1, 1], entry), DType::F32, &dims)
            .check(&[&x], |got| assert_close(&got[0], &dims, &want, (0.0, 0.0)));
    }
    let make = |n: u32| [Data::random(DType::U8, &[n, 3], (0.0, 100.0), u64::from(n))];
    let args = pad_args(&[1, 0, 2, 1], Entry::Int(9));
    let m = Model::single("aten.constant_pad_nd.default", &[&make(9)[0]], &args, DType::U8, &[12, 4]);
    check_in_turn(&m, &sizes(9).map(make), |[x], got| {
        let (dims, want) = padded(x, &[1, 0, 2, 1], 9.0);
        assert_close(&got[0], &dims, &want, (0.0, 0.0));
    });
}
