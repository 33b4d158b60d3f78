//! One small cooperative product against the CPU: a driver that computes nonsense loses the feature, not the user's results.

use std::sync::Arc;

use half::f16;

use super::buffers::MemoryKind;
use super::caps::CoopShape;
use super::device::Gpu;
use super::pipelines::{BufferRange, PARAMS_STRIDE};
use super::submit::{Copy, Dispatch, Staging, Timed};
use crate::error::{Error, Result};
use crate::shader::{Access, Kernel, LIVE_VECTORS, RoleType};
use crate::source;

/// Element (row, column) of a factor: a small multiple of 1/4, so that every sum is exact, in halves too.
fn factor(row: usize, column: usize, seed: usize) -> f32 {
    ((row * 7 + column * 3 + seed) % 11) as f32 / 4.0 - 1.25
}

/// WGSL names of the matrices of a shape that kernels know: first factor, second factor, sum.
pub fn coop_types(shape: CoopShape) -> Option<[&'static str; 3]> {
    let CoopShape { m, n, k, f16_accumulate } = shape;
    match (m, n, k, f16_accumulate) {
        (16, 16, 16, false) => Some(["coop_mat16x16<f16, A>", "coop_mat16x16<f16, B>", "coop_mat16x16<f32, C>"]),
        (16, 16, 16, true) => Some(["coop_mat16x16<f16, A>", "coop_mat16x16<f16, B>", "coop_mat16x16<f16, C>"]),
        (8, 8, 8, false) => Some(["coop_mat8x8<f16, A>", "coop_mat8x8<f16, B>", "coop_mat8x8<f32, C>"]),
        (8, 8, 8, true) => Some(["coop_mat8x8<f16, A>", "coop_mat8x8<f16, B>", "coop_mat8x8<f16, C>"]),
        _ => None,
    }
}

/// True when the device multiplies matrices of a shape as the CPU does. `lanes` is the subgroup size.
pub(super) fn cooperative_product(gpu: &Gpu, shape: CoopShape, lanes: u32) -> Result<bool> {
    let Some([a_type, b_type, sum_type]) = coop_types(shape) else {
        return Err(Error::Internal(format!("no kernel multiplies {shape:?}")));
    };
    let side = shape.m as usize;
    let halves = |seed| -> Vec<u8> {
        let cell = |i: usize| f16::from_f32(factor(i / side, i % side, seed)).to_le_bytes();
        (0..side * side).flat_map(cell).collect()
    };
    let (element, size) = if shape.f16_accumulate { ("f16", 2) } else { ("f32", 4) };
    let (count, bytes) = (side * side, side * side * size);
    let storage = |bytes: usize| gpu.buffer(MemoryKind::Scratch, bytes as u64, "cooperative matrix check");
    let (a, b, out) = (storage(count * 2)?, storage(count * 2)?, storage(bytes)?);
    let params = gpu.buffer(MemoryKind::Parameters, u64::from(PARAMS_STRIDE), "parameters")?;
    let live = gpu.buffer(MemoryKind::Parameters, (LIVE_VECTORS * 16) as u64, "live values")?;
    gpu.write(&a, 0, &halves(0))?;
    gpu.write(&b, 0, &halves(5))?;
    gpu.write(&params, 0, &shape.m.to_le_bytes())?;
    let kernel = Kernel::new(source!("coop_check"))
        .alias("MatA", a_type)
        .alias("MatB", b_type)
        .alias("Acc", sum_type)
        .set("LANES", lanes)
        .set("FRAG", shape.m)
        .array("a", "vec4<f16>")
        .array("b", "vec4<f16>")
        .role("out", RoleType::Array(element), Access::Write);
    let pipeline = gpu.pipeline(&kernel)?;
    let ranges = [&a, &b, &out].map(|buffer| BufferRange { buffer, offset: 0, bytes: buffer.bytes() });
    let group = Arc::new(gpu.bind(&pipeline, &ranges)?);
    let common = gpu.bind_common(&params, &live)?;
    let staging = Staging::new(gpu, bytes as u64)?;
    let dispatch = Dispatch { pipeline, group, params: 0, grid: [1, 1, 1] };
    let copies = [Copy { from: &out, to: 0, bytes: bytes as u64 }];
    let work = gpu.submit(gpu.encode(&[dispatch], &common, &copies, &staging, Timed::Nothing)?)?;
    let mut right = true;
    gpu.finish(work, &staging, bytes as u64, |found| {
        right = found.chunks_exact(size).enumerate().all(|(i, cell)| {
            let want: f32 = (0..side).map(|k| factor(i / side, k, 0) * factor(i % side, k, 5)).sum();
            if size == 2 { cell == f16::from_f32(want).to_le_bytes() } else { cell == want.to_le_bytes() }
        });
        Ok(())
    })?;
    Ok(right)
}
