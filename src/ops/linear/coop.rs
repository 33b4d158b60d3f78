//! Products by cooperative matrices. First the activations become halves, in the order in which matrices are loaded, rows
//! that halves cannot hold with a power of two of their own; then one of three kernels multiplies: whole tiles that are
//! stored where they belong, slices of the sum that a last step adds up, or a thin tile for few rows. The other factor is
//! made of 4-bit weights, a dense matrix of halves or patches of pictures; the thin tile is for 4-bit weights.

use super::choose::{Coop, THIN_ROWS, coop_rows};
use super::{Patches, Product, WeightLayout, Weights};
use crate::error::Result;
use crate::gpu::{CoopShape, coop_types};
use crate::ops::{Bind, Lower, Params};
use crate::shader::{Access, Elem, Kernel, RoleType, Source};
use crate::source;

/// Columns of the activations that are multiplied between two barriers.
const DEPTH: u32 = 64;

/// Columns of a thin tile.
const THIN_COLUMNS: u32 = 16;

/// Largest element of a row that is taken as it is: at least `low`, below `high`; others are brought to `unit`.
///
/// Halves hold the elements times `factor`.
struct Range {
    low: f32,
    high: f32,
    unit: f32,
    factor: f32,
}

/// Halves hold x / 16, as weights are taken times 16: below 2^15 nothing overflows, and with the largest at 2^-8 or above small
/// elements lose nothing that counts. Sums are f32 and hold whatever comes.
const F32_SUMS: Range = Range { low: 0.0625, high: 524288.0, unit: 1.0 / 8192.0, factor: 0.0625 };

/// Sums in f16: every row is brought below 1, so that they stay finite while the magnitudes of a column's weights add up to
/// less than 65504.
const F16_SUMS: Range = Range { low: 0.0, high: 0.0, unit: 2.0, factor: 0.0625 };

/// What is in halves stays as it is.
const EXACT: Range = Range { low: 0.0, high: f32::MAX, unit: 1.0, factor: 1.0 };

/// Scratch that slices of sums may take, in bytes.
const MOST_SLICES: u64 = 256 << 20;

/// The activations as halves, and the scale of each row.
struct Halves {
    x: Bind,
    scale: Bind,
}

/// True when the halves of this product fit their scratch, and slices of sums theirs if they are needed.
pub(super) fn fits(lower: &Lower<'_>, product: &Product, (rows, columns, slices): (u32, u32, u32)) -> bool {
    let all_columns = u64::from(product.n) * u64::from(product.batch);
    let tiles = u64::from(product.m.next_multiple_of(rows)) * all_columns.next_multiple_of(u64::from(columns));
    let binding = lower.caps().binding();
    let halves = u64::from(product.m.next_multiple_of(rows)) * u64::from(product.k.next_multiple_of(DEPTH)) * 2;
    let summed = direct(lower, product, columns, slices) || tiles * u64::from(slices) * 4 <= MOST_SLICES.min(binding);
    summed && halves <= binding
}

/// True when sums run in f16: asked for, and the device's matrices can.
fn f16_sums(lower: &Lower<'_>, product: &Product) -> bool {
    product.half_sums(lower) && Coop::of(lower.caps()).is_some_and(|coop| coop.f16_sums)
}

/// The device's matrices; products were only routed here where there are some.
fn matrices(lower: &Lower<'_>) -> Result<Coop> {
    Coop::of(lower.caps()).ok_or_else(|| lower.unsupported("cooperative matrices"))
}

/// Bytes that a result needs so that whole tiles may be written over it at any live shape; `None` where tiles are never
/// stored there: it is a part, no f32, too large, or has few rows at most.
fn tiled_bytes(lower: &Lower<'_>, product: &Product) -> Option<u64> {
    let rows = lower.max_rows(product.out);
    let bytes = u64::from(coop_rows(rows)) * u64::from(product.width()) * 4;
    let whole = product.out.range.is_none() && product.out.elem == Elem::F32;
    (whole && rows > THIN_ROWS && bytes <= lower.caps().binding()).then_some(bytes)
}

/// Makes room for tiles that some live shape may store: it must not depend on this one.
pub(super) fn make_room(lower: &mut Lower<'_>, product: &Product) {
    if let Some(bytes) = tiled_bytes(lower, product).filter(|_| Coop::of(lower.caps()).is_some()) {
        lower.room(product.out, bytes);
    }
}

