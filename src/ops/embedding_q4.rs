//! Rows of a 4-bit table with a scale per group of elements.

use super::{DType, Lower, Op, Params};
use crate::error::Result;
use crate::graph::Dims;
use crate::shader::{Elem, Kernel};
use crate::source;

/// Rows of this family.
pub const OPS: &[Op] = &[Op::new("et_vk.embedding_q4gsw.default", &[DType::U8, DType::I8], embedding)
    .notes("groups of a multiple of 8; an index outside the table is clamped")];

const WG: u32 = 64;

fn embedding(lower: &mut Lower<'_>) -> Result<()> {
    let (table, scales) = (lower.tensor(0)?, lower.tensor(1)?);
    let group = lower.int(2)?;
    let index = lower.tensor(3)?;
    let linear = lower.boolean(4)?;
    let (&[rows, packed], &[scale_rows, groups]) = (&*table.dims, &*scales.dims) else {
        return Err(lower.refuse(format!("table {} and scales {}, expected two dimensions", table.dims, scales.dims)));
    };
    let width = packed * 2;
    let group = u32::try_from(group).unwrap_or(0);
    if table.elem.size() != 1 || group == 0 || !group.is_multiple_of(8) || !width.is_multiple_of(8) {
        return Err(lower.unsupported(format!("rows of {width} in groups of {group}, expected multiples of 8")));
    }
    if scale_rows != rows || u64::from(groups) * u64::from(group) < u64::from(width) || !scales.elem.is_float() {
        return Err(lower.refuse(format!("scales {} for {rows} rows of {width} in groups of {group}", scales.dims)));
    }
    if index.elem.is_float() || index.elem == Elem::Bool || rows == 0 {
        return Err(lower.refuse(format!("the index is {}, the table has {rows} rows", index.dtype)));
    }
    let mut sizes = index.dims.to_vec();
    sizes.push(width);
    let out = lower.output(0, Dims::new(&sizes)?)?;
    lower.expect_floating_output()?;
    let kernel = Kernel::new(source!("embedding_q4"))
        .set("WG", WG)
        .flag("LOW_FIRST", linear)
        .array("w", "u32")
        .reads("scales", scales.elem)
        .reads("index", index.elem)
        .writes("out", out.elem);
    let count = out.dims.numel() / 8;
    for part in lower.parts(rows, &[table, scales])? {
        let params = Params::new().u32(count).u32(width / 8).u32(groups).u32(group / 8).u32(rows);
        let params = params.u32(part.start).u32(part.len() as u32);
        let binds = [table.only(&part).into(), scales.only(&part).into(), index.into(), out.into()];
        lower.step(kernel.clone(), &binds, params, u64::from(count.div_ceil(WG)))?;
    }
    Ok(())
}
