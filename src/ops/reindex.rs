//! Operators that are one strided walk through their operand.

use super::copy::{Walk, gather};
use super::layout::broadcast_strides;
use super::{ALL, DynInt, Lower, Op, Operand};
use crate::error::Result;
use crate::graph::Dims;

/// Rows of this family.
pub const OPS: &[Op] = &[
    Op::new("aten.permute_copy.default", ALL, permute),
    Op::new("aten.permute.default", ALL, permute),
    Op::new("aten.t_copy.default", ALL, transpose),
    Op::new("aten.slice_copy.Tensor", ALL, slice),
    Op::new("aten.select_copy.int", ALL, select),
    Op::new("aten.split_with_sizes_copy.default", ALL, split),
    Op::new("aten.expand_copy.default", ALL, expand),
    Op::new("aten.repeat.default", ALL, repeat),
    Op::new("aten.flip.default", ALL, flip),
    Op::new("aten.unfold_copy.default", ALL, unfold),
    Op::new("aten.pixel_shuffle.default", ALL, pixel_shuffle),
];

/// The result has the operand's element type and the shape that the walk describes.
fn finish(lower: &mut Lower<'_>, index: usize, x: Operand, dims: Dims, walk: &Walk) -> Result<()> {
    let out = lower.output(index, dims)?;
    if out.elem != x.elem {
        return Err(lower.refuse(format!("the operand is {}, the result {}", x.dtype, out.dtype)));
    }
    gather(lower, x, out, walk)
}

fn permute(lower: &mut Lower<'_>) -> Result<()> {
    let x = lower.tensor(0)?;
    let order = lower.ints(1)?;
    let axes: Vec<usize> = order.iter().map(|&dim| lower.to_axis(dim, x.dims.len())).collect::<Result<_>>()?;
    permuted(lower, x, &axes)
}

fn transpose(lower: &mut Lower<'_>) -> Result<()> {
    let x = lower.tensor(0)?;
    if x.dims.len() > 2 {
        return Err(lower.refuse(format!("its operand is {}, expected at most two dimensions", x.dims)));
    }
    let axes: Vec<usize> = (0..x.dims.len()).rev().collect();
    permuted(lower, x, &axes)
}

fn permuted(lower: &mut Lower<'_>, x: Operand, axes: &[usize]) -> Result<()> {
    let mut sorted = axes.to_vec();
    sorted.sort_unstable();
    if !sorted.into_iter().eq(0..x.dims.len()) {
        return Err(lower.refuse(format!("{axes:?} is no order of the dimensions of {}", x.dims)));
    }
    let strides = x.dims.strides();
    let pick = |from: &[u32]| -> Vec<u32> { axes.iter().filter_map(|&axis| from.get(axis).copied()).collect() };
    let walk = Walk::strided(pick(&x.dims), pick(&strides));
    finish(lower, 0, x, Dims::new(&walk.sizes)?, &walk)
}

/// An axis of a tensor that has dimensions, its extent and its stride.
fn axis(lower: &mut Lower<'_>, x: Operand, argument: usize) -> Result<(usize, i64, u32)> {
    let axis = lower.axis(argument, x.dims.len())?;
    match (x.dims.get(axis), x.dims.strides().get(axis)) {
        (Some(&extent), Some(&stride)) => Ok((axis, i64::from(extent), stride)),
        _ => Err(lower.refuse("its operand has no dimensions")),
    }
}

/// Integer argument `argument`, which came out as `number`, as a number that the kernel reads; `resolved` where counting
/// from the end or clamping made it another one.
fn position(lower: &Lower<'_>, argument: usize, number: i64, resolved: i64) -> Result<DynInt> {
    if number == resolved {
        return lower.dyn_int(argument);
    }
    Ok(DynInt { slot: 0, base: resolved as i32 })
}

fn slice(lower: &mut Lower<'_>) -> Result<()> {
    let x = lower.tensor(0)?;
    let (axis, extent, stride) = axis(lower, x, 1)?;
    let (start, end, step) = (lower.int_or(2, i64::MIN)?, lower.int_or(3, i64::MAX)?, lower.int_or(4, 1)?);
    if step < 1 {
        return Err(lower.refuse(format!("step {step}, expected at least 1")));
    }
    let wrap = |n: i64| if n < 0 { n.saturating_add(extent) } else { n }.clamp(0, extent);
    let (first, last) = (wrap(start), wrap(end));
    let length = (last - first).max(0).unsigned_abs().div_ceil(step.unsigned_abs());
    let mut walk = Walk::through(x);
    walk.start = position(lower, 2, start, first)?;
    walk.pace = stride;
    set(&mut walk.sizes, axis, length as u32);
    set(&mut walk.strides, axis, stride.saturating_mul(u32::try_from(step).unwrap_or(u32::MAX)));
    finish(lower, 0, x, Dims::new(&walk.sizes)?, &walk)
}

