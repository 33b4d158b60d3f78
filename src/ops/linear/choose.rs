use crate::gpu::{Caps, CoopShape};

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
    /// A tile of rows and columns per workgroup, multiplied in halves by cooperative matrices and summed in f32.
    Coop {
        /// Rows of a tile.
        rows: u32,
        /// Columns of a tile.
        columns: u32,
    },
    /// A tile of rows and columns per workgroup, staged in shared memory.
    Tile {
        /// Rows of a tile.
        rows: u32,
        /// Columns of a tile.
        columns: u32,
    },
}

impl Algorithm {
    /// Rows and columns of the result that one workgroup computes.
    pub fn tile(self) -> (u32, u32) {
        match self {
            Algorithm::Gemv { rows, columns, team } => (rows, columns * GEMV_WORKGROUP / team.size()),
            Algorithm::Coop { rows, columns } | Algorithm::Tile { rows, columns } => (rows, columns),
        }
    }
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

/// Tiles that occupy a large device.
const ENOUGH_TILES: u32 = 120;

/// Tiles of cooperative matrices: rows, columns, and the columns of one subgroup, which has 32 rows.
pub(super) const COOP_TILES: [(u32, u32, u32); 4] = [(128, 128, 64), (128, 64, 32), (64, 64, 32), (32, 64, 16)];

/// Subgroup size of the device if it multiplies 16 x 16 x 16 halves into f32 and has room for the tiles.
pub(super) fn coop_lanes(caps: &Caps) -> Option<u32> {
    let shape = |s: &CoopShape| (s.m, s.n, s.k, s.f16_accumulate) == (16, 16, 16, false);
    match caps.subgroup {
        Some((low, high)) if low == high && low * 8 <= caps.max_invocations && caps.shared_bytes >= 45056 => {
            caps.coop.iter().any(shape).then_some(low)
        }
        _ => None,
    }
}

/// The algorithm for an `m` x `n` product with sums of `k` terms; `halves` allows factors in f16.
pub fn choose((m, n, k): (u32, u32, u32), layout: WeightLayout, halves: bool, caps: &Caps) -> Algorithm {
    if m <= GEMV_ROWS && layout == WeightLayout::ByColumn {
        return gemv(if m <= 1 { 1 } else { 4 }, n, k, caps);
    }
    if halves && coop_lanes(caps).is_some() {
        let tiles = |&(rows, columns, _): &(u32, u32, u32)| m.div_ceil(rows) * n.div_ceil(columns);
        let fits = |tile: &&(u32, u32, u32)| tiles(tile) >= ENOUGH_TILES && tile.0 < 2 * m;
        let fitting = COOP_TILES.iter().find(fits);
        let (rows, columns, ..) = *fitting.unwrap_or(&COOP_TILES[3]);
        return Algorithm::Coop { rows, columns };
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

/// Every algorithm that a device can be asked for.
pub fn variants(caps: &Caps) -> Vec<Algorithm> {
    let mut teams = vec![Team::Workgroup];
    if let Some((lanes, _)) = caps.subgroup.filter(|(low, high)| low == high && GEMV_WORKGROUP.is_multiple_of(*low)) {
        let splits = [1, 2, 4].into_iter().filter(|split| split * lanes <= GEMV_WORKGROUP);
        teams.extend(splits.map(|split| Team::Subgroups { lanes, split }));
    }
    let blocks = [(1, 2), (1, 4), (1, 8), (4, 2), (4, 4)];
    let gemv = |&team: &Team| blocks.map(|(rows, columns)| Algorithm::Gemv { rows, columns, team });
    let mut all: Vec<Algorithm> = teams.iter().flat_map(gemv).collect();
    if coop_lanes(caps).is_some() {
        all.extend(COOP_TILES.map(|(rows, columns, _)| Algorithm::Coop { rows, columns }));
    }
    all.extend([(16, 64), (64, 16), (64, 64)].map(|(rows, columns)| Algorithm::Tile { rows, columns }));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_follows_shape_and_device() {
        let minimal = Caps::minimal();
        let subgroups = Caps { subgroup: Some((32, 32)), ..Caps::minimal() };
        let coop = Caps {
            coop: vec![CoopShape { m: 16, n: 16, k: 16, f16_accumulate: false }],
            shared_bytes: 48 << 10,
            ..subgroups.clone()
        };
        let varying = Caps { subgroup: Some((8, 32)), ..Caps::minimal() };
        let column = WeightLayout::ByColumn;
        let gemv =
            |rows, columns, lanes, split| Algorithm::Gemv { rows, columns, team: Team::Subgroups { lanes, split } };
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
            (9, 8192, 2048, column, &coop, Algorithm::Coop { rows: 32, columns: 64 }),
            (17, 2048, 2048, column, &coop, Algorithm::Coop { rows: 32, columns: 64 }),
            (512, 2048, 2048, column, &coop, Algorithm::Coop { rows: 128, columns: 64 }),
            (512, 8192, 2048, column, &coop, Algorithm::Coop { rows: 128, columns: 128 }),
            (100, 2048, 2048, column, &minimal, Algorithm::Tile { rows: 64, columns: 64 }),
        ];
        for (m, n, k, layout, caps, expected) in table {
            assert_eq!(choose((m, n, k), layout, true, caps), expected, "m {m} n {n} k {k} {layout:?}");
        }
    }
}
