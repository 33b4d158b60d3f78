use executorch_webgpu::gpu::Profile;
use executorch_webgpu::graph::DType;
use executorch_webgpu::options::Options;

use crate::cases::{FLOATS, check_in_turn};
use crate::common::q4::{self, Q4};
use crate::common::writer::Entry;
use crate::common::{Data, Model, assert_close, tolerance, tolerance_of_halves};
use crate::q4_layer::ways;

/// Tests with a case for each type of each operator.
pub const TESTS: &[fn()] = &[
    linear_matches_its_formula,
    mm_matches_its_formula,
    bmm_matches_its_formula,
    addmm_scales_and_adds,
    q4_takes_both_floats,
];

/// `out[m, n] = sum_k x[m, k] w[n, k]`
pub fn product(x: &[f64], w: &[f64], (m, n, k): (u32, u32, u32)) -> Vec<f64> {
    let dot = |row: u32, column: u32| -> f64 {
        (0..k).map(|i| x[(row * k + i) as usize] * w[(column * k + i) as usize]).sum()
    };
    (0..m).flat_map(|row| (0..n).map(move |column| (row, column))).map(|(r, c)| dot(r, c)).collect()
}

pub fn q4_model(x: &Data, w: &Q4, bias: Option<&Data>, out: &[u32]) -> Model {
    let mut m = Model::new();
    let input = m.input(x.dtype, &x.dims);
    let (packed, scales, group) = (m.constant(&w.packed), m.constant(&w.scales), m.int(i64::from(w.group)));
    let bias = bias.map(|bias| m.constant(bias)).unwrap_or_else(|| m.null());
    let y = m.tensor(x.dtype, out);
    m.op("et_vk.linear_q4gsw.default", &[input, packed, scales, group, bias, y]);
    m.output(y);
    m
}

/// Runs a 4-bit layer on a full and on a minimal device; where cooperative matrices multiply, factors are halves.
fn check(model: &Model, x: &Data, n: u32, want: &[f64], range: f64, options: Options) {
    for profile in [Profile::Full, Profile::Minimal] {
        let mut running = model.load_with(options.clone(), profile).unwrap();
        running.program.fill_activations(0xFF).unwrap();
        let k = *x.dims.last().unwrap() as usize;
        let halves = !running.program.gpu().caps().coop.is_empty() && !options.force_f32_gemm;
        let (abs, rel) = if halves { tolerance_of_halves(k, range) } else { tolerance(DType::F32, k) };
        let mut dims = x.dims.clone();
        *dims.last_mut().unwrap() = n;
        assert_close(&running.run(&[x]).unwrap()[0], &dims, want, (if halves { abs } else { abs * range }, rel));
    }
}

#[test]
fn q4_shrinks_and_grows_with_its_input() {
    let (k, n) = (64, 48);
    let w = q4::random(n, k, 32, 8);
    let full = Data::random(DType::F32, &[1, 70, k], (-1.0, 1.0), 9);
    let mut running = q4_model(&full, &w, None, &[1, 70, n]).load().unwrap();
    for m in [70u32, 69, 17, 16, 8, 2, 1, 70] {
        let x = Data::f32(&[1, m, k], full.values[..(m * k) as usize].to_vec());
        let want = product(&x.values, &w.dense, (m, n, k));
        assert_close(&running.run(&[&x]).unwrap()[0], &[1, m, n], &want, tolerance_of_halves(64, 1.0));
    }
}

#[test]
fn one_row_of_any_magnitude_keeps_its_accuracy() {
    let (k, n) = (2048, 16);
    let w = q4::random(n, k, 32, 22);
    for range in [(-1e35, 1e35), (1e29, 1e30), (0.5, 1.5), (1e-30, 2e-30)] {
        let x = Data::random(DType::F32, &[1, k], range, 23);
        let want = product(&x.values, &w.dense, (1, n, k));
        let size: f64 = x.values.iter().map(|v| v.abs() * 0.16).sum();
        let got = q4_model(&x, &w, None, &[1, n]).load().unwrap().run(&[&x]).unwrap();
        for (a, b) in got[0].values.iter().zip(&want) {
            assert!((a - b).abs() <= 1e-6 * size, "{range:?}: {a} instead of {b}");
        }
    }
}