fn set(values: &mut [u32], axis: usize, value: u32) {
    values.get_mut(axis).into_iter().for_each(|slot| *slot = value);
}

fn select(lower: &mut Lower<'_>) -> Result<()> {
    let x = lower.tensor(0)?;
    let (axis, extent, stride) = axis(lower, x, 1)?;
    let index = lower.int(2)?;
    let resolved = if index < 0 { index + extent } else { index };
    if !(0..extent).contains(&resolved) {
        return Err(lower.refuse(format!("index {index} is outside the {extent} elements of {}", x.dims)));
    }
    let mut walk = Walk::through(x);
    walk.start = position(lower, 2, index, resolved)?;
    walk.pace = stride;
    walk.sizes.remove(axis);
    walk.strides.remove(axis);
    finish(lower, 0, x, Dims::new(&walk.sizes)?, &walk)
}

fn split(lower: &mut Lower<'_>) -> Result<()> {
    let x = lower.tensor(0)?;
    let (sizes, (axis, extent, stride)) = (lower.ints(1)?, axis(lower, x, 2)?);
    let outputs = lower.outputs();
    let total = sizes.iter().try_fold(0i64, |sum, &n| sum.checked_add(n));
    if sizes.iter().any(|&n| n < 0) || total != Some(extent) || sizes.len() != outputs {
        return Err(lower.refuse(format!("{sizes:?} do not divide the {extent} of {} for {outputs} results", x.dims)));
    }
    let mut walk = Walk::through(x);
    for (index, &size) in sizes.iter().enumerate() {
        set(&mut walk.sizes, axis, size as u32);
        finish(lower, index, x, Dims::new(&walk.sizes)?, &walk)?;
        walk.offset += size as u32 * stride;
    }
    Ok(())
}

/// A requested size of -1 keeps the operand's; so does the operand's own bound, which stands for its live size.
fn expand(lower: &mut Lower<'_>) -> Result<()> {
    let x = lower.tensor(0)?;
    let (requested, bound) = (lower.ints(1)?, lower.max(x));
    let missing = requested.len().checked_sub(x.dims.len());
    let Some(missing) = missing else {
        return Err(lower.refuse(format!("{requested:?} has fewer dimensions than {}", x.dims)));
    };
    let size = |(axis, &want): (usize, &i64)| {
        let own = axis.checked_sub(missing).and_then(|a| x.dims.get(a).zip(bound.get(a)));
        match own {
            Some((&live, _)) if want == -1 || i64::from(live) == want => Some(live),
            Some((&live, &max)) if max != 1 && i64::from(max) == want => Some(live),
            Some((1, _)) | None => u32::try_from(want).ok(),
            Some(_) => None,
        }
    };
    let sizes: Option<Vec<u32>> = requested.iter().enumerate().map(size).collect();
    let Some(sizes) = sizes else {
        return Err(lower.refuse(format!("{} does not expand to {requested:?}", x.dims)));
    };
    let dims = Dims::new(&sizes)?;
    finish(lower, 0, x, dims, &Walk::strided(sizes, broadcast_strides(x.dims, dims)))
}

fn repeat(lower: &mut Lower<'_>) -> Result<()> {
    let x = lower.tensor(0)?;
    let repeats = lower.ints(1)?;
    let counts: Option<Vec<u32>> = repeats.iter().map(|&n| u32::try_from(n).ok()).collect();
    let (Some(counts), Some(missing)) = (counts, repeats.len().checked_sub(x.dims.len())) else {
        return Err(lower.refuse(format!("{} does not repeat {repeats:?} times", x.dims)));
    };
    let own = x.dims.strides();
    let (mut walk, mut sizes) = (Walk::strided(Vec::new(), Vec::new()), Vec::new());
    for (axis, &count) in counts.iter().enumerate() {
        let inner = axis.checked_sub(missing).and_then(|a| x.dims.get(a).copied().zip(own.get(a).copied()));
        let (size, stride) = inner.unwrap_or((1, 0));
        walk.sizes.extend([count, size]);
        walk.strides.extend([0, stride]);
        sizes.push(count.checked_mul(size).ok_or_else(|| lower.refuse("the result is too large"))?);
    }
    finish(lower, 0, x, Dims::new(&sizes)?, &walk)
}

