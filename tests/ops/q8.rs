//! Convolutions and elementwise operators from bytes to bytes.

use executorch_webgpu::graph::DType;

use crate::cases::{check_in_turn, coordinates, flat, sizes};
use crate::common::writer::Entry;
use crate::common::{Data, Model, assert_close};

/// Tests with a case for each type of each operator.
pub const TESTS: &[fn()] = &[
    convolutions,
    pointwise_and_depthwise_convolutions,
    transposed_convolutions,
    sums_of_bytes,
    rectified_bytes_come_and_go,
    pixels_are_shuffled,
];

/// `clamp(round(x / scale) + zero, -128, 127)` in f32.
fn integer(x: f32, (scale, zero): (f64, i64)) -> f64 {
    f64::from(((x * (1.0 / scale) as f32).round_ties_even() + zero as f32).clamp(-128.0, 127.0))
}

fn number(q: f64, (scale, zero): (f64, i64)) -> f32 {
    (q - zero as f64) as f32 * scale as f32
}

/// A convolution: [batch, input channels, output channels, groups], and sizes along y and x.
#[derive(Clone)]
struct Conv {
    op: &'static str,
    channels: [u32; 4],
    input: [u32; 2],
    kernel: [u32; 2],
    stride: [u32; 2],
    padding: [u32; 2],
    dilation: [u32; 2],
    extra: Option<[u32; 2]>,
    relu: bool,
    biased: bool,
}

const INPUT: (f64, i64) = (0.02, -7);
const OUTPUT: (f64, i64) = (0.05, 11);

impl Conv {
    fn new(op: &'static str, channels: [u32; 4], input: [u32; 2], kernel: [u32; 2]) -> Conv {
        let ones = [1, 1];
        let (stride, padding, dilation) = (ones, [0, 0], ones);
        Conv { op, channels, input, kernel, stride, padding, dilation, extra: None, relu: false, biased: true }
    }

    fn output(&self) -> [u32; 2] {
        [0, 1].map(|i| {
            let reach = self.dilation[i] * (self.kernel[i] - 1) + 1;
            match self.extra {
                Some(extra) => (self.input[i] - 1) * self.stride[i] + reach + extra[i] - 2 * self.padding[i],
                None => (self.input[i] + 2 * self.padding[i] - reach) / self.stride[i] + 1,
            }
        })
    }

    fn depthwise(&self) -> bool {
        self.op.ends_with("_dw.default")
    }

    /// `[oc, ky, kx, j]` as they are; the rows of a matrix are four bytes longer.
    fn weights(&self) -> (Data, Vec<f64>) {
        let [_, ic, oc, groups] = self.channels;
        let taps = self.kernel[0] * self.kernel[1] * ic / groups;
        let w = Data::random(DType::I8, &[oc, taps], (-127.0, 127.0), 2);
        let stored = if self.depthwise() {
            let turned = (0..taps * oc).map(|i| w.values[(i % oc * taps + i / oc) as usize]).collect();
            Data::new(DType::I8, &[self.kernel[0], self.kernel[1], oc], turned)
        } else {
            let rows = w.values.chunks(taps as usize).flat_map(|row| [row, &[99.0; 4]].concat()).collect();
            Data::new(DType::I8, &[oc, taps + 4], rows)
        };
        (stored, w.values)
    }

    fn reference(&self, x: &Data, w: &[f64], scales: &Data, bias: Option<&Data>) -> Vec<f64> {
        let ([batch, ic, oc, groups], [height, width]) = (self.channels, self.output());
        let (inputs, outputs) = (ic / groups, oc / groups);
        let mut sums = vec![0.0; (batch * oc * height * width) as usize];
        // Each element of x goes to where a tap brings it.
        let to = |i: usize, at: usize, tap: u32| -> Option<u32> {
            let (s, p, d) = (i64::from(self.stride[i]), i64::from(self.padding[i]), i64::from(self.dilation[i]));
            let (at, tap) = (at as i64, i64::from(tap));
            let place = if self.extra.is_some() { at * s - p + tap * d } else { at + p - tap * d };
            let place = if self.extra.is_some() { Some(place) } else { (place % s == 0).then_some(place / s) };
            place.filter(|&o| o >= 0 && o < i64::from(self.output()[i])).map(|o| o as u32)
        };
        for (i, q) in x.values.iter().enumerate() {
            let at = coordinates(i, &x.dims);
            let (group, j) = (at[1] as u32 / inputs, at[1] as u32 % inputs);
            for ky in 0..self.kernel[0] {
                for kx in 0..self.kernel[1] {
                    let (Some(oy), Some(ox)) = (to(0, at[2], ky), to(1, at[3], kx)) else { continue };
                    for c in group * outputs..(group + 1) * outputs {
                        let tap = ((c * self.kernel[0] + ky) * self.kernel[1] + kx) * inputs + j;
                        let out = ((at[0] as u32 * oc + c) * height + oy) * width + ox;
                        sums[out as usize] += (q - INPUT.1 as f64) * w[tap as usize];
                    }
                }
            }
        }
        let finish = |(i, &sum): (usize, &f64)| {
            let c = i / (height * width) as usize % oc as usize;
            let bias = bias.map_or(0.0, |b| b.values[c] as f32);
            let y = sum as f32 * (INPUT.0 as f32 * scales.values[c] as f32) + bias;
            integer(if self.relu { y.max(0.0) } else { y }, OUTPUT)
        };
        sums.iter().enumerate().map(finish).collect()
    }

