use executorch_webgpu::graph::DType::{self, F16, F32};

use crate::common::writer::Id;
use crate::common::{Data, Model, assert_close, q4, tolerance};

/// Tests with a case for each type of each operator.
pub const TESTS: &[fn()] =
    &[a_loss_and_its_gradient, the_optimiser_keeps_its_state, gradients_of_layers, codes_of_changed_weights];

/// Loss and gradient of the logits; a negative label leaves its row out.
fn cross_entropy(x: &[f64], labels: &[f64], count: f64) -> (f64, Vec<f64>) {
    let length = x.len() / labels.len();
    let (mut loss, mut gradient) = (0.0, Vec::new());
    for (row, &label) in x.chunks(length).zip(labels) {
        let peak = row.iter().copied().fold(f64::MIN, f64::max);
        let total: f64 = row.iter().map(|x| (x - peak).exp()).sum();
        let share = if label < 0.0 { 0.0 } else { 1.0 / count };
        let one = label.max(0.0) as usize;
        loss += (total.ln() + peak - row[one]) * share;
        let share_of = |(i, x): (usize, &f64)| ((x - peak).exp() / total - f64::from(u8::from(i == one))) * share;
        gradient.extend(row.iter().enumerate().map(share_of));
    }
    (loss, gradient)
}

#[test]
fn a_loss_and_its_gradient() {
    for (rows, length, range, dtype) in
        [(1, 1, 1.0, F32), (7, 5, 3.0, F32), (3, 1000, 60.0, F32), (65, 33, 1.0, F32), (7, 5, 3.0, F16)]
    {
        let x = Data::random(dtype, &[rows, length], (-range, range), 1);
        let mut labels = Data::random(DType::I64, &[rows], (0.0, f64::from(length - 1)), 2);
        labels.values.iter_mut().skip(1).step_by(3).for_each(|label| *label = -100.0);
        let count = labels.values.iter().filter(|label| **label >= 0.0).count();
        let (loss, gradient) = cross_entropy(&x.values, &labels.values, count as f64);
        for dims in [&[][..], &[1]] {
            let mut m = Model::new();
            let args = [m.input(dtype, &x.dims), m.input(DType::I64, &[rows]), m.int(count as i64)];
            let outs = [m.tensor(dtype, dims), m.tensor(dtype, &x.dims)];
            let list = m.list(&outs);
            m.op("et_vk.fused_ce.default", &[args[0], args[1], args[2], list]);
            outs.iter().for_each(|&out| m.output(out));
            m.check(&[&x, &labels], |got| {
                assert_close(&got[0], dims, &[loss], tolerance(dtype, length as usize));
                assert_close(&got[1], &x.dims, &gradient, tolerance(dtype, 1));
            });
        }
    }
}

/// Rate, betas, eps, decay, corrections.
const STEP: [f64; 7] = [0.01, 0.9, 0.99, 1e-6, 0.1, 0.5, 0.25];

fn adamw(state: &mut [Vec<f64>; 3], gradient: &[f64], [rate, b1, b2, eps, decay, c1, c2]: [f64; 7]) {
    for (i, g) in gradient.iter().enumerate() {
        let [p, m, v] = state.each_mut().map(|s| &mut s[i]);
        *p *= 1.0 - rate * decay;
        *m = *m * b1 + (1.0 - b1) * g;
        *v = *v * b2 + (1.0 - b2) * g * g;
        *p -= rate * (*m / c1) / ((*v / c2).sqrt() + eps);
    }
}

fn step(m: &mut Model, state: [Id; 3], gradient: Id, numbers: [f64; 7], outs: [Id; 3]) {
    let mut args = vec![state[0], state[1], state[2], gradient];
    args.extend(numbers.map(|x| m.double(x)));
    args.push(m.list(&outs));
    m.op("et_vk.adamw_step.default", &args);
}

