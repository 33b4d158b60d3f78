use super::few::Few;
use crate::gpu::Caps;
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

/// The cut for `seq` positions of `group` query heads of size `d` on each of `heads_kv` heads of a cache with `capacity` rows.
pub fn choose((seq, group, d): (u32, u32, u32), heads_kv: u32, capacity: u32, caps: &Caps, options: &Options) -> Cut {
    let few = Few::of(seq, group, d, caps);
    if let Some(forced) = options.force_attention.filter(|cut| few.is_some() || matches!(cut, Cut::Tile { .. })) {
        return forced;
    }
    let total = seq * group;
    let splits = |tiles: u32| ENOUGH.div_ceil(heads_kv.max(1) * tiles).min(capacity.div_ceil(SPLIT_MIN)).max(1);
    let rows = match options.sdpa_query_tile {
        0 if total <= 8 => total.next_power_of_two(),
        0 => 16,
        tile => tile.next_power_of_two().min(32),
    };
    match few.filter(|_| options.sdpa_query_tile == 0) {
        _ if total == 0 || total > FEW => Cut::Tile { rows, splits: 1 },
        Some(few) => Cut::Few { splits: splits(few.tiles) },
        None => Cut::Tile { rows, splits: splits(total.div_ceil(rows)) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rows_on_a_long_cache_are_split() {
        let options = Options::default();
        let subgroups = Caps { subgroup: Some((32, 32)), ..Caps::minimal() };
        let cut = |seq, group, heads_kv, capacity, caps| choose((seq, group, 64), heads_kv, capacity, caps, &options);
        let minimal = Caps::minimal();
        assert_eq!(cut(1, 4, 8, 4096, &subgroups), Cut::Few { splits: 32 });
        assert_eq!(cut(1, 4, 8, 4096, &minimal), Cut::Tile { rows: 4, splits: 32 });
        assert_eq!(cut(1, 3, 3, 100, &minimal), Cut::Tile { rows: 4, splits: 1 });
        assert_eq!(cut(512, 4, 8, 4096, &subgroups), Cut::Tile { rows: 16, splits: 1 });
        assert_eq!(cut(0, 4, 8, 4096, &minimal), Cut::Tile { rows: 1, splits: 1 });
        let tiled = Options { sdpa_query_tile: 32, ..Options::default() };
        assert_eq!(choose((512, 4, 64), 8, 4096, &subgroups, &tiled), Cut::Tile { rows: 32, splits: 1 });
    }
}
