use executorch_webgpu::gpu::Profile;
use executorch_webgpu::graph::DType;
use executorch_webgpu::options::Options;

use crate::cases::{check_in_turn, sizes};
use crate::common::model::Running;
use crate::common::writer::{Entry, Id};
use crate::common::{Data, Model, assert_close, q4, tolerance};

/// Tests with a case for each type of each operator.
pub const TESTS: &[fn()] = &[
    bytes_in_and_bytes_out,
    bytes_in_and_numbers_out,
    numbers_times_byte_channels,
    numbers_times_nibble_channels,
    dynamic_bytes_times_nibble_groups,
];

/// Sizes (m, k, n): one row, whole blocks, primes, every residue of k and n, sums that are split and results that are not.
const SIZES: [(u32, u32, u32); 11] = [
    (1, 16, 8),
    (4, 16, 8),
    (1, 64, 5),
    (3, 37, 7),
    (5, 66, 41),
    (8, 131, 12),
    (37, 41, 10),
    (1, 1, 1),
    (2, 4096, 3),
    (130, 64, 9),
    (700, 64, 192),
];

/// Weights `[n, k]` in rows of `width` bytes, 99 beyond k.
fn bytes((n, k): (u32, u32), width: u32, seed: u64) -> Data {
    let mut w = Data::random(DType::I8, &[n, width], (-127.0, 127.0), seed);
    w.values.iter_mut().enumerate().filter(|(i, _)| *i as u32 % width >= k).for_each(|(_, w)| *w = 99.0);
    w
}

fn sums(x: &[f64], zero: f64, w: &Data, (m, n, k): (u32, u32, u32)) -> Vec<f64> {
    let width = w.dims[1] as usize;
    let sum = |i: usize| {
        let (row, col) = (i / n as usize, i % n as usize);
        (0..k as usize).map(|j| (x[row * k as usize + j] - zero) * w.values[col * width + j]).sum()
    };
    (0..(m * n) as usize).map(sum).collect()
}

struct Layer {
    x: Data,
    w: Data,
    scales: Data,
    bias: Option<Data>,
    input: (f64, i64),
    sizes: (u32, u32, u32),
}

impl Layer {
    fn new((m, k, n): (u32, u32, u32), biased: bool) -> Layer {
        Layer {
            x: Data::random(DType::I8, &[m, k], (-128.0, 127.0), 1),
            w: bytes((n, k), k + if n % 3 == 0 { 0 } else { k.next_multiple_of(4) - k }, 2),
            scales: Data::random(DType::F32, &[n.next_multiple_of(4)], (0.005, 0.02), 3),
            bias: biased.then(|| Data::random(DType::F32, &[n.next_multiple_of(4)], (-1.0, 1.0), 4)),
            input: (0.02, -7),
            sizes: (m, n, k),
        }
    }

    /// In f32, term by term as the formula is written.
    fn numbers(&self, x: &Data) -> Vec<f32> {
        let n = self.sizes.1;
        let sums = sums(&x.values, self.input.1 as f64, &self.w, (x.dims[0], n, self.sizes.2));
        let number = |(i, &sum): (usize, &f64)| {
            let col = i % n as usize;
            let bias = self.bias.as_ref().map_or(0.0, |b| b.values[col] as f32);
            sum as f32 * (self.input.0 as f32 * self.scales.values[col] as f32) + bias
        };
        sums.iter().enumerate().map(number).collect()
    }

    fn integers(&self, x: &Data, (scale, zero): (f64, i64), relu: bool) -> Vec<f64> {
        let integer = |y: f32| {
            let y = if relu { y.max(0.0) } else { y };
            f64::from(((y * (1.0 / scale) as f32).round_ties_even() + zero as f32).clamp(-128.0, 127.0))
        };
        self.numbers(x).into_iter().map(integer).collect()
    }

    fn arguments(&self, m: &mut Model, x: Id) -> Vec<Id> {
        let (scale, zero) = (m.double(self.input.0), m.int(self.input.1));
        let w = m.constant(&self.w);
        let sums = m.constant(&Data::new(DType::I32, &[1], vec![12345.0]));
        vec![x, scale, zero, w, sums, m.constant(&self.scales)]
    }

    fn bias(&self, m: &mut Model) -> Id {
        match &self.bias {
            Some(bias) => m.constant(bias),
            None => m.null(),
        }
    }