/// True when tiles can be stored where they belong: whole columns of the whole result, f32, no other slice to add.
fn direct(lower: &Lower<'_>, product: &Product, columns: u32, slices: u32) -> bool {
    let q4 = product.group().is_some();
    let whole = q4 && product.n.is_multiple_of(columns) && tiled_bytes(lower, product).is_some();
    whole && slices == 1 && !f16_sums(lower, product)
}

pub(super) fn lower_tiles(
    lower: &mut Lower<'_>,
    product: &Product,
    (rows, columns, slices): (u32, u32, u32),
) -> Result<()> {
    let coop = matrices(lower)?;
    let Some([.., warp_rows, warp_columns]) = coop.tile(rows, columns) else {
        return Err(lower.unsupported(format!("tiles of {rows} x {columns} cooperative matrices")));
    };
    let f16_sums = f16_sums(lower, product);
    let range = match product.group() {
        None => EXACT,
        Some(_) if f16_sums => F16_SUMS,
        Some(_) => F32_SUMS,
    };
    let halves = halve(lower, product, coop.fragment, rows, range)?;
    let all_columns = product.n * product.batch;
    let (tiles_m, tiles_n) = (product.m.div_ceil(rows), all_columns.div_ceil(columns));
    let direct = direct(lower, product, columns, slices);
    let (kernel, weights) = base(lower, product, (f16_sums, product.k.is_multiple_of(DEPTH)), source!("gemm_coop"))?;
    let kernel =
        kernel.set("BM", rows).set("BN", columns).set("WM", warp_rows).set("WN", warp_columns).set("SLICES", slices);
    let groups = u64::from(tiles_m) * u64::from(tiles_n) * u64::from(slices);
    let params = product.params(tiles_m, tiles_n);
    if direct {
        let kernel = kernel.array("row_scale", "f32").role("out", RoleType::Array("f32"), Access::Write);
        let kernel = kernel.link(source!("lib/coop_direct")).flag("BIAS", product.bias.is_some());
        let (kernel, bias) = product.epilogue(kernel);
        let binds = [&[halves.x], &weights[..], &[halves.scale, product.out.into()], bias.as_slice()].concat();
        return lower.step(kernel, &binds, params, groups);
    }
    let (padded_m, padded_n) = (tiles_m * rows, tiles_n * columns);
    let (one, four, bytes) = if f16_sums { ("f16", "vec4<f16>", 2) } else { ("f32", "vec4<f32>", 4) };
    let part = lower.scratch(u64::from(padded_m) * u64::from(padded_n) * u64::from(slices) * bytes);
    let kernel = kernel.role("out", RoleType::Array(one), Access::Write).link(source!("lib/coop_slices"));
    lower.step(kernel, &[&[halves.x], &weights[..], &[part]].concat(), params, groups)?;
    let sum = Kernel::new(source!("sum_slices")).set("WG", 128).set("SLICES", slices);
    let sum = sum.array("part", four).array("row_scale", "f32").writes("out", product.out.elem);
    let (sum, bias) = product.epilogue(sum);
    let (bias_m, bias_n) = product.bias.map_or((0, 0), |(_, m, n)| (m, n));
    let [low, high] = product.bounds.unwrap_or_default();
    let params = Params::new().u32(product.m).u32(all_columns).u32(padded_m).u32(padded_n);
    let params = params.f32(product.alpha).f32(product.beta).u32(bias_m).u32(bias_n).u32(product.width());
    let params = params.f32(low).f32(high);
    let fours = u64::from(product.m) * u64::from(padded_n / 4);
    lower.step(sum, &[&[part, halves.scale, product.out.into()], bias.as_slice()].concat(), params, fours.div_ceil(128))
}

pub(super) fn lower_thin(lower: &mut Lower<'_>, product: &Product, rows: u32, split: u32) -> Result<()> {
    let coop = matrices(lower)?;
    let halves = halve(lower, product, coop.fragment, rows, F32_SUMS)?;
    let (kernel, weights) =
        base(lower, product, (false, product.k.is_multiple_of(DEPTH * split)), source!("gemm_thin"))?;
    let kernel = kernel
        .set("BM", rows)
        .set("BN", THIN_COLUMNS)
        .set("SPLIT", split)
        .array("row_scale", "f32")
        .writes("out", product.out.elem);
    let (kernel, bias) = product.epilogue(kernel);
    let tiles = product.n.div_ceil(THIN_COLUMNS);
    let binds = [&[halves.x], &weights[..], &[halves.scale, product.out.into()], bias.as_slice()].concat();
    lower.step(kernel, &binds, product.params(1, tiles), u64::from(tiles))
}