    #[track_caller]
    fn check(&self) {
        let ([batch, ic, oc, groups], [height, width]) = (self.channels, self.output());
        let x = Data::random(DType::I8, &[batch, ic, self.input[0], self.input[1]], (-128.0, 127.0), 1);
        let (stored, w) = self.weights();
        let scales = Data::random(DType::F32, &[oc.next_multiple_of(4)], (0.002, 0.01), 3);
        let bias = self.biased.then(|| Data::random(DType::F32, &[oc.next_multiple_of(4)], (-1.0, 1.0), 4));
        let want = self.reference(&x, &w, &scales, bias.as_ref());
        let mut m = Model::new();
        let mut args = vec![m.input(DType::I8, &x.dims), m.double(INPUT.0), m.int(INPUT.1), m.constant(&stored)];
        args.extend([m.null(), m.constant(&scales), m.double(OUTPUT.0), m.int(OUTPUT.1)]);
        args.push(match &bias {
            Some(bias) => m.constant(bias),
            None => m.null(),
        });
        let lists = [Some(self.kernel), Some(self.stride), Some(self.padding), self.extra, Some(self.dilation)];
        args.extend(lists.iter().flatten().map(|list| m.ints(&list.map(i64::from))).collect::<Vec<_>>());
        args.extend([m.int(i64::from(groups)), m.text(if self.relu { "relu" } else { "none" })]);
        let dims = [batch, oc, height, width];
        let y = m.tensor(DType::I8, &dims);
        args.push(y);
        m.op(self.op, &args);
        m.output(y);
        assert!(want.iter().any(|q| q.abs() < 127.0), "all saturated");
        m.check(&[&x], |got| assert_close(&got[0], &dims, &want, (0.0, 0.0)));
    }
}

#[test]
fn convolutions() {
    let op = "et_vk.q8ta_conv2d.default";
    let base = Conv::new(op, [1, 8, 8, 1], [8, 8], [3, 3]);
    let padded = Conv { padding: [1, 1], ..base.clone() };
    for conv in [
        base.clone(),
        Conv { biased: false, ..padded.clone() },
        Conv { stride: [2, 2], relu: true, ..padded.clone() },
        Conv { dilation: [2, 2], padding: [2, 2], ..base.clone() },
        Conv { channels: [2, 3, 6, 1], input: [7, 9], kernel: [3, 5], padding: [1, 2], stride: [1, 3], ..base.clone() },
        Conv { channels: [1, 4, 6, 2], input: [5, 7], ..padded.clone() },
        Conv { channels: [1, 1, 1, 1], input: [1, 1], kernel: [1, 1], ..base },
    ] {
        conv.check();
    }
}

#[test]
fn pointwise_and_depthwise_convolutions() {
    for (channels, input) in [([1, 4, 8, 1], [6, 8]), ([2, 8, 5, 1], [3, 7]), ([1, 67, 3, 1], [1, 1])] {
        Conv { relu: input[0] == 3, ..Conv::new("et_vk.q8ta_conv2d_pw.default", channels, input, [1, 1]) }.check();
    }
    let base = Conv { padding: [1, 1], ..Conv::new("et_vk.q8ta_conv2d_dw.default", [1, 8, 8, 8], [8, 8], [3, 3]) };
    base.check();
    Conv { channels: [2, 4, 4, 4], input: [5, 7], stride: [2, 1], relu: true, ..base.clone() }.check();
    Conv { dilation: [2, 2], padding: [2, 2], biased: false, ..base }.check();
}