    fn model(&self, op: &str, (scale, zero): (f64, i64), activation: &str) -> Model {
        let mut m = Model::new();
        let x = m.input(DType::I8, &self.x.dims);
        let mut args = self.arguments(&mut m, x);
        args.extend([m.double(scale), m.int(zero), self.bias(&mut m), m.text(activation)]);
        let y = m.tensor(DType::I8, &[self.sizes.0, self.sizes.1]);
        args.push(y);
        m.op(op, &args);
        m.output(y);
        m
    }
}

#[test]
fn bytes_in_and_bytes_out() {
    for (i, size) in SIZES.into_iter().enumerate() {
        let layer = Layer::new(size, i % 2 == 0);
        let scale = f64::from(size.1).sqrt() * 0.02;
        for (activation, out) in [("none", (scale, 3)), ("relu", (scale / 2.0, -128))] {
            let op = if size.0 == 1 { "et_vk.q8ta_linear_gemv.default" } else { "et_vk.q8ta_linear.default" };
            let want = layer.integers(&layer.x, out, activation == "relu");
            assert!(want.iter().any(|&q| q.abs() < 127.0) || want.len() < 9, "all saturated");
            layer
                .model(op, out, activation)
                .check(&[&layer.x], |got| assert_close(&got[0], &[size.0, size.2], &want, (0.0, 0.0)));
        }
    }
}

#[test]
fn bytes_in_and_numbers_out() {
    for (i, size) in SIZES.into_iter().enumerate() {
        let layer = Layer::new(size, i % 2 == 1);
        let want: Vec<f64> = layer.numbers(&layer.x).into_iter().map(f64::from).collect();
        let mut m = Model::new();
        let x = m.input(DType::I8, &layer.x.dims);
        let mut args = layer.arguments(&mut m, x);
        if layer.bias.is_some() || i % 4 == 0 {
            args.push(layer.bias(&mut m));
        }
        let y = m.tensor(DType::F32, &[size.0, size.2]);
        args.push(y);
        m.op("et_vk.linear_q8ta_q8csw.default", &args);
        m.output(y);
        let tolerance = tolerance(DType::F32, size.1 as usize);
        m.check(&[&layer.x], |got| assert_close(&got[0], &[size.0, size.2], &want, tolerance));
    }
}

#[test]
fn rows_come_and_go() {
    for n in [8, 7] {
        let layer = Layer::new((13, 36, n), true);
        let m = layer.model("et_vk.q8ta_linear.default", (0.1, 5), "none");
        let make = |rows: u32| [Data::random(DType::I8, &[rows, 36], (-128.0, 127.0), u64::from(rows))];
        check_in_turn(&m, &sizes(13).map(make), |[x], got| {
            assert_close(&got[0], &[x.dims[0], n], &layer.integers(x, (0.1, 5), false), (0.0, 0.0));
        });
    }
}

/// The exporter leaves a view out between a layer and what quantises its result.
#[test]
fn the_result_may_have_another_shape() {
    let layer = Layer::new((6, 16, 8), true);
    let mut m = layer.model("et_vk.q8ta_linear.default", (0.1, 5), "none");
    let out = m.payload.outputs[0];
    m.payload.values[out] = Entry::Tensor { dtype: DType::I8, dims: vec![2, 3, 8], constant: -1 };
    let want = layer.integers(&layer.x, (0.1, 5), false);
    m.check(&[&layer.x], |got| assert_close(&got[0], &[2, 3, 8], &want, (0.0, 0.0)));
}

#[test]
fn what_no_kernel_computes_is_refused() {
    let layer = Layer::new((2, 16, 8), true);
    let text = |m: Model| m.load().err().unwrap().to_string();
    let why = text(layer.model("et_vk.q8ta_linear.default", (0.1, 5), "gelu"));
    assert!(why.contains("gelu"), "{why}");
    let mut m = Model::new();
    let x = m.input(DType::I8, &layer.x.dims);
    let mut args = layer.arguments(&mut m, x);
    let y = m.tensor(DType::I8, &[2, 8]);
    args.push(y);
    m.op("et_vk.linear_q8ta_q8csw.default", &args);
    m.output(y);
    let why = text(m);
    assert!(why.contains("int8"), "{why}");
    let short = Layer { w: bytes((7, 16), 16, 1), ..layer };
    let why = text(short.model("et_vk.q8ta_linear.default", (0.1, 5), "none"));
    assert!(why.contains("8 rows"), "{why}");
}

