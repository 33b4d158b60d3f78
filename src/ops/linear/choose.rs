use crate::gpu::Caps;

/// How one matrix product is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// A team of invocations per four columns, the sum split among them: for few rows.
    Gemv {
        /// Rows computed together: 1, 2, 4 or 8.
        rows: u32,
        /// Invocations of a team: the subgroup size, or the whole workgroup where subgroups are missing or vary.
        lanes: Lanes,
    },
    /// A tile of rows and columns per workgroup, staged in shared memory.
    Tile {
        /// Rows of a tile.
        rows: u32,
        /// Columns of a tile.
        columns: u32,
    },
}

/// Who shares one sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lanes {
    /// A subgroup of this size.
    Subgroup(u32),
    /// The workgroup.
    Workgroup,
}

/// Workgroup size of the GEMV.
pub(super) const GEMV_WORKGROUP: u32 = 64;

/// Where the weights of a product lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightLayout {
    /// One row per column of the result: sums run along memory.
    ByColumn,
    /// One row per term of the sum.
    ByTerm,
}

/// The algorithm for an `m` x `n` product.
pub fn choose(m: u32, n: u32, layout: WeightLayout, caps: &Caps) -> Algorithm {
    if m <= 8 && layout == WeightLayout::ByColumn {
        let lanes = match caps.subgroup {
            Some((low, high)) if low == high && GEMV_WORKGROUP.is_multiple_of(low) => Lanes::Subgroup(low),
            _ => Lanes::Workgroup,
        };
        return Algorithm::Gemv { rows: m.max(1).next_power_of_two(), lanes };
    }
    match (m, n) {
        (0..=16, _) => Algorithm::Tile { rows: 16, columns: 64 },
        (_, 0..=32) => Algorithm::Tile { rows: 64, columns: 16 },
        _ => Algorithm::Tile { rows: 64, columns: 64 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_follows_shape_and_device() {
        let minimal = Caps::minimal();
        let subgroups = Caps { subgroup: Some((32, 32)), ..Caps::minimal() };
        let varying = Caps { subgroup: Some((8, 32)), ..Caps::minimal() };
        let column = WeightLayout::ByColumn;
        let gemv = |rows, lanes| Algorithm::Gemv { rows, lanes };
        let table = [
            (1, 2048, column, &subgroups, gemv(1, Lanes::Subgroup(32))),
            (1, 2048, column, &minimal, gemv(1, Lanes::Workgroup)),
            (1, 2048, column, &varying, gemv(1, Lanes::Workgroup)),
            (3, 2048, column, &subgroups, gemv(4, Lanes::Subgroup(32))),
            (8, 2048, column, &subgroups, gemv(8, Lanes::Subgroup(32))),
            (9, 2048, column, &subgroups, Algorithm::Tile { rows: 16, columns: 64 }),
            (1, 2048, WeightLayout::ByTerm, &subgroups, Algorithm::Tile { rows: 16, columns: 64 }),
            (100, 8, column, &subgroups, Algorithm::Tile { rows: 64, columns: 16 }),
            (100, 2048, column, &minimal, Algorithm::Tile { rows: 64, columns: 64 }),
        ];
        for (m, n, layout, caps, expected) in table {
            assert_eq!(choose(m, n, layout, caps), expected, "m {m} n {n} {layout:?}");
        }
    }
}
