//! What a device can do at best, measured with kernels that do nothing else: start, read, multiply.

use std::fmt;
use std::sync::Arc;

use executorch_webgpu::gpu::{BufferRange, Dispatch, Gpu, MemoryKind, PARAMS_STRIDE, Staging, Timed, coop_types};
use executorch_webgpu::shader::{Access, Kernel, LIVE_VECTORS, RoleType, source};

const LAUNCH: &str = "struct Params { n: u32 }
@compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) { if (i == 0u) { out[0] += f32(p.n); } }";

const READ: &str = "struct Params { n: u32 }
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) i: u32) {
    var all = vec4<u32>(0u);
    let step = groups.x * 256u;
    for (var at = wg.x * 256u + i; at < p.n; at += 4u * step) { all ^= x[at] ^ x[at + step] ^ x[at + 2u * step] ^ x[at + 3u * step]; }
    if (all.x == 123456789u) { out[0] = f32(all.y); }
}";

const COPY: &str = "struct Params { n: u32 }
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) i: u32) {
    for (var j = 0u; j < 4u; j++) { let at = (wg.x * 4u + j) * 256u + i; out[at] = x[at]; } // unroll
}";

/// Every load of an invocation on its way at once.
const STREAM: &str = "struct Params { n: u32 }
@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) i: u32) {
    var all = vec4<u32>(0u);
    for (var j = 0u; j < PER; j++) { all ^= x[min((wg.x * PER + j) * WG + i, p.n - 1u)]; } // unroll
    if (all.x == 123456789u) { out[0] = f32(all.y); }
}";

/// 64 x 64 of sums in a subgroup, both factors from shared memory, a store and a barrier a step of 32.
const MULTIPLY: &str = "struct Params { n: u32 }
const STRIDE: u32 = 10u;
var<workgroup> xs: array<vec4<f16>, 128u * STRIDE>;
var<workgroup> ws: array<vec4<f16>, 64u * STRIDE>;
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) i: u32, @builtin(subgroup_id) subgroup: u32) {
    for (var at = i; at < 128u * STRIDE; at += 64u) { xs[at] = vec4<f16>(x[at]); }
    for (var at = i; at < 64u * STRIDE; at += 64u) { ws[at] = vec4<f16>(x[at]); }
    workgroupBarrier();
    var acc: array<Acc, 16>;
    for (var k0 = 0u; k0 < p.n; k0 += 32u) {
        for (var k = 0u; k < 2u; k++) { // unroll
            var a: array<MatA, 4>;
            for (var r = 0u; r < 4u; r++) { a[r] = coopLoadT<MatA>(&xs[(subgroup * 64u + r * 16u) * STRIDE + k * 4u], STRIDE); } // unroll
            for (var j = 0u; j < 4u; j++) { // unroll
                let b = coopLoad<MatB>(&ws[j * 16u * STRIDE + k * 4u], STRIDE);
                for (var r = 0u; r < 4u; r++) { acc[r * 4u + j] = coopMultiplyAdd(a[r], b, acc[r * 4u + j]); } // unroll
            }
        }
        xs[i] = vec4<f16>(f16(f32(k0 % 7u)));
        workgroupBarrier();
    }
    let side = 16u;
    for (var j = 0u; j < 16u; j++) { // unroll
        let at = ((wg.x * 2u + subgroup) % 64u * 16u + j) * 256u;
        let sums = acc[j];
        coopStoreT(sums, &out[at], side);
    }
}";

/// Sixteen vectors of sums that stay in registers.
const FMA: &str = "struct Params { n: u32 }
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) i: u32) {
    var sums: array<Vector, 16>;
    // No two numbers of a vector are alike.
    var a = Vector(Number(0.5 + f32(wg.x % 8u) * 0.03125));
    for (var e = 0u; e < WIDTH; e++) { a[e] += Number(f32(e) * 0.0625); } // unroll
    for (var j = 0u; j < 16u; j++) { sums[j] = a * Number(f32((i + j) % 32u) * 0.03125); } // unroll
    let b = a * Number(f32(p.n % 8u) * 0.0625);
    for (var k = 0u; k < p.n; k++) {
        for (var j = 0u; j < 16u; j++) { sums[j] = fma(sums[j], a, b); } // unroll
    }
    var all = Vector();
    for (var j = 0u; j < 16u; j++) { all += sums[j]; } // unroll
    let most = dot(all, Vector(Number(1.0)));
    if (f32(most) == 12345.0) { out[0] = f32(most); }
}";

