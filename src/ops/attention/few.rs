//! Attention of few rows: a team of invocations per key, parts of the keys side by side, and the new keys and values brought to
//! the cache by the same step where one workgroup has all rows of a head.

use super::rotary::{self, New};
use super::tiled::{Sight, merged};
use super::{Attention, choose};
use crate::error::Result;
use crate::gpu::Caps;
use crate::ops::{Bind, DynInt, Lower, Params};
use crate::shader::{Elem, Kernel};
use crate::source;

/// Rows of a workgroup at most.
const MOST_ROWS: u32 = 8;

/// Fours of floats of the sums of an invocation, and of the keys and of the values that it loads at once, at most.
const MOST_SUMS: u32 = 16;
const MOST_LOADS: u32 = 8;

/// Arrays of the rows of a workgroup in shared memory besides the sums of each subgroup: queries, new keys, new values.
const ARRAYS: u32 = 3;

/// A first row of tables that are not there.
const NOWHERE: DynInt = DynInt { slot: 0, base: 0 };

/// How a workgroup is made up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Few {
    /// Subgroup size, and subgroups.
    lanes: u32,
    subgroups: u32,
    /// Invocations that share a key, and fours of its dimensions that each has.
    team: u32,
    quads: u32,
    /// Rows, and workgroups that it takes to have all rows of a head of the cache.
    pub rows: u32,
    pub tiles: u32,
}

impl Few {
    /// For `seq` positions of `group` query heads of size `d`, if subgroups have one size.
    pub fn of(seq: u32, group: u32, d: u32, caps: &Caps) -> Option<Few> {
        let lanes = caps.subgroup.filter(|(low, high)| low == high).map(|(low, _)| low)?;
        let d4 = d / 4;
        let team = (d4.next_power_of_two() / 2).clamp(1, lanes);
        let quads = d4.div_ceil(team);
        // With one subgroup, and half a kibibyte for its maxima and weights.
        let room = caps.shared_bytes.saturating_sub(512) / (4 * d);
        let most = MOST_ROWS.min(MOST_SUMS / quads).min(room / (ARRAYS + 1)).max(1);
        let total = seq * group;
        let tiles = total.div_ceil(most).max(1);
        // One position is what there is all the time; other lengths share a variant.
        let rows = if seq == 1 { total.div_ceil(tiles) } else { most };
        let fits = |n: &u32| (n + ARRAYS) * rows <= room && n * lanes <= caps.max_invocations;
        let subgroups = [4, 2].into_iter().find(fits).unwrap_or(1);
        Some(Few { lanes, subgroups, team, quads, rows, tiles })
    }
}

/// How attention is computed here, and in how many parts of the keys, if it is.
pub(super) fn applies(lower: &Lower<'_>, a: &Attention) -> Option<(Few, u32)> {
    let group = a.heads_q / a.heads_kv;
    let plain = a.batch == 1 && a.mask.is_none() && a.sight == Sight::Causal && a.seq > 0;
    let few = Few::of(a.seq, group, a.d, lower.caps()).filter(|_| plain)?;
    let splits = choose::few(a.seq * group, few.tiles, a.heads_kv, a.capacity, lower.env.options)?;
    Some((few, splits))
}

/// True when one step can also rotate and append: every workgroup has all rows of its head, and the bindings suffice.
fn appends(few: Few, new: &New<'_>, caps: &Caps) -> bool {
    few.tiles == 1 && caps.max_storage_buffers >= 6 + new.tables().len() as u32
}

pub(super) fn lower(lower: &mut Lower<'_>, a: &Attention, new: &New<'_>, few: Few, splits: u32) -> Result<()> {
    let Few { lanes, subgroups, team, quads, rows, tiles } = few;
    let appends = appends(few, new, lower.caps());
    let a = if appends { *a } else { rotary::append(lower, a, new)? };
    let mut kernel = Kernel::new(source!("attention_few"))
        .set("LANES", lanes)
        .set("SUBGROUPS", subgroups)
        .set("D", a.d)
        .set("HEADS_Q", a.heads_q)
        .set("HEADS_KV", a.heads_kv)
        .set("CAPACITY", a.capacity)
        .set("SPLITS", splits)
        .set("POS_SLOT", a.pos.slot)
        .flag("ALONE", a.seq == 1)
        .flag("APPENDS", appends)
        .set("BQ", rows)
        .set("TEAM", team)
        .set("QUADS", quads)
        .set("AT_ONCE", (MOST_LOADS / quads).max(1))
        .reads("q", a.q.elem);
    let mut binds = vec![Bind::from(a.q)];
    let mut params = Params::new().u32(a.seq).u32(tiles).i32(a.pos.base).f32(a.scale);
    if appends {
        lower.bound(a.pos, a.seq, a.capacity, "position in the KV cache")?;
        kernel = kernel.link(source!("lib/few_append")).link(new.style());
        let inputs = [("k", new.k), ("v", new.v)].into_iter().chain(["cos", "sin"].into_iter().zip(new.tables()));
        for (name, x) in inputs {
            kernel = kernel.reads(name, x.elem);
            binds.push(x.into());
        }
        kernel = kernel.writes("k_cache", a.k_cache.elem).writes("v_cache", a.v_cache.elem);
        let (rotary, table, start) = new.rotation.map_or((0, 0, NOWHERE), |r| (r.rotary, r.table, r.start));
        // As the cache keeps it.
        let kept = if a.k_cache.elem == Elem::F16 { "f32(f16(x))" } else { "x" };
        kernel = kernel.function(format!("fn kept(x: f32) -> f32 {{ return {kept}; }}")).set("START_SLOT", start.slot);
        kernel = kernel.set("ROTARY", rotary).set("TABLE", table);
        params = params.u32(rotary).i32(start.base);
    } else {
        kernel = kernel.link(source!("lib/few_ready"));
        kernel = kernel.reads("k_cache", a.k_cache.elem).reads("v_cache", a.v_cache.elem);
    }
    binds.extend([Bind::from(a.k_cache), Bind::from(a.v_cache)]);
    let groups = u64::from(a.heads_kv) * u64::from(tiles) * u64::from(splits);
    merged(lower, a.out, splits, (kernel, binds), params, groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn teams_follow_head_size_and_subgroups() {
        let caps = |lanes| Caps { subgroup: Some((lanes, lanes)), max_invocations: 256, ..Caps::minimal() };
        let few = |lanes, subgroups, team, quads, rows, tiles| Few { lanes, subgroups, team, quads, rows, tiles };
        let of = |seq, group, d, lanes| Few::of(seq, group, d, &caps(lanes));
        assert_eq!(of(1, 4, 64, 32), Some(few(32, 4, 8, 2, 4, 1)));
        assert_eq!(of(2, 4, 64, 32), Some(few(32, 4, 8, 2, 8, 1)));
        assert_eq!(of(1, 9, 64, 32), Some(few(32, 4, 8, 2, 5, 2)));
        assert_eq!(of(1, 1, 4, 32), Some(few(32, 4, 1, 1, 1, 1)));
        assert_eq!(of(16, 4, 256, 32), Some(few(32, 2, 32, 2, 3, 22)));
        assert_eq!(of(1, 4, 256, 8), Some(few(8, 4, 8, 8, 2, 2)));
        assert_eq!(Few::of(1, 4, 64, &Caps { subgroup: Some((8, 32)), ..Caps::minimal() }), None);
    }
}
