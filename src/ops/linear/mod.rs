//! Matrix products: one skeleton, `out[b, m, n] = alpha * sum_k x[b, m, k] * w[b, n, k] + beta * bias`, with a linked
//! weight decoder, inner product type and epilogue.

mod algorithm;
mod choose;
mod coop;
mod forms;
mod layers;
mod q4;

pub use algorithm::{Algorithm, Dot, Form, GemvQ4, Team, WeightLayout};
use choose::{Coop, choose};
pub use choose::{only_f32_sums, variants};
pub use forms::{INTERNAL, LINEAR_ADD, LINEAR_Q4, OPS};
pub use layers::{NORM_GATE, NORM_LAYERS};
use q4::Extra;
pub use q4::MOST_RESULTS;

use std::ops::Range;

use super::window::{Pair, Phases, Window};
use super::{Bind, Lower, Operand, Params};
use crate::error::Result;
use crate::gpu::Caps;
use crate::shader::{Elem, Kernel, Source};
use crate::source;

/// Where the factors of the sum come from.
#[derive(Clone, Copy)]
pub(super) enum Weights {
    /// 4-bit groups: packed words `[n, k8 / 8]` and scales `[groups, padded n]`.
    Q4 { packed: Operand, scales: Operand, group: u32 },
    /// Dense, in either layout.
    Dense { weight: Operand, layout: WeightLayout },
    /// Patches of pictures, a picture for each batch.
    Patches(Patches),
}

/// The patches under a window as it moves, one for each pixel of the result; terms of a patch lie channel by channel.
#[derive(Clone, Copy)]
pub(super) struct Patches {
    pub pictures: Operand,
    pub window: Window,
    /// Where windows lie in the result, what they look like to it: activations lie by terms then, `[channels of the picture,
    /// rows, elements of the window]`, and each image makes a batch of each phase.
    pub phases: Option<Phases>,
    /// Rows and columns of a picture.
    pub size: Pair,
    /// Patches side by side.
    pub across: u32,
    /// Rows and columns of the result.
    pub to: Pair,
}

impl Patches {
    /// True when each patch is one pixel, and all of them are the picture.
    fn are_pixels(&self) -> bool {
        let Window { kernel, stride, padding, .. } = self.window;
        self.phases.is_none() && kernel == [1; 2] && stride == [1; 2] && padding == [0; 2]
    }
}

/// One product.
#[derive(Clone, Copy)]
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
    /// Least and greatest result.
    pub bounds: Option<[f32; 2]>,
    pub out: Operand,
}

impl Product {
    /// The product in parts of its columns, so that one binding covers the weights of each; one part as a rule.
    fn parts(&self, lower: &Lower<'_>) -> Result<Vec<Product>> {
        let tables = match self.weights {
            Weights::Q4 { packed, scales, .. } if scales.swapped => vec![packed, scales],
            Weights::Q4 { packed, .. } => vec![packed],
            Weights::Dense { weight, layout: WeightLayout::ByColumn } => vec![weight],
            Weights::Dense { .. } | Weights::Patches(_) => Vec::new(),
        };
        let parts = lower.parts(self.n, &tables)?;
        Ok(parts.into_iter().map(|columns| self.part(lower, columns)).collect())
    }

    fn part(&self, lower: &Lower<'_>, columns: Range<u32>) -> Product {
        let weights = match self.weights {
            Weights::Q4 { packed, scales, group } => {
                let swapped = scales.swapped;
                let scales = if swapped { scales.only(&columns) } else { lower.tail(scales, columns.start) };
                Weights::Q4 { packed: packed.only(&columns), scales, group }
            }
            Weights::Dense { weight, layout: WeightLayout::ByColumn } => {
                Weights::Dense { weight: weight.only(&columns), layout: WeightLayout::ByColumn }
            }
            by_term @ (Weights::Dense { .. } | Weights::Patches(_)) => by_term,
        };
        let bias = self.bias.map(|(bias, m, n)| (lower.tail(bias, columns.start * n), m, n));
        let out = lower.tail(self.out, columns.start);
        Product { n: columns.len() as u32, weights, bias, out, ..*self }
    }

    fn layout(&self) -> WeightLayout {
        match self.weights {
            Weights::Q4 { .. } => WeightLayout::ByColumn,
            Weights::Dense { layout, .. } => layout,
            Weights::Patches(_) => WeightLayout::ByTerm,
        }
    }