/// The limits of a device.
pub struct Ceilings {
    /// Microseconds from one dependent kernel to the next.
    pub launch: f64,
    /// Read bandwidth in TB/s.
    pub read: f64,
    /// Rate of cooperative matrices with f32 sums, in TFLOP/s.
    pub multiply: Option<f64>,
    /// Rate of fused multiply-adds of f32, and of f16 in vectors of two and of four, in TFLOP/s.
    pub fma: f64,
    pub half_fma: Option<[f64; 2]>,
}

impl Ceilings {
    /// Measures them, in a moment if `quick`.
    pub fn measure(gpu: &Gpu, quick: bool) -> Ceilings {
        let kernel = |name, text: &'static str| Kernel::new(source(name, text));
        let out = |kernel: Kernel| kernel.role("out", RoleType::Array("f32"), Access::Write);
        let launch = time(gpu, out(kernel("launch", LAUNCH)), (0, 0), (1, 1), if quick { 20 } else { 400 });
        let bytes = if quick { 16u64 << 20 } else { 1 << 30 };
        let read = out(kernel("read", READ).array("x", "vec4<u32>"));
        let read = bytes as f64 / time(gpu, read, (bytes, bytes), ((bytes / 16) as u32, 4096), 8) / 1e6;
        let types = gpu.caps().coop.iter().find(|shape| shape.m == 16 && !shape.f16_accumulate);
        let multiply = types.and_then(|&shape| coop_types(shape)).map(|[a, b, c]| {
            let (k, groups) = (2048, 132 * 4 * 8);
            let multiply = out(kernel("multiply", MULTIPLY).array("x", "vec4<f32>"));
            let multiply = multiply.alias("MatA", a).alias("MatB", b).alias("Acc", c);
            2.0 * 128.0 * 64.0 * f64::from(k) * f64::from(groups)
                / time(gpu, multiply, (1 << 20, 1 << 20), (k, groups), 8)
                / 1e6
        });
        let fma = |number, vector, width: u32| {
            let (n, groups) = (if quick { 16 } else { 4096 }, 132 * 8);
            let fma = out(kernel("fma", FMA)).alias("Number", number).alias("Vector", vector);
            let fma = fma.set("WIDTH", width);
            2.0 * 16.0 * f64::from(width) * 256.0 * f64::from(n) * f64::from(groups)
                / time(gpu, fma, (0, 0), (n, groups), 4)
                / 1e6
        };
        let halves = || [fma("f16", "vec2<f16>", 2), fma("f16", "vec4<f16>", 4)];
        let half_fma = gpu.caps().f16.then(halves);
        Ceilings { launch, read, multiply, fma: fma("f32", "vec4<f32>", 4), half_fma }
    }

    /// Bandwidth of copying in TB/s, what is read and what is written counted.
    pub fn copy(gpu: &Gpu, quick: bool) -> f64 {
        let bytes = if quick { 4u64 << 20 } else { 128 << 20 };
        let kernel = Kernel::new(source("copy", COPY)).array("x", "vec4<u32>");
        let kernel = kernel.role("out", RoleType::Array("vec4<u32>"), Access::Write);
        let groups = (bytes / 16 / 1024) as u32;
        2.0 * bytes as f64 / time(gpu, kernel, (bytes, bytes), (0, groups), 8) / 1e6
    }

