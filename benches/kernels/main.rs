//! Speed of the operators besides 4-bit linear layers: `cargo bench --bench kernels [-- --adapter NAME] [--quick] [NAME ...]`.
//!
//! Operators that compute are compared with the matrix product of their type in the same run, operators that move data with a
//! kernel that only copies. Tensors are larger than caches; times are medians of the device's time for one operator among
//! others. A NAME measures the operators whose names contain it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code)]
#[path = "../linear/ceilings.rs"]
mod ceilings;
#[path = "../../tests/common/mod.rs"]
mod common;

use std::time::{Duration, Instant};

use ceilings::Ceilings;
use common::data::Data;
use common::model::Model;
use common::writer::Id;
use executorch_webgpu::gpu::{Gpu, Profile, Timed};
use executorch_webgpu::graph::DType;
use executorch_webgpu::options::Options;

/// What an operator does.
#[derive(Clone, Copy)]
enum Work {
    /// Multiplications and additions.
    Flops(f64),
    /// Bytes that must be read or written.
    Bytes(f64),
}

/// Adds the arguments of an operator to a model, its result last.
type Build = Box<dyn Fn(&mut Model) -> Vec<Id>>;

/// An operator.
struct Case {
    op: &'static str,
    what: String,
    dtype: DType,
    work: Work,
    build: Build,
}

const F32: DType = DType::F32;
const F16: DType = DType::F16;

fn random(dtype: DType, dims: &[u32]) -> Data {
    Data::random(dtype, dims, (-1.0, 1.0), 3)
}

fn numel(dims: &[u32]) -> f64 {
    dims.iter().map(|&d| f64::from(d)).product()
}

fn mm(dtype: DType, (m, n, k): (u32, u32, u32)) -> Case {
    let (a, b) = (random(dtype, &[m, k]), random(dtype, &[k, n]));
    let build = move |model: &mut Model| vec![model.constant(&a), model.constant(&b), model.tensor(dtype, &[m, n])];
    let work = Work::Flops(2.0 * f64::from(m) * f64::from(n) * f64::from(k));
    Case { op: "aten.mm.default", what: format!("{m} x {k} x {n}"), dtype, work, build: Box::new(build) }
}

/// `[batch, channels, side, side]` by `made` channels of a square window.
struct Convolution {
    x: [u32; 3],
    made: u32,
    kernel: u32,
    stride: u32,
    groups: u32,
    transposed: bool,
}

fn convolution(dtype: DType, c: Convolution) -> Case {
    let Convolution { x: [batch, channels, side], made, kernel, stride, groups, transposed } = c;
    let padding = if transposed { (kernel - stride) / 2 } else { kernel / 2 };
    let to = if transposed { side * stride } else { side.div_ceil(stride) };
    let weight = if transposed { [channels, made, kernel, kernel] } else { [made, channels / groups, kernel, kernel] };
    let (x, w) = (random(dtype, &[batch, channels, side, side]), random(dtype, &weight));
    let windows = if transposed { side } else { to };
    let flops = 2.0 * numel(&weight) * f64::from(batch) * f64::from(windows).powi(2);
    let bytes = (numel(&x.dims) + numel(&[batch, made, to, to])) * dtype.size() as f64;
    let form = if transposed { ", transposed" } else { "" };
    let what = format!("{batch} x {channels} x {side}^2 to {made}, {kernel}^2 / {stride}, {groups} groups{form}");
    let build = move |m: &mut Model| {
        let pair = |m: &mut Model, n: u32| m.ints(&[i64::from(n); 2]);
        let mut args = vec![m.constant(&x), m.constant(&w), m.null(), pair(m, stride), pair(m, padding), pair(m, 1)];
        args.extend([m.boolean(transposed), pair(m, 0), m.int(i64::from(groups))]);
        args.push(m.tensor(dtype, &[batch, made, to, to]));
        args
    };
    let work = if groups > 1 { Work::Bytes(bytes) } else { Work::Flops(flops) };
    Case { op: "aten.convolution.default", what, dtype, work, build: Box::new(build) }
}

/// An operator that reads one tensor and writes one.
fn moved(
    op: &'static str,
    dtype: DType,
    (from, to): (&[u32], &[u32]),
    rest: impl Fn(&mut Model, Id) -> Vec<Id> + 'static,
) -> Case {
    let (x, to) = (random(dtype, from), to.to_vec());
    let work = Work::Bytes((numel(from) + numel(&to)) * dtype.size() as f64);
    let what = format!("{from:?} to {to:?}");
    let build = move |m: &mut Model| {
        let x = m.constant(&x);
        let mut args = rest(m, x);
        args.push(m.tensor(dtype, &to));
        args
    };
    Case { op, what, dtype, work, build: Box::new(build) }
}

