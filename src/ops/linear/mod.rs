//! Matrix products: one skeleton, `out[b, m, n] = alpha * sum_k x[b, m, k] * w[b, n, k] + beta * bias`, with a linked
//! weight decoder, inner product type and epilogue.

mod choose;
mod forms;

pub use choose::{Algorithm, Lanes, WeightLayout, choose};
pub use forms::OPS;

use super::{Bind, Lower, Operand, Params};
use crate::error::Result;
use crate::shader::{Kernel, Source};
use crate::source;

/// Where the factors of the sum come from.
pub(super) enum Weights {
    /// 4-bit groups: packed words `[n, k8 / 8]` and scales `[groups, padded n]`.
    Q4 { packed: Operand, scales: Operand, group: u32 },
    /// Dense, in either layout.
    Dense { weight: Operand, layout: WeightLayout },
}

/// One product.
pub(super) struct Product {
    pub m: u32,
    pub n: u32,
    pub k: u32,
    pub batch: u32,
    /// Elements between the activations of two batches.
    pub x_batch: u32,
    /// Elements between the weights of two batches.
    pub w_batch: u32,
    pub x: Operand,
    pub weights: Weights,
    /// Added tensor with its strides along m and n.
    pub bias: Option<(Operand, u32, u32)>,
    pub alpha: f32,
    pub beta: f32,
    pub out: Operand,
}

impl Product {
    fn layout(&self) -> WeightLayout {
        match self.weights {
            Weights::Q4 { .. } => WeightLayout::ByColumn,
            Weights::Dense { layout, .. } => layout,
        }
    }

    fn decoder(&self) -> Source {
        match &self.weights {
            Weights::Q4 { group, .. } if group % 8 == 0 => source!("lib/weight_q4"),
            Weights::Q4 { .. } => source!("lib/weight_q4_any"),
            Weights::Dense { layout: WeightLayout::ByColumn, .. } => source!("lib/weight_nk"),
            Weights::Dense { layout: WeightLayout::ByTerm, .. } => source!("lib/weight_kn"),
        }
    }

    /// The skeleton with everything linked that does not depend on the algorithm, and its bindings.
    fn kernel(&self, body: Source) -> (Kernel, Vec<Bind>) {
        let aligned = self.k.is_multiple_of(4) && self.x_batch.is_multiple_of(4) && self.w_batch.is_multiple_of(4);
        let mut kernel = Kernel::new(body)
            .flag("ALIGNED", aligned)
            .link(self.decoder())
            .link(source!("lib/gemm_x"))
            .reads("x", self.x.elem)
            .writes("out", self.out.elem);
        let mut binds = vec![self.x.into(), self.out.into()];
        match &self.weights {
            Weights::Q4 { packed, scales, .. } => {
                kernel = kernel.array("weight", "u32").reads("scales", scales.elem);
                binds.extend([Bind::from(*packed), Bind::from(*scales)]);
            }
            Weights::Dense { weight, .. } => {
                kernel = kernel.reads("weight", weight.elem);
                binds.push((*weight).into());
            }
        }
        match &self.bias {
            Some((bias, ..)) => {
                kernel = kernel.link(source!("lib/epilogue_bias")).reads("bias", bias.elem);
                binds.push((*bias).into());
            }
            None => kernel = kernel.link(source!("lib/epilogue_plain")),
        }
        (kernel, binds)
    }

    fn params(&self, tiles_m: u32, tiles_n: u32) -> Params {
        let (groups_n, group) = match &self.weights {
            Weights::Q4 { scales, group, .. } => (scales.dims.last(), *group),
            Weights::Dense { .. } => (0, 1),
        };
        let (bias_m, bias_n) = self.bias.map_or((0, 0), |(_, m, n)| (m, n));
        let p = Params::new().u32(self.m).u32(self.n).u32(self.k).u32(self.batch);
        let p = p.u32(self.x_batch).u32(self.w_batch).u32(bias_m).u32(bias_n);
        let p = p.f32(self.alpha).f32(self.beta).u32(tiles_m).u32(tiles_n);
        p.u32(self.k.div_ceil(8)).u32(groups_n).u32(group)
    }

    /// True when sums may run in f16: asked for, possible, and short enough between two f32 additions.
    fn half_sums(&self, lower: &Lower<'_>) -> bool {
        let quantised = matches!(self.weights, Weights::Q4 { .. });
        quantised && lower.env.options.enable_f16_accumulate_gemm && lower.caps().f16
    }
}

/// Adds the dispatch of a product.
pub(super) fn lower_product(lower: &mut Lower<'_>, product: Product) -> Result<()> {
    if product.out.dims.numel() == 0 {
        return Ok(());
    }
    let options = lower.env.options;
    let chosen = choose(product.m, product.n, product.layout(), lower.caps());
    match options.force_gemm.filter(|forced| possible(*forced, &product)).unwrap_or(chosen) {
        Algorithm::Gemv { rows, lanes } => {
            let (kernel, binds) = product.kernel(source!("gemv"));
            let (width, link) = match lanes {
                Lanes::Subgroup(size) => (size, source!("lib/lanes_subgroup")),
                Lanes::Workgroup => (choose::GEMV_WORKGROUP, source!("lib/lanes_workgroup")),
            };
            let kernel = kernel.link(link).set("WG", choose::GEMV_WORKGROUP).set("LANES", width).set("MB", rows);
            let tiles = product.n.div_ceil(4 * choose::GEMV_WORKGROUP / width);
            let groups = u64::from(tiles) * u64::from(product.batch);
            lower.step(kernel, &binds, product.params(1, tiles), groups)
        }
        Algorithm::Tile { rows, columns } => {
            let (kernel, binds) = product.kernel(source!("gemm_tile"));
            let mul = if product.half_sums(lower) { "f16" } else { "f32" };
            let kernel = kernel.alias("Mul", mul).set("BM", rows).set("BN", columns);
            let (tiles_m, tiles_n) = (product.m.div_ceil(rows), product.n.div_ceil(columns));
            let groups = u64::from(tiles_m) * u64::from(tiles_n) * u64::from(product.batch);
            lower.step(kernel, &binds, product.params(tiles_m, tiles_n), groups)
        }
    }
}

fn possible(algorithm: Algorithm, product: &Product) -> bool {
    match algorithm {
        Algorithm::Gemv { rows, .. } => rows >= product.m && product.layout() == WeightLayout::ByColumn,
        Algorithm::Tile { .. } => true,
    }
}
