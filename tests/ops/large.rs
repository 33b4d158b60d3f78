//! Tables that are larger than the 128 MiB which one binding is sure to cover.

use executorch_webgpu::graph::DType;

use crate::common::writer::{Bytes, Entry, Id};
use crate::common::{Data, Model, assert_close, tolerance};

/// A constant from bytes, without a detour over numbers.
fn constant(m: &mut Model, dtype: DType, dims: &[u32], bytes: Vec<u8>) -> Id {
    let key = format!("key{}", m.named.len());
    m.named.insert(key.clone(), bytes);
    m.payload.constants.push(Bytes::Named(key));
    let constant = m.payload.constants.len() as i32 - 1;
    m.add(Entry::Tensor { dtype, dims: dims.to_vec(), constant })
}

fn index(rows: u32) -> Data {
    let rows = f64::from(rows);
    Data::new(DType::I64, &[6], vec![0.0, 1.0, rows / 2.0, rows - 2.0, rows - 1.0, rows + 7.0])
}

#[test]
fn a_dense_table() {
    let (rows, width) = (9001, 4096);
    let number = |row: usize, d: usize| (row * 3 + d % 7) as f32;
    let bytes = (0..rows * width).flat_map(|i| number(i / width, i % width).to_le_bytes()).collect();
    let mut m = Model::new();
    let table = constant(&mut m, DType::F32, &[rows as u32, width as u32], bytes);
    let picked = index(rows as u32);
    let (at, none, no) = (m.input(DType::I64, &[6]), m.int(-1), m.boolean(false));
    let out = m.tensor(DType::F32, &[6, width as u32]);
    m.op("aten.embedding.default", &[table, at, none, no, no, out]);
    m.output(out);
    let row = |n: &f64| (0..width).map(|d| f64::from(number((*n as usize).min(rows - 1), d))).collect::<Vec<_>>();
    let want: Vec<f64> = picked.values.iter().flat_map(row).collect();
    m.check(&[&picked], |got| assert_close(&got[0], &[6, width as u32], &want, (0.0, 0.0)));
}

#[test]
fn a_4_bit_table() {
    let (rows, width) = (70_003usize, 4096usize);
    let byte = |row: usize, j: usize| (row * 31 + j * 7) as u8;
    let bytes = (0..rows * width / 2).map(|i| byte(i / (width / 2), i % (width / 2))).collect();
    let scale = |row: usize| 0.01 * (row % 100 + 1) as f32;
    let mut m = Model::new();
    let table = constant(&mut m, DType::U8, &[rows as u32, width as u32 / 2], bytes);
    let scales = (0..rows).flat_map(|row| scale(row).to_le_bytes()).collect();
    let scales = constant(&mut m, DType::F32, &[rows as u32, 1], scales);
    let picked = index(rows as u32);
    let (group, at, linear) = (m.int(width as i64), m.input(DType::I64, &[6]), m.boolean(true));
    let out = m.tensor(DType::F32, &[6, width as u32]);
    m.op("et_vk.embedding_q4gsw.default", &[table, scales, group, at, linear, out]);
    m.output(out);
    let row = |n: &f64| {
        let row = (*n as usize).min(rows - 1);
        let nibble = |d: usize| if d.is_multiple_of(2) { byte(row, d / 2) & 15 } else { byte(row, d / 2) >> 4 };
        (0..width).map(|d| (f64::from(nibble(d)) - 8.0) * f64::from(scale(row))).collect::<Vec<_>>()
    };
    let want: Vec<f64> = picked.values.iter().flat_map(row).collect();
    m.check(&[&picked], |got| assert_close(&got[0], &[6, width as u32], &want, tolerance(DType::F32, 1)));
}