    /// Links how weights are read, in steps that are not of halves.
    fn decoder(&self, kernel: Kernel) -> Kernel {
        match &self.weights {
            Weights::Q4 { group, .. } if group % 8 == 0 => kernel.link(source!("lib/weight_q4")),
            Weights::Q4 { .. } => kernel.link(source!("lib/weight_q4_any")),
            Weights::Dense { layout: WeightLayout::ByColumn, .. } => kernel.link(source!("lib/weight_nk")),
            _ => self.places(kernel).link(source!("lib/weight_places")),
        }
    }

    /// True when the weights are matrices of a row for each term.
    fn by_terms(&self) -> bool {
        match self.weights {
            Weights::Dense { layout, .. } => layout == WeightLayout::ByTerm,
            Weights::Patches(patches) => patches.are_pixels(),
            Weights::Q4 { .. } => false,
        }
    }

    /// Links where the weights of a column lie that neighbouring columns find side by side.
    fn places(&self, kernel: Kernel) -> Kernel {
        match &self.weights {
            Weights::Patches(Patches { phases: Some(_), .. }) => kernel,
            Weights::Patches(patches) if !self.by_terms() => {
                patches.window.name(kernel.link(source!("lib/tap"))).link(source!("lib/places_patches"))
            }
            _ => kernel.link(source!("lib/places_terms")),
        }
    }

    /// Links how activations are read by tiles, and where results go.
    fn rows(&self, kernel: Kernel) -> Kernel {
        match &self.weights {
            Weights::Patches(Patches { window, phases: Some(phases), .. }) => {
                phases.name(window.name(kernel)).link(source!("lib/phases"))
            }
            _ => kernel.link(source!("lib/gemm_x")).link(source!("lib/tile_rows")),
        }
    }

    /// True when four neighbours of a row lie in one vector.
    fn aligned(&self) -> bool {
        let by_column = self.layout() == WeightLayout::ByColumn;
        self.k.is_multiple_of(4) && self.x_batch.is_multiple_of(4) && (!by_column || self.w_batch.is_multiple_of(4))
    }

    /// The skeleton with everything linked that does not depend on the algorithm, and its bindings.
    fn kernel(&self, body: Source, packed_type: &'static str) -> (Kernel, Vec<Bind>) {
        let mut kernel = Kernel::new(body)
            .flag("ALIGNED", self.aligned())
            .link(source!("lib/product"))
            .reads("x", self.x.elem)
            .writes("out", self.out.elem);
        let mut binds = vec![self.x.into(), self.out.into()];
        match &self.weights {
            Weights::Q4 { packed, scales, .. } => {
                kernel = kernel.array("weight", packed_type).reads("scales", scales.elem);
                binds.extend([Bind::from(*packed), Bind::from(*scales)]);
            }
            Weights::Dense { weight, .. } | Weights::Patches(Patches { pictures: weight, .. }) => {
                kernel = kernel.reads("weight", weight.elem);
                binds.push((*weight).into());
            }
        }
        let (kernel, bias) = self.epilogue(kernel);
        binds.extend(bias);
        (kernel, binds)
    }

    fn epilogue(&self, kernel: Kernel) -> (Kernel, Option<Bind>) {
        epilogue(kernel, self.bias.map(|(bias, ..)| bias), self.bounds.is_some())
    }

    /// Columns of the whole result, of which these may be a part; of one batch.
    fn width(&self) -> u32 {
        match self.weights {
            Weights::Patches(Patches { phases: None, .. }) => self.n,
            _ => self.out.dims.last(),
        }
    }

    /// Length of a group, and elements between the scales of neighbours along k and n.
    fn scale_strides(&self) -> (u32, u32, u32) {
        match &self.weights {
            Weights::Q4 { scales, group, .. } if scales.swapped => {
                (*group, 1, scales.dims.iter().copied().next().unwrap_or(1))
            }
            Weights::Q4 { scales, group, .. } => (*group, scales.dims.last(), 1),
            Weights::Dense { .. } | Weights::Patches(_) => (1, 0, 0),
        }
    }

