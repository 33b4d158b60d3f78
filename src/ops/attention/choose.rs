use crate::options::Options;

/// Keys of a cache for each part, so that short caches are not cut at all.
const SPLIT_MIN: u32 = 128;

/// Keys that a part takes at least: as many as are multiplied at a time.
pub(super) const PART_MIN: u32 = 64;

/// Workgroups that keep a device busy; more parts than that only cost merging.
const ENOUGH: u32 = 256;

/// How attention is cut into workgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Split {
    /// Rows (position, query head) of one workgroup, all on one head of the cache.
    pub rows: u32,
    /// Parts of the keys. It depends on the capacity of the cache, not on how full it is, so that a growing context
    /// changes nothing.
    pub splits: u32,
}

/// The cut for `seq` positions of `group` query heads on each of `heads_kv` heads of a cache with `capacity` rows.
pub fn choose(seq: u32, group: u32, heads_kv: u32, capacity: u32, options: &Options) -> Split {
    if let Some(forced) = options.force_attention {
        return forced;
    }
    let total = seq * group;
    let rows = match options.sdpa_query_tile {
        0 if total <= 8 => total.next_power_of_two(),
        0 => 16,
        tile => tile.next_power_of_two().min(32),
    };
    if total == 0 || total > 64 {
        return Split { rows, splits: 1 };
    }
    let workgroups = heads_kv.max(1) * total.div_ceil(rows);
    let wanted = ENOUGH.div_ceil(workgroups).min(capacity.div_ceil(SPLIT_MIN));
    Split { rows, splits: wanted.max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rows_on_a_long_cache_are_split() {
        let options = Options::default();
        assert_eq!(choose(1, 4, 8, 4096, &options), Split { rows: 4, splits: 32 });
        assert_eq!(choose(1, 3, 3, 100, &options), Split { rows: 4, splits: 1 });
        assert_eq!(choose(512, 4, 8, 4096, &options), Split { rows: 16, splits: 1 });
        assert_eq!(choose(0, 4, 8, 4096, &options), Split { rows: 1, splits: 1 });
        let tiled = Options { sdpa_query_tile: 32, ..Options::default() };
        assert_eq!(choose(512, 4, 8, 4096, &tiled), Split { rows: 32, splits: 1 });
    }
}
