//! The one table of the products: device and shape -> algorithm. Pure functions; tests force every entry.

use super::algorithm::{Algorithm, Dot, Form, GEMV_WORKGROUP, GemvQ4, Team, WeightLayout};
use crate::gpu::{Caps, CoopShape};

/// Rows up to which a GEMV beats tiles.
const GEMV_ROWS: u32 = 8;

/// Rows up to which tiles are thin.
pub(super) const THIN_ROWS: u32 = 32;

/// Workgroups that occupy a large device, and as many as do so well enough that slices of the sum do not pay.
const BUSY: u32 = 192;
const ENOUGH: u32 = 120;

/// Columns, and terms of a sum, from which on halves that are no 4-bit weights go through cooperative matrices.
const WORTH: u32 = 64;

/// Elements of the smallest tile that is worth more than slices.
const SMALL: u32 = 128 * 32;

/// Subgroups that keep every processor of a large device busy with memory.
const BUSY_SUBGROUPS: u32 = 1024;

/// Tiles of cooperative matrices of 16 x 16: rows, columns, rows and columns of one subgroup.
const COOP_16: [[u32; 4]; 4] = [[256, 64, 64, 64], [128, 64, 32, 64], [128, 32, 32, 32], [64, 32, 32, 32]];

/// Tiles of cooperative matrices of 8 x 8, which take more registers for the same sums.
const COOP_8: [[u32; 4]; 2] = [[64, 64, 32, 32], [64, 32, 32, 16]];

/// The shortest slice of a sum that is worth its own workgroups, and sums that are better sliced than cut into small tiles;
/// columns and sums below it are few.
const SLICE: u32 = 512;
const LONG: u32 = 4096;

/// Cooperative matrices as the kernels use them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Coop {
    /// Rows and columns of a matrix: 16 or 8.
    pub fragment: u32,
    /// Subgroup size.
    pub lanes: u32,
    /// True when sums may be f16 too.
    pub f16_sums: bool,
}

impl Coop {
    /// The matrices of the device, if it has any and room for the tiles; the largest first.
    pub fn of(caps: &Caps) -> Option<Coop> {
        let (low, high) = caps.subgroup?;
        if low != high || low * 8 > caps.max_invocations || caps.shared_bytes < 40 << 10 {
            return None;
        }
        let has = |side, f16_accumulate| caps.coop.contains(&CoopShape { m: side, n: side, k: side, f16_accumulate });
        let fragment = [16, 8].into_iter().find(|&side| has(side, false))?;
        Some(Coop { fragment, lanes: low, f16_sums: has(fragment, true) })
    }

    /// Tiles: rows, columns, rows and columns of one subgroup.
    pub fn tiles(self) -> &'static [[u32; 4]] {
        if self.fragment == 16 { &COOP_16 } else { &COOP_8 }
    }

    /// The tile of these rows and columns.
    pub fn tile(self, rows: u32, columns: u32) -> Option<[u32; 4]> {
        self.tiles().iter().copied().find(|tile| (tile[0], tile[1]) == (rows, columns))
    }
}

/// True when products go through cooperative matrices that cannot sum in f16.
pub fn only_f32_sums(caps: &Caps) -> bool {
    Coop::of(caps).is_some_and(|coop| !coop.f16_sums)
}

/// The algorithm for a product.
pub fn choose(form: &Form, caps: &Caps) -> Algorithm {
    let (m, n, k) = form.size;
    // Thin tiles are for 4-bit weights.
    let worth = form.group.is_some() || (m > THIN_ROWS && n >= WORTH && k >= WORTH);
    let coop = Coop::of(caps).filter(|_| form.halves && worth);
    // Two passes over few weights are shorter than the step that makes halves of more than four rows.
    let short = n < LONG && k < LONG;
    if m <= GEMV_ROWS && form.layout == WeightLayout::ByColumn && (m <= 4 || short || coop.is_none()) {
        return gemv_q4(form, caps).map_or_else(|| gemv(if m <= 1 { 1 } else { 4 }, n, k, caps), Algorithm::GemvQ4);
    }
    if let Some(coop) = coop {
        return coop_tile((m, n, k), coop);
    }
    match (m, n) {
        (0..=16, _) => Algorithm::Tile { rows: 16, columns: 64 },
        (_, 0..=32) => Algorithm::Tile { rows: 64, columns: 16 },
        _ if large_tile(caps) && m > 64 && m.div_ceil(128) * n.div_ceil(128) >= BUSY => {
            Algorithm::Tile { rows: 128, columns: 128 }
        }
        _ => Algorithm::Tile { rows: 64, columns: 64 },
    }
}