/// What the kernels share, matrix types, the activations and the weights; and what the weights' roles are bound to.
fn base(
    lower: &Lower<'_>,
    product: &Product,
    (f16_sums, whole): (bool, bool),
    body: Source,
) -> Result<(Kernel, Vec<Bind>)> {
    let coop = matrices(lower)?;
    let side = coop.fragment;
    let types = coop_types(CoopShape { m: side, n: side, k: side, f16_accumulate: f16_sums });
    let [a, b, sum] = types.ok_or_else(|| lower.unsupported(format!("matrices of {side} x {side}")))?;
    let kernel = Kernel::new(body)
        .link(source!("lib/product"))
        .link(source!("lib/coop_shape"))
        .alias("MatA", a)
        .alias("MatB", b)
        .alias("Acc", sum)
        .set("FRAG", coop.fragment)
        .set("LANES", coop.lanes)
        .set("BK", DEPTH)
        .array("x_half", "vec4<f16>");
    Ok(match product.weights {
        Weights::Q4 { packed, scales, .. } => {
            let (group, scale_k, scale_n) = product.scale_strides();
            let kernel = kernel
                .link(source!("lib/coop_weights"))
                .link(source!("lib/coop_rows"))
                .set("GROUP", group)
                .set("K8", product.k.div_ceil(8));
            let kernel = kernel.set("SCALE_K", scale_k).set("SCALE_N", scale_n).flag("WHOLE", whole);
            (kernel.array("weight", "u32").reads("scales", scales.elem), vec![packed.into(), scales.into()])
        }
        Weights::Dense { weight, layout: WeightLayout::ByColumn } => {
            let kernel = kernel.link(source!("lib/coop_columns")).link(source!("lib/coop_rows"));
            (kernel.flag("ALIGNED", product.aligned()).array("weight", "vec4<f16>"), vec![weight.into()])
        }
        Weights::Dense { weight, .. } | Weights::Patches(Patches { pictures: weight, .. }) => {
            if product.n.is_multiple_of(8) && product.by_terms() {
                let kernel = kernel.link(source!("lib/coop_terms")).array("weight", "vec4<f16>");
                return Ok((kernel, vec![weight.into()]));
            }
            let kernel = product.places(kernel.link(source!("lib/coop_places")).link(source!("lib/coop_rows")));
            (kernel.array("weight", "f16"), vec![weight.into()])
        }
    })
}

/// Adds the step that turns the activations into halves, in fragments, padded to whole tiles of `tile` rows.
fn halve(lower: &mut Lower<'_>, product: &Product, fragment: u32, tile: u32, range: Range) -> Result<Halves> {
    const WG: u32 = 128;
    let (rows, width) = (product.m.next_multiple_of(tile), product.k.next_multiple_of(DEPTH));
    let kernel = Kernel::new(source!("half_rows"))
        .link(source!("lib/gemm_x"))
        .link(lower.reduction())
        .flag("ALIGNED", product.k.is_multiple_of(4))
        .set("WG", WG)
        .set("FRAG", fragment)
        .reads("x", product.x.elem)
        .role("half", RoleType::Array("vec4<f16>"), Access::Write)
        .role("row_scale", RoleType::Array("f32"), Access::Write);
    let params = Params::new().u32(product.k).u32(width).u32(product.m).u32(rows);
    let params = params.f32(range.low).f32(range.high).f32(range.unit).f32(range.factor);
    // Layers of one node that take the same activations share their halves.
    if let Some(&[_, x, scale]) = lower.done(&kernel, product.x.into(), &params).map(|step| &step.binds[..]) {
        return Ok(Halves { x, scale });
    }
    let x = lower.scratch(u64::from(rows) * u64::from(width) * 2);
    let scale = lower.scratch(u64::from(rows) * 4);
    lower.step(kernel, &[product.x.into(), x, scale], params, u64::from(rows))?;
    Ok(Halves { x, scale })
}

#[cfg(test)]
mod tests {
    use crate::gpu::{Caps, CoopShape};
    use crate::graph::{Constant, DType, Dims, Graph, Node, Tensor, Value, ValueId};
    use crate::options::Options;
    use crate::plan::Plan;
    use crate::shader::assemble;