/// The state stays on the device from call to call; results are the same tensors, or others.
#[test]
fn the_optimiser_keeps_its_state() {
    for (dims, dtype) in [(&[37, 3][..], F32), (&[1], F32), (&[37, 3], F16)] {
        for apart in [false, true] {
            let gradient = Data::random(dtype, dims, (-1.0, 1.0), 1);
            let start = [(-1.0, 1.0), (-0.1, 0.1), (0.0, 0.1)].map(|range| Data::random(dtype, dims, range, 2));
            let mut m = Model::new();
            let state = start.each_ref().map(|data| m.constant(data));
            let g = m.input(dtype, dims);
            let outs = if apart { state.map(|_| m.tensor(dtype, dims)) } else { state };
            step(&mut m, state, g, STEP, outs);
            outs.iter().for_each(|&out| m.output(out));
            if m.noted() {
                continue;
            }
            let mut running = m.load().unwrap();
            let mut want = start.map(|data| data.values);
            for _ in 0..3 {
                adamw(&mut want, &gradient.values, STEP);
                let got = running.run(&[&gradient]).unwrap();
                for (got, want) in got.iter().zip(&want) {
                    assert_close(got, dims, want, tolerance(dtype, 1));
                }
            }
        }
    }
}

#[test]
fn a_correction_of_zero_is_refused() {
    let mut m = Model::new();
    let state = [1, 2, 3].map(|_| m.input(DType::F32, &[4]));
    let g = m.input(DType::F32, &[4]);
    let mut numbers = STEP;
    numbers[6] = 0.0;
    step(&mut m, state, g, numbers, state);
    m.output(state[0]);
    assert!(m.load().err().unwrap().to_string().contains("correction"));
}

/// `a [m, t] * b [t, n]`, either one transposed where it is asked for.
fn product(a: impl Fn(usize, usize) -> f64, b: impl Fn(usize, usize) -> f64, [m, n, t]: [u32; 3]) -> Vec<f64> {
    let sum = |i: usize| (0..t as usize).map(|t| a(i / n as usize, t) * b(t, i % n as usize)).sum();
    (0..(m * n) as usize).map(sum).collect()
}

#[test]
fn gradients_of_layers() {
    let sizes = [(1, 1, 8, 8), (3, 7, 64, 32), (5, 41, 20, 4), (66, 12, 72, 24), (2, 9, 30, 5)];
    for ((m, n, k, group), dtype) in sizes.into_iter().zip([F32, F32, F32, F16, F32]) {
        let w = q4::random(n, k, group, 1);
        let gradient = Data::random(dtype, &[m, n], (-1.0, 1.0), 2);
        let x = Data::random(dtype, &[m, k], (-1.0, 1.0), 3);
        let (columns, terms) = (n as usize, k as usize);
        let dx = product(|r, t| gradient.values[r * columns + t], |t, c| w.dense[t * terms + c], [m, k, n]);
        let dw = product(|r, t| gradient.values[t * columns + r], |t, c| x.values[t * terms + c], [n, k, m]);
        let mut model = Model::new();
        let (g, x_id) = (model.input(dtype, &gradient.dims), model.input(dtype, &x.dims));
        let (packed, scales, size) =
            (model.constant(&w.packed), model.constant(&w.scales), model.int(i64::from(group)));
        let outs = [model.tensor(dtype, &[m, k]), model.tensor(dtype, &[n, k])];
        model.op("et_vk.linear_q4gsw_backward.default", &[g, packed, scales, size, outs[0]]);
        model.op("et_vk.linear_dW.default", &[g, x_id, outs[1]]);
        outs.iter().for_each(|&out| model.output(out));
        model.check(&[&gradient, &x], |got| {
            assert_close(&got[0], &[m, k], &dx, tolerance(dtype, columns));
            assert_close(&got[1], &[n, k], &dw, tolerance(dtype, m as usize));
        });
    }
}

#[test]
fn codes_of_changed_weights() {
    for (n, k, group, dtype) in [(512, 64, 64, F32), (6, 129, 64, F16), (5, 7, 3, F32), (1, 1, 1, F32)] {
        let x = Data::random(dtype, &[n, k], (-1.0, 1.0), 1);
        let mut scales = Data::random(dtype, &[k.div_ceil(group), n + 3], (0.05, 0.3), 2);
        scales.values.iter_mut().step_by(5).for_each(|scale| *scale = 0.0);
        let code = |n_at: u32, k_at: u32| {
            let scale = scales.values[(k_at / group * (n + 3) + n_at) as usize] as f32;
            let q = (x.values[(n_at * k + k_at) as usize] as f32 / scale).round_ties_even().clamp(-8.0, 7.0);
            if k_at >= k {
                0
            } else if scale == 0.0 {
                8
            } else {
                (q as i32 + 8) as u8
            }
        };
        let codes = |i: u32| {
            let (row, pair) = (i / k.div_ceil(2), i % k.div_ceil(2));
            let high = if 2 * pair + 1 < k { code(row, 2 * pair + 1) } else { 0 };
            f64::from(code(row, 2 * pair) | high << 4)
        };
        let dims = [n, k.div_ceil(2)];
        let want: Vec<f64> = (0..dims[0] * dims[1]).map(codes).collect();
        let mut m = Model::new();
        let args = [m.input(dtype, &x.dims), m.input(dtype, &scales.dims), m.int(i64::from(group))];
        let out = m.tensor(DType::U8, &dims);
        m.op("et_vk.q4gsw_requant.default", &[args[0], args[1], args[2], out]);
        m.output(out);
        m.check(&[&x, &scales], |got| assert_close(&got[0], &dims, &want, (0.0, 0.0)));
    }
}