/// True when the device has the invocations and the shared memory of tiles of 128 x 128.
pub(super) fn large_tile(caps: &Caps) -> bool {
    !caps.cpu && caps.max_invocations >= 256 && caps.shared_bytes >= 32 << 10
}

fn coop_tile((m, n, k): (u32, u32, u32), coop: Coop) -> Algorithm {
    if m <= THIN_ROWS {
        let rows = if m <= 16 { 16 } else { 32 };
        let split = if n.div_ceil(16) >= 2 * BUSY { 2 } else { 8 };
        return Algorithm::Thin { rows, split };
    }
    let count = |tile: &[u32; 4]| m.div_ceil(tile[0]) * n.div_ceil(tile[1]);
    // At most an eighth of the rows may be padding, unless the tile is the smallest.
    let snug = |tile: &&[u32; 4]| u64::from(m.next_multiple_of(tile[0])) * 8 <= u64::from(m) * 9;
    let most = (k / SLICE).clamp(1, 8);
    let enough = |tile: &[u32; 4]| [1, 2, 4, 8].into_iter().find(|s| count(tile) * s >= BUSY && *s <= most);
    let tiles = coop.tiles();
    // Adding slices up costs a step: short sums take smaller tiles first.
    let alone = |tile: &&[u32; 4]| k < LONG && tile[0] * tile[1] >= SMALL && count(tile) >= ENOUGH;
    let whole = tiles.iter().filter(snug).find(alone).map(|tile| (tile, 1));
    let sliced = || tiles.iter().filter(snug).find_map(|tile| enough(tile).map(|slices| (tile, slices)));
    let (tile, slices) = whole.or_else(sliced).unwrap_or_else(|| {
        let tile = tiles.iter().rfind(snug).or(tiles.last()).unwrap_or(&COOP_16[0]);
        (tile, enough(tile).unwrap_or(1 << most.ilog2()))
    });
    Algorithm::Coop { rows: tile[0], columns: tile[1], slices }
}

/// The streaming GEMV, where subgroups have one size and runs of words share a scale.
fn gemv_q4(form: &Form, caps: &Caps) -> Option<GemvQ4> {
    let (m, n, k) = form.size;
    let lanes = q4_lanes(form.group?, k, 1, caps)?;
    let rows = if m <= 1 {
        1
    } else if m <= 2 {
        2
    } else {
        4
    };
    let two = q4_lanes(form.group?, k, 2, caps).is_some();
    let most_split = (caps.max_invocations / lanes).clamp(1, 8);
    // The widest team that leaves no more than a fourth of its invocations idle.
    let split = |words: u32, most: u32| {
        let idle = |s: u32| (k / 8).next_multiple_of(s * lanes * words) * 3 > (k / 8) * 4;
        [8, 4, 2].into_iter().find(|&s| s <= most.min(most_split) && !idle(s)).unwrap_or(1)
    };
    let most_columns = lanes / rows;
    if caps.cpu {
        // Barriers are dear, and there is no latency to hide.
        let columns = 8.min(most_columns);
        return Some(GemvQ4 { rows, columns, words: if two { 2 } else { 1 }, split: 1, blocks: 1, dot: Dot::F32 });
    }
    let planes = if caps.packed_dot { Dot::Planes } else { Dot::F32 };
    let blocks = n / (8 * BUSY_SUBGROUPS / 2);
    let (columns, words, split, blocks, dot) = match () {
        // Many columns: each team takes several blocks of them, to spend the reading of its activations well.
        () if rows == 1 && two && blocks >= 8 => (8, 2, split(2, 4), blocks.min(16), planes),
        () if rows == 1 && blocks >= 1 => (8, 1, split(1, 8), blocks.min(2), planes),
        () if rows == 1 && two && k >= 4096 => (4, 2, split(2, 8), 1, Dot::F32),
        () if rows == 4 && two && n >= 4096 => (8, 2, 1, 1, Dot::F32),
        () if rows == 4 && two && m > 4 => (8, 2, split(2, 2), 1, Dot::F32),
        () if n >= 4096 => (8, 1, split(1, 8), 1, Dot::F32),
        () if n >= 3072 => (4, 1, split(1, 8), 1, Dot::F32),
        () => (2, 1, split(1, 8), 1, Dot::F32),
    };
    Some(GemvQ4 { rows, columns: columns.min(most_columns), words, split, blocks, dot })
}

