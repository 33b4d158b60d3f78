//! Speed of 4-bit linear layers against ceilings measured in the same run.
//!
//! `cargo bench --bench linear [-- --adapter NAME] [--quick] [--cliffs]`. Every shape runs as one program of so many layers with weights of
//! their own that each finds its weights outside the caches; calls are repeated until clocks have risen.
//! Times are medians of the device's time for a whole call, over the number of layers: what a layer costs among others,
//! with the step that turns activations into halves where there is one. `--sweep M,N,K` times every algorithm for one shape.
//! `--cliffs` times one program at numbers of rows up to 130 where another kernel or tile may begin, and tells where one more
//! row takes more than 1.35 times as long.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code)]
mod ceilings;
#[path = "../../tests/common/mod.rs"]
mod common;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use ceilings::Ceilings;
use common::data::{Data, Rng};
use common::model::{Model, Running};
use executorch_webgpu::gpu::{Gpu, Profile, Timed};
use executorch_webgpu::graph::DType;
use executorch_webgpu::ops::linear::{Algorithm, Dot, GemvQ4};
use executorch_webgpu::options::Options;

/// What a shape is measured against.
enum Goal {
    /// Rate of the multiplication, in TFLOP/s.
    Tera(f64),
    /// Rate of reading weights and scales, in TB/s.
    Bandwidth(f64),
    /// At most so many times the launch of a kernel and the reading of weights and scales.
    Floor(f64),
    /// At most so many times one row.
    OneRow(f64),
    /// None.
    Known,
}

struct Case {
    size: (u32, u32, u32),
    goal: Goal,
}

const GROUP: u32 = 64;

/// Layers that run before the timed ones: the device's first steps wait for what the host wrote.
const UNTIMED: u32 = 2;

fn cases() -> Vec<Case> {
    use Goal::{Bandwidth, Floor, Known, OneRow, Tera};
    let mut all = vec![
        ((1, 128256, 2048), Bandwidth(3.0)),
        ((1, 8192, 2048), Floor(1.6)),
        ((1, 2048, 8192), Floor(1.6)),
        ((1, 2048, 2048), Floor(1.6)),
        ((1, 512, 2048), Floor(1.6)),
    ];
    all.extend([2, 3, 4, 5, 8].map(|m| ((m, 8192, 2048), OneRow(1.5))));
    all.extend([9, 16].map(|m| ((m, 8192, 2048), OneRow(2.5))));
    all.extend([
        ((32, 8192, 2048), Known),
        ((128, 2048, 2048), Known),
        ((128, 8192, 2048), Known),
        ((512, 2048, 2048), Tera(140.0)),
        ((512, 2048, 8192), Tera(180.0)),
        ((512, 8192, 2048), Tera(220.0)),
        ((2048, 512, 2048), Known),
        ((2048, 2048, 2048), Known),
        ((2048, 2048, 8192), Known),
        ((2000, 8192, 2048), Known),
        ((2048, 8192, 2048), Tera(260.0)),
    ]);
    all.into_iter().map(|(size, goal)| Case { size, goal }).collect()
}

/// `layers` independent layers that read one input.
fn program((m, n, k): (u32, u32, u32), layers: u32, rng: &mut Rng) -> (Model, Data) {
    let mut model = Model::new();
    let x = Data::random(DType::F32, &[m, k], (-1.0, 1.0), 1);
    let input = model.input(DType::F32, &x.dims);
    let last = model.tensor(DType::F32, &[1]);
    for layer in 0..layers {
        let mut bytes = vec![0u8; n as usize * k as usize / 2];
        bytes.chunks_mut(8).for_each(|piece| piece.copy_from_slice(&rng.next().to_le_bytes()));
        let packed = model.constant_bytes(&format!("w{layer}"), DType::U8, &[n, k / 2], bytes);
        let scales = Data::random(DType::F32, &[k / GROUP, n], (0.005, 0.02), u64::from(layer));
        let (scales, group, none) = (model.constant(&scales), model.int(i64::from(GROUP)), model.null());
        let out = model.tensor(DType::F32, &[m, n]);
        model.op("et_vk.linear_q4gsw.default", &[input, packed, scales, group, none, out]);
    }
    // One number is read back, not the layers' results.
    let one = model.constant(&Data::f32(&[1], vec![1.0]));
    model.op("aten.neg.default", &[one, last]);
    model.output(last);
    (model, x)
}

struct Bench {
    known: Option<((u32, u32, u32), Model, Data)>,
    options: Options,
    /// Weights of all layers.
    bytes: u64,
    calls: usize,
    warm_up: Duration,
    rng: Rng,
}

impl Bench {
    /// Layers of a shape that do not fit the caches, and those before them.
    fn layers(&self, (_, n, k): (u32, u32, u32)) -> u32 {
        let bytes = u64::from(n) * u64::from(k) / 2;
        (self.bytes / bytes).clamp(4, 64) as u32 + UNTIMED
    }

