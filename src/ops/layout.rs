//! Index arithmetic: a result as nested loops, and how far each operand moves along each loop.

use super::{Lower, Operand};
use crate::error::Result;
use crate::graph::Dims;

/// Loops over a result, outermost first, as few as possible. Strides are in elements; negative ones wrap.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// Length of each loop.
    pub sizes: Vec<u32>,
    /// For each operand, the distance between neighbours along each loop.
    pub strides: Vec<Vec<u32>>,
}

impl Layout {
    /// Loops of these lengths; loops of one step go and neighbours that every operand walks evenly become one.
    pub fn new(sizes: &[u32], strides: &[Vec<u32>]) -> Layout {
        let mut layout = Layout { sizes: Vec::new(), strides: vec![Vec::new(); strides.len()] };
        for (axis, &size) in sizes.iter().enumerate().filter(|(_, size)| **size != 1) {
            let steps: Vec<u32> = strides.iter().map(|s| s.get(axis).copied().unwrap_or(0)).collect();
            layout.append(size, &steps);
        }
        layout
    }

    fn append(&mut self, size: u32, steps: &[u32]) {
        let even = |(known, &step): (&Vec<u32>, &u32)| known.last() == Some(&step.wrapping_mul(size));
        let fuses = !self.sizes.is_empty() && self.strides.iter().zip(steps).all(even);
        if fuses {
            self.sizes.last_mut().into_iter().for_each(|last| *last *= size);
            self.strides.iter_mut().zip(steps).for_each(|(s, &step)| s.last_mut().into_iter().for_each(|l| *l = step));
        } else {
            self.sizes.push(size);
            self.strides.iter_mut().zip(steps).for_each(|(s, &step)| s.push(step));
        }
    }

    /// The distances of one operand.
    pub fn of(&self, operand: usize) -> &[u32] {
        self.strides.get(operand).map_or(&[], Vec::as_slice)
    }
}

/// Distances of an operand of shape `dims` along a result of shape `to`: 0 where it repeats.
pub fn broadcast_strides(dims: Dims, to: Dims) -> Vec<u32> {
    let missing = to.len().saturating_sub(dims.len());
    let own = dims.strides();
    let step = |axis: usize| match dims.get(axis) {
        Some(1) | None => 0,
        _ => own.get(axis).copied().unwrap_or(0),
    };
    (0..to.len()).map(|axis| axis.checked_sub(missing).map_or(0, step)).collect()
}

/// `values` as the leading entries of an array; the rest is 0.
pub fn padded<const N: usize>(values: &[u32]) -> [u32; N] {
    let mut array = [0; N];
    array.iter_mut().zip(values).for_each(|(to, from)| *to = *from);
    array
}

impl Lower<'_> {
    /// The shape that all operands broadcast to.
    pub fn broadcast(&self, operands: &[Operand]) -> Result<Dims> {
        let rank = operands.iter().map(|o| o.dims.len()).max().unwrap_or(0);
        let mut sizes = vec![1; rank];
        for operand in operands {
            for (to, &size) in sizes.iter_mut().rev().zip(operand.dims.iter().rev()) {
                if size == *to || size == 1 {
                    continue;
                }
                if *to != 1 {
                    let shapes: Vec<String> = operands.iter().map(|o| o.dims.to_string()).collect();
                    return Err(self.refuse(format!("{} do not broadcast", shapes.join(", "))));
                }
                *to = size;
            }
        }
        Dims::new(&sizes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_neighbours_become_one_loop() {
        let layout = Layout::new(&[2, 1, 3, 4], &[vec![12, 9, 4, 1]]);
        assert_eq!(layout, Layout { sizes: vec![24], strides: vec![vec![1]] });
        let layout = Layout::new(&[2, 3, 4], &[vec![12, 4, 1], vec![0, 4, 1]]);
        assert_eq!(layout, Layout { sizes: vec![2, 12], strides: vec![vec![12, 1], vec![0, 1]] });
        let backwards = Layout::new(&[3, 4], &[vec![4u32.wrapping_neg(), 1u32.wrapping_neg()]]);
        assert_eq!(backwards.sizes, [12]);
        assert_eq!(Layout::new(&[1, 1], &[vec![1, 1]]).sizes, [0u32; 0]);
    }

    #[test]
    fn repeated_dimensions_do_not_move() {
        let dims = |sizes: &[u32]| Dims::new(sizes).unwrap();
        assert_eq!(broadcast_strides(dims(&[3, 1]), dims(&[2, 3, 4])), [0, 1, 0]);
        assert_eq!(broadcast_strides(dims(&[]), dims(&[2])), [0]);
    }
}