/// Sizes of the network: rows, inputs, hidden, classes, rank of the adapter.
const NET: [u32; 5] = [12, 32, 16, 7, 3];
const TRAIN: [f64; 7] = [0.02, 0.9, 0.99, 1e-6, 0.01, 1.0, 1.0];

/// Two frozen 4-bit layers, the first with an adapter `B A x`, and what one step of training does to it.
struct Trainer {
    x: Data,
    labels: Data,
    frozen: [q4::Q4; 2],
    /// A [rank, inputs] and B [hidden, rank].
    adapter: [Data; 2],
}

impl Trainer {
    fn new() -> Trainer {
        let [rows, inputs, hidden, classes, rank] = NET;
        Trainer {
            x: Data::random(DType::F32, &[rows, inputs], (-1.0, 1.0), 1),
            labels: Data::random(DType::I64, &[rows], (0.0, f64::from(classes - 1)), 2),
            frozen: [q4::random(hidden, inputs, 16, 3), q4::random(classes, hidden, 8, 4)],
            adapter: [
                Data::random(DType::F32, &[rank, inputs], (-0.3, 0.3), 5),
                Data::f32(&[hidden, rank], vec![0.0; (hidden * rank) as usize]),
            ],
        }
    }

    fn model(&self) -> Model {
        let [rows, inputs, hidden, classes, rank] = NET;
        let mut m = Model::new();
        let (x, labels) = (m.input(DType::F32, &self.x.dims), m.input(DType::I64, &self.labels.dims));
        let [first, second] =
            self.frozen.each_ref().map(|w| [m.constant(&w.packed), m.constant(&w.scales), m.int(i64::from(w.group))]);
        let state = self.adapter.each_ref().map(|data| {
            let zeros = Data::f32(&data.dims, vec![0.0; data.values.len()]);
            [m.constant(data), m.constant(&zeros), m.constant(&zeros)]
        });
        let [a, b] = [state[0][0], state[1][0]];
        let none = m.null();
        let mut tensor = |dims: &[u32]| m.tensor(DType::F32, dims);
        let (low, base, delta) = (tensor(&[rows, rank]), tensor(&[rows, hidden]), tensor(&[rows, hidden]));
        let (h, logits, loss) = (tensor(&[rows, hidden]), tensor(&[rows, classes]), tensor(&[]));
        let (dlogits, dh, dlow) = (tensor(&[rows, classes]), tensor(&[rows, hidden]), tensor(&[rows, rank]));
        let gradients = [tensor(&[rank, inputs]), tensor(&[hidden, rank])];
        m.op("et_vk.linear_q4gsw.default", &[x, first[0], first[1], first[2], none, base]);
        m.op("aten.linear.default", &[x, a, none, low]);
        m.op("aten.linear.default", &[low, b, none, delta]);
        let one = m.int(1);
        m.op("aten.add.Tensor", &[base, delta, one, h]);
        m.op("et_vk.linear_q4gsw.default", &[h, second[0], second[1], second[2], none, logits]);
        let (count, outs) = (m.double(f64::from(rows)), m.list(&[loss, dlogits]));
        m.op("et_vk.fused_ce.default", &[logits, labels, count, outs]);
        m.op("et_vk.linear_q4gsw_backward.default", &[dlogits, second[0], second[1], second[2], dh]);
        m.op("et_vk.linear_dW.default", &[dh, low, gradients[1]]);
        m.op("aten.mm.default", &[dh, b, dlow]);
        m.op("et_vk.linear_dW.default", &[dlow, x, gradients[0]]);
        for (state, gradient) in state.into_iter().zip(gradients) {
            step(&mut m, state, gradient, TRAIN, state);
        }
        [loss, a, b].iter().for_each(|&out| m.output(out));
        m
    }