fn cases(dtype: DType, small: bool) -> Vec<Case> {
    let d = if small { 64 } else { 4096 };
    let side = if small { 8 } else { 56 };
    let plain = Convolution { x: [8, 64, side], made: 64, kernel: 3, stride: 1, groups: 1, transposed: false };
    let rows = move |op, rest: fn(&mut Model, Id) -> Vec<Id>| moved(op, dtype, (&[d, d], &[d, d]), rest);
    let mut all = vec![
        mm(dtype, if small { (64, 64, 64) } else { (2048, 2048, 2048) }),
        convolution(dtype, Convolution { ..plain }),
        convolution(dtype, Convolution { x: [1, 256, side], made: 256, ..plain }),
        convolution(dtype, Convolution { x: [1, 256, side], made: 512, kernel: 1, ..plain }),
        convolution(dtype, Convolution { x: [8, 3, 4 * side], kernel: 7, stride: 2, ..plain }),
        convolution(
            dtype,
            Convolution { x: [8, 128, side], made: 64, kernel: 4, stride: 2, transposed: true, ..plain },
        ),
        convolution(dtype, Convolution { x: [8, 128, 2 * side], made: 128, groups: 128, ..plain }),
        rows("aten.relu.default", |_, x| vec![x]),
        rows("aten._softmax.default", |m, x| vec![x, m.int(-1), m.boolean(false)]),
        rows("aten._softmax.default", |m, x| vec![x, m.int(0), m.boolean(false)]),
        rows("aten.permute_copy.default", |m, x| vec![x, m.ints(&[1, 0])]),
        moved("aten.sum.dim_IntList", dtype, (&[d, d], &[d]), |m, x| vec![x, m.ints(&[1]), m.boolean(false), m.null()]),
        moved("aten.sum.dim_IntList", dtype, (&[d, d], &[d]), |m, x| vec![x, m.ints(&[0]), m.boolean(false), m.null()]),
        moved("aten.add.Tensor", dtype, (&[d, d], &[d, d]), |m, x| vec![x, x, m.int(1)]),
    ];
    let square = random(dtype, &[d / 2, d / 2]);
    let layer = moved("aten.linear.default", dtype, (&[d / 2, d / 2], &[d / 2, d / 2]), move |m, x| {
        vec![x, m.constant(&square), m.null()]
    });
    all.insert(1, Case { work: Work::Flops(2.0 * f64::from(d / 2).powi(3)), ..layer });
    let weight = random(dtype, &[d]);
    all.push(moved("et_vk.rms_norm.default", dtype, (&[d, d], &[d, d]), move |m, x| {
        vec![x, m.constant(&weight), m.double(1e-5)]
    }));
    let picture = [8, 64, 2 * side, 2 * side];
    all.push(moved("aten.permute_copy.default", dtype, (&picture, &[8, 2 * side, 2 * side, 64]), |m, x| {
        vec![x, m.ints(&[0, 2, 3, 1])]
    }));
    all.push(moved("aten.max_pool2d.default", dtype, (&picture, &[8, 64, side, side]), |m, x| {
        let pair = |m: &mut Model, n| m.ints(&[n, n]);
        vec![x, pair(m, 3), pair(m, 2), pair(m, 1), pair(m, 1), m.boolean(false)]
    }));
    all
}

/// Operators of one program, of which the first is not timed.
const TIMES: usize = 6;

/// Median microseconds of an operator, and its steps.
fn measure(case: &Case, options: &Options, quick: bool) -> (f64, String) {
    let mut model = Model::new();
    for _ in 0..TIMES {
        let args = (case.build)(&mut model);
        model.op(case.op, &args);
    }
    // One number is read back, not the results.
    let (one, last) = (model.constant(&Data::f32(&[1], vec![1.0])), model.tensor(F32, &[1]));
    model.op("aten.neg.default", &[one, last]);
    model.output(last);
    let mut running = model.load_with(options.clone(), Profile::Full).unwrap();
    let steps = running.profile(&[], Timed::Steps).unwrap();
    let each = (steps.len() - 1) / TIMES;
    let names: Vec<_> = steps[..each].iter().map(|step| step.name.replace(case.op, "")).collect();
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(if quick { 1 } else { 150 }) {
        running.run(&[]).unwrap();
    }
    let mut times: Vec<f64> = (0..if quick { 3 } else { 11 })
        .map(|_| running.profile(&[], Timed::From(each)).unwrap())
        .map(|call| (call[0].end - call[0].start) as f64 / 1000.0 / (TIMES - 1) as f64)
        .collect();
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], names.join(","))
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let quick = args.iter().any(|arg| arg == "--quick");
    let adapter = args.iter().position(|arg| arg == "--adapter").map(|at| at + 1);
    let options = Options { adapter: adapter.and_then(|at| args.get(at)).cloned(), ..Options::default() };
    let wanted = |(at, arg): (usize, &String)| !arg.starts_with("--") && Some(at) != adapter;
    let names: Vec<&String> = args.iter().enumerate().filter(|&item| wanted(item)).map(|(_, arg)| arg).collect();
    let gpu = Gpu::open(options.adapter.as_deref(), Profile::Full).unwrap();
    let copy = Ceilings::copy(&gpu, quick);
    println!("{}: {}\na kernel that copies: {copy:.2} TB/s\n", gpu.name(), gpu.caps());
    println!("| operator | shape | type | us | rate | of a product or a copy | steps |\n|---|---|---|---|---|---|---|");
    for dtype in [F32, F16] {
        let mut product = f64::NAN;
        for case in cases(dtype, quick) {
            let named = names.is_empty() || names.iter().any(|name| case.op.contains(name.as_str()));
            if !named && case.op != "aten.mm.default" {
                continue;
            }
            let (us, steps) = measure(&case, &options, quick);
            let (rate, share) = match case.work {
                Work::Flops(flops) => (flops / us / 1e6, flops / us / 1e6 / product),
                Work::Bytes(bytes) => (bytes / us / 1e6, bytes / us / 1e6 / copy),
            };
            let (unit, share) = match case.work {
                Work::Flops(_) if product.is_nan() => {
                    product = rate;
                    ("TFLOP/s", 1.0)
                }
                Work::Flops(_) => ("TFLOP/s", share),
                Work::Bytes(_) => ("TB/s", share),
            };
            let (op, what) = (case.op, &case.what);
            println!(
                "| {op} | {what} | {} | {us:.1} | {rate:.2} {unit} | {:.0} % | {steps} |",
                case.dtype,
                share * 100.0
            );
        }
    }
}