    /// Median microseconds of a layer, and its steps.
    fn measure(&mut self, size: (u32, u32, u32), force_gemm: Option<Algorithm>) -> (f64, String) {
        let layers = self.layers(size);
        if self.known.as_ref().is_none_or(|known| known.0 != size) {
            let (model, x) = program(size, layers, &mut self.rng);
            self.known = Some((size, model, x));
        }
        let Some((_, model, x)) = &self.known else { unreachable!() };
        let options = Options { force_gemm, ..self.options.clone() };
        let mut running = model.load_with(options, Profile::Full).unwrap();
        self.time(&mut running, x, layers)
    }

    /// The same for a loaded program of so many layers.
    fn time(&self, running: &mut Running, x: &Data, layers: u32) -> (f64, String) {
        let steps = running.profile(&[x], Timed::Steps).unwrap();
        let each = (steps.len() - 1) / layers as usize;
        let names = steps[..each].iter().map(|step| step.name.replace("et_vk.linear_q4gsw.default ", ""));
        let names = names.collect::<Vec<_>>().join(", ");
        // Clocks that fell while the weights were made rise again within some tenths of a second.
        let start = Instant::now();
        while start.elapsed() < self.warm_up {
            running.run(&[x]).unwrap();
        }
        let mut times: Vec<f64> = (0..self.calls)
            .map(|_| {
                let call = running.profile(&[x], Timed::From(each * UNTIMED as usize)).unwrap();
                (call[0].end - call[0].start) as f64 / 1000.0 / f64::from(layers - UNTIMED)
            })
            .collect();
        times.sort_by(f64::total_cmp);
        (times[times.len() / 2], names)
    }
}

/// Every algorithm that may be worth its while for a shape.
fn candidates((m, n, _): (u32, u32, u32)) -> Vec<Algorithm> {
    if m > 32 {
        let tiles = [(256, 64), (128, 64), (128, 32), (64, 32)];
        let slices = |(rows, columns)| [1, 2, 4, 8].map(|slices| Algorithm::Coop { rows, columns, slices });
        return tiles.into_iter().flat_map(slices).collect();
    }
    let mut all: Vec<Algorithm> = Vec::new();
    for split in [1, 2, 4, 8] {
        all.extend([16, 32].into_iter().filter(|&rows| rows >= m).map(|rows| Algorithm::Thin { rows, split }));
        for (words, columns, blocks) in [1, 2].into_iter().flat_map(|words| {
            [2, 4, 8].into_iter().flat_map(move |columns| [1, 2, 4].map(|blocks| (words, columns, blocks)))
        }) {
            for dot in [Dot::F32, Dot::Planes] {
                if blocks > 1 && n < 8192 {
                    continue;
                }
                let rows = m.next_power_of_two().min(4);
                all.push(Algorithm::GemvQ4(GemvQ4 { rows, columns, words, split, blocks, dot }));
            }
        }
    }
    all
}

fn sweep(bench: &mut Bench, size: (u32, u32, u32)) {
    let mut found: Vec<(f64, String)> =
        candidates(size).into_iter().map(|way| (bench.measure(size, Some(way)).0, format!("{way:?}"))).collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    println!("{size:?}");
    found.iter().take(12).for_each(|(us, way)| println!("{us:9.2} us {way}"));
}

/// How much longer one more row may take.
const STEEPEST: f64 = 1.35;

/// Rows before and after a place where another kernel or one more tile may begin.
fn edges() -> Vec<u32> {
    let around = |edge: u32| [edge - 1, edge, edge + 1];
    (1..=18).chain([32, 48, 64, 96, 128].into_iter().flat_map(around)).chain([130]).collect()
}

