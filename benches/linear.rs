//! Speed of 4-bit linear layers: GPU time per dispatch, median, against ceilings measured in the same run.
//!
//! `cargo bench --bench linear [-- --adapter NAME] [--quick]`. Every shape runs as one program with so many layers of their
//! own weights that each dispatch finds its weights outside the caches; a burst of dense products before them raises the
//! clocks.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../tests/common/mod.rs"]
mod common;

use common::data::{Data, Rng};
use common::model::{Model, Timed};
use executorch_webgpu::graph::DType;
use executorch_webgpu::options::Options;

struct Shape {
    m: u32,
    n: u32,
    k: u32,
}

const GROUP: u32 = 64;

fn shapes(quick: bool) -> Vec<Shape> {
    let all = [
        (1, 128256, 2048),
        (1, 8192, 2048),
        (1, 2048, 8192),
        (1, 2048, 2048),
        (1, 512, 2048),
        (2, 8192, 2048),
        (4, 8192, 2048),
        (8, 8192, 2048),
        (9, 8192, 2048),
        (16, 8192, 2048),
        (128, 2048, 2048),
        (512, 2048, 2048),
        (512, 8192, 2048),
        (512, 2048, 8192),
        (2048, 8192, 2048),
    ];
    let shapes = all.into_iter().map(|(m, n, k)| Shape { m, n, k });
    shapes.filter(|s| !quick || u64::from(s.m) * u64::from(s.n) * u64::from(s.k) < 1 << 25).collect()
}

/// A chain of `count` dense products that nothing reads.
fn burst(model: &mut Model, count: usize) {
    const SIZE: u32 = 2048;
    let factor = model.constant(&Data::random(DType::F32, &[SIZE, SIZE], (-0.02, 0.02), 2));
    let mut value = factor;
    for _ in 0..count {
        let next = model.tensor(DType::F32, &[SIZE, SIZE]);
        model.op("aten.mm.default", &[value, factor, next]);
        value = next;
    }
}

/// A burst, then `layers` independent layers that read one input.
fn program(s: &Shape, layers: u32, bursts: usize, rng: &mut Rng) -> (Model, Data) {
    let mut model = Model::new();
    if bursts > 0 {
        burst(&mut model, bursts);
    }
    let x = Data::random(DType::F32, &[s.m, s.k], (-1.0, 1.0), 1);
    let input = model.input(DType::F32, &x.dims);
    for layer in 0..layers {
        let mut bytes = vec![0u8; (s.n * s.k / 2) as usize];
        bytes.iter_mut().for_each(|byte| *byte = rng.next() as u8);
        let packed = model.constant_bytes(&format!("w{layer}"), DType::U8, &[s.n, s.k / 2], bytes);
        let scales = Data::random(DType::F32, &[s.k / GROUP, s.n], (0.005, 0.02), u64::from(layer));
        let (scales, group, none) = (model.constant(&scales), model.int(i64::from(GROUP)), model.null());
        let out = model.tensor(DType::F32, &[s.m, s.n]);
        model.op("et_vk.linear_q4gsw.default", &[input, packed, scales, group, none, out]);
        if layer + 1 == layers {
            model.output(out);
        }
    }
    (model, x)
}

/// Median microseconds of the dispatches of one layer, and the kernel that ran.
fn measure(s: &Shape, options: &Options, bursts: usize, rng: &mut Rng) -> (f64, String) {
    let bytes = u64::from(s.n) * u64::from(s.k) / 2;
    let layers = ((256u64 << 20) / bytes).clamp(4, 24) as u32;
    let (model, x) = program(s, layers, bursts, rng);
    let mut running = model.load_with(options.clone(), Default::default()).unwrap();
    let mut layer_times = Vec::new();
    let mut kernel = String::new();
    for round in 0..5 {
        let mut steps: Vec<Timed> = running.profile(&[&x]).unwrap();
        steps.drain(..bursts);
        let per_layer = steps.len() / layers as usize;
        if round > 1 {
            layer_times.extend(steps.chunks(per_layer).map(|steps| {
                let (first, last) = (&steps[0], &steps[per_layer - 1]);
                (last.end - first.start) as f64 / 1000.0
            }));
        }
        kernel = steps[..per_layer].iter().map(|step| step.name.clone()).collect::<Vec<_>>().join(" | ");
    }
    layer_times.sort_by(f64::total_cmp);
    (layer_times[layer_times.len() / 2], kernel.replace("et_vk.linear_q4gsw.default ", ""))
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let value = |flag: &str| args.iter().position(|a| a == flag).and_then(|i| args.get(i + 1)).cloned();
    let quick = args.iter().any(|a| a == "--quick");
    let f16 = args.iter().any(|a| a == "--f16-accumulate");
    let options = Options { adapter: value("--adapter"), enable_f16_accumulate_gemm: f16, ..Options::default() };
    println!("| M | N | K | us | TFLOP/s | GB/s of weights and scales | kernel |\n|---|---|---|---|---|---|---|");
    let mut rng = Rng::new(7);
    for s in shapes(quick) {
        let (us, kernel) = measure(&s, &options, if quick { 0 } else { 32 }, &mut rng);
        let (m, n, k) = (f64::from(s.m), f64::from(s.n), f64::from(s.k));
        let tera = 2.0 * m * n * k / us / 1e6;
        let bandwidth = n * k * (0.5 + 4.0 / f64::from(GROUP)) / us / 1e3;
        println!("| {} | {} | {} | {us:.2} | {tera:.1} | {bandwidth:.0} | {kernel} |", s.m, s.n, s.k);
    }
}