#[test]
fn transposed_convolutions() {
    let op = "et_vk.q8ta_conv2d_transposed.default";
    let base = Conv { extra: Some([0, 0]), stride: [2, 2], ..Conv::new(op, [1, 4, 4, 1], [5, 6], [2, 2]) };
    for conv in [
        base.clone(),
        Conv { kernel: [3, 3], padding: [1, 1], extra: Some([1, 1]), biased: false, ..base.clone() },
        Conv { channels: [2, 3, 6, 1], kernel: [3, 2], relu: true, ..base.clone() },
        Conv { channels: [1, 4, 6, 2], stride: [1, 3], kernel: [3, 4], ..base.clone() },
        Conv { dilation: [2, 1], kernel: [3, 3], ..base },
    ] {
        conv.check();
    }
}

#[test]
fn a_convolution_whose_weights_do_not_fit_is_refused() {
    let case = Conv::new("et_vk.q8ta_conv2d.default", [1, 4, 8, 1], [8, 8], [3, 3]);
    for (kernel, groups, activation, why) in
        [([5, 5], 1, "none", "weight"), ([3, 3], 3, "none", "groups"), ([3, 3], 1, "tanh", "tanh")]
    {
        let mut m = Model::new();
        let x = m.input(DType::I8, &[1, 4, 8, 8]);
        let mut args = vec![x, m.double(0.1), m.int(0), m.constant(&case.weights().0), m.null()];
        args.extend([m.constant(&Data::f32(&[8], vec![0.1; 8])), m.double(0.1), m.int(0), m.null(), m.ints(&kernel)]);
        args.extend([m.ints(&[1, 1]), m.ints(&[0]), m.ints(&[1, 1]), m.int(groups), m.text(activation)]);
        args.push(m.tensor(DType::I8, &[1, 8, 6, 6]));
        m.op(case.op, &args);
        m.output(*args.last().unwrap());
        let text = m.load().err().unwrap().to_string();
        assert!(text.contains(why), "{text}");
    }
}

fn sum(a: &Data, b: &Data, scales: [(f64, i64); 3], alpha: f64) -> Vec<f64> {
    let [sa, sb, so] = scales;
    let sum = |(&a, &b): (&f64, &f64)| integer(number(a, sa) + alpha as f32 * number(b, sb), so);
    a.values.iter().zip(&b.values).map(sum).collect()
}

#[test]
fn sums_of_bytes() {
    // With equal scales and twice that of the result, half of the sums are ties.
    for (scales, alpha) in [
        ([(0.05, 0), (0.05, 0), (0.1, 0)], 1.0),
        ([(0.05, 5), (0.03, -4), (0.07, 7)], 2.0),
        ([(1.0, 0), (0.5, 0), (1.0, 0)], 1.0),
    ] {
        for dims in [&[4, 8][..], &[3, 5, 7], &[1], &[37, 41]] {
            let (a, b) =
                (Data::random(DType::I8, dims, (-128.0, 127.0), 1), Data::random(DType::I8, dims, (-128.0, 127.0), 2));
            let want = sum(&a, &b, scales, alpha);
            // Whole numbers come as integers, as the exporter may store them.
            let entry = |x: f64| if x.fract() == 0.0 { Entry::Int(x as i64) } else { Entry::Double(x) };
            let mut args: Vec<Entry> = scales.iter().flat_map(|&(s, z)| [entry(s), Entry::Double(z as f64)]).collect();
            args.push(entry(alpha));
            Model::single("et_vk.q8ta_add.default", &[&a, &b], &args, DType::I8, dims)
                .check(&[&a, &b], |got| assert_close(&got[0], dims, &want, (0.0, 0.0)));
        }
    }
}

#[test]
fn rectified_bytes_come_and_go() {
    for (from, to) in [((0.05, 0), (0.05, 0)), ((0.05, 10), (0.08, -20)), ((0.1, 128), (0.3, 5))] {
        let make = |n: u32| [Data::random(DType::I8, &[n, 3], (-128.0, 127.0), u64::from(n))];
        let args = [Entry::Double(from.0), Entry::Int(from.1), Entry::Double(to.0), Entry::Int(to.1)];
        let m = Model::single("et_vk.q8ta_relu.default", &[&make(13)[0]], &args, DType::I8, &[13, 3]);
        check_in_turn(&m, &sizes(13).map(make), |[x], got| {
            let want: Vec<f64> = x.values.iter().map(|&q| integer(number(q, from).max(0.0), to)).collect();
            assert_close(&got[0], &x.dims, &want, (0.0, 0.0));
        });
    }
}

