//! Copies that exchange two dimensions: neighbours in the operand are far apart in the result, and the other way round. Tiles
//! that turn in shared memory read and write words side by side.

use super::copy::Walk;
use super::layout::{Layout, padded};
use super::{Lower, Operand, Params};
use crate::error::Result;
use crate::shader::{Access, Kernel, RoleType};
use crate::source;

/// Elements along both exchanged dimensions below which a tile would be mostly empty.
const LEAST: u32 = 16;
/// Words of a tile along the operand's neighbours.
const ACROSS: u32 = 32;
/// Loops besides the two, at most.
const MAX_OUTER: usize = 8;
/// Invocations of a workgroup.
const WG: u32 = 256;

/// Two loops of a copy that change places, and the loops around them; distances in words.
#[derive(Debug, PartialEq)]
pub(super) struct Transpose {
    /// Elements along the operand's neighbours, and along those of the result.
    across: u32,
    down: u32,
    /// From one of `down` to the next in the operand, and from one of `across` to the next in the result.
    stride: u32,
    pitch: u32,
    /// The loops around, and how far the operand and the result move along them.
    sizes: Vec<u32>,
    from: Vec<u32>,
    to: Vec<u32>,
}

/// A loop of a copy: its turns, and how far the operand and the result move along it.
struct Loop {
    size: u32,
    from: u32,
    to: u32,
}

impl Transpose {
    /// The exchange in a copy along `layout`, if it is one, its tiles would be full and words would be whole; `fixed` are
    /// distances in the operand besides.
    pub fn of(layout: &Layout, fixed: &[u32], element: u32) -> Option<Transpose> {
        let per = 4 / element;
        let inner = |axis: usize| layout.sizes.iter().skip(axis + 1).fold(1, |n: u32, &size| n.wrapping_mul(size));
        let loops = layout.sizes.iter().zip(layout.of(0)).enumerate();
        let mut loops: Vec<Loop> = loops.map(|(axis, (&size, &from))| Loop { size, from, to: inner(axis) }).collect();
        let last = loops.pop()?;
        let along = loops.remove(loops.iter().position(|l| l.from == 1)?);
        let words = |stride: u32| ((stride as i32) / (per as i32)) as u32;
        let whole = |n: u32| n.is_multiple_of(per);
        let froms = || loops.iter().map(|l| l.from).chain(fixed.iter().copied());
        let aligned = last.from != 0 && whole(last.size) && whole(last.from) && froms().all(whole);
        let fits = along.size >= LEAST && last.size >= LEAST && loops.len() <= MAX_OUTER;
        (aligned && fits).then(|| Transpose {
            across: along.size,
            down: last.size,
            stride: words(last.from),
            pitch: along.to / per,
            sizes: loops.iter().map(|l| l.size).collect(),
            from: loops.iter().map(|l| words(l.from)).collect(),
            to: loops.iter().map(|l| l.to / per).collect(),
        })
    }

    /// Fills `out` with the elements of `x` along `walk`.
    pub fn step(&self, lower: &mut Lower<'_>, (x, out): (Operand, Operand), walk: &Walk) -> Result<()> {
        let element = x.elem.size();
        let per = 4 / element;
        let tile = (ACROSS * per).min(64);
        let (tiles_a, tiles_l) = (self.across.div_ceil(ACROSS * per), self.down.div_ceil(tile));
        let outer: u32 = self.sizes.iter().product();
        let words = |n: u32| ((n as i32) / (per as i32)) as u32;
        let base = walk.offset.wrapping_add((walk.start.base as u32).wrapping_mul(walk.pace));
        let params = Params::new().u32(outer).u32(self.sizes.len() as u32).u32(words(base)).u32(walk.start.slot);
        let params = params.u32(words(walk.pace)).u32(self.across).u32(self.down).u32(self.stride);
        let params = params.u32(self.pitch).u32(tiles_a).u32(tiles_l).words8(padded(&self.sizes));
        let params = params.words8(padded(&self.from)).words8(padded(&self.to));
        let threads = lower.caps().max_invocations.min(lower.caps().max_size_x).clamp(1, WG);
        let kernel = Kernel::new(source!("transpose")).array("x", "u32");
        let kernel = kernel.role("out", RoleType::Array("u32"), Access::Write).link(source!("lib/index"));
        let kernel = kernel.link(source!("lib/parts")).set("BITS", element * 8).set("DOWN", tile).set("WG", threads);
        let groups = u64::from(outer) * u64::from(tiles_a) * u64::from(tiles_l);
        lower.step(kernel, &[x.into(), out.into()], params, groups)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sizes: &[u32], strides: &[u32], fixed: &[u32], element: u32) -> Option<Transpose> {
        Transpose::of(&Layout::new(sizes, &[strides.to_vec()]), fixed, element)
    }

    #[test]
    fn an_exchange_is_two_loops_and_those_around_them() {
        let found = of(&[2, 40, 50, 64], &[128_000, 50, 1, 2000], &[0], 4).unwrap();
        assert_eq!((found.across, found.down, found.stride, found.pitch), (2000, 64, 2000, 64));
        assert_eq!((found.sizes, found.from, found.to), (vec![2], vec![128_000], vec![128_000]));
        let found = of(&[30, 16, 20], &[1, 640, 30], &[60], 2).unwrap();
        assert_eq!((found.across, found.down, found.stride, found.pitch), (30, 20, 15, 160));
        assert_eq!((found.sizes, found.from, found.to), (vec![16], vec![320], vec![10]));
    }

    #[test]
    fn other_copies_are_none() {
        assert_eq!(of(&[40, 50], &[50, 1], &[0], 4), None, "a plain run");
        assert_eq!(of(&[40, 3], &[1, 40], &[0], 4), None, "few channels");
        assert_eq!(of(&[40, 51], &[1, 40], &[0], 2), None, "words of the result are not whole");
        assert_eq!(of(&[40, 50], &[1, 41], &[0], 2), None, "words of the operand are not whole");
        assert_eq!(of(&[40, 50], &[1, 40], &[1], 2), None, "it begins inside a word");
        assert_eq!(of(&[40, 50], &[1, 0], &[0], 4), None, "a repetition");
    }
}
