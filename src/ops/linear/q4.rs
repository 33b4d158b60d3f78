//! The streaming GEMV of 4-bit layers.

use super::Product;
use super::algorithm::{Dot, GemvQ4};
use crate::error::Result;
use crate::ops::{Bind, Lower, Operand};
use crate::shader::Kernel;
use crate::source;

/// A root mean square norm of the activations.
#[derive(Clone, Copy)]
pub(super) struct Norm {
    pub weight: Option<Operand>,
    pub eps: f64,
}

/// What becomes of the columns.
#[derive(Default)]
pub(super) enum Columns {
    /// They are the result.
    #[default]
    Whole,
    /// Run after run of them, in whole rows of their own results.
    Split(Vec<Operand>),
    /// There are as many again, which the first ones gate: out = silu(first) * second.
    Gated,
}

impl Columns {
    /// Into these results.
    pub fn of(outs: &[Operand]) -> Columns {
        if outs.len() > 1 { Columns::Split(outs.to_vec()) } else { Columns::Whole }
    }
}

/// What the GEMV does besides the product.
#[derive(Default)]
pub(super) struct Extra {
    pub norm: Option<Norm>,
    pub columns: Columns,
}

/// Results that one step can have.
pub const MOST_RESULTS: usize = OUTS.len() + 1;

/// Names of results after the first.
const OUTS: [&str; 7] = ["out_1", "out_2", "out_3", "out_4", "out_5", "out_6", "out_7"];

pub(super) fn lower(lower: &mut Lower<'_>, product: &Product, shape: GemvQ4, extra: &Extra) -> Result<()> {
    let lanes = lower.caps().subgroup.map_or(1, |(low, _)| low);
    let (group, scale_k, scale_n) = product.scale_strides();
    let GemvQ4 { rows, columns, words, split, blocks, dot } = shape;
    // Workgroups of four subgroups, unless a team is larger.
    let subgroups = split.max(4).min((lower.caps().max_invocations / lanes).max(split));
    let chunks = (product.k / 8).div_ceil(lanes * split * words);
    let blocks = if chunks == 1 { blocks } else { 1 };
    let halves = if let Columns::Gated = extra.columns { 2 } else { 1 };
    let columns = columns.min(halves << product.n.max(1).ilog2());
    let tiles_n = product.n.div_ceil(columns / halves * blocks * (subgroups / split));
    let (kernel, mut binds) = product.kernel(source!("gemv_q4"), if words == 2 { "vec2<u32>" } else { "u32" });
    let kernel = kernel
        .link(if words == 2 { source!("lib/words_two") } else { source!("lib/words_one") })
        .link(if dot == Dot::Planes { source!("lib/dot_planes") } else { source!("lib/dot_f32") });
    let kernel = put(normed(kernel, extra.norm, &mut binds), &extra.columns, &mut binds);
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
        ("N", product.n),
        ("K", product.k),
        ("TILES_N", tiles_n),
        ("GROUP", group),
        ("SCALE_K", scale_k),
        ("SCALE_N", scale_n),
    ]
    .into_iter()
    .fold(kernel.flag("WHOLE", product.k / 8 == lanes * split * words * chunks), |kernel, (name, value)| {
        kernel.set(name, value)
    });
    let tiles_m = product.m.div_ceil(rows);
    let params = product.params(tiles_m, tiles_n).f32(extra.norm.map_or(0.0, |norm| norm.eps as f32));
    lower.step(kernel, &binds, params, u64::from(tiles_n) * u64::from(tiles_m))
}

/// Links what happens to activations on their way in.
fn normed(kernel: Kernel, norm: Option<Norm>, binds: &mut Vec<Bind>) -> Kernel {
    match norm {
        None => kernel.flag("NORM", false).link(source!("lib/taken_plain")),
        Some(Norm { weight: None, .. }) => kernel
            .flag("NORM", true)
            .link(source!("lib/taken_normed"))
            .function("fn norm4(k: u32) -> f32 { return 1.0; }"),
        Some(Norm { weight: Some(weight), .. }) => {
            binds.push(weight.into());
            let load = "fn norm4(k: u32) -> vec4<f32> { return load4_norm(k / 4u); }";
            kernel.flag("NORM", true).link(source!("lib/taken_normed")).reads("norm", weight.elem).function(load)
        }
    }
}

/// Names the place of row m, column n of the results.
fn put(mut kernel: Kernel, columns: &Columns, binds: &mut Vec<Bind>) -> Kernel {
    kernel = kernel.flag("GATED", matches!(columns, Columns::Gated));
    let mut cases = String::new();
    if let Columns::Split(outs) = columns {
        let mut start = outs.first().map_or(0, |out| out.dims.last());
        for (name, out) in OUTS.into_iter().zip(outs.iter().skip(1)) {
            let width = out.dims.last();
            let end = start + width;
            cases += &format!(
                "if (n >= {start}u && n < {end}u) {{ store_{name}(m * {width}u + n - {start}u, v); return; }} "
            );
            kernel = kernel.writes(name, out.elem);
            binds.push((*out).into());
            start = end;
        }
    }
    kernel.function(format!("fn put(m: u32, n: u32, v: f32) {{ {cases}store_out(m * p.width + n, v); }}"))
}
