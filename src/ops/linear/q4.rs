//! The streaming GEMV of 4-bit layers.

use super::Product;
use super::choose::{Dot, GemvQ4};
use crate::error::Result;
use crate::ops::Lower;
use crate::shader::Kernel;
use crate::source;

pub(super) fn lower(lower: &mut Lower<'_>, product: &Product, shape: GemvQ4) -> Result<()> {
    let lanes = lower.caps().subgroup.map_or(1, |(low, _)| low);
    let (group, scale_k, scale_n) = product.scale_strides();
    let GemvQ4 { rows, columns, words, split, blocks, dot } = shape;
    // Workgroups of four subgroups, unless a team is larger.
    let subgroups = split.max(4).min((lower.caps().max_invocations / lanes).max(split));
    let chunks = (product.k / 8).div_ceil(lanes * split * words);
    let blocks = if chunks == 1 { blocks } else { 1 };
    let columns = columns.min(1 << product.n.max(1).ilog2());
    let (kernel, binds) = product.kernel(source!("gemv_q4"), if words == 2 { "vec2<u32>" } else { "u32" });
    let kernel = kernel
        .link(source!("lib/gemm_x"))
        .link(if words == 2 { source!("lib/words_two") } else { source!("lib/words_one") })
        .link(if dot == Dot::Planes { source!("lib/dot_planes") } else { source!("lib/dot_f32") });
    let kernel: Kernel = [
        ("LANES", lanes),
        ("SPLIT", split),
        ("SUBGROUPS", subgroups),
        ("MB", rows),
        ("NR", columns),
        ("WORDS", words),
        ("BLOCKS", blocks),
        ("CHUNKS", chunks),
        ("RUNS", product.k / 8 / words),
        ("GROUP", group),
        ("SCALE_K", scale_k),
        ("SCALE_N", scale_n),
    ]
    .into_iter()
    .fold(kernel.flag("WHOLE", product.k / 8 == lanes * split * words * chunks), |kernel, (name, value)| {
        kernel.set(name, value)
    });
    let tiles_n = product.n.div_ceil(columns * blocks * (subgroups / split));
    let tiles_m = product.m.div_ceil(rows);
    lower.step(kernel, &binds, product.params(tiles_m, tiles_n), u64::from(tiles_n) * u64::from(tiles_m))
}
