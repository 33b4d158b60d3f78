use executorch_webgpu::graph::DType;

use crate::cases::{check_in_turn, sizes};
use crate::common::writer::Entry;
use crate::common::{Data, Model, assert_close, tolerance};

/// Tests with a case for each type of each operator.
pub const TESTS: &[fn()] = &[both_nibble_orders_and_every_group, four_bit_embeddings];

/// A packed table, its scales and the numbers that they stand for.
fn table(rows: u32, width: u32, group: u32, low_first: bool, scale: DType) -> (Data, Data, Vec<f64>) {
    let packed = Data::random(DType::U8, &[rows, width / 2], (0.0, 255.0), 1);
    let scales = Data::random(scale, &[rows, width / group], (0.01, 0.1), 2);
    let number = |i: usize| {
        let (row, d) = (i / width as usize, i % width as usize);
        let byte = packed.values[i / 2] as u32;
        let nibble = if (d % 2 == 0) == low_first { byte & 15 } else { byte >> 4 };
        (f64::from(nibble) - 8.0) * scales.values[row * (width / group) as usize + d / group as usize]
    };
    let numbers = (0..(rows * width) as usize).map(number).collect();
    (packed, scales, numbers)
}

/// The same bytes as int8.
fn signed(packed: &Data) -> Data {
    Data::from_bytes(DType::I8, &packed.dims, &packed.bytes())
}

fn rows(numbers: &[f64], width: u32, index: &Data, count: u32) -> (Vec<u32>, Vec<f64>) {
    let row = |n: &f64| {
        let n = n.clamp(0.0, f64::from(count) - 1.0) as usize;
        numbers[n * width as usize..(n + 1) * width as usize].to_vec()
    };
    let mut dims = index.dims.clone();
    dims.push(width);
    (dims, index.values.iter().flat_map(row).collect())
}

fn model(packed: &Data, scales: &Data, group: Entry, index: &Data, linear: Entry, out: (DType, &[u32])) -> Model {
    let mut m = Model::new();
    let (w, s, g) = (m.constant(packed), m.constant(scales), m.add(group));
    let (i, linear, out) = (m.input(index.dtype, &index.dims), m.add(linear), m.tensor(out.0, out.1));
    m.op("et_vk.embedding_q4gsw.default", &[w, s, g, i, linear, out]);
    m.output(out);
    m
}

#[test]
fn both_nibble_orders_and_every_group() {
    for (v, width, group) in [(64, 64, 32), (512, 2048, 64), (37, 96, 32), (5, 32, 8), (3, 256, 256)] {
        for (linear, low_first) in [(Entry::Bool(true), true), (Entry::Int(0), false)] {
            for dtype in [DType::F32, DType::F16] {
                let (packed, scales, numbers) = table(v, width, group, low_first, dtype);
                let index = Data::random(DType::I64, &[1, 7], (0.0, f64::from(v - 1)), 3);
                let (dims, want) = rows(&numbers, width, &index, v);
                for packed in [&packed, &signed(&packed)] {
                    model(packed, &scales, Entry::Int(i64::from(group)), &index, linear.clone(), (dtype, &dims))
                        .check(&[&index], |got| assert_close(&got[0], &dims, &want, tolerance(dtype, 1)));
                }
            }
        }
    }
}

#[test]
fn an_index_outside_is_clamped() {
    let (packed, scales, numbers) = table(5, 32, 32, true, DType::F32);
    let index = Data::new(DType::I32, &[3], vec![-1.0, 5.0, 2147483647.0]);
    let (dims, want) = rows(&numbers, 32, &index, 5);
    model(&packed, &scales, Entry::Double(32.0), &index, Entry::Bool(true), (DType::F32, &dims))
        .check(&[&index], |got| assert_close(&got[0], &dims, &want, tolerance(DType::F32, 1)));
}

#[test]
fn changing_sequences() {
    for low_first in [true, false] {
        let (packed, scales, numbers) = table(64, 64, 32, low_first, DType::F32);
        let make = |n: u32| [Data::random(DType::I64, &[1, n], (0.0, 63.0), u64::from(n))];
        let linear = Entry::Bool(low_first);
        let m = model(&packed, &scales, Entry::Int(32), &make(16)[0], linear, (DType::F32, &[1, 16, 64]));
        check_in_turn(&m, &sizes(16).map(make), |[index], got| {
            let (dims, want) = rows(&numbers, 64, index, 64);
            assert_close(&got[0], &dims, &want, tolerance(DType::F32, 1));
        });
    }
}

#[test]
fn a_group_that_is_no_multiple_of_eight_is_refused() {
    let (packed, scales, _) = table(5, 32, 4, true, DType::F32);
    let index = Data::i64(&[1], &[0]);
    let m = model(&packed, &scales, Entry::Int(4), &index, Entry::Bool(true), (DType::F32, &[1, 32]));
    let text = m.load().err().unwrap().to_string();
    assert!(text.contains("groups of 4"), "{text}");
}

/// High nibbles first, rows and groups of any length, zero points for groups.
#[test]
fn four_bit_embeddings() {
    for (v, width, groups) in [(64, 64, 2), (37, 12, 1), (5, 30, 3), (7, 2, 1), (9, 40, 5)] {
        for zeros in [None, Some(DType::I8), Some(DType::F32)] {
            let (packed, scales, numbers) = table(v, width, width / groups, false, DType::F32);
            let zero = zeros.map(|dtype| Data::random(dtype, &scales.dims, (-3.0, 3.0), 4));
            let number = |(i, &w): (usize, &f64)| {
                let g = i / width as usize * groups as usize + i % width as usize / (width / groups) as usize;
                w - zero.as_ref().map_or(0.0, |zero| zero.values[g] * scales.values[g])
            };
            let numbers: Vec<f64> = numbers.iter().enumerate().map(number).collect();
            let flat = groups == 1;
            let reshape = |d: &Data| Data { dims: if flat { vec![v] } else { d.dims.clone() }, ..d.clone() };
            let index = Data::random(DType::I64, &[1, 7], (-2.0, f64::from(v)), 3);
            let (dims, want) = rows(&numbers, width, &index, v);
            let mut m = Model::new();
            let (w, s) =
                (m.constant(&if zeros.is_some() { signed(&packed) } else { packed }), m.constant(&reshape(&scales)));
            let z = match &zero {
                Some(zero) => m.constant(&reshape(zero)),
                None => m.null(),
            };
            let (low, high, i, none) = (m.int(-8), m.int(7), m.input(DType::I64, &[1, 7]), m.null());
            let out = m.tensor(DType::F32, &dims);
            m.op("quantized_decomposed.embedding_4bit.dtype", &[w, s, z, low, high, i, none, out]);
            m.output(out);
            m.check(&[&index], |got| assert_close(&got[0], &dims, &want, tolerance(DType::F32, 1)));
        }
    }
}