fn cliffs(bench: &mut Bench, (n, k): (u32, u32)) {
    let rows = edges();
    let size = (*rows.last().unwrap(), n, k);
    let layers = bench.layers(size);
    let (model, x) = program(size, layers, &mut bench.rng);
    let mut running = model.load_with(bench.options.clone(), Profile::Full).unwrap();
    let mut time = |m: u32| {
        let x = Data::f32(&[m, k], x.values[..(m * k) as usize].to_vec());
        (m, bench.time(&mut running, &x, layers))
    };
    let times: Vec<_> = rows.into_iter().map(&mut time).collect();
    let mut steep = 0;
    for pair in times.windows(2) {
        let ((before, (short, _)), (after, (long, steps))) = (&pair[0], &pair[1]);
        if after - before == 1 && *long > STEEPEST * short {
            steep += 1;
            println!(
                "{after} rows, {n} columns, {k} terms: {long:.2} us, {:.2} x those of {before}: {steps}",
                long / short
            );
        }
    }
    println!("{n} columns, {k} terms: {steep} cliffs among {} numbers of rows", times.len());
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let value = |flag: &str| args.iter().position(|a| a == flag).and_then(|i| args.get(i + 1)).cloned();
    let quick = args.iter().any(|a| a == "--quick");
    let options = Options { adapter: value("--adapter"), ..Options::default() };
    let gpu = Gpu::open(options.adapter.as_deref(), Profile::Full).unwrap();
    let sweeping = args.iter().any(|arg| arg == "--sweep");
    let mut bench = Bench {
        known: None,
        bytes: if sweeping { 96 << 20 } else { 256 << 20 },
        options: options.clone(),
        calls: if quick { 3 } else { 11 },
        warm_up: Duration::from_millis(if quick {
            1
        } else if sweeping {
            150
        } else {
            400
        }),
        rng: Rng::new(7),
    };
    for (_, shape) in args.iter().zip(args.iter().skip(1)).filter(|(flag, _)| *flag == "--sweep") {
        let sizes: Vec<u32> = shape.split(',').filter_map(|size| size.parse().ok()).collect();
        sweep(&mut bench, (sizes[0], sizes[1], sizes[2]));
    }
    if sweeping {
        return;
    }
    if args.iter().any(|arg| arg == "--cliffs") {
        let shapes: &[(u32, u32)] = if quick { &[(512, 512)] } else { &[(2048, 2048), (8192, 2048), (2048, 8192)] };
        println!("{}: {}", gpu.name(), gpu.caps());
        return shapes.iter().for_each(|&shape| cliffs(&mut bench, shape));
    }
    let ceilings = Ceilings::measure(&gpu, quick);
    println!("{}: {}\n{ceilings}\n", gpu.name(), gpu.caps());
    println!("| M | N | K | goal | us | rate | of ceiling | steps |\n|---|---|---|---|---|---|---|---|");
    let small = |size: (u32, u32, u32)| u64::from(size.0) * u64::from(size.1) * u64::from(size.2) < 1 << 25;
    let mut one_row = f64::NAN;
    let mut streams = HashMap::new();
    let mut stream = |(m, n, k): (u32, u32, u32)| {
        let bytes = (u64::from(n) * u64::from(k) * u64::from(GROUP + 8) / u64::from(2 * GROUP)) & !255;
        (m < 64).then(|| *streams.entry(bytes).or_insert_with(|| Ceilings::stream(&gpu, bytes, quick)))
    };
    for Case { size, goal } in cases().into_iter().filter(|case| !quick || small(case.size)) {
        let floor = stream(size);
        let (us, steps) = bench.measure(size, None);
        if (size.0, size.1, size.2) == (1, 8192, 2048) {
            one_row = us;
        }
        row(size, &goal, (us, one_row, floor), &ceilings, &steps);
    }
    let size = if quick { (64, 512, 512) } else { (2048, 8192, 2048) };
    let sums = Options { enable_f16_accumulate_gemm: true, ..options.clone() };
    if !gpu.caps().coop.is_empty() {
        bench.options = sums.clone();
        let (us, steps) = bench.measure(size, None);
        row(size, &Goal::Known, (us, one_row, None), &ceilings, &format!("f16 sums: {steps}"));
    }
    for (goal, options) in [(35.0, Options { force_f32_gemm: true, ..options }), (60.0, sums)] {
        bench.options = options;
        for side in [64, 128] {
            let (us, steps) = bench.measure(size, Some(Algorithm::Tile { rows: side, columns: side }));
            row(size, &Goal::Tera(goal), (us, one_row, None), &ceilings, &format!("forced: {steps}"));
        }
    }
}

/// Prints one shape. `us` is what it takes, `stream` what it takes to read the weights and scales of few rows.
fn row(
    (m, n, k): (u32, u32, u32),
    goal: &Goal,
    (us, one_row, stream): (f64, f64, Option<f64>),
    ceilings: &Ceilings,
    steps: &str,
) {
    let (rows, columns, terms) = (f64::from(m), f64::from(n), f64::from(k));
    let tera = 2.0 * rows * columns * terms / us / 1e6;
    let bytes = columns * terms * (0.5 + 4.0 / f64::from(GROUP));
    let floor = ceilings.launch + bytes / ceilings.read / 1e6;
    let (goal, rate) = match *goal {
        Goal::Tera(goal) => (format!("{goal} TFLOP/s"), format!("{tera:.1} TFLOP/s")),
        Goal::Bandwidth(goal) => (format!("{goal} TB/s"), format!("{:.2} TB/s", bytes / us / 1e6)),
        Goal::Floor(goal) => (format!("{goal} x floor"), format!("{:.2} x", us / floor)),
        Goal::OneRow(goal) => (format!("{goal} x one row"), format!("{:.2} x", us / one_row)),
        Goal::Known if m < 64 => (String::new(), format!("{:.2} TB/s", bytes / us / 1e6)),
        Goal::Known => (String::new(), format!("{tera:.1} TFLOP/s")),
    };
    let share = stream.map_or(ceilings.share(tera), |stream| Some(stream / us));
    let share = share.map_or(String::new(), |share| format!("{:.0} %", share * 100.0));
    println!("| {m} | {n} | {k} | {goal} | {us:.2} | {rate} | {share} | {steps} |");
}
