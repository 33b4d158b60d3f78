use std::fmt;
use std::ops::Deref;

use crate::error::{Error, Result};

/// A shape of at most eight dimensions, outermost first. Elements are stored row-major.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Dims {
    rank: u8,
    sizes: [u32; 8],
}

impl Dims {
    /// The highest rank.
    pub const MAX_RANK: usize = 8;
    /// What errors about a shape are about.
    pub const NAME: &'static str = "tensor";

    /// A shape from its sizes. Fails above rank 8 or when the element count passes 2^31 - 1.
    pub fn new(sizes: &[u32]) -> Result<Dims> {
        if sizes.len() > Self::MAX_RANK {
            return Err(Error::shape(Self::NAME, format!("rank {} is above {}", sizes.len(), Self::MAX_RANK)));
        }
        let mut dims = Dims { rank: sizes.len() as u8, sizes: [0; 8] };
        for (to, from) in dims.sizes.iter_mut().zip(sizes) {
            *to = *from;
        }
        let nonzero = sizes.iter().filter(|&&n| n > 0);
        let product = nonzero.fold(1u64, |n, &d| n.saturating_mul(u64::from(d)));
        if product > i32::MAX as u64 {
            return Err(Error::shape(Self::NAME, format!("{sizes:?} has more than 2^31 - 1 elements")));
        }
        Ok(dims)
    }

    /// Number of elements; 1 for rank 0.
    pub fn numel(&self) -> u32 {
        self.iter().product()
    }

    /// Size of the innermost dimension; 1 for rank 0.
    pub fn last(&self) -> u32 {
        self.deref().last().copied().unwrap_or(1)
    }

    /// Size of the outermost dimension; 1 for rank 0.
    pub fn rows(&self) -> u32 {
        self.deref().first().copied().unwrap_or(1)
    }

    /// Elements between neighbours along each dimension.
    pub fn strides(&self) -> [u32; 8] {
        let mut strides = [0; 8];
        let mut step = 1;
        for (stride, size) in strides.iter_mut().zip(self.sizes).take(self.len()).rev() {
            *stride = step;
            step *= size.max(1);
        }
        strides
    }

    /// Turns a possibly negative dimension into an index; `None` when out of range.
    pub fn axis(&self, dim: i64) -> Option<usize> {
        let rank = (self.rank as i64).max(1);
        let dim = if dim < 0 { dim + rank } else { dim };
        (0..rank).contains(&dim).then_some(dim as usize)
    }

    /// The shape with `size` along `axis`.
    pub fn with(mut self, axis: usize, size: u32) -> Result<Dims> {
        match self.sizes.get_mut(axis) {
            Some(slot) if axis < self.rank as usize => *slot = size,
            _ => return Err(Error::shape(Self::NAME, format!("axis {axis} is outside {self}"))),
        }
        Dims::new(&self)
    }
}

impl Deref for Dims {
    type Target = [u32];
    fn deref(&self) -> &[u32] {
        self.sizes.get(..self.rank as usize).unwrap_or(&[])
    }
}

impl fmt::Display for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, size) in self.iter().enumerate() {
            write!(f, "{}{size}", if i > 0 { ", " } else { "" })?;
        }
        f.write_str("]")
    }
}

impl fmt::Debug for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_are_row_major() {
        let dims = Dims::new(&[2, 3, 4]).unwrap();
        assert_eq!(&dims.strides()[..3], &[12, 4, 1]);
        assert_eq!(dims.numel(), 24);
        assert_eq!(Dims::new(&[]).unwrap().numel(), 1);
    }

    #[test]
    fn too_many_elements_or_dimensions_are_refused() {
        assert!(Dims::new(&[1 << 16, 1 << 16]).is_err());
        assert!(Dims::new(&[0, u32::MAX]).is_err());
        assert!(Dims::new(&[1; 9]).is_err());
    }

    #[test]
    fn axes_count_from_both_ends() {
        let dims = Dims::new(&[2, 3]).unwrap();
        assert_eq!(dims.axis(-1), Some(1));
        assert_eq!(dims.axis(2), None);
        assert_eq!(dims.axis(-3), None);
        assert_eq!(Dims::new(&[]).unwrap().axis(-1), Some(0));
    }
}