    fn tensor(dtype: DType, dims: &[u32], constant: Option<u32>) -> Value {
        let max = Dims::new(dims).unwrap();
        Value::Tensor(Tensor { dtype, stored: dtype, swapped: false, max, constant })
    }

    /// One operator of these arguments, the first an input, the second a constant, the last the output.
    fn halves(op: &str, values: Vec<Value>) -> Graph {
        let last = values.len() as u32 - 1;
        let node = Node { op: op.into(), args: (0..=last).map(ValueId).collect() };
        let constants = vec![Constant::Named { key: "w".into() }];
        Graph { values, nodes: vec![node], inputs: vec![ValueId(0)], outputs: vec![ValueId(last)], constants }
    }

    fn dense(op: &str, (m, n, k): (u32, u32, u32), weight: [u32; 2]) -> Graph {
        let mut values = vec![tensor(DType::F16, &[m, k], None), tensor(DType::F16, &weight, Some(0))];
        if op == "aten.linear.default" {
            values.push(Value::Null);
        }
        values.push(tensor(DType::F16, &[m, n], None));
        halves(op, values)
    }

    /// Of a picture of 40 x 40.
    fn convolution(channels: u32, made: u32, side: u32, transposed: bool) -> Graph {
        let pair = |n: u32| Value::Ints(vec![i64::from(n); 2]);
        let weight = if transposed { [channels, made, side, side] } else { [made, channels, side, side] };
        let values = vec![
            tensor(DType::F16, &[2, channels, 40, 40], None),
            tensor(DType::F16, &weight, Some(0)),
            Value::Null,
            pair(1),
            pair(side / 2),
            pair(1),
            Value::Bool(transposed),
            pair(0),
            Value::Int(1),
            tensor(DType::F16, &[2, made, 40, 40], None),
        ];
        halves("aten.convolution.default", values)
    }

    fn layer(m: u32, n: u32, k: u32) -> Graph {
        let values = vec![
            tensor(DType::F32, &[m, k], None),
            tensor(DType::U8, &[n, k.div_ceil(8) * 4], Some(0)),
            tensor(DType::F32, &[k.div_ceil(32), n], Some(1)),
            Value::Int(32),
            Value::Null,
            tensor(DType::F32, &[m, n], None),
        ];
        let args = (0..6).map(ValueId).collect();
        Graph {
            values,
            nodes: vec![Node { op: "et_vk.linear_q4gsw.default".into(), args }],
            inputs: vec![ValueId(0)],
            outputs: vec![ValueId(5)],
            constants: vec![Constant::Named { key: "w".into() }, Constant::Named { key: "s".into() }],
        }
    }

    fn device(side: u32, f16_accumulate: bool) -> Caps {
        let shape = |f16_accumulate| CoopShape { m: side, n: side, k: side, f16_accumulate };
        Caps {
            f16: true,
            subgroup: Some((32, 32)),
            coop: if f16_accumulate { vec![shape(false), shape(true)] } else { vec![shape(false)] },
            shared_bytes: 48 << 10,
            max_invocations: 1024,
            ..Caps::minimal()
        }
    }

    fn steps(m: u32, n: u32, k: u32, caps: &Caps, options: &Options) -> Vec<String> {
        steps_of(layer(m, n, k), caps, options)
    }

    fn steps_of(graph: Graph, caps: &Caps, options: &Options) -> Vec<String> {
        let plan = Plan::new(graph, caps, options).unwrap();
        let steps = &plan.probes[0].lowered[0].steps;
        for step in steps {
            let text = assemble(&step.kernel);
            let module = naga::front::wgsl::parse_str(&text).unwrap_or_else(|e| panic!("{}", e.emit_to_string(&text)));
            let all = naga::valid::Capabilities::all();
            let mut validator = naga::valid::Validator::new(naga::valid::ValidationFlags::all(), all);
            if let Err(e) = validator.validate(&module) {
                panic!("{}", e.emit_to_string(&text));
            }
        }
        steps.iter().map(|step| step.kernel.body.name().to_string()).collect()
    }

