//! Normalisation of rows: one workgroup per row.

use super::{Bind, FLOATS, Lower, Op, Operand, Params};
use crate::error::Result;
use crate::graph::Dims;
use crate::shader::Kernel;
use crate::source;

/// Rows of this family.
pub const OPS: &[Op] = &[Op::new(RMS_NORM, FLOATS, rms), Op::new("aten.native_layer_norm.default", FLOATS, layer)];

/// The rows of a tensor: its trailing dimensions that are normalised together.
struct Rows {
    x: Operand,
    out: Operand,
    width: u32,
    eps: f64,
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
    let rows = Rows { x, out, width: x.dims.last(), eps };
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
    let rows = Rows { x, out, width, eps };
    let kernel = kernel(lower, &rows)?
        .flag("CENTER", true)
        .writes("means", mean.elem)
        .writes("scales", scale.elem)
        .function("fn keep(row: u32, mean: f32, scale: f32) { store_means(row, mean); store_scales(row, scale); }");
    run(lower, kernel, &rows, [weight, bias], &[mean, scale])
}

impl Rows {
    /// Elements that one invocation takes at a time.
    fn step(&self) -> u32 {
        if self.width.is_multiple_of(4) { 4 } else { 1 }
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
    let named = [("weight", "w", factors[0], "V(1.0)"), ("bias", "b", factors[1], "V()")];
    for (name, role, operand, neutral) in named {
        let body = match operand {
            Some(operand) if operand.dims.numel() != rows.width || !operand.elem.is_float() => {
                let (dtype, dims) = (operand.dtype, operand.dims);
                return Err(lower.refuse(format!("{name} is {dtype} {dims}, the rows have {}", rows.width)));
            }
            Some(operand) => {
                kernel = kernel.reads(role, operand.elem);
                binds.push(operand.into());
                format!("load{suffix}_{role}(i)")
            }
            None => neutral.into(),
        };
        kernel = kernel.function(format!("fn {name}(i: u32) -> V {{ return {body}; }}"));
    }
    let count = rows.x.dims.numel().checked_div(rows.width).unwrap_or(0);
    let params = Params::new().u32(count).u32(rows.width / rows.step()).f32(rows.eps as f32).f32(rows.width as f32);
    lower.step(kernel, &binds, params, u64::from(count))
}
