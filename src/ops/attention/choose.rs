use crate::options::Options;

/// Keys of a cache for each part, so that short caches are not cut at all.
const SPLIT_MIN: u32 = 128;

/// Keys that a part of a tile's work takes at least: as many as are multiplied at a time.
pub(super) const PART_MIN: u32 = 64;

/// Workgroups that keep a device busy; more parts than that only cost merging.
const ENOUGH: u32 = 256;

/// Rows on a head of the cache up to which its keys are cut into parts.
const FEW: u32 = 64;

/// How attention is cut into workgroups. Parts of the keys depend on the capacity of the cache, not on how full it is, so that a
/// growing context changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cut {
    /// Few rows, a team of invocations per key.
    Few {
        /// Parts of the keys.
        splits: u32,
    },
    /// Tiles of rows, an invocation per key.
    Tile {
        /// Rows (position, query head) of one workgroup, all on one head of the cache.
        rows: u32,
        /// Parts of the keys.
        splits: u32,
    },
}

/// Parts of `keys` keys for so many workgroups without them.
fn parts(workgroups: u32, keys: u32) -> u32 {
    ENOUGH.div_ceil(workgroups.max(1)).min(keys.div_ceil(SPLIT_MIN)).max(1)
}

/// Parts of the keys for attention of `rows` rows on each of `heads` heads by teams of invocations, if it is the way.
pub(super) fn few(rows: u32, tiles: u32, heads: u32, keys: u32, options: &Options) -> Option<u32> {
    match options.force_attention {
        Some(Cut::Few { splits }) => Some(splits),
        Some(Cut::Tile { .. }) => None,
        None => (rows <= FEW && options.sdpa_query_tile == 0).then(|| parts(heads * tiles, keys)),
    }
}

/// Rows of a tile and parts of the keys for `seq` positions of `group` query heads on each of `teams` heads of `keys` keys.
pub(super) fn tile(seq: u32, group: u32, teams: u32, keys: u32, options: &Options) -> (u32, u32) {
    if let Some(Cut::Tile { rows, splits }) = options.force_attention {
        return (rows, splits);
    }
    let total = seq * group;
    let rows = match options.sdpa_query_tile {
        0 if total <= 8 => total.next_power_of_two(),
        0 => 16,
        tile => tile.next_power_of_two().min(32),
    };
    (rows, if total == 0 || total > FEW { 1 } else { parts(teams * total.div_ceil(rows), keys) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rows_on_a_long_cache_are_split() {
        let options = Options::default();
        assert_eq!(few(4, 1, 8, 4096, &options), Some(32));
        assert_eq!(few(3, 1, 3, 100, &options), Some(1));
        assert_eq!(few(65, 9, 8, 4096, &options), None);
        assert_eq!(tile(1, 4, 8, 4096, &options), (4, 32));
        assert_eq!(tile(1, 3, 3, 100, &options), (4, 1));
        assert_eq!(tile(512, 4, 8, 4096, &options), (16, 1));
        assert_eq!(tile(0, 4, 8, 4096, &options), (1, 1));
        let tiled = Options { sdpa_query_tile: 32, ..Options::default() };
        assert_eq!(tile(512, 4, 8, 4096, &tiled), (32, 1));
        assert_eq!(few(4, 1, 8, 4096, &tiled), None);
    }
}
