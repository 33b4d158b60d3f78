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
    match resolve(&requested, x.dims, lower.max(x)) {
        Some(sizes) => finish(lower, x, Dims::new(&sizes)?),
        None => Err(lower.refuse(format!("{} does not view as {requested:?}", x.dims))),
    }
}

/// The requested sizes for a tensor of shape `live` and bound `max`: a -1 is inferred; literal sizes may stand for a bound
/// that is smaller now, and then one of them shrinks: the one that equals the bound of a dimension that shrank alike, if
/// need be at the same place, or the only one that can. `None` when nothing fits or when it cannot be told which shrinks.
fn resolve(requested: &[i64], live: Dims, max: Dims) -> Option<Vec<u32>> {
    let count = live.numel();
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
    let shrunk = |axis: usize| fill(axis).filter(|fresh| fresh.get(axis) < sizes.get(axis)).map(|fresh| (axis, fresh));
    let candidates: Vec<(usize, Vec<u32>)> = (0..sizes.len()).filter_map(shrunk).collect();
    let alike = |(axis, fresh): &&(usize, Vec<u32>)| {
        let change = (sizes.get(*axis), fresh.get(*axis));
        max.iter().zip(live.iter()).any(|(max, live)| max != live && change == (Some(max), Some(live)))
    };
    let in_place = |(axis, _): &&(usize, Vec<u32>)| max.get(*axis) != live.get(*axis);
    let alike: Vec<_> = candidates.iter().filter(alike).collect();
    let in_place: Vec<_> = alike.iter().copied().filter(in_place).collect();
    match (&in_place[..], &alike[..], &candidates[..]) {
        ([(_, fresh)], ..) | ([], [(_, fresh)], _) | ([], [], [(_, fresh)]) => Some(fresh.clone()),
        _ => None,
    }
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
        let dims = |sizes: &[u32]| Dims::new(sizes).unwrap();
        let fixed = |requested: &[i64], sizes: &[u32]| resolve(requested, dims(sizes), dims(sizes));
        assert_eq!(fixed(&[2, -1], &[6]), Some(vec![2, 3]));
        assert_eq!(fixed(&[-1], &[0]), Some(vec![0]));
        assert_eq!(fixed(&[], &[1]), Some(vec![]));
        assert_eq!(fixed(&[2, -1], &[7]), None);
        assert_eq!(fixed(&[4, 4], &[32]), None);
        assert_eq!(fixed(&[i64::MAX], &[7]), None);
        assert_eq!(fixed(&[i64::from(u32::MAX); 9], &[7]), None);
        let moving = |requested: &[i64], live: &[u32], max: &[u32]| resolve(requested, dims(live), dims(max));
        assert_eq!(moving(&[1, 127, 64], &[5, 64], &[127, 64]), Some(vec![1, 5, 64]));
        assert_eq!(moving(&[8, 4], &[2, 4], &[8, 4]), Some(vec![2, 4]));
        assert_eq!(moving(&[254, 64], &[2, 5, 64], &[2, 127, 64]), Some(vec![10, 64]));
        assert_eq!(moving(&[4, 16, 4], &[4, 4, 4], &[4, 16, 4]), Some(vec![4, 4, 4]));
        assert_eq!(moving(&[8, 8], &[4, 8], &[8, 8]), Some(vec![4, 8]));
        assert_eq!(moving(&[8, 8, 32], &[32, 8, 4], &[32, 8, 8]), None, "either of them may shrink");
    }
}
