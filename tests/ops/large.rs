//! Tables and weights that are larger than one binding, of which 128 MiB are sure.

use executorch_webgpu::gpu::{MemoryKind, Profile};
use executorch_webgpu::graph::DType;
use executorch_webgpu::ops::linear::variants;
use executorch_webgpu::options::Options;

use crate::common::q4::{self, Q4};
use crate::common::{Data, Model, assert_close, tolerance, tolerance_of_halves};
use crate::linear::product;

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
    let table = m.constant_bytes("table", DType::F32, &[rows as u32, width as u32], bytes);
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
    let table = m.constant_bytes("table", DType::U8, &[rows as u32, width as u32 / 2], bytes);
    let scales = (0..rows).flat_map(|row| scale(row).to_le_bytes()).collect();
    let scales = m.constant_bytes("scales", DType::F32, &[rows as u32, 1], scales);
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

/// Devices whose bindings cover 256 KiB, whose buffers hold little more, or all of a table.
const CAPPED: [Profile; 2] =
    [Profile::Capped { binding: 1 << 18, buffer: 9 << 15 }, Profile::Capped { binding: 1 << 18, buffer: 1 << 22 }];

/// A tied 4-bit table as the payload has it: `[rows, width]` words for both, scales by row for the embedding and by group
/// for the layer.
fn tied(w: &Q4, x: &Data, at: &Data, bias: Option<&Data>, low_first: bool) -> Model {
    let (n, k) = (w.packed.dims[0], w.packed.dims[1] * 2);
    let [groups, padded] = w.scales.dims[..] else { panic!("scales") };
    let by_row = (0..n).flat_map(|row| (0..groups).map(move |g| (g * padded + row) as usize));
    let by_row = Data::f32(&[n, groups], by_row.map(|i| w.scales.values[i]).collect());
    let mut m = Model::new();
    let (rows, index) = (m.input(DType::F32, &x.dims), m.input(DType::I64, &at.dims));
    let (table, scales, by_row) = (m.constant(&w.packed), m.constant(&w.scales), m.constant(&by_row));
    let (group, order) = (m.int(i64::from(w.group)), m.boolean(low_first));
    let bias = bias.map(|bias| m.constant(bias)).unwrap_or_else(|| m.null());
    let (taken, y) = (m.tensor(DType::F32, &[at.dims[0], k]), m.tensor(DType::F32, &[x.dims[0], n]));
    m.op("et_vk.embedding_q4gsw.default", &[table, by_row, group, index, order, taken]);
    // A second node of the packed words, as the exporter writes it.
    let again = m.constant(&w.packed);
    m.op("et_vk.linear_q4gsw.default", &[rows, again, scales, group, bias, y]);
    m.output(taken);
    m.output(y);
    m
}

#[test]
fn a_tied_4_bit_table_serves_embedding_and_layer_in_parts() {
    let (n, k) = (1501u32, 1024u32);
    for (group, low_first) in [(32, true), (8, true), (64, false)] {
        let w = q4::random(n, k, group, 1);
        let bias = Data::random(DType::F32, &[n], (-1.0, 1.0), 2);
        let at = index(n);
        let all = Data::random(DType::F32, &[40, k], (-1.0, 1.0), 3);
        let number = |row: usize, d: usize| w.dense[row * k as usize + if low_first { d } else { d ^ 1 }];
        let row = |i: &f64| (0..k as usize).map(|d| number((*i as usize).min(n as usize - 1), d)).collect::<Vec<_>>();
        let taken: Vec<f64> = at.values.iter().flat_map(row).collect();
        for profile in CAPPED {
            let mut running =
                tied(&w, &all, &at, Some(&bias), low_first).load_with(Options::default(), profile).unwrap();
            let words = w.packed.values.len() as u64;
            let held = running.program.memory().of(MemoryKind::Weights);
            let rest = 2 * 4 * w.scales.values.len() as u64 + 4 * u64::from(n) + 1024;
            assert!(held >= words && held < words + rest, "{held} bytes for a table of {words}");
            for m in [40, 1, 5] {
                let x = Data::f32(&[m, k], all.values[..(m * k) as usize].to_vec());
                let mut want = product(&x.values, &w.dense, (m, n, k));
                want.iter_mut().enumerate().for_each(|(i, y)| *y += bias.values[i % n as usize]);
                running.program.fill_activations(0xFF).unwrap();
                let got = running.run(&[&x, &at]).unwrap();
                assert_close(&got[0], &[6, k], &taken, tolerance(DType::F32, 1));
                assert_close(&got[1], &[m, n], &want, tolerance_of_halves(k as usize, 1.0));
            }
        }
    }
}

#[test]
fn every_variant_writes_its_part_of_the_columns() {
    let (m, n, k) = (5, 1501, 1024);
    let w = q4::random(n, k, 32, 4);
    let x = Data::random(DType::F32, &[m, k], (-1.0, 1.0), 5);
    let want = product(&x.values, &w.dense, (m, n, k));
    let at = index(n);
    let model = tied(&w, &x, &at, None, true);
    let caps = model.load().unwrap().program.gpu().caps().clone();
    for algorithm in variants(&caps) {
        let options = Options { force_gemm: Some(algorithm), ..Options::default() };
        let mut running = model.load_with(options, CAPPED[0]).unwrap();
        assert_close(&running.run(&[&x, &at]).unwrap()[1], &[m, n], &want, tolerance_of_halves(k as usize, 1.0));
    }
}

