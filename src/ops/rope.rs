//! Rotary position embeddings.

use super::{Bind, DynInt, FLOATS, Lower, Op, Operand, Params};
use crate::error::Result;
use crate::shader::{Kernel, Source};
use crate::source;

/// Rotation of `(q, k, cos, sin)` as pairs, and of `(q, k, cos, sin, first row of the tables)` as halves: `-> [q, k]`.
pub const ROPE: [&str; 2] = ["et_vk.apply_rotary_emb.default", "et_vk.apply_rotary_emb_hf.default"];

/// Rows of this family.
pub const OPS: &[Op] = &[
    Op::new(ROPE[0], FLOATS, pairs),
    Op::new(ROPE[1], FLOATS, halves).notes("partial rotary dimensions pass the rest through"),
    Op::new("et_vk.apply_rotary_emb_interleaved.default", FLOATS, interleaved),
];

/// How rows are rotated.
pub(super) struct Rotation {
    /// The linked piece that knows the pairs.
    pub style: Source,
    pub tables: Vec<Operand>,
    /// Columns of a table row.
    pub table: u32,
    /// Leading dimensions of a head that rotate.
    pub rotary: u32,
    /// Row of the tables for the first position.
    pub start: DynInt,
}

/// Rotates `x` of shape [.., rows, heads, d] into output `index`.
fn rotate(
    lower: &mut Lower<'_>,
    index: usize,
    x: Operand,
    (rows, heads, d): (u32, u32, u32),
    r: &Rotation,
) -> Result<()> {
    const WG: u32 = 64;
    let out = lower.output(index, x.dims)?;
    lower.expect_floating_output()?;
    let mut kernel =
        Kernel::new(source!("rope")).link(r.style).set("WG", WG).reads("x", x.elem).writes("out", out.elem);
    let mut binds: Vec<Bind> = vec![x.into(), out.into()];
    for (name, table) in ["cos", "sin"].into_iter().zip(&r.tables) {
        kernel = kernel.reads(name, table.elem);
        binds.push((*table).into());
    }
    let count = x.dims.numel();
    let params = Params::new().u32(count).u32(heads).u32(d).u32(r.rotary);
    let params = params.dynamic(r.start).u32(r.table).u32(rows);
    lower.step(kernel, &binds, params, u64::from(count.div_ceil(WG)))
}

fn split(lower: &Lower<'_>, x: Operand) -> Result<(u32, u32, u32)> {
    match x.dims[..] {
        [.., rows, heads, d] if d % 2 == 0 && x.elem.is_float() => Ok((rows, heads, d)),
        _ => Err(lower.refuse(format!("{} {} is no [.., S, H, D] of numbers with an even D", x.dtype, x.dims))),
    }
}

fn query_and_key(lower: &mut Lower<'_>, rotation: impl Fn(&mut Lower<'_>, u32, u32) -> Result<Rotation>) -> Result<()> {
    for index in 0..2 {
        let x = lower.tensor(index)?;
        let shape = split(lower, x)?;
        let rotation = rotation(lower, shape.0, shape.2)?;
        rotate(lower, index, x, shape, &rotation)?;
    }
    Ok(())
}

/// Checks that both tables are `[rows.., columns]` with at least `rows` rows.
fn tables(lower: &Lower<'_>, first: usize, rows: u32, columns: u32) -> Result<Vec<Operand>> {
    let tables = vec![lower.tensor(first)?, lower.tensor(first + 1)?];
    for table in &tables {
        let enough = table.elem.is_float() && table.dims.last() == columns && table.dims.numel() >= rows * columns;
        if !enough {
            let found = format!("{} {}", table.dtype, table.dims);
            let hint = "is the position beyond the length that the program was exported with?";
            return Err(lower.refuse(format!("a table is {found}, expected {rows} rows of {columns}; {hint}")));
        }
    }
    Ok(tables)
}

fn pairs(lower: &mut Lower<'_>) -> Result<()> {
    query_and_key(lower, |lower, rows, d| pairs_of(lower, 2, rows, d))
}

/// Pairs of `rows` heads of size `d`; the tables, from argument `first` on, begin with the first position.
pub(super) fn pairs_of(lower: &mut Lower<'_>, first: usize, rows: u32, d: u32) -> Result<Rotation> {
    let tables = tables(lower, first, rows, d / 2)?;
    let start = DynInt { slot: 0, base: 0 };
    Ok(Rotation { style: source!("lib/rope_pairs"), tables, table: d / 2, rotary: d, start })
}

fn halves(lower: &mut Lower<'_>) -> Result<()> {
    let start = lower.dyn_int(4)?;
    query_and_key(lower, |lower, rows, d| halves_of(lower, 2, start, rows, d))
}

/// Halves of `rows` heads of size `d`; row `start` of the tables, from argument `first` on, is for the first position.
pub(super) fn halves_of(lower: &mut Lower<'_>, first: usize, start: DynInt, rows: u32, d: u32) -> Result<Rotation> {
    let (cos, sin) = (lower.tensor(first)?, lower.tensor(first + 1)?);
    let columns = cos.dims.last();
    if sin.dims != cos.dims {
        return Err(lower.refuse(format!("the tables are {} and {}", cos.dims, sin.dims)));
    }
    lower.bound(start, rows, cos.dims.numel() / columns.max(1), "position in the rotary tables")?;
    if columns > d || columns % 2 != 0 {
        return Err(lower.refuse(format!("tables of {columns} columns do not fit heads of {d}")));
    }
    let tables = tables(lower, first, rows, columns)?;
    Ok(Rotation { style: source!("lib/rope_halves"), tables, table: columns, rotary: columns, start })
}

fn interleaved(lower: &mut Lower<'_>) -> Result<()> {
    let (x, freqs) = (lower.tensor(0)?, lower.tensor(1)?);
    let [_, rows, columns] = x.dims[..] else {
        return Err(lower.refuse(format!("its input is {}, expected [B, N, C]", x.dims)));
    };
    if columns % 2 != 0 || freqs.dims.numel() != rows * columns || !x.elem.is_float() || !freqs.elem.is_float() {
        return Err(lower.refuse(format!("{} {} does not go with {} {}", x.dtype, x.dims, freqs.dtype, freqs.dims)));
    }
    let start = DynInt { slot: 0, base: 0 };
    let style = source!("lib/rope_interleaved");
    let rotation = Rotation { style, tables: vec![freqs], table: columns, rotary: columns, start };
    rotate(lower, 0, x, (rows, 1, columns), &rotation)
}
