//! One small cooperative product against the CPU: a driver that computes nonsense loses the feature, not the user's results.

use std::sync::Arc;

use half::f16;

use super::buffers::MemoryKind;
use super::device::Gpu;
use super::pipelines::{BufferRange, PARAMS_STRIDE};
use super::submit::{Copy, Dispatch, Staging};
use crate::error::Result;
use crate::shader::{Access, Kernel, LIVE_VECTORS, RoleType};
use crate::source;

const SIDE: usize = 16;

/// Element (row, column) of a factor: a small multiple of 1/4, so that every sum is exact.
fn factor(row: usize, column: usize, seed: usize) -> f32 {
    ((row * 7 + column * 3 + seed) % 11) as f32 / 4.0 - 1.25
}

/// True when the device multiplies 16 x 16 x 16 halves into f32 as the CPU does. `lanes` is the subgroup size.
pub(super) fn cooperative_product(gpu: &Gpu, lanes: u32) -> Result<bool> {
    let bytes = |seed| -> Vec<u8> {
        let cell = |i: usize| f16::from_f32(factor(i / SIDE, i % SIDE, seed)).to_le_bytes();
        (0..SIDE * SIDE).flat_map(cell).collect()
    };
    let storage = |bytes: u64| gpu.buffer(MemoryKind::Scratch, bytes, "cooperative matrix check");
    let (a, b, out) = (storage(512)?, storage(512)?, storage(1024)?);
    let params = gpu.buffer(MemoryKind::Parameters, u64::from(PARAMS_STRIDE), "parameters")?;
    let live = gpu.buffer(MemoryKind::Parameters, (LIVE_VECTORS * 16) as u64, "live values")?;
    gpu.write(&a, 0, &bytes(0))?;
    gpu.write(&b, 0, &bytes(5))?;
    gpu.write(&params, 0, &(SIDE as u32).to_le_bytes())?;
    let kernel = Kernel::new(source!("coop_check"))
        .set("LANES", lanes)
        .array("a", "vec4<f16>")
        .array("b", "vec4<f16>")
        .role("out", RoleType::Array("f32"), Access::Write);
    let pipeline = gpu.pipeline(&kernel)?;
    let ranges = [&a, &b, &out].map(|buffer| BufferRange { buffer, offset: 0, bytes: buffer.bytes() });
    let group = Arc::new(gpu.bind(&pipeline, &ranges)?);
    let common = gpu.bind_common(&params, &live)?;
    let staging = Staging::new(gpu, 1024)?;
    let dispatch = Dispatch { pipeline, group, params: 0, grid: [1, 1, 1] };
    let copies = [Copy { from: &out, to: 0, bytes: 1024 }];
    let work = gpu.submit(&[dispatch], &common, &copies, &staging, false)?;
    let mut right = true;
    gpu.finish(work, &staging, 1024, |found| {
        right = found.chunks_exact(4).enumerate().all(|(i, cell)| cell == expected(i / SIDE, i % SIDE).to_le_bytes());
        Ok(())
    })?;
    Ok(right)
}

fn expected(row: usize, column: usize) -> f32 {
    (0..SIDE).map(|k| factor(row, k, 0) * factor(column, k, 5)).sum()
}