fn flip(lower: &mut Lower<'_>) -> Result<()> {
    let x = lower.tensor(0)?;
    let mut walk = Walk::through(x);
    let mut seen = Vec::new();
    for dim in lower.ints(1)? {
        let axis = lower.to_axis(dim, x.dims.len())?;
        if seen.contains(&axis) {
            return Err(lower.refuse(format!("dimension {dim} is named twice")));
        }
        seen.push(axis);
        if let (Some(stride), Some(&size)) = (walk.strides.get_mut(axis), x.dims.get(axis)) {
            walk.offset += size.saturating_sub(1) * *stride;
            *stride = stride.wrapping_neg();
        }
    }
    finish(lower, 0, x, x.dims, &walk)
}

/// Windows of `size` elements, `step` apart; a last dimension holds each window.
fn unfold(lower: &mut Lower<'_>) -> Result<()> {
    let x = lower.tensor(0)?;
    let (axis, extent, stride) = axis(lower, x, 1)?;
    let (size, step) = (lower.int(2)?, lower.int(3)?);
    if !(0..=extent).contains(&size) || step < 1 {
        return Err(lower.refuse(format!("windows of {size} every {step} in the {extent} of {}", x.dims)));
    }
    let step = u32::try_from(step).unwrap_or(u32::MAX);
    let mut walk = Walk::through(x);
    set(&mut walk.sizes, axis, (extent - size) as u32 / step + 1);
    set(&mut walk.strides, axis, stride.saturating_mul(step));
    walk.sizes.push(size as u32);
    walk.strides.push(stride);
    finish(lower, 0, x, Dims::new(&walk.sizes)?, &walk)
}

/// `[.., C * r * r, H, W] -> [.., C, H * r, W * r]`: of each r * r channels, a pixel each becomes a block of r by r.
fn pixel_shuffle(lower: &mut Lower<'_>) -> Result<()> {
    let x = lower.tensor(0)?;
    let factor = lower.int(1)?;
    let sides = u32::try_from(factor).ok().and_then(|r| Some((r, r.checked_mul(r).filter(|&area| area > 0)?)));
    let (Some((r, area)), [outer @ .., channels, rows, columns]) = (sides, &x.dims[..]) else {
        return Err(lower.refuse(format!("{} by {factor}", x.dims)));
    };
    if !channels.is_multiple_of(area) {
        return Err(lower.refuse(format!("{} by {factor}: {channels} channels, expected a multiple of {area}", x.dims)));
    }
    let mut dims = x.dims.to_vec();
    let tail = [channels / area, rows.saturating_mul(r), columns.saturating_mul(r)];
    dims.iter_mut().rev().zip(tail.into_iter().rev()).for_each(|(to, size)| *to = size);
    let (pixels, outer): (u32, u32) = (rows * columns, outer.iter().product());
    // Without channels nothing is walked through, and the factor may be of any size.
    let [row, block] = [r, area].map(|n| n.saturating_mul(pixels));
    let sizes = vec![outer, channels / area, *rows, r, *columns, r];
    let walk = Walk::strided(sizes, vec![channels * pixels, block, *columns, row, 1, pixels]);
    finish(lower, 0, x, Dims::new(&dims)?, &walk)
}

#[cfg(test)]
mod tests {
    use crate::gpu::Caps;
    use crate::graph::{DType, Dims, Graph, Node, Tensor, Value, ValueId};
    use crate::ops::{Env, Lower, Lowered, find};
    use crate::options::Options;

    fn tensor(sizes: &[u32]) -> Value {
        let max = Dims::new(sizes).unwrap();
        Value::Tensor(Tensor { dtype: DType::F16, stored: DType::F16, swapped: false, max, constant: None })
    }

    /// Rows `start..start + 2` of `[9, 6]`, with `start` a SymInt.
    fn lowered(start: i32) -> Lowered {
        let values = [tensor(&[9, 6]), Value::Int(0), Value::SymInt, Value::SymInt, Value::Int(1), tensor(&[2, 6])];
        let args = (0..6).map(ValueId).collect();
        let node = Node { op: "aten.slice_copy.Tensor".into(), args };
        let graph = Graph { values: values.to_vec(), nodes: vec![node.clone()], ..Graph::default() };
        let shapes = [Dims::new(&[9, 6]).unwrap(); 6];
        let symints = [0, 0, start, start + 2, 0, 0];
        let env = Env {
            graph: &graph,
            shapes: &shapes,
            symints: &symints,
            slots: &[0, 0, 1, 2, 0, 0],
            storage: &[0, 9, 9, 9, 9, 1],
            host: &|_, _| Ok(0),
            caps: &Caps::minimal(),
            options: &Options::default(),
        };
        Lower::run(&env, &node, find(&node.op).unwrap()).unwrap()
    }

    #[test]
    fn a_moving_start_changes_no_step() {
        let first = lowered(0);
        assert!(first.volatile);
        assert_eq!(first, lowered(3));
        assert_eq!(first, lowered(7));
        assert_ne!(first, lowered(-3));
    }
}