#[test]
fn layers_with_equal_scale_bytes_of_other_shapes_keep_their_own() {
    let scales: Vec<f64> = (1..=64).map(f64::from).collect();
    let x = Data::random(DType::F32, &[2, 128], (-1.0, 1.0), 24);
    let mut m = Model::new();
    let input = m.input(DType::F32, &x.dims);
    let (group, none) = (m.int(32), m.null());
    let mut wanted = Vec::new();
    for (groups, n) in [(4, 16), (2, 32)] {
        let k = groups * 32;
        let packed = Data::random(DType::U8, &[n, k / 2], (0.0, 255.0), u64::from(n));
        let table = Data::f32(&[groups, n], scales.clone());
        let mut rows = input;
        let mut values = x.values.clone();
        if k != 128 {
            let (dim, start, end, step) = (m.int(1), m.int(0), m.int(i64::from(k)), m.int(1));
            rows = m.tensor(DType::F32, &[2, k]);
            m.op("aten.slice_copy.Tensor", &[input, dim, start, end, step, rows]);
            values = values.chunks(128).flat_map(|row| row[..k as usize].to_vec()).collect();
        }
        let (w, s) = (m.constant(&packed), m.constant(&table));
        let out = m.tensor(DType::F32, &[2, n]);
        m.op("et_vk.linear_q4gsw.default", &[rows, w, s, group, none, out]);
        m.output(out);
        let nibble = |row: u32, i: u32| (packed.values[(row * k / 2 + i / 2) as usize] as u32 >> (4 * (i % 2))) & 15;
        let weight = |row: u32, i: u32| (f64::from(nibble(row, i)) - 8.0) * scales[(i / 32 * n + row) as usize];
        let dense: Vec<f64> = (0..n).flat_map(|row| (0..k).map(move |i| (row, i))).map(|(r, i)| weight(r, i)).collect();
        wanted.push((n, product(&values, &dense, (2, n, k))));
    }
    m.check(&[&x], |out| {
        for (got, (n, want)) in out.iter().zip(&wanted) {
            assert_close(got, &[2, *n], want, (1e-2, 1e-4));
        }
    });
}

#[test]
fn q4_multiplies_in_f32_when_told() {
    let (m, k, n) = (40, 256, 72);
    let w = q4::random(n, k, 32, 20);
    let x = Data::random(DType::F32, &[m, k], (-1.0, 1.0), 21);
    let want = product(&x.values, &w.dense, (m, n, k));
    check(&q4_model(&x, &w, None, &[m, n]), &x, n, &want, 1.0, Options { force_f32_gemm: true, ..Options::default() });
}

#[test]
fn q4_refuses_operands_that_do_not_fit() {
    let w = q4::random(16, 64, 32, 14);
    let x = Data::random(DType::F32, &[2, 72], (-1.0, 1.0), 15);
    let text = q4_model(&x, &w, None, &[2, 16]).load().err().unwrap().to_string();
    assert!(text.contains("K = 72"), "{text}");
    let x = Data::random(DType::F32, &[2, 64], (-1.0, 1.0), 15);
    let text = q4_model(&x, &w, None, &[2, 17]).load().err().unwrap().to_string();
    assert!(text.contains("17 outputs"), "{text}");
}

#[test]
fn replays_are_identical() {
    let (m, k, n) = (5, 256, 33);
    let w = q4::random(n, k, 64, 16);
    let x = Data::random(DType::F32, &[m, k], (-1.0, 1.0), 17);
    let mut running = q4_model(&x, &w, None, &[m, n]).load().unwrap();
    let first = running.run(&[&x]).unwrap();
    for _ in 0..200 {
        assert_eq!(running.run(&[&x]).unwrap(), first);
    }
}