    fn params(&self, tiles_m: u32, tiles_n: u32) -> Params {
        let (group, scale_k, scale_n) = self.scale_strides();
        let (bias_m, bias_n) = self.bias.map_or((0, 0), |(_, m, n)| (m, n));
        let p = Params::new().u32(self.m).u32(self.n).u32(self.k).u32(self.batch);
        let p = p.u32(self.x_batch).u32(self.w_batch).u32(bias_m).u32(bias_n);
        let p = p.f32(self.alpha).f32(self.beta).u32(tiles_m).u32(tiles_n);
        let p = p.u32(self.k.div_ceil(8)).u32(group).u32(scale_k).u32(scale_n).u32(self.width());
        let ([rows, columns], across, down) = match self.weights {
            Weights::Patches(Patches { size, across, to: [down, _], .. }) => (size, across, down),
            _ => ([0; 2], 0, 0),
        };
        let [low, high] = self.bounds.unwrap_or_default();
        p.u32(rows).u32(columns).u32(rows * columns).u32(across).u32(down).f32(low).f32(high)
    }

    fn group(&self) -> Option<u32> {
        match self.weights {
            Weights::Q4 { group, .. } => Some(group),
            Weights::Dense { .. } | Weights::Patches(_) => None,
        }
    }

    /// True when the factors may be multiplied as halves, unless forbidden: 4-bit weights whose scales hold for whole octets,
    /// and what is in f16 anyway.
    fn halves(&self, lower: &Lower<'_>) -> bool {
        let possible = match self.weights {
            Weights::Q4 { group, .. } => group % 8 == 0,
            Weights::Dense { weight, .. } => (self.x.elem, weight.elem, self.batch) == (Elem::F16, Elem::F16, 1),
            Weights::Patches(Patches { pictures, phases, .. }) => {
                phases.is_none() && (self.x.elem, pictures.elem) == (Elem::F16, Elem::F16)
            }
        };
        possible && self.k > 0 && lower.caps().f16 && !lower.env.options.force_f32_gemm
    }

    /// True when sums may run in f16: asked for, possible, and short enough between two f32 additions.
    fn half_sums(&self, lower: &Lower<'_>) -> bool {
        self.group().is_some() && lower.env.options.enable_f16_accumulate_gemm && lower.caps().f16
    }
}

/// Links what becomes of a sum, and binds what it adds. The kernel's parameters are `alpha`, `beta`, `bias_m`, `bias_n`, `low`
/// and `high` then.
pub(super) fn epilogue(mut kernel: Kernel, bias: Option<Operand>, bounded: bool) -> (Kernel, Option<Bind>) {
    let mut value = "p.alpha * sum".to_owned();
    if let Some(bias) = bias {
        kernel = kernel.reads("bias", bias.elem);
        value += " + p.beta * load_bias(m * p.bias_m + n * p.bias_n)";
    }
    if bounded {
        kernel = kernel.link(source!("lib/float")).link(source!("lib/nan"));
        value = format!("bounded({value}, p.low, p.high)");
    }
    let kernel = kernel.function(format!("fn epilogue(m: u32, n: u32, sum: f32) -> f32 {{ return {value}; }}"));
    (kernel, bias.map(Bind::from))
}

/// Adds the dispatches of a product: one for each part.
pub(super) fn lower_product(lower: &mut Lower<'_>, product: Product) -> Result<()> {
    lower.expect_floating_output()?;
    if product.out.dims.numel() == 0 {
        return Ok(());
    }
    product.parts(lower)?.into_iter().try_for_each(|part| lower_part(lower, part))
}

/// How a product is computed here: as is forced where that is possible, or as the table says.
fn algorithm(lower: &Lower<'_>, product: &Product) -> Algorithm {
    let (options, caps) = (lower.env.options, lower.caps());
    let size = (product.m, product.n.saturating_mul(product.batch), product.k);
    let form = Form { size, layout: product.layout(), group: product.group(), halves: product.halves(lower) };
    options.force_gemm.filter(|&forced| possible(forced, &form, caps)).unwrap_or_else(|| choose(&form, caps))
}

fn lower_part(lower: &mut Lower<'_>, product: Product) -> Result<()> {
    if product.halves(lower) && product.group().is_some() {
        coop::make_room(lower, &product);
    }
    match algorithm(lower, &product) {
        Algorithm::Gemv { rows, columns, team } => lower_gemv(lower, &product, rows, columns, team),
        Algorithm::GemvQ4(shape) => q4::lower(lower, &product, shape, &Extra::default()),
        Algorithm::Thin { rows, split } => coop::lower_thin(lower, &product, rows, split),
        Algorithm::Coop { rows, columns, slices } if coop::fits(lower, &product, (rows, columns, slices)) => {
            coop::lower_tiles(lower, &product, (rows, columns, slices))
        }
        Algorithm::Coop { .. } => lower_tile(lower, &product, 64, 64),
        Algorithm::Tile { rows, columns } => lower_tile(lower, &product, rows, columns),
    }
}