#[test]
fn a_tied_dense_table_serves_embedding_and_layer_in_parts() {
    let (n, k) = (701u32, 600u32);
    for dtype in [DType::F32, DType::F16] {
        let w = Data::random(dtype, &[n, k], (-1.0, 1.0), 6);
        let all = Data::random(dtype, &[40, k], (-1.0, 1.0), 7);
        let at = index(n);
        let row = |i: &f64| w.values[(*i as usize).min(n as usize - 1) * k as usize..][..k as usize].to_vec();
        let taken: Vec<f64> = at.values.iter().flat_map(row).collect();
        let mut m = Model::new();
        let (rows, index) = (m.input(dtype, &all.dims), m.input(DType::I64, &at.dims));
        let (table, none, no) = (m.constant(&w), m.int(-1), m.boolean(false));
        let (bias, y) = (m.null(), m.tensor(dtype, &[40, n]));
        let rows_out = m.tensor(dtype, &[6, k]);
        m.op("aten.embedding.default", &[table, index, none, no, no, rows_out]);
        m.op("aten.linear.default", &[rows, table, bias, y]);
        m.output(rows_out);
        m.output(y);
        for profile in CAPPED {
            let mut running = m.load_with(Options::default(), profile).unwrap();
            for count in [40, 1, 5] {
                let x = Data::new(dtype, &[count, k], all.values[..(count * k) as usize].to_vec());
                let want = product(&x.values, &w.values, (count, n, k));
                let got = running.run(&[&x, &at]).unwrap();
                assert_close(&got[0], &[6, k], &taken, (0.0, 0.0));
                assert_close(&got[1], &[count, n], &want, tolerance(dtype, k as usize));
            }
        }
    }
}

#[test]
fn scales_that_others_read_too_are_read_from_their_columns() {
    let (m, n, k) = (3, 1500, 512);
    let w = q4::random(n, k, 32, 8);
    let x = Data::random(DType::F32, &[m, k], (-1.0, 1.0), 9);
    let mut model = Model::new();
    let rows = model.input(DType::F32, &x.dims);
    let (packed, scales) = (model.constant(&w.packed), model.constant(&w.scales));
    let (group, none, y) = (model.int(32), model.null(), model.tensor(DType::F32, &[m, n]));
    let copy = model.tensor(DType::F32, &w.scales.dims);
    model.op("et_vk.linear_q4gsw.default", &[rows, packed, scales, group, none, y]);
    model.op("aten.relu.default", &[scales, copy]);
    model.output(y);
    model.output(copy);
    let want = product(&x.values, &w.dense, (m, n, k));
    for profile in CAPPED {
        let got = model.load_with(Options::default(), profile).unwrap().run(&[&x]).unwrap();
        assert_close(&got[0], &[m, n], &want, tolerance_of_halves(k as usize, 1.0));
        assert_close(&got[1], &w.scales.dims, &w.scales.values, (0.0, 0.0));
    }
}

#[test]
fn what_cannot_be_cut_is_refused_by_name_and_size() {
    let w = Data::random(DType::F32, &[300, 300], (-1.0, 1.0), 10);
    let mut m = Model::new();
    let (x, table) = (m.input(DType::F32, &[1, 300]), m.constant(&w));
    let y = m.tensor(DType::F32, &[1, 300]);
    m.op("aten.mm.default", &[x, table, y]);
    m.output(y);
    for profile in CAPPED {
        let text = m.load_with(Options::default(), profile).err().unwrap().to_string();
        let words = ["aten.mm.default", "float32[300, 300]", "360000 bytes", "one binding covers 262144"];
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    }
}

#[test]
fn a_4_bit_vocabulary_on_either_side_of_128_mebibytes() {
    vocabulary(128_256, Profile::Full);
    vocabulary(151_936, Profile::Minimal);
}

fn vocabulary(n: u32, profile: Profile) {
    let (k, group) = (2048u32, 64);
    let bytes: Vec<u8> = (0..n as usize * k as usize / 2).map(|i| (i * 31 + (i >> 10) * 7) as u8).collect();
    let scale = |g: usize, column: usize| (1 + (g * 5 + column) % 13) as f32 / 1024.0;
    let groups = (k / group) as usize;
    let scales = (0..groups).flat_map(|g| (0..n as usize).flat_map(move |c| scale(g, c).to_le_bytes())).collect();
    let x = Data::random(DType::F32, &[1, k], (-1.0, 1.0), 11);
    let column = |c: usize| -> f64 {
        let row = &bytes[c * k as usize / 2..][..k as usize / 2];
        let pair = |(j, byte): (usize, &u8)| {
            let scale = f64::from(scale(2 * j / group as usize, c));
            let nibble = |n: u8| f64::from(n) - 8.0;
            (nibble(byte & 15) * x.values[2 * j] + nibble(byte >> 4) * x.values[2 * j + 1]) * scale
        };
        row.iter().enumerate().map(pair).sum()
    };
    let want: Vec<f64> = (0..n as usize).map(column).collect();
    let mut m = Model::new();
    let input = m.input(DType::F32, &[1, k]);
    let packed = m.constant_bytes("packed", DType::U8, &[n, k / 2], bytes);
    let scales = m.constant_bytes("scales", DType::F32, &[groups as u32, n], scales);
    let (group, none, y) = (m.int(i64::from(group)), m.null(), m.tensor(DType::F32, &[1, n]));
    m.op("et_vk.linear_q4gsw.default", &[input, packed, scales, group, none, y]);
    m.output(y);
    let mut running = m.load_with(Options::default(), profile).unwrap();
    assert_close(&running.run(&[&x]).unwrap()[0], &[1, n], &want, tolerance(DType::F32, k as usize));
}