    /// Microseconds of the best kernel found that does nothing but read `bytes`, after another one and from memory.
    pub fn stream(gpu: &Gpu, bytes: u64, quick: bool) -> f64 {
        let (fours, total) = ((bytes / 16) as u32, if quick { bytes } else { bytes.max(256 << 20) });
        let count = if quick { 2 } else { (total / bytes).clamp(4, 40) as usize };
        let grids = [(128, 1), (256, 1), (128, 2), (256, 2), (128, 4), (256, 4), (256, 16)];
        let time = |(wg, per): (u32, u32)| {
            let kernel = Kernel::new(source("stream", STREAM)).set("WG", wg).set("PER", per).array("x", "vec4<u32>");
            let kernel = kernel.role("out", RoleType::Array("f32"), Access::Write);
            time(gpu, kernel, (total, bytes), (fours, fours.div_ceil(wg * per)), count)
        };
        let possible = grids.into_iter().filter(|&(wg, per)| fours.div_ceil(wg * per) <= 65535);
        possible.map(time).fold(f64::INFINITY, f64::min)
    }

    /// A multiplication rate as a share of what cooperative matrices do.
    pub fn share(&self, tera: f64) -> Option<f64> {
        self.multiply.map(|most| tera / most)
    }
}

impl fmt::Display for Ceilings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a kernel after another {:.2} us, reading {:.2} TB/s", self.launch, self.read)?;
        write!(f, ", multiply-adds of f32 {:.1} TFLOP/s", self.fma)?;
        if let Some([two, four]) = self.half_fma {
            write!(f, ", of f16 by twos {two:.1}, by fours {four:.1}")?;
        }
        self.multiply.map_or(Ok(()), |most| write!(f, ", cooperative matrices {most:.0} TFLOP/s"))
    }
}

/// Median microseconds of one of `count` dispatches, each over the next `piece` of `bytes` of random numbers.
fn time(gpu: &Gpu, kernel: Kernel, (bytes, piece): (u64, u64), (n, groups): (u32, u32), count: usize) -> f64 {
    let source = (bytes > 0).then(|| {
        let buffer = gpu.buffer(MemoryKind::Scratch, bytes, "numbers").unwrap();
        let chunk: Vec<u8> = (0..1u32 << 18)
            .flat_map(|i| ((i.wrapping_mul(2654435761) >> 8) as f32 / (1 << 24) as f32).to_le_bytes())
            .collect();
        for at in (0..bytes).step_by(chunk.len()) {
            gpu.stream(&buffer, at, &chunk[..chunk.len().min((bytes - at) as usize)]).unwrap();
        }
        buffer
    });
    let out = gpu.buffer(MemoryKind::Scratch, piece.clamp(1 << 20, 128 << 20), "results").unwrap();
    let params = gpu.buffer(MemoryKind::Parameters, u64::from(PARAMS_STRIDE), "parameters").unwrap();
    let live = gpu.buffer(MemoryKind::Parameters, (LIVE_VECTORS * 16) as u64, "live values").unwrap();
    gpu.write(&params, 0, &n.to_le_bytes()).unwrap();
    let pipeline = gpu.pipeline(&kernel).unwrap();
    let range =
        |buffer, offset, bytes: u64| BufferRange { buffer, offset, bytes: bytes.min(gpu.caps().max_binding & !15) };
    let bound = |i: u64| {
        let numbers = source.iter().map(|buffer| range(buffer, i * piece, piece));
        let ranges: Vec<BufferRange<'_>> = numbers.chain([range(&out, 0, out.bytes())]).collect();
        Arc::new(gpu.bind(&pipeline, &ranges).unwrap())
    };
    let bound: Vec<_> = (0..bytes.checked_div(piece).unwrap_or(1)).map(bound).collect();
    let common = gpu.bind_common(&params, &live).unwrap();
    let staging = Staging::new(gpu, 16).unwrap();
    // Two more come before the timed ones.
    let dispatches: Vec<_> = (bound.iter().cycle().take(count + 2))
        .map(|group| Dispatch { pipeline: pipeline.clone(), group: Arc::clone(group), params: 0, grid: [groups, 1, 1] })
        .collect();
    let mut times: Vec<f64> = (0..40)
        .map(|_| {
            let work = gpu
                .encode(&dispatches, &common, &[], &staging, Timed::From(2))
                .and_then(|work| gpu.submit(work))
                .unwrap();
            let spans = gpu.finish(work, &staging, 0, |_| Ok(())).unwrap();
            spans.first().map_or(f64::NAN, |span| (span.end - span.start) as f64 / 1000.0 / count as f64)
        })
        .skip(29)
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