#[test]
fn numbers_times_byte_channels() {
    for (m, k, n) in SIZES {
        let w = bytes((n, k), k, 5);
        for dtype in [DType::F32, DType::F16] {
            let x = Data::random(dtype, &[m, k], (-1.0, 1.0), 6);
            let scales = Data::random(dtype, &[n], (0.005, 0.02), 7);
            let want = sums(&x.values, 0.0, &w, (m, n, k));
            let want: Vec<f64> = want.iter().enumerate().map(|(i, y)| y * scales.values[i % n as usize]).collect();
            channels("aten._weight_int8pack_mm.default", &x, &w, &scales, &want, n);
        }
    }
}

fn channels(op: &str, x: &Data, w: &Data, scales: &Data, want: &[f64], n: u32) {
    let mut m = Model::new();
    let args = [m.input(x.dtype, &x.dims), m.constant(w), m.constant(scales)];
    let dims = [x.dims[0], n];
    let y = m.tensor(x.dtype, &dims);
    m.op(op, &[args[0], args[1], args[2], y]);
    m.output(y);
    let (abs, rel) = tolerance(x.dtype, x.dims[1] as usize);
    m.check(&[x], |got| assert_close(&got[0], &dims, want, (abs, rel)));
}

#[test]
fn numbers_times_nibble_channels() {
    for (m, k, n) in SIZES {
        let mut w = Data::random(DType::U8, &[n, k.div_ceil(2)], (0.0, 255.0), 8);
        let row = k.div_ceil(2) as usize;
        let dense: Vec<f64> = (0..(n * k) as usize)
            .map(|i| {
                let (col, j) = (i / k as usize, i % k as usize);
                let byte = w.values[col * row + j / 2] as u32;
                f64::from(if j % 2 == 0 { byte >> 4 } else { byte & 15 }) - 8.0
            })
            .collect();
        // Weights of odd k end with a nibble of 8.
        w.values
            .iter_mut()
            .skip(row - 1)
            .step_by(row)
            .filter(|_| k % 2 == 1)
            .for_each(|b| *b = (*b / 16.0).floor() * 16.0 + 8.0);
        let dense = Data { dtype: DType::F32, dims: vec![n, k], values: dense };
        for dtype in [DType::F32, DType::F16] {
            let x = Data::random(dtype, &[m, k], (-1.0, 1.0), 9);
            let scales = Data::random(dtype, &[n], (0.005, 0.02), 7);
            let want = sums(&x.values, 0.0, &dense, (m, n, k));
            let want: Vec<f64> = want.iter().enumerate().map(|(i, y)| y * scales.values[i % n as usize]).collect();
            channels("et_vk.linear_qcs4w.default", &x, &w, &scales, &want, n);
        }
    }
}

/// Activations are made bytes row by row, in f32.
fn dynamic(x: &Data, scales: &Data, zeros: &Data, w: &q4::Q4, n: u32) -> Vec<f64> {
    let k = x.dims[1] as usize;
    let mut want = Vec::new();
    for (m, row) in x.values.chunks(k).enumerate() {
        let (scale, zero) = (scales.values[m], zeros.values[m]);
        let byte = |&x: &f64| {
            let q = (x as f32 * (1.0 / scale as f32)).round_ties_even() + zero as f32;
            f64::from(q.clamp(-128.0, 127.0)) - zero
        };
        let row: Vec<f64> = row.iter().map(byte).collect();
        want.extend(
            (0..n as usize).map(|n| scale * row.iter().zip(&w.dense[n * k..]).map(|(x, w)| x * w).sum::<f64>()),
        );
    }
    want
}

fn dynamic_model(x: &Data, n: u32, w: &q4::Q4, bias: Option<&Data>, zero: DType) -> Model {
    let mut model = Model::new();
    let m = x.dims[0];
    let x_id = model.input(x.dtype, &x.dims);
    let (s, z) = (model.input(DType::F32, &[m]), model.input(zero, &[m]));
    let (packed, sums, scales) =
        (model.constant(&w.packed), model.constant(&Data::f32(&[1], vec![0.0])), model.constant(&w.scales));
    let group = model.int(i64::from(w.group));
    let bias = match bias {
        Some(bias) => model.constant(bias),
        None => model.null(),
    };
    let y = model.tensor(x.dtype, &[m, n]);
    model.op("et_vk.linear_dq8ca_q4gsw.default", &[x_id, s, z, packed, sums, scales, group, bias, y]);
    model.output(y);
    model
}