fn dense(op: &str, dtype: DType, shapes: [&[u32]; 2], out: &[u32], want: impl Fn(&Data, &Data) -> Vec<f64>, k: u32) {
    let a = Data::random(dtype, shapes[0], (-1.0, 1.0), 21);
    let b = Data::random(dtype, shapes[1], (-1.0, 1.0), 22);
    let want = want(&a, &b);
    let no_bias: &[Entry] = if op == "aten.linear.default" { &[Entry::Null] } else { &[] };
    let model = Model::single(op, &[&a, &b], no_bias, dtype, out);
    for force_gemm in ways(Profile::Full) {
        let options = Options { force_gemm, ..Options::default() };
        model.check_with(&options, &[&a, &b], |got| assert_close(&got[0], out, &want, tolerance(dtype, k as usize)));
    }
}

/// A dense layer of up to 128 rows, run at several numbers of them.
fn changing_rows(op: &str, (k, n): (u32, u32), bias: Option<&Data>) {
    let w = Data::random(DType::F32, &[n, k], (-1.0, 1.0), 41);
    let make = |m: u32| [Data::random(DType::F32, &[m, k], (-1.0, 1.0), u64::from(m))];
    let mut m = Model::new();
    let (x, weight) = (m.input(DType::F32, &[128, k]), m.constant(&w));
    let bias_id = bias.map(|bias| m.constant(bias)).unwrap_or_else(|| m.null());
    let y = m.tensor(DType::F32, &[128, n]);
    m.op(op, &[x, weight, bias_id, y]);
    m.output(y);
    check_in_turn(&m, &[128, 32, 1, 128].map(make), |[x], got| {
        let mut want = product(&x.values, &w.values, (x.dims[0], n, k));
        let bias = |i: usize| bias.map_or(0.0, |bias| bias.values[i % n as usize]);
        want.iter_mut().enumerate().for_each(|(i, y)| *y += bias(i));
        assert_close(&got[0], &[x.dims[0], n], &want, tolerance(DType::F32, k as usize));
    });
}

#[test]
fn dense_layers_of_changing_rows() {
    for (k, n) in [(64, 128), (63, 33)] {
        let bias = Data::random(DType::F32, &[n], (-1.0, 1.0), 42);
        for bias in [None, Some(&bias)] {
            changing_rows("aten.linear.default", (k, n), bias);
        }
    }
}

/// Three layers of one input, of `bound` rows at most.
#[test]
fn layers_of_one_input_with_changing_rows() {
    for (widths, k, bound, calls) in [
        (&[2048, 512, 512][..], 64, 16, &[16, 1, 7, 16][..]),
        (&[2048], 72, 128, &[128, 32, 1, 128]),
        (&[128], 72, 128, &[128, 32, 1, 128]),
        (&[128], 64, 128, &[128, 32, 1, 128]),
    ] {
        let layers: Vec<Q4> = widths.iter().map(|&n| q4::random(n, k, 8, u64::from(n))).collect();
        let mut m = Model::new();
        let x = m.input(DType::F32, &[bound, k]);
        for (w, &n) in layers.iter().zip(widths) {
            let (packed, scales, group) = (m.constant(&w.packed), m.constant(&w.scales), m.int(8));
            let (none, y) = (m.null(), m.tensor(DType::F32, &[bound, n]));
            m.op("et_vk.linear_q4gsw.default", &[x, packed, scales, group, none, y]);
            m.output(y);
        }
        let make = |&m: &u32| [Data::random(DType::F32, &[m, k], (-1.0, 1.0), u64::from(m))];
        let calls: Vec<[Data; 1]> = calls.iter().map(make).collect();
        check_in_turn(&m, &calls, |[x], got| {
            for ((got, w), &n) in got.iter().zip(&layers).zip(widths) {
                let want = product(&x.values, &w.dense, (x.dims[0], n, k));
                assert_close(got, &[x.dims[0], n], &want, tolerance_of_halves(k as usize, 1.0));
            }
        });
    }
}

