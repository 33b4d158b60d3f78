//! Operators whose result is larger than each operand: concatenation and padding.

use super::copy::{Place, scatter};
use super::layout::padded;
use super::{ALL, Lower, Op, Operand, Params};
use crate::error::Result;
use crate::graph::Dims;
use crate::shader::{Access, Elem, Kernel, RoleType};
use crate::source;

/// Rows of this family.
pub const OPS: &[Op] = &[
    Op::new("aten.cat.default", ALL, cat).notes("all operands have the result's type"),
    Op::new("aten.constant_pad_nd.default", ALL, pad),
];

/// Where an operand lies in the result: elements before it along each dimension; negative ones wrap.
struct Region {
    sizes: Vec<u32>,
    before: Vec<u32>,
    extent: Vec<u32>,
}

/// What the result holds outside of the operand.
enum Outside {
    Kept,
    Filled(u32),
}

fn cat(lower: &mut Lower<'_>) -> Result<()> {
    let operands = lower.tensors(0)?;
    let joined: Vec<Operand> = operands.iter().filter(|x| x.dims.to_vec() != [0]).copied().collect();
    let first = joined.first().or(operands.first()).copied();
    let first = first.ok_or_else(|| lower.refuse("there is nothing to join"))?;
    let dim = lower.int_or(1, 0)?;
    let axis = lower.to_axis(dim, first.dims.len())?;
    let total = joined.iter().filter_map(|x| x.dims.get(axis)).try_fold(0u32, |sum, &n| sum.checked_add(n));
    let total = total.ok_or_else(|| lower.refuse("the result is too large"))?;
    let dims = first.dims.with(axis, total)?;
    let out = lower.output(0, dims)?;
    for x in &joined {
        if x.dims.len() != dims.len() || x.dims.with(axis, total)? != dims {
            return Err(lower.refuse(format!("{} and {} differ outside dimension {axis}", first.dims, x.dims)));
        }
        if x.elem != out.elem {
            return Err(lower.unsupported(format!("an operand is {}, the result {}", x.dtype, out.dtype)));
        }
    }
    let inner: u32 = dims.iter().skip(axis + 1).product();
    let mut start = 0;
    for x in joined.into_iter().filter(|x| x.dims.numel() > 0) {
        let run = x.dims.get(axis).copied().unwrap_or(1) * inner;
        append(lower, x, out, Place { run, pitch: total * inner, first: start })?;
        start += run;
    }
    Ok(())
}

fn append(lower: &mut Lower<'_>, x: Operand, out: Operand, place: Place) -> Result<()> {
    if scatter(lower, x, out, place)? {
        return Ok(());
    }
    let outer = out.dims.numel() / place.pitch;
    let region =
        Region { sizes: vec![outer, place.pitch], before: vec![0, place.first], extent: vec![outer, place.run] };
    insert(lower, x, out, &region, &Outside::Kept)
}

fn pad(lower: &mut Lower<'_>) -> Result<()> {
    let x = lower.tensor(0)?;
    let amounts = lower.ints(1)?;
    let value = lower.double_or(2, 0.0)?;
    let rank = x.dims.len();
    if amounts.len() % 2 == 1 || amounts.len() / 2 > rank {
        return Err(lower.refuse(format!("{amounts:?} does not pad {}", x.dims)));
    }
    let (mut sizes, mut before) = (x.dims.to_vec(), vec![0u32; rank]);
    for (pair, axis) in amounts.chunks_exact(2).zip((0..rank).rev()) {
        let (&[low, high], Some(size), Some(before)) = (pair, sizes.get_mut(axis), before.get_mut(axis)) else {
            continue;
        };
        let narrow = |amount| i32::try_from(amount).map(i64::from);
        let (Ok(low), Ok(high)) = (narrow(low), narrow(high)) else {
            return Err(lower.refuse(format!("{amounts:?} does not fit 32 bits")));
        };
        let padded = u32::try_from(i64::from(*size) + low + high);
        *size = padded.map_err(|_| lower.refuse(format!("{amounts:?} leaves nothing of {}", x.dims)))?;
        *before = low as u32;
    }
    let out = lower.output(0, Dims::new(&sizes)?)?;
    if x.elem != out.elem {
        return Err(lower.refuse(format!("the operand is {}, the result {}", x.dtype, out.dtype)));
    }
    let region = Region { sizes, before, extent: x.dims.to_vec() };
    insert(lower, x, out, &region, &Outside::Filled(bits(value, out.elem)))
}

/// The bits of a number as an element.
fn bits(value: f64, elem: Elem) -> u32 {
    match elem {
        Elem::F32 => (value as f32).to_bits(),
        Elem::F16 => u32::from(half::f16::from_f64(value).to_bits()),
        Elem::Bool => u32::from(value != 0.0),
        Elem::I32 | Elem::I8 | Elem::U8 => value as i32 as u32,
    }
}

/// Writes every word of `out`: `x` in its region, the rest as told.
fn insert(lower: &mut Lower<'_>, x: Operand, out: Operand, region: &Region, outside: &Outside) -> Result<()> {
    let bits = x.elem.size() * 8;
    let words = out.dims.numel().div_ceil(32 / bits);
    let (fill, other) = match outside {
        Outside::Kept => (0, "part(out[i], e)"),
        Outside::Filled(value) => (value & (u32::MAX >> (32 - bits)), "p.fill"),
    };
    let extent = Dims::new(&region.extent)?;
    let params = Params::new().u32(words).u32(region.sizes.len() as u32).u32(fill).u32(0);
    let params = params.words8(padded(&region.sizes)).words8(padded(&region.before));
    let params = params.words8(padded(&region.extent)).words8(extent.strides());
    let kernel = Kernel::new(source!("region"))
        .set("BITS", bits)
        .array("x", "u32")
        .role("out", RoleType::Array("u32"), Access::Write)
        .function(format!("fn other(i: u32, e: u32) -> u32 {{ return {other}; }}"))
        .link(source!("lib/parts"));
    lower.each(kernel, &[x.into(), out.into()], params, words)
}