fn activations(m: u32, k: u32, zero: DType) -> [Data; 3] {
    let x = Data::random(DType::F32, &[m, k], (-1.0, 1.0), u64::from(m));
    [x, Data::random(DType::F32, &[m], (0.006, 0.01), 2), Data::random(zero, &[m], (-30.0, 30.0), 3)]
}

#[test]
fn dynamic_bytes_times_nibble_groups() {
    for (m, k, n, group) in
        [(1, 64, 16, 32), (4, 64, 16, 64), (3, 96, 7, 32), (7, 132, 5, 4), (37, 40, 41, 20), (700, 64, 190, 16)]
    {
        let w = q4::random(n, k, group, 1);
        let bias = (n % 2 == 1).then(|| Data::random(DType::F32, &[n], (-1.0, 1.0), 4));
        for (dtype, zero) in [(DType::F32, DType::I8), (DType::F16, DType::I32), (DType::F32, DType::I32)] {
            let [x, s, z] = activations(m, k, zero);
            let x = Data::new(dtype, &x.dims, x.values);
            let mut want = dynamic(&x, &s, &z, &w, n);
            want.iter_mut()
                .enumerate()
                .for_each(|(i, y)| *y += bias.as_ref().map_or(0.0, |b| b.values[i % n as usize]));
            dynamic_model(&x, n, &w, bias.as_ref(), zero)
                .check(&[&x, &s, &z], |got| assert_close(&got[0], &[m, n], &want, tolerance(dtype, k as usize)));
        }
    }
}

#[test]
fn dynamic_rows_come_and_go() {
    let w = q4::random(9, 64, 32, 1);
    let m = dynamic_model(&activations(13, 64, DType::I8)[0], 9, &w, None, DType::I8);
    check_in_turn(&m, &sizes(13).map(|rows| activations(rows, 64, DType::I8)), |[x, s, z], got| {
        assert_close(&got[0], &[x.dims[0], 9], &dynamic(x, s, z, &w, 9), tolerance(DType::F32, 64));
    });
}

/// The same call twice, and a row alone, give the same bytes.
#[test]
fn a_row_does_not_depend_on_its_neighbours() {
    let w = q4::random(9, 64, 32, 1);
    let run = |rows: u32| {
        let [x, s, z] = activations(5, 64, DType::I8);
        let cut = |d: &Data, per: u32| {
            let mut dims = d.dims.clone();
            dims[0] = rows;
            Data::new(d.dtype, &dims, d.values[..(rows * per) as usize].to_vec())
        };
        let mut running: Running = dynamic_model(&x, 9, &w, None, DType::I8).load().unwrap();
        running.run(&[&cut(&x, 64), &cut(&s, 1), &cut(&z, 1)]).unwrap()[0].values[..9].to_vec()
    };
    assert_eq!(run(5), run(1));
}

/// On devices whose bindings cover 256 KiB, whose buffers hold little more, or all of a table.
#[test]
fn weights_beyond_one_binding_are_taken_in_parts() {
    let (m, k, n) = (5, 1024, 1501);
    let layer = Layer::new((m, k, n), true);
    let bytes = layer.model("et_vk.q8ta_linear.default", (0.5, 3), "none");
    let want = layer.integers(&layer.x, (0.5, 3), false);
    let w = q4::random(n, k, 32, 1);
    let [x, s, z] = activations(m, k, DType::I8);
    let groups = dynamic_model(&x, n, &w, None, DType::I8);
    let numbers = dynamic(&x, &s, &z, &w, n);
    for buffer in [9 << 15, 1 << 22] {
        let load = |model: &Model| {
            let running = model.load_with(Options::default(), Profile::Capped { binding: 1 << 18, buffer }).unwrap();
            running.program.fill_activations(0xFF).unwrap();
            running
        };
        assert_close(&load(&bytes).run(&[&layer.x]).unwrap()[0], &[m, n], &want, (0.0, 0.0));
        let got = load(&groups).run(&[&x, &s, &z]).unwrap();
        assert_close(&got[0], &[m, n], &numbers, tolerance(DType::F32, k as usize));
    }
}
