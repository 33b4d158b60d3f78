use crate::gpu::Caps;

/// How one matrix product is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// A team of invocations per few columns, the sum split among them: for few rows.
    Gemv {
        /// Rows computed together: 1 or 4.
        rows: u32,
        /// Columns that a team computes together.
        columns: u32,
        /// Who shares one sum.
        team: Team,
    },
    /// A tile of rows and columns per workgroup, staged in shared memory.
    Tile {
        /// Rows of a tile.
        rows: u32,
        /// Columns of a tile.
        columns: u32,
    },
}

/// The invocations that share one sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Team {
    /// `split` subgroups of `lanes` invocations.
    Subgroups {
        /// Subgroup size.
        lanes: u32,
        /// Subgroups of a team.
        split: u32,
    },
    /// The whole workgroup, where subgroups are missing or vary in size.
    Workgroup,
}

impl Team {
    /// Invocations of a team.
    pub(super) fn size(self) -> u32 {
        match self {
            Team::Subgroups { lanes, split } => lanes * split,
            Team::Workgroup => GEMV_WORKGROUP,
        }
    }
}

/// Workgroup size of the GEMV.
pub(super) const GEMV_WORKGROUP: u32 = 128;

/// Rows up to which the GEMV beats tiles.
const GEMV_ROWS: u32 = 8;

/// Subgroups that keep every processor of a large device busy.
const BUSY: u32 = 1024;

/// Where the weights of a product lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightLayout {
    /// One row per column of the result: sums run along memory.
    ByColumn,
    /// One row per term of the sum.
    ByTerm,
}

/// The algorithm for an `m` x `n` product with sums of `k` terms.
pub fn choose(m: u32, n: u32, k: u32, layout: WeightLayout, caps: &Caps) -> Algorithm {
    if m <= GEMV_ROWS && layout == WeightLayout::ByColumn {
        return gemv(if m <= 1 { 1 } else { 4 }, n, k, caps);
    }
    match (m, n) {
        (0..=16, _) => Algorithm::Tile { rows: 16, columns: 64 },
        (_, 0..=32) => Algorithm::Tile { rows: 64, columns: 16 },
        _ => Algorithm::Tile { rows: 64, columns: 64 },
    }
}

/// Wide teams where sums are long, many columns a team where there are enough to keep the device busy.
fn gemv(rows: u32, n: u32, k: u32, caps: &Caps) -> Algorithm {
    let most = if rows == 1 { 8 } else { 4 };
    let lanes = match caps.subgroup {
        Some((low, high)) if low == high && GEMV_WORKGROUP.is_multiple_of(low) => low,
        _ => return Algorithm::Gemv { rows, columns: most.min(4), team: Team::Workgroup },
    };
    let runs = (k / 32 / lanes).max(1);
    let enough = |columns: u32, split: u32| n.div_ceil(columns) * split >= BUSY;
    let fits = |split: u32| split <= runs && split * lanes <= GEMV_WORKGROUP;
    let split = if n >= 64 * BUSY { 1 } else { [4, 2].into_iter().find(|&s| fits(s)).unwrap_or(1) };
    let columns = [8, 4, 2].into_iter().find(|&c| c <= most && enough(c, split)).unwrap_or(most.min(2));
    Algorithm::Gemv { rows, columns, team: Team::Subgroups { lanes, split } }
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
        let gemv = |rows, columns, lanes, split| Algorithm::Gemv { rows, columns, team: Team::Subgroups { lanes, split } };
        let plain = |rows, columns| Algorithm::Gemv { rows, columns, team: Team::Workgroup };
        let table = [
            (1, 128256, 2048, column, &subgroups, gemv(1, 8, 32, 1)),
            (1, 8192, 2048, column, &subgroups, gemv(1, 8, 32, 2)),
            (1, 2048, 8192, column, &subgroups, gemv(1, 8, 32, 4)),
            (1, 2048, 2048, column, &subgroups, gemv(1, 4, 32, 2)),
            (1, 512, 2048, column, &subgroups, gemv(1, 2, 32, 2)),
            (1, 2048, 2048, column, &minimal, plain(1, 4)),
            (1, 2048, 2048, column, &varying, plain(1, 4)),
            (3, 2048, 2048, column, &subgroups, gemv(4, 4, 32, 2)),
            (8, 8192, 2048, column, &subgroups, gemv(4, 4, 32, 2)),
            (9, 2048, 2048, column, &subgroups, Algorithm::Tile { rows: 16, columns: 64 }),
            (1, 2048, 2048, WeightLayout::ByTerm, &subgroups, Algorithm::Tile { rows: 16, columns: 64 }),
            (17, 8, 64, column, &subgroups, Algorithm::Tile { rows: 64, columns: 16 }),
            (100, 2048, 2048, column, &minimal, Algorithm::Tile { rows: 64, columns: 64 }),
        ];
        for (m, n, k, layout, caps, expected) in table {
            assert_eq!(choose(m, n, k, layout, caps), expected, "m {m} n {n} k {k} {layout:?}");
        }
    }
}
