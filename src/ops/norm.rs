//! Normalisation: of rows, one workgroup per row, and by statistics that are given.

use super::{Bind, FLOATS, Lower, Op, Operand, Params};
use crate::error::Result;
use crate::graph::Dims;
use crate::shader::Kernel;
use crate::source;

/// Rows of this family.
pub const OPS: &[Op] = &[
    Op::new(RMS_NORM, FLOATS, rms),
    Op::new("aten.native_layer_norm.default", FLOATS, layer),
    Op::new("aten.native_group_norm.default", FLOATS, group),
    Op::new("aten._native_batch_norm_legit_no_training.default", FLOATS, batch),
];

/// The rows of a tensor: its trailing dimensions that are normalised together.
struct Rows {
    x: Operand,
    out: Operand,
    width: u32,
    eps: f64,
    /// Present when factors belong to channels, not to the elements of a row.
    channels: Option<Channels>,
}

/// Rows that are groups of channels.
struct Channels {
    /// Rows of an image.
    groups: u32,
    /// Channels of a row.
    each: u32,
    /// Elements of a channel.
    pixels: u32,
}

/// The root mean square norm: `(x, weight or None, eps or None) -> out`.
pub const RMS_NORM: &str = "et_vk.rms_norm.default";

fn rms(lower: &mut Lower<'_>) -> Result<()> {
    let x = lower.tensor(0)?;
    let (weight, eps) = rms_arguments(lower)?;
    let out = lower.output(0, x.dims)?;
    rms_rows(lower, x, weight, eps, out)
}

/// Arguments weight and eps.
pub(super) fn rms_arguments(lower: &Lower<'_>) -> Result<(Option<Operand>, f64)> {
    Ok((lower.optional_tensor(1)?, lower.double_or(2, f64::from(f32::EPSILON))?))
}

/// Adds the step that normalises rows.
pub(super) fn rms_rows(
    lower: &mut Lower<'_>,
    x: Operand,
    weight: Option<Operand>,
    eps: f64,
    out: Operand,
) -> Result<()> {
    let rows = Rows { x, out, width: x.dims.last(), eps, channels: None };
    let kernel = kernel(lower, &rows)?.flag("CENTER", false).function("fn keep(row: u32, mean: f32, scale: f32) {}");
    run(lower, kernel, &rows, [weight, None], &[])
}

fn layer(lower: &mut Lower<'_>) -> Result<()> {
    let x = lower.tensor(0)?;
    let normalized = lower.ints(1)?;
    let (weight, bias) = (lower.optional_tensor(2)?, lower.optional_tensor(3)?);
    let eps = lower.double(4)?;
    let kept = x.dims.len().checked_sub(normalized.len());
    let tail = kept.and_then(|kept| x.dims.get(kept..)).unwrap_or_default();
    if normalized.is_empty() || !tail.iter().map(|&n| i64::from(n)).eq(normalized.iter().copied()) {
        return Err(lower.refuse(format!("{normalized:?} is not the end of {}", x.dims)));
    }
    let mut sizes = x.dims.to_vec();
    sizes.iter_mut().skip(kept.unwrap_or(0)).for_each(|size| *size = 1);
    let width = tail.iter().product();
    let (out, line) = (lower.output(0, x.dims)?, Dims::new(&sizes)?);
    let (mean, scale) = (lower.output(1, line)?, lower.output(2, line)?);
    let rows = Rows { x, out, width, eps, channels: None };
    centered(lower, &rows, [weight, bias], [mean, scale])
}

fn centered(
    lower: &mut Lower<'_>,
    rows: &Rows,
    factors: [Option<Operand>; 2],
    [mean, scale]: [Operand; 2],
) -> Result<()> {
    let kernel = kernel(lower, rows)?
        .flag("CENTER", true)
        .writes("means", mean.elem)
        .writes("scales", scale.elem)
        .function("fn keep(row: u32, mean: f32, scale: f32) { store_means(row, mean); store_scales(row, scale); }");
    run(lower, kernel, rows, factors, &[mean, scale])
}

/// Groups of channels; the sizes among the arguments are those of the largest shape.
fn group(lower: &mut Lower<'_>) -> Result<()> {
    let (x, weight, bias) = (lower.tensor(0)?, lower.optional_tensor(1)?, lower.optional_tensor(2)?);
    let (groups, eps) = (lower.int(6)?, lower.double(7)?);
    let &[images, channels, ref pixels @ ..] = &x.dims[..] else {
        return Err(lower.refuse(format!("its operand is {}, expected at least two dimensions", x.dims)));
    };
    let groups = u32::try_from(groups).ok().filter(|&groups| groups > 0 && channels.is_multiple_of(groups));
    let groups = groups.ok_or_else(|| lower.refuse(format!("{} does not fall into groups", x.dims)))?;
    let (each, pixels) = (channels / groups, pixels.iter().product::<u32>());
    let line = Dims::new(&[images, groups])?;
    let (out, mean, scale) = (lower.output(0, x.dims)?, lower.output(1, line)?, lower.output(2, line)?);
    let rows = Rows { x, out, width: each * pixels, eps, channels: Some(Channels { groups, each, pixels }) };
    centered(lower, &rows, [weight, bias], [mean, scale])
}