    /// The same step in f64.
    fn step(&self, state: &mut [[Vec<f64>; 3]; 2]) -> f64 {
        let [rows, inputs, hidden, classes, rank] = NET;
        let at = |data: &[f64], width: u32| {
            let data = data.to_vec();
            move |r: usize, c: usize| data[r * width as usize + c]
        };
        let turned = |data: &[f64], width: u32| {
            let data = data.to_vec();
            move |r: usize, c: usize| data[c * width as usize + r]
        };
        let x = &self.x.values;
        let low = product(at(x, inputs), turned(&state[0][0], inputs), [rows, rank, inputs]);
        let mut h = product(at(x, inputs), turned(&self.frozen[0].dense, inputs), [rows, hidden, inputs]);
        let delta = product(at(&low, rank), turned(&state[1][0], rank), [rows, hidden, rank]);
        h.iter_mut().zip(delta).for_each(|(h, delta)| *h += delta);
        let logits = product(at(&h, hidden), turned(&self.frozen[1].dense, hidden), [rows, classes, hidden]);
        let (loss, dlogits) = cross_entropy(&logits, &self.labels.values, f64::from(rows));
        let dh = product(at(&dlogits, classes), at(&self.frozen[1].dense, hidden), [rows, hidden, classes]);
        let db = product(turned(&dh, hidden), at(&low, rank), [hidden, rank, rows]);
        let dlow = product(at(&dh, hidden), at(&state[1][0], rank), [rows, rank, hidden]);
        let da = product(turned(&dlow, rank), at(x, inputs), [rank, inputs, rows]);
        adamw(&mut state[0], &da, TRAIN);
        adamw(&mut state[1], &db, TRAIN);
        loss
    }
}

#[test]
fn an_adapter_learns_as_in_f64() {
    let trainer = Trainer::new();
    let mut running = trainer.model().load().unwrap();
    let mut state = trainer.adapter.each_ref().map(|data| {
        let zeros = vec![0.0; data.values.len()];
        [data.values.clone(), zeros.clone(), zeros]
    });
    let mut losses = Vec::new();
    for _ in 0..50 {
        let want = trainer.step(&mut state);
        let got = running.run(&[&trainer.x, &trainer.labels]).unwrap();
        assert_close(&got[0], &[], &[want], (1e-3, 1e-3));
        losses.push(want);
    }
    let (first, last) = (losses[0], losses[49]);
    assert!(last < first * 0.8, "the loss went from {first} to {last}");
}

#[test]
fn gradients_of_many_columns_are_whole_or_refused() {
    let n = 70_000;
    let gradient = Data::f32(&[1, n], (0..n).map(|i| f64::from(u8::from(i >= n - 100))).collect());
    let codes = Data::new(DType::U8, &[n, 4], vec![f64::from(0x99); 4 * n as usize]);
    let scales = Data::f32(&[1, n], vec![1.0; n as usize]);
    let mut m = Model::new();
    let args = [m.input(gradient.dtype, &gradient.dims), m.constant(&codes), m.constant(&scales), m.int(8)];
    let out = m.tensor(DType::F32, &[1, 8]);
    m.op("et_vk.linear_q4gsw_backward.default", &[&args[..], &[out]].concat());
    m.output(out);
    match m.load() {
        Ok(mut running) => assert_close(&running.run(&[&gradient]).unwrap()[0], &[1, 8], &[100.0; 8], (0.0, 0.0)),
        Err(error) => assert!(error.to_string().contains("software adapter"), "{error}"),
    }
}

#[test]
fn gradients_of_no_columns_are_zero() {
    let gradient = Data::f32(&[3, 0], vec![]);
    let codes = Data::new(DType::U8, &[2, 4], vec![f64::from(0x99); 8]);
    let scales = Data::f32(&[1, 2], vec![1.0; 2]);
    let mut m = Model::new();
    let args = [m.input(gradient.dtype, &gradient.dims), m.constant(&codes), m.constant(&scales), m.int(8)];
    let out = m.tensor(DType::F32, &[3, 8]);
    m.op("et_vk.linear_q4gsw_backward.default", &[&args[..], &[out]].concat());
    m.output(out);
    m.check(&[&gradient], |got| assert_close(&got[0], &[3, 8], &[0.0; 24], (0.0, 0.0)));
}
