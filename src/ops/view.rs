//! Operators that keep their operand's elements in order. Where the plan lets operand and result share memory they cost
//! nothing; elsewhere they are one copy.

use super::copy::{Walk, gather};
use super::{ALL, Lower, Op, Operand};
use crate::error::Result;
use crate::graph::Dims;

/// Rows of this family.
pub const OPS: &[Op] = &[
    Op::new("aten.view_copy.default", ALL, view).view(),
    Op::new("aten.squeeze_copy.dims", ALL, squeeze).view(),
    Op::new("aten.unsqueeze_copy.default", ALL, unsqueeze).view(),
    Op::new("aten.clone.default", ALL, same).view(),
    Op::new("aten.alias_copy.default", ALL, same).view(),
    Op::new("dim_order_ops._clone_dim_order.default", ALL, same).view(),
];

fn same(lower: &mut Lower<'_>) -> Result<()> {
    let x = lower.tensor(0)?;
    finish(lower, x, x.dims)
}

fn finish(lower: &mut Lower<'_>, x: Operand, dims: Dims) -> Result<()> {
    let out = lower.output(0, dims)?;
    if out.elem != x.elem {
        return Err(lower.refuse(format!("the operand is {}, the result {}", x.dtype, out.dtype)));
    }
    if lower.same_storage(x, out) { Ok(()) } else { gather(lower, x, out, &Walk::through(x)) }
}

fn view(lower: &mut Lower<'_>) -> Result<()> {
    let x = lower.tensor(0)?;
    let requested = lower.ints(1)?;
    match resolve(&requested, x.dims.numel()) {
        Some(sizes) => finish(lower, x, Dims::new(&sizes)?),
        None => Err(lower.refuse(format!("{} does not view as {requested:?}", x.dims))),
    }
}

/// The requested sizes with `count` elements: a -1 is inferred; where literal sizes stand for the bound of a dimension
/// that is smaller now, the leftmost one that can shrink to the right count does.
fn resolve(requested: &[i64], count: u32) -> Option<Vec<u32>> {
    let fill = |axis: usize| {
        let others = |(other, &size): (usize, &i64)| if other == axis { Some(1) } else { u32::try_from(size).ok() };
        let mut sizes: Vec<u32> = requested.iter().enumerate().map(others).collect::<Option<_>>()?;
        let rest = sizes.iter().try_fold(1u32, |product, &size| product.checked_mul(size))?;
        let size = count.checked_div(rest).unwrap_or(0);
        *sizes.get_mut(axis)? = size;
        (size.checked_mul(rest)? == count).then_some(sizes)
    };
    if let Some(axis) = requested.iter().position(|&size| size == -1) {
        return fill(axis);
    }
    let sizes: Vec<u32> = requested.iter().map(|&size| u32::try_from(size).ok()).collect::<Option<_>>()?;
    if sizes.iter().fold(1u64, |product, &size| product.saturating_mul(u64::from(size))) == u64::from(count) {
        return Some(sizes);
    }
    let shrunk = |axis: usize| fill(axis).filter(|fresh| fresh.get(axis) < sizes.get(axis));
    (0..sizes.len()).find_map(shrunk)
}

fn squeeze(lower: &mut Lower<'_>) -> Result<()> {
    let x = lower.tensor(0)?;
    let axes: Vec<usize> = lower.ints(1)?.iter().map(|&dim| lower.to_axis(dim, x.dims.len())).collect::<Result<_>>()?;
    let bound = lower.max(x);
    let goes = |axis: usize| axes.contains(&axis) && bound.get(axis) == Some(&1);
    let sizes: Vec<u32> = x.dims.iter().enumerate().filter(|(axis, _)| !goes(*axis)).map(|(_, &size)| size).collect();
    finish(lower, x, Dims::new(&sizes)?)
}

fn unsqueeze(lower: &mut Lower<'_>) -> Result<()> {
    let x = lower.tensor(0)?;
    let axis = lower.axis(1, x.dims.len() + 1)?;
    let mut sizes = x.dims.to_vec();
    sizes.insert(axis, 1);
    finish(lower, x, Dims::new(&sizes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn view_sizes_follow_the_element_count() {
        assert_eq!(resolve(&[2, -1], 6), Some(vec![2, 3]));
        assert_eq!(resolve(&[-1], 0), Some(vec![0]));
        assert_eq!(resolve(&[], 1), Some(vec![]));
        assert_eq!(resolve(&[1, 127, 64], 5 * 64), Some(vec![1, 5, 64]));
        assert_eq!(resolve(&[8, 4], 8), Some(vec![2, 4]));
        assert_eq!(resolve(&[2, -1], 7), None);
        assert_eq!(resolve(&[4, 4], 32), None);
        assert_eq!(resolve(&[i64::MAX], 7), None);
        assert_eq!(resolve(&[i64::from(u32::MAX); 9], 7), None);
    }
}