/// Means and variances are arguments; the outputs for those of a training step are empty.
fn batch(lower: &mut Lower<'_>) -> Result<()> {
    const WG: u32 = 64;
    let (x, eps) = (lower.tensor(0)?, lower.double(6)?);
    let channels = x.dims.get(1).copied();
    let channels = channels.ok_or_else(|| lower.refuse(format!("its operand {} has no channels", x.dims)))?;
    let out = lower.output(0, x.dims)?;
    for index in 1..lower.outputs() {
        lower.output(index, Dims::new(&[0])?)?;
    }
    lower.expect_floating_output()?;
    let mut kernel = Kernel::new(source!("batch_norm")).set("WG", WG).reads("x", x.elem).writes("out", out.elem);
    let mut binds: Vec<Bind> = vec![x.into(), out.into()];
    for (index, name) in [(3, "mean"), (4, "variance")] {
        let given = lower.tensor(index)?;
        kernel = kernel.reads(name, factor(lower, name, given, channels)?.elem);
        binds.push(given.into());
    }
    for (index, name, role, neutral) in [(1, "weight", "w", "1.0"), (2, "bias", "b", "0.0")] {
        let mut body = neutral.to_owned();
        if let Some(given) = lower.optional_tensor(index)? {
            kernel = kernel.reads(role, factor(lower, name, given, channels)?.elem);
            binds.push(given.into());
            body = format!("load_{role}(c)");
        }
        kernel = kernel.function(format!("fn {name}(c: u32) -> f32 {{ return {body}; }}"));
    }
    let (quads, pixels) = (x.dims.numel().div_ceil(4), x.dims.iter().skip(2).product());
    let params = Params::new().u32(quads).u32(channels).u32(pixels).f32(eps as f32);
    lower.step(kernel, &binds, params, u64::from(quads.div_ceil(WG)))
}

/// A floating-point tensor of `count` numbers.
fn factor(lower: &Lower<'_>, name: &str, given: Operand, count: u32) -> Result<Operand> {
    if given.dims.numel() == count && given.elem.is_float() {
        return Ok(given);
    }
    Err(lower.refuse(format!("{name} is {} {}, expected {count} numbers", given.dtype, given.dims)))
}

impl Rows {
    /// Elements that one invocation takes at a time.
    fn step(&self) -> u32 {
        let run = self.channels.as_ref().map_or(self.width, |channels| channels.pixels);
        if run.is_multiple_of(4) { 4 } else { 1 }
    }
}

fn kernel(lower: &Lower<'_>, rows: &Rows) -> Result<Kernel> {
    let threads = lower.row_threads(rows.width / rows.step(), 3)?;
    let kernel = Kernel::new(source!("norm")).set("WG", threads).link(lower.reduction());
    let kernel = kernel.reads("x", rows.x.elem).writes("out", rows.out.elem);
    let (wgsl, suffix, sum) = if rows.step() == 4 { ("vec4<f32>", "4", "dot(v, V(1.0))") } else { ("f32", "", "v") };
    let kernel = kernel
        .alias("V", wgsl)
        .function(format!("fn item(i: u32) -> V {{ return load{suffix}_x(i); }}"))
        .function(format!("fn put(i: u32, v: V) {{ store{suffix}_out(i, v); }}"))
        .function(format!("fn total(v: V) -> f32 {{ return {sum}; }}"));
    Ok(kernel)
}

fn run(
    lower: &mut Lower<'_>,
    mut kernel: Kernel,
    rows: &Rows,
    factors: [Option<Operand>; 2],
    kept: &[Operand],
) -> Result<()> {
    let mut binds: Vec<Bind> = vec![rows.x.into(), rows.out.into()];
    binds.extend(kept.iter().map(|&operand| Bind::from(operand)));
    let suffix = if rows.step() == 4 { "4" } else { "" };
    lower.expect_floating_output()?;
    let count = rows.channels.as_ref().map_or(rows.width, |channels| channels.groups * channels.each);
    let named = [("weight", "w", factors[0], "V(1.0)"), ("bias", "b", factors[1], "V()")];
    for (name, role, operand, neutral) in named {
        let mut body = neutral.to_owned();
        if let Some(operand) = operand {
            kernel = kernel.reads(role, factor(lower, name, operand, count)?.elem);
            binds.push(operand.into());
            body = match rows.channels {
                Some(_) => format!("V(load_{role}(channel(row, i)))"),
                None => format!("load{suffix}_{role}(i)"),
            };
        }
        kernel = kernel.function(format!("fn {name}(row: u32, i: u32) -> V {{ return {body}; }}"));
    }
    let count = rows.x.dims.numel().checked_div(rows.width).unwrap_or(0);
    let params = Params::new().u32(count).u32(rows.width / rows.step()).f32(rows.eps as f32).f32(rows.width as f32);
    let [groups, each, pixels] = rows.channels.as_ref().map_or([1; 3], |c| [c.groups, c.each, c.pixels]);
    let params = params.u32(groups).u32(each).u32(pixels / rows.step());
    lower.step(kernel, &binds, params, u64::from(count))
}
