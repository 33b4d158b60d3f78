//! The engine behind every operator that moves elements without looking at them: one strided copy.

use super::layout::{Layout, padded};
use super::transpose::Transpose;
use super::{DynInt, Lower, Operand, Params};
use crate::error::Result;
use crate::shader::{Access, Kernel, RoleType};
use crate::source;

const MAX_LOOPS: usize = 16;

/// How a result walks through an operand: element by element at `offset + start · pace + Σ coordinate · stride`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Walk {
    /// Length of each loop, outermost first; their product is the result's element count.
    pub sizes: Vec<u32>,
    /// Elements between neighbours along each loop; negative ones wrap.
    pub strides: Vec<u32>,
    /// First element.
    pub offset: u32,
    /// A number that the kernel reads.
    pub start: DynInt,
    /// Elements per unit of `start`.
    pub pace: u32,
}

/// Where the elements go: runs of `run`, `pitch` apart, from `first` on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    /// Elements that lie together.
    pub run: u32,
    /// From the start of one run to that of the next.
    pub pitch: u32,
    /// Start of the first run.
    pub first: u32,
}

impl Walk {
    /// Through a whole operand in its own order.
    pub fn through(x: Operand) -> Walk {
        Walk::strided(x.dims.to_vec(), x.dims.strides().into_iter().take(x.dims.len()).collect())
    }

    /// From the first element on.
    pub fn strided(sizes: Vec<u32>, strides: Vec<u32>) -> Walk {
        Walk { sizes, strides, offset: 0, start: DynInt { slot: 0, base: 0 }, pace: 0 }
    }
}

/// Bytes of the largest unit that the copy can move at once: vectors, words or single elements.
fn unit(layout: &Layout, fixed: &[u32], element: u32, slack: bool) -> u32 {
    let inner = layout.sizes.last().copied().unwrap_or(1);
    let strides = layout.of(0).split_last();
    let (&step, outer) = strides.unwrap_or((&1, &[]));
    let fits = |unit: &u32| {
        let whole = |n: &u32| n.is_multiple_of(unit / element);
        step == 1 && (slack || whole(&inner)) && outer.iter().all(whole) && fixed.iter().all(whole)
    };
    [16, 4].into_iter().filter(|&unit| unit > element).find(fits).unwrap_or(element)
}

/// Fills `out` with the elements of `x` along `walk`.
pub(super) fn gather(lower: &mut Lower<'_>, x: Operand, out: Operand, walk: &Walk) -> Result<()> {
    let layout = Layout::new(&walk.sizes, std::slice::from_ref(&walk.strides));
    if let Some(transpose) = Transpose::of(&layout, &[walk.offset, walk.pace], x.elem.size()) {
        return transpose.step(lower, (x, out), walk);
    }
    // Buffers end at a multiple of 16 bytes, so a plain run may be moved in vectors to its last, partial one.
    let slack = layout.sizes.len() <= 1;
    let unit = unit(&layout, &[walk.offset, walk.pace], x.elem.size(), slack);
    step(lower, (x, out), walk, (&layout, unit), None)
}

/// Writes the elements of `x`, in order, to places in `out`. False, and nothing is done, when they are smaller than words
/// and do not lie in whole words.
pub(super) fn scatter(lower: &mut Lower<'_>, x: Operand, out: Operand, place: Place) -> Result<bool> {
    let walk = Walk::through(x);
    let layout = Layout::new(&walk.sizes, std::slice::from_ref(&walk.strides));
    let unit = unit(&layout, &[place.run, place.pitch, place.first], x.elem.size(), false);
    if unit >= 4 {
        step(lower, (x, out), &walk, (&layout, unit), Some(place))?;
    }
    Ok(unit >= 4)
}

fn step(
    lower: &mut Lower<'_>,
    (x, out): (Operand, Operand),
    walk: &Walk,
    (layout, unit): (&Layout, u32),
    place: Option<Place>,
) -> Result<()> {
    if layout.sizes.len() > MAX_LOOPS {
        return Err(lower.unsupported(format!("{} nested loops, at most {MAX_LOOPS}", layout.sizes.len())));
    }
    let wide = (unit / x.elem.size()).max(1);
    let per_cell = if unit < 4 { 4 / unit } else { wide };
    let count = walk.sizes.iter().product::<u32>().div_ceil(per_cell);
    let narrow = |n: u32| ((n as i32) / (wide as i32)) as u32;
    let inner = layout.sizes.len().saturating_sub(1);
    let last = |axis: usize, size: u32| if axis == inner { size.div_ceil(wide) } else { size };
    let sizes: Vec<u32> = layout.sizes.iter().enumerate().map(|(axis, &size)| last(axis, size)).collect();
    let step = |(axis, &stride): (usize, &u32)| if axis == inner && wide > 1 { 1 } else { narrow(stride) };
    let strides: Vec<u32> = layout.of(0).iter().enumerate().map(step).collect();
    let base = walk.offset.wrapping_add((walk.start.base as u32).wrapping_mul(walk.pace));
    let to = place.unwrap_or(Place { run: 0, pitch: 0, first: 0 });
    let mut params = Params::new().u32(count).u32(sizes.len() as u32).u32(narrow(base)).u32(walk.start.slot);
    params = params.u32(narrow(walk.pace)).u32(narrow(to.run)).u32(narrow(to.pitch)).u32(narrow(to.first));
    for words in [padded::<MAX_LOOPS>(&sizes), padded(&strides)] {
        let (low, high) = words.split_at(8);
        params = params.words8(padded(low)).words8(padded(high));
    }
    let kernel = kernel(unit, place.is_some());
    lower.each(kernel, &[x.into(), out.into()], params, count)
}

fn kernel(unit: u32, placed: bool) -> Kernel {
    let wgsl = if unit == 16 { "vec4<u32>" } else { "u32" };
    let kernel = Kernel::new(source!("copy")).alias("Cell", wgsl).array("x", wgsl);
    let kernel = kernel.role("out", RoleType::Array(wgsl), Access::Write).link(source!("lib/index"));
    let place = if placed { "i / p.run * p.pitch + p.first + i % p.run" } else { "i" };
    let kernel = kernel.function(format!("fn place(i: u32) -> u32 {{ return {place}; }}"));
    if unit >= 4 {
        return kernel.link(source!("lib/cell_whole"));
    }
    kernel.set("BITS", unit * 8).link(source!("lib/parts")).link(source!("lib/cell_parts"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit_of(sizes: &[u32], strides: &[u32], fixed: &[u32], element: u32) -> u32 {
        let layout = Layout::new(sizes, &[strides.to_vec()]);
        unit(&layout, fixed, element, layout.sizes.len() <= 1)
    }

    #[test]
    fn copies_move_the_largest_unit_that_divides_everything() {
        assert_eq!(unit_of(&[7], &[1], &[0], 4), 16);
        assert_eq!(unit_of(&[7], &[1], &[1], 4), 4);
        assert_eq!(unit_of(&[7, 8], &[16, 1], &[4], 4), 16);
        assert_eq!(unit_of(&[7, 8], &[12, 1], &[4], 1), 4);
        assert_eq!(unit_of(&[7, 8], &[9, 1], &[4], 1), 1);
        assert_eq!(unit_of(&[8], &[2], &[0], 2), 2);
        assert_eq!(unit_of(&[], &[], &[3], 1), 1);
        assert_eq!(unit_of(&[3, 4], &[4u32.wrapping_neg(), 1], &[8], 4), 16);
    }
}