/// Subgroup size, where all subgroups have the same, words are whole and `words` of them share a scale.
pub(super) fn q4_lanes(group: u32, k: u32, words: u32, caps: &Caps) -> Option<u32> {
    let lanes = caps.subgroup.filter(|(low, high)| low == high && *low >= 4).map(|(low, _)| low)?;
    (k > 0 && group.is_multiple_of(8 * words) && k.is_multiple_of(8 * words)).then_some(lanes)
}

/// Wide teams where sums are long, many columns a team where there are enough to keep the device busy.
fn gemv(rows: u32, n: u32, k: u32, caps: &Caps) -> Algorithm {
    let most = if rows == 1 { 8 } else { 4 };
    let lanes = match caps.subgroup {
        Some((low, high)) if low == high && GEMV_WORKGROUP.is_multiple_of(low) => low,
        _ => return Algorithm::Gemv { rows, columns: most.min(4), team: Team::Workgroup },
    };
    let runs = (k / 32 / lanes).max(1);
    let enough = |columns: u32, split: u32| n.div_ceil(columns) * split >= BUSY_SUBGROUPS;
    let fits = |split: u32| split <= runs && split * lanes <= GEMV_WORKGROUP;
    let split = if n >= 64 * BUSY_SUBGROUPS { 1 } else { [4, 2].into_iter().find(|&s| fits(s)).unwrap_or(1) };
    let columns = [8, 4, 2].into_iter().find(|&c| c <= most && enough(c, split)).unwrap_or(most.min(2));
    Algorithm::Gemv { rows, columns, team: Team::Subgroups { lanes, split } }
}

/// Rows of a matrix padded to whole tiles of whatever height.
pub(super) fn coop_rows(rows: u32) -> u32 {
    rows.next_multiple_of(256)
}