fn lower_tile(lower: &mut Lower<'_>, product: &Product, rows: u32, columns: u32) -> Result<()> {
    let (kernel, binds) = product.kernel(source!("gemm_tile"), "u32");
    // A tile takes 16 terms at a time.
    lower.expect_turns(product.k.div_ceil(16).into())?;
    let kernel = product.rows(product.decoder(kernel));
    let half_sums = product.half_sums(lower);
    let kernel = kernel.alias("Mul", if half_sums { "f16" } else { "f32" }).flag("HALF_SUMS", half_sums);
    // Where 256 invocations are too many for a workgroup, each takes more of the tile.
    let large = rows * columns > 64 * 64 || rows * columns / 16 > lower.caps().max_invocations;
    let blocks = if large { 2 } else { 1 };
    let kernel = kernel.set("BM", rows).set("BN", columns).set("PM", blocks).set("PN", blocks);
    let (tiles_m, tiles_n) = (product.m.div_ceil(rows), product.n.div_ceil(columns));
    let groups = u64::from(tiles_m) * u64::from(tiles_n) * u64::from(product.batch);
    lower.step(kernel, &binds, product.params(tiles_m, tiles_n), groups)
}

fn lower_gemv(lower: &mut Lower<'_>, product: &Product, rows: u32, columns: u32, team: Team) -> Result<()> {
    let (kernel, binds) = product.kernel(source!("gemv"), "u32");
    let several = if rows == 1 { source!("lib/rows_one") } else { source!("lib/rows_four") };
    let (link, lanes, split) = match team {
        Team::Subgroups { lanes, split: 1 } => (source!("lib/team_subgroup"), lanes, 1),
        Team::Subgroups { lanes, split } => (source!("lib/team_split"), lanes, split),
        Team::Workgroup => (source!("lib/team_workgroup"), algorithm::GEMV_WORKGROUP, 1),
    };
    let kernel = product.decoder(kernel.link(source!("lib/inner_octets"))).link(source!("lib/gemm_x"));
    let order = match team {
        Team::Subgroups { .. } => source!("lib/order_subgroups"),
        Team::Workgroup => source!("lib/order_workgroup"),
    };
    let kernel = kernel.link(several).link(link).link(order);
    let kernel = kernel.set("WG", algorithm::GEMV_WORKGROUP).set("LANES", lanes).set("SPLIT", split);
    let kernel = kernel.set("MB", rows).set("NR", columns);
    let tiles = product.n.div_ceil(columns * algorithm::GEMV_WORKGROUP / team.size());
    let tiles_m = product.m.div_ceil(rows);
    let groups = u64::from(tiles) * u64::from(tiles_m) * u64::from(product.batch);
    lower.step(kernel, &binds, product.params(tiles_m, tiles), groups)
}

/// True when a device can compute a product in this way.
fn possible(algorithm: Algorithm, form: &Form, caps: &Caps) -> bool {
    let (.., k) = form.size;
    let coop = Coop::of(caps).filter(|_| form.halves);
    let packed = form.group.is_some();
    match algorithm {
        Algorithm::Gemv { rows, team, .. } => {
            let has_team = match team {
                Team::Subgroups { lanes, .. } => caps.subgroup == Some((lanes, lanes)),
                Team::Workgroup => true,
            };
            matches!(rows, 1 | 4) && has_team && form.layout == WeightLayout::ByColumn
        }
        Algorithm::GemvQ4(GemvQ4 { rows, columns, words, split, .. }) => {
            let lanes = form.group.and_then(|group| choose::q4_lanes(group, k, words, caps));
            lanes.is_some_and(|lanes| rows * columns <= lanes && split * lanes <= caps.max_invocations)
        }
        Algorithm::Thin { rows, split } => {
            let (m, ..) = form.size;
            packed && m <= rows && coop.is_some_and(|coop| split * coop.lanes <= caps.max_invocations)
        }
        Algorithm::Coop { rows, columns, .. } => coop.is_some_and(|coop| coop.tile(rows, columns).is_some()),
        Algorithm::Tile { rows, columns } => rows * columns <= 64 * 64 || choose::large_tile(caps),
    }
}
