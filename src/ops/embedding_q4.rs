//! Rows of a 4-bit table with a scale per group of elements.

use super::{DType, Lower, Op, Operand, Params};
use crate::error::Result;
use crate::graph::Dims;
use crate::shader::{Elem, Kernel};
use crate::source;

/// Rows of this family.
pub const OPS: &[Op] = &[
    Op::new("et_vk.embedding_q4gsw.default", &[DType::U8, DType::I8], embedding)
        .notes("groups of a multiple of 8; an index outside the table is clamped"),
    Op::new("quantized_decomposed.embedding_4bit.dtype", &[DType::U8, DType::I8], with_zeros)
        .notes("any width and group; an index outside the table is clamped"),
];

const WG: u32 = 64;

/// What is looked up, and where.
struct Table {
    packed: Operand,
    scales: Operand,
    zeros: Option<Operand>,
    group: u32,
    index: Operand,
    low_first: bool,
}

/// `(table, scales, group, index, low nibble first) -> out`
fn embedding(lower: &mut Lower<'_>) -> Result<()> {
    let (packed, scales, index) = (lower.tensor(0)?, lower.tensor(1)?, lower.tensor(3)?);
    let group = u32::try_from(lower.int(2)?).unwrap_or(0);
    let table = Table { packed, scales, zeros: None, group, index, low_first: lower.boolean(4)? };
    let width = packed.dims.last();
    if group == 0 || !group.is_multiple_of(8) || !width.is_multiple_of(4) {
        return Err(lower.unsupported(format!("rows of {} in groups of {group}, expected multiples of 8", width * 2)));
    }
    look_up(lower, &table)
}

/// `(table, scales, zeros or None, low, high, index, type) -> out`
fn with_zeros(lower: &mut Lower<'_>) -> Result<()> {
    let (packed, scales, index) = (lower.tensor(0)?, lower.tensor(1)?, lower.tensor(5)?);
    let (zeros, rows) = (lower.optional_tensor(2)?, packed.dims.rows().max(1));
    let scales = Operand { dims: Dims::new(&[packed.dims.rows(), scales.dims.numel() / rows])?, ..scales };
    if let Some(zeros) = zeros.filter(|zeros| zeros.dims.numel() != scales.dims.numel()) {
        return Err(lower.refuse(format!("zero points {} for scales {}", zeros.dims, scales.dims)));
    }
    let group = (packed.dims.last() * 2).checked_div(scales.dims.last()).unwrap_or(0);
    look_up(lower, &Table { packed, scales, zeros, group, index, low_first: false })
}

fn look_up(lower: &mut Lower<'_>, table: &Table) -> Result<()> {
    let Table { packed, scales, zeros, group, index, low_first } = *table;
    let (&[rows, bytes], &[scale_rows, groups]) = (&*packed.dims, &*scales.dims) else {
        return Err(lower.refuse(format!("table {} and scales {}, expected two dimensions", packed.dims, scales.dims)));
    };
    let width = bytes * 2;
    if scale_rows != rows || u64::from(groups) * u64::from(group) < u64::from(width) || !scales.elem.is_float() {
        return Err(lower.refuse(format!("scales {scales} for {rows} rows of {width} in groups of {group}")));
    }
    if index.elem.is_float() || index.elem == Elem::Bool || rows == 0 {
        return Err(lower.refuse(format!("the index is {}, the table has {rows} rows", index.dtype)));
    }
    let mut sizes = index.dims.to_vec();
    sizes.push(width);
    let out = lower.output(0, Dims::new(&sizes)?)?;
    lower.expect_floating_output()?;
    let parts = lower.parts(rows, &[packed, scales])?;
    let octets = zeros.is_none() && group.is_multiple_of(8) && width.is_multiple_of(8);
    if !octets && parts.len() > 1 {
        return Err(lower.unsupported(format!("a table beyond one binding with rows of {width} in groups of {group}")));
    }
    let (body, step) = if octets { (source!("embedding_q4"), 8) } else { (source!("embedding_q4_any"), 4) };
    let mut kernel = Kernel::new(body)
        .set("WG", WG)
        .flag("LOW_FIRST", low_first)
        .array("w", "u32")
        .reads("scales", scales.elem)
        .reads("index", index.elem);
    if !octets {
        let text = if zeros.is_some() { "f32(load_zeros(i))" } else { "0.0" };
        kernel = kernel.function(format!("fn zero(i: u32) -> f32 {{ return {text}; }}"));
    }
    kernel = zeros.into_iter().fold(kernel, |kernel, zeros| kernel.reads("zeros", zeros.elem));
    let kernel = kernel.writes("out", out.elem);
    let count = out.dims.numel().div_ceil(step);
    for part in parts {
        let params = Params::new().u32(count);
        let params = if octets {
            params.u32(width / 8).u32(groups).u32(group / 8).u32(rows).u32(part.start).u32(part.len() as u32)
        } else {
            params.u32(width).u32(groups).u32(group).u32(rows).u32(out.dims.numel())
        };
        let mut binds = vec![packed.only(&part).into(), scales.only(&part).into(), index.into()];
        binds.extend(zeros.map(super::Bind::from));
        binds.push(out.into());
        lower.step(kernel.clone(), &binds, params, u64::from(count.div_ceil(WG)))?;
    }
    Ok(())
}