/// Every algorithm that a device can be asked for.
pub fn variants(caps: &Caps) -> Vec<Algorithm> {
    let mut teams = vec![Team::Workgroup];
    let lanes = caps.subgroup.filter(|(low, high)| low == high).map(|(low, _)| low);
    if let Some(lanes) = lanes.filter(|&lanes| GEMV_WORKGROUP.is_multiple_of(lanes)) {
        let splits = [1, 2, 4].into_iter().filter(|split| split * lanes <= GEMV_WORKGROUP);
        teams.extend(splits.map(|split| Team::Subgroups { lanes, split }));
    }
    let blocks = [(1, 2), (1, 4), (1, 8), (4, 2), (4, 4)];
    let gemv = |&team: &Team| blocks.map(|(rows, columns)| Algorithm::Gemv { rows, columns, team });
    let mut all: Vec<Algorithm> = teams.iter().flat_map(gemv).collect();
    let q4 = [
        (1, 8, 2, 4, 2, Dot::Planes),
        (1, 2, 1, 8, 1, Dot::Planes),
        (2, 2, 2, 1, 3, Dot::Planes),
        (4, 2, 1, 2, 1, Dot::Planes),
        (1, 8, 2, 1, 16, Dot::F32),
        (1, 4, 2, 8, 1, Dot::F32),
        (1, 2, 1, 8, 1, Dot::F32),
        (2, 4, 1, 4, 1, Dot::F32),
        (4, 2, 1, 4, 1, Dot::F32),
    ];
    if let Some(lanes) = lanes {
        let gemv = |(rows, columns, words, split, blocks, dot)| GemvQ4 { rows, columns, words, split, blocks, dot };
        let fits = |g: &GemvQ4| g.rows * g.columns <= lanes && g.split * lanes <= caps.max_invocations;
        all.extend(q4.map(gemv).into_iter().filter(fits).map(Algorithm::GemvQ4));
    }
    if let Some(coop) = Coop::of(caps) {
        let tiles = coop.tiles().iter();
        all.extend(
            tiles.flat_map(|&[rows, columns, ..]| [1, 2].map(|slices| Algorithm::Coop { rows, columns, slices })),
        );
        all.extend([(16, 2), (16, 8), (32, 4)].map(|(rows, split)| Algorithm::Thin { rows, split }));
    }
    all.extend([(16, 64), (64, 16), (64, 64)].map(|(rows, columns)| Algorithm::Tile { rows, columns }));
    if large_tile(caps) {
        all.push(Algorithm::Tile { rows: 128, columns: 128 });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_follows_shape_and_device() {
        let minimal = Caps::minimal();
        let subgroups = Caps { subgroup: Some((32, 32)), max_invocations: 256, ..Caps::minimal() };
        let large = Caps { max_invocations: 1024, shared_bytes: 48 << 10, packed_dot: true, ..subgroups.clone() };
        let coop = Caps { coop: vec![CoopShape { m: 16, n: 16, k: 16, f16_accumulate: false }], ..large.clone() };
        let varying = Caps { subgroup: Some((8, 32)), ..Caps::minimal() };
        let q4 = |rows, columns, words, split, blocks, dot| {
            Algorithm::GemvQ4(GemvQ4 { rows, columns, words, split, blocks, dot })
        };
        let plain = |rows, columns| Algorithm::Gemv { rows, columns, team: Team::Workgroup };
        let tile = |rows, columns| Algorithm::Tile { rows, columns };
        let coop_tile = |rows, columns, slices| Algorithm::Coop { rows, columns, slices };
        let table = [
            (1, 128256, 2048, &large, q4(1, 8, 2, 4, 16, Dot::Planes)),
            (1, 8192, 2048, &large, q4(1, 8, 1, 8, 2, Dot::Planes)),
            (1, 8192, 2048, &subgroups, q4(1, 8, 1, 8, 2, Dot::F32)),
            (1, 3072, 2048, &large, q4(1, 4, 1, 8, 1, Dot::F32)),
            (1, 2048, 8192, &large, q4(1, 4, 2, 8, 1, Dot::F32)),
            (1, 2048, 2048, &large, q4(1, 2, 1, 8, 1, Dot::F32)),
            (1, 512, 2048, &subgroups, q4(1, 2, 1, 8, 1, Dot::F32)),
            (1, 576, 576, &subgroups, q4(1, 2, 1, 1, 1, Dot::F32)),
            (1, 2048, 2048, &minimal, plain(1, 4)),
            (1, 2048, 2048, &varying, plain(1, 4)),
            (2, 8192, 2048, &subgroups, q4(2, 8, 1, 8, 1, Dot::F32)),
            (3, 2048, 2048, &subgroups, q4(4, 2, 1, 8, 1, Dot::F32)),
            (8, 8192, 2048, &subgroups, q4(4, 8, 2, 1, 1, Dot::F32)),
            (9, 2048, 2048, &subgroups, tile(16, 64)),
            (100, 2048, 2048, &minimal, tile(64, 64)),
            (2048, 8192, 2048, &large, tile(128, 128)),
            (5, 8192, 2048, &coop, Algorithm::Thin { rows: 16, split: 2 }),
            (8, 2048, 2048, &coop, q4(4, 8, 2, 2, 1, Dot::F32)),
            (8, 2048, 8192, &coop, Algorithm::Thin { rows: 16, split: 8 }),
            (16, 2048, 2048, &coop, Algorithm::Thin { rows: 16, split: 8 }),
            (17, 2048, 2048, &coop, Algorithm::Thin { rows: 32, split: 8 }),
            (100, 8192, 2048, &coop, coop_tile(64, 32, 1)),
            (128, 2048, 2048, &coop, coop_tile(128, 32, 4)),
            (128, 8192, 2048, &coop, coop_tile(128, 64, 1)),
            (512, 2048, 2048, &coop, coop_tile(128, 64, 1)),
            (512, 2048, 8192, &coop, coop_tile(256, 64, 4)),
            (512, 8192, 2048, &coop, coop_tile(256, 64, 1)),
            (2000, 8192, 2048, &coop, coop_tile(256, 64, 1)),
            (2048, 512, 2048, &coop, coop_tile(128, 64, 1)),
        ];
        for (m, n, k, caps, expected) in table {
            let form = Form { size: (m, n, k), layout: WeightLayout::ByColumn, group: Some(64), halves: true };
            assert_eq!(choose(&form, caps), expected, "m {m} n {n} k {k}");
        }
        let by_term = Form { size: (1, 2048, 2048), layout: WeightLayout::ByTerm, group: None, halves: false };
        assert_eq!(choose(&by_term, &subgroups), tile(16, 64));
        assert_eq!(choose(&Form { size: (17, 8, 64), ..by_term }, &coop), tile(64, 16));
    }
}