#[test]
fn pixels_are_shuffled() {
    for (dims, r) in
        [(&[1, 4, 2, 2][..], 2), (&[2, 8, 3, 5], 2), (&[9, 2, 3], 3), (&[1, 4, 3, 3], 1), (&[1, 25, 1, 1], 5)]
    {
        for (from, to) in [((0.05, 3), (0.05, 3)), ((0.05, 3), (0.08, -20))] {
            let x = Data::random(DType::I8, dims, (-128.0, 127.0), 1);
            let rank = dims.len();
            let mut out = dims.to_vec();
            out[rank - 3] /= r * r;
            out[rank - 2] *= r;
            out[rank - 1] *= r;
            let r = r as usize;
            let element = |i: usize| {
                let mut at = coordinates(i, &out);
                at[rank - 3] = (at[rank - 3] * r + at[rank - 2] % r) * r + at[rank - 1] % r;
                at[rank - 2] /= r;
                at[rank - 1] /= r;
                integer(number(x.values[flat(&at, dims)], from), to)
            };
            let want: Vec<f64> = (0..x.values.len()).map(element).collect();
            let args = [Entry::Double(from.0), Entry::Int(from.1), Entry::Double(1.0 / to.0), Entry::Int(to.1)];
            let args = [&args[..], &[Entry::Int(r as i64)]].concat();
            Model::single("et_vk.q8ta_pixel_shuffle.default", &[&x], &args, DType::I8, &out)
                .check(&[&x], |got| assert_close(&got[0], &out, &want, (0.0, 0.0)));
        }
    }
}

#[test]
fn bytes_of_another_kind_are_refused() {
    let x = Data::random(DType::I8, &[8, 2, 2], (-9.0, 9.0), 1);
    let args = [Entry::Double(0.1), Entry::Int(0), Entry::Double(10.0), Entry::Int(0), Entry::Int(3)];
    let m = Model::single("et_vk.q8ta_pixel_shuffle.default", &[&x], &args, DType::I8, &[8, 2, 2]);
    assert!(m.load().err().unwrap().to_string().contains("squared"));
    let m = Model::single("et_vk.q8ta_relu.default", &[&x], &args[..4], DType::U8, &[8, 2, 2]);
    assert!(m.load().err().unwrap().to_string().contains("int8"));
}

#[test]
fn long_sums_of_bytes_are_whole_or_refused() {
    // The last channels alone are not at the zero point.
    let (channels, zero) = (20_000, INPUT.1 as f64);
    let x: Vec<f64> = (0..channels).map(|c| zero + f64::from(u8::from(c >= channels - 100))).collect();
    let x = Data::new(DType::I8, &[1, channels, 1, 1], x);
    let w = Data::new(DType::I8, &[4, channels], vec![1.0; 4 * channels as usize]);
    let scales = Data::f32(&[4], vec![1.0; 4]);
    let mut m = Model::new();
    let mut args = vec![m.input(DType::I8, &x.dims), m.double(1.0), m.int(INPUT.1), m.constant(&w)];
    args.extend([m.null(), m.constant(&scales), m.double(1.0), m.int(0), m.null()]);
    args.extend([[1, 1], [1, 1], [0, 0], [1, 1]].map(|pair| m.ints(&pair)));
    args.extend([m.int(1), m.text("none")]);
    args.push(m.tensor(DType::I8, &[1, 4, 1, 1]));
    m.op("et_vk.q8ta_conv2d_pw.default", &args);
    m.output(args[args.len() - 1]);
    match m.load() {
        Ok(mut running) => {
            assert_close(&running.run(&[&x]).unwrap()[0], &[1, 4, 1, 1], &[100.0; 4], (0.0, 0.0));
        }
        Err(error) => assert!(error.to_string().contains("software adapter"), "{error}"),
    }
}

#[test]
fn pixels_beyond_any_tensor_are_refused() {
    let x = Data::new(DType::I8, &[1, 0, 70_000, 4], vec![]);
    let mut m = Model::new();
    let mut args = vec![m.input(DType::I8, &x.dims), m.double(1.0), m.int(0), m.double(1.0), m.int(0), m.int(65_535)];
    args.push(m.tensor(DType::I8, &[1, 0, 2, 2]));
    m.op("et_vk.q8ta_pixel_shuffle.default", &args);
    m.output(args[args.len() - 1]);
    assert!(m.load().is_err_and(|error| error.to_string().contains("has more than 2^31 - 1 elements")));
}