fn transposed(b: &[f64], k: u32, n: u32) -> Vec<f64> {
    (0..n).flat_map(|c| (0..k).map(move |i| (i * n + c) as usize)).map(|i| b[i]).collect()
}

#[test]
fn linear_matches_its_formula() {
    for dtype in [DType::F32, DType::F16] {
        for (m, k, n) in [(4, 64, 32), (1, 63, 33), (29, 37, 41), (70, 128, 64), (140, 200, 150)] {
            dense(
                "aten.linear.default",
                dtype,
                [&[m, k], &[n, k]],
                &[m, n],
                |a, b| product(&a.values, &b.values, (m, n, k)),
                k,
            );
        }
    }
    let (m, k, n) = (6, 20, 9);
    let batched = [2, 3, k];
    dense(
        "aten.linear.default",
        DType::F32,
        [&batched, &[n, k]],
        &[2, 3, n],
        |a, b| product(&a.values, &b.values, (m, n, k)),
        k,
    );
}

#[test]
fn mm_matches_its_formula() {
    for dtype in [DType::F32, DType::F16] {
        for (m, k, n) in [(1, 15, 32), (4, 16, 32), (29, 37, 41), (65, 17, 63), (70, 136, 150)] {
            dense(
                "aten.mm.default",
                dtype,
                [&[m, k], &[k, n]],
                &[m, n],
                |a, b| product(&a.values, &transposed(&b.values, k, n), (m, n, k)),
                k,
            );
        }
    }
}

#[test]
fn q4_takes_both_floats() {
    let (m, k, n) = (3, 64, 12);
    let w = q4::random(n, k, 32, 1);
    for dtype in FLOATS {
        let x = Data::random(dtype, &[m, k], (-1.0, 1.0), 2);
        let want = product(&x.values, &w.dense, (m, n, k));
        q4_model(&x, &w, None, &[m, n])
            .check(&[&x], |got| assert_close(&got[0], &[m, n], &want, tolerance(dtype, k as usize)));
    }
}

#[test]
fn bmm_matches_its_formula() {
    for (dtype, (batch, m, k, n)) in
        FLOATS.into_iter().flat_map(|dtype| [(dtype, (5, 7, 11, 13)), (dtype, (3, 67, 45, 133))])
    {
        let each = |a: &Data, b: &Data| {
            let (x, w) = (a.values.chunks((m * k) as usize), b.values.chunks((k * n) as usize));
            x.zip(w).flat_map(|(x, w)| product(x, &transposed(w, k, n), (m, n, k))).collect()
        };
        dense("aten.bmm.default", dtype, [&[batch, m, k], &[batch, k, n]], &[batch, m, n], each, k);
    }
}

#[test]
fn products_of_one_number() {
    let each = |a: &Data, b: &Data| vec![a.values[0] * b.values[0]];
    dense("aten.linear.default", DType::F32, [&[1, 1], &[1, 1]], &[1, 1], each, 1);
    dense("aten.mm.default", DType::F32, [&[1, 1], &[1, 1]], &[1, 1], each, 1);
    dense("aten.bmm.default", DType::F32, [&[1, 1, 1], &[1, 1, 1]], &[1, 1, 1], each, 1);
    let none = |_: &Data, _: &Data| vec![];
    dense("aten.linear.default", DType::F32, [&[0, 3], &[2, 3]], &[0, 2], none, 1);
    dense("aten.mm.default", DType::F32, [&[0, 3], &[3, 2]], &[0, 2], none, 1);
    dense("aten.bmm.default", DType::F32, [&[0, 2, 3], &[0, 3, 2]], &[0, 2, 2], none, 1);
}