    #[test]
    fn every_form_is_sound_wgsl() {
        for side in [16, 8] {
            let (caps, f16) = (device(side, false), device(side, true));
            let exact = Options::default();
            let fast = Options { enable_f16_accumulate_gemm: true, ..Options::default() };
            let tiles = [(2048, 8192), (512, 8192), (300, 4096), (64, 16384), (100, 20032)];
            for (m, n) in tiles {
                assert_eq!(steps(m, n, 96, &caps, &exact), ["half_rows", "gemm_coop"], "{m} {n}");
                assert_eq!(steps(m, n, 96, &f16, &fast), ["half_rows", "gemm_coop", "sum_slices"], "{m} {n}");
            }
            let long = if side == 16 { (512, 2048) } else { (64, 512) };
            assert_eq!(steps(long.0, long.1, 8192, &caps, &exact), ["half_rows", "gemm_coop", "sum_slices"], "slices");
            assert_eq!(steps(512, 8191, 96, &caps, &exact), ["half_rows", "gemm_coop", "sum_slices"], "odd columns");
            assert_eq!(steps(12, 200, 96, &caps, &exact), ["half_rows", "gemm_thin"]);
            assert_eq!(steps(30, 200, 96, &caps, &exact), ["half_rows", "gemm_thin"]);
        }
    }

    #[test]
    fn what_is_in_halves_goes_through_matrices() {
        let exact = Options::default();
        for caps in [device(16, false), device(8, true)] {
            for graph in [
                dense("aten.linear.default", (200, 300, 136), [300, 136]),
                dense("aten.linear.default", (200, 301, 77), [301, 77]),
                dense("aten.mm.default", (200, 304, 136), [136, 304]),
                dense("aten.mm.default", (200, 300, 136), [136, 300]),
                convolution(64, 70, 1, false),
                convolution(17, 48, 3, false),
            ] {
                assert_eq!(steps_of(graph, &caps, &exact), ["half_rows", "gemm_coop", "sum_slices"]);
            }
            assert_eq!(steps_of(convolution(3, 16, 3, false), &caps, &exact), ["gemm_tile"], "few channels");
            assert_eq!(steps_of(convolution(17, 48, 3, true), &caps, &exact), ["gemm_tile"], "phases");
            let options = Options { force_f32_gemm: true, ..exact.clone() };
            assert_eq!(steps_of(convolution(64, 70, 1, false), &caps, &options), ["gemm_tile"], "forbidden");
        }
    }

    #[test]
    fn rows_of_every_dimension_but_the_last_count() {
        let caps = device(16, false);
        let (m, n, k) = (300, 8192, 64);
        let mut graph = layer(m, n, k);
        for (id, last) in [(0, k), (5, n)] {
            if let Value::Tensor(tensor) = &mut graph.values[id] {
                tensor.max = Dims::new(&[1, m, last]).unwrap();
            }
        }
        let plan = Plan::new(graph, &caps, &Options::default()).unwrap();
        assert_eq!(plan.storages.iter().find(|s| s.owner == ValueId(5)).unwrap().bytes, u64::from(512 * n * 4));
        let steps = &plan.probes[0].lowered[0].steps;
        let names: Vec<&str> = steps.iter().map(|step| step.kernel.body.name()).collect();
        assert_eq!(names, ["half_rows", "gemm_coop"], "tiles are stored where they belong");
    }

    #[test]
    fn room_for_tiles_does_not_depend_on_the_shape_that_is_lowered() {
        let caps = device(16, false);
        for (m, n, k) in [(800, 512, 2048), (700, 576, 1536), (40, 512, 2048)] {
            let plan = Plan::new(layer(m, n, k), &caps, &Options::default()).unwrap();
            let bytes = plan.storages.iter().find(|s| s.owner == ValueId(5)).unwrap().bytes;
            assert!(bytes >= u64::from(m.next_multiple_of(256) * n * 4), "{m}: {bytes}");
        }
        let few = Plan::new(layer(32, 512, 64), &caps, &Options::default()).unwrap();
        assert_eq!(few.storages.iter().find(|s| s.owner == ValueId(5)).unwrap().bytes, 32 * 512 * 4);
        let tight = Caps { max_binding: 300 * 512 * 4, ..caps };
        let plan = Plan::new(layer(300, 512, 64), &tight, &Options::default()).unwrap();
        assert_eq!(plan.storages.iter().find(|s| s.owner == ValueId(5)).unwrap().bytes, 300 * 512 * 4);
    }

    #[test]
    fn f32_can_be_forced() {
        let options = Options { force_f32_gemm: true, ..Options::default() };
        assert_eq!(steps(512, 1024, 64, &device(16, false), &options), ["gemm_tile"]);
    }
}