#[test]
fn more_matrices_than_one_dimension_of_workgroups() {
    let (batch, m, k, n) = (65_537, 2, 3, 2);
    let (a, b) = (
        Data::random(DType::F32, &[batch, m, k], (-1.0, 1.0), 51),
        Data::random(DType::F32, &[batch, k, n], (-1.0, 1.0), 52),
    );
    let (x, w) = (a.values.chunks((m * k) as usize), b.values.chunks((k * n) as usize));
    let want: Vec<f64> = x.zip(w).flat_map(|(x, w)| product(x, &transposed(w, k, n), (m, n, k))).collect();
    let model = Model::single("aten.bmm.default", &[&a, &b], &[], DType::F32, &[batch, m, n]);
    model.check(&[&a, &b], |got| assert_close(&got[0], &[batch, m, n], &want, tolerance(DType::F32, 3)));
}

/// One matrix for every batch, and one whose dimensions change places first.
#[test]
fn matrices_that_are_expanded_or_permuted() {
    let (batch, m, k, n) = (7u32, 5, 11, 13);
    let a = Data::random(DType::F32, &[batch, m, k], (-1.0, 1.0), 53);
    let one = Data::random(DType::F32, &[1, k, n], (-1.0, 1.0), 54);
    let turned = Data::random(DType::F32, &[n, batch, k], (-1.0, 1.0), 55);
    let mut model = Model::new();
    let [x, w, t] = [&a, &one, &turned].map(|x| model.input(x.dtype, &x.dims));
    let (sizes, no) = (model.ints(&[7, 11, 13]), model.boolean(false));
    let expanded = model.tensor(DType::F32, &[batch, k, n]);
    model.op("aten.expand_copy.default", &[w, sizes, no, expanded]);
    let (order, permuted) = (model.ints(&[1, 2, 0]), model.tensor(DType::F32, &[batch, k, n]));
    model.op("aten.permute_copy.default", &[t, order, permuted]);
    for w in [expanded, permuted] {
        let y = model.tensor(DType::F32, &[batch, m, n]);
        model.op("aten.bmm.default", &[x, w, y]);
        model.output(y);
    }
    let column = |b: u32, c: u32| &turned.values[((c * batch + b) * k) as usize..][..k as usize];
    let rows = a.values.chunks((m * k) as usize);
    let first: Vec<f64> = rows.clone().flat_map(|x| product(x, &transposed(&one.values, k, n), (m, n, k))).collect();
    let columns = |b: u32| (0..n).flat_map(|c| column(b, c).to_vec()).collect::<Vec<f64>>();
    let second: Vec<f64> = (0..).zip(rows).flat_map(|(b, x)| product(x, &columns(b), (m, n, k))).collect();
    model.check(&[&a, &one, &turned], |got| {
        for (got, want) in got.iter().zip([&first, &second]) {
            assert_close(got, &[batch, m, n], want, tolerance(DType::F32, k as usize));
        }
    });
}

#[test]
fn addmm_scales_and_adds() {
    let (m, k, n) = (5, 15, 33);
    let shapes: [&[u32]; 5] = [&[n], &[m, n], &[1, n], &[m, 1], &[1]];
    for (bias_dims, dtype) in shapes.into_iter().zip(FLOATS.into_iter().cycle()) {
        let bias = Data::random(dtype, bias_dims, (-1.0, 1.0), 30);
        let a = Data::random(dtype, &[m, k], (-1.0, 1.0), 31);
        let b = Data::random(dtype, &[k, n], (-1.0, 1.0), 32);
        let sums = product(&a.values, &transposed(&b.values, k, n), (m, n, k));
        let at = |i: usize| {
            let (row, column) = (i / n as usize, i % n as usize);
            let width = *bias_dims.last().unwrap() as usize;
            let row = if bias_dims.len() == 2 && bias_dims[0] > 1 { row } else { 0 };
            bias.values[row * width + if width > 1 { column } else { 0 }]
        };
        let want: Vec<f64> = sums.iter().enumerate().map(|(i, s)| 0.5 * s + 2.0 * at(i)).collect();
        let scalars = [Entry::Int(2), Entry::Double(0.5)];
        let model = Model::single("aten.addmm.default", &[&bias, &a, &b], &scalars, dtype, &[m, n]);
        model.check(&[&bias, &a, &b], |out| assert_close(&out[0], &[m, n], &want, tolerance(dtype, 15)));
    }
}
