//! Attention by tiles of queries and a running maximum: nothing as large as queries times keys is ever stored.

use super::{WG, choose};
use crate::error::Result;
use crate::ops::layout::{Layout, padded};
use crate::ops::rows::SOFTWARE_TURNS;
use crate::ops::{Bind, DynInt, Lower, Operand, Params};
use crate::shader::{Access, Kernel, RoleType};
use crate::source;

/// Fours of a result row times rows of a workgroup that invocations have registers for.
const FOURS: u32 = 1024;

/// Which keys a query sees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Sight {
    /// Those up to its own position.
    Causal,
    /// All.
    Full,
}

/// What is added to the scores, and its distances, in elements, along queries and keys.
#[derive(Clone, Copy)]
pub(super) struct Mask {
    pub x: Operand,
    pub row: u32,
    pub key: u32,
}

/// Attention of teams: `group` query heads that share one head of the keys.
pub(super) struct Tiled {
    /// q, k, v and out.
    pub tensors: [Operand; 4],
    pub mask: Option<Mask>,
    pub sight: Sight,
    /// Loops over the teams; distances in q, k, v and out count rows of a head, those in the mask elements.
    pub teams: Layout,
    pub group: u32,
    /// Queries of a head.
    pub seq: u32,
    /// Keys there are.
    pub keys: u32,
    /// Position of the first query. With full sight, `pos + seq` keys count.
    pub pos: DynInt,
    pub scale: f32,
    /// Rows from a query to the next one, and from a key to the next one.
    pub steps: [u32; 2],
}

pub(super) fn run(lower: &mut Lower<'_>, a: &Tiled) -> Result<()> {
    let [q, k, v, out] = a.tensors;
    let (d, width) = (q.dims.last(), out.dims.last());
    let fours = d.max(width).div_ceil(4);
    if d == 0 || fours > FOURS {
        return Err(lower.unsupported(format!("heads of {d} and {width}, expected 1 to {}", 4 * FOURS)));
    }
    let teams: u32 = a.teams.sizes.iter().product();
    let (rows, splits) = choose::tile(a.seq, a.group, teams, a.keys, lower.env.options);
    let rows = rows.min(1 << (FOURS / fours).ilog2());
    let least = if lower.caps().cpu { software_parts(a.keys, d.div_ceil(4), width.div_ceil(4), rows) } else { 1 };
    // A workgroup merges the parts of a row.
    let most = lower.caps().max_invocations.min(lower.caps().max_size_x);
    let merges = width.div_ceil(4).next_power_of_two() <= most;
    if !merges && least > 1 {
        return Err(lower.unsupported(format!("{} keys and values of {width} on a software adapter", a.keys)));
    }
    let splits = if merges { splits.max(least) } else { 1 };
    let tiles = (a.seq * a.group).div_ceil(rows);
    let mut kernel = Kernel::new(source!("attention"))
        .link(source!("lib/index"))
        .link(match a.sight {
            Sight::Causal => source!("lib/visible_causal"),
            Sight::Full => source!("lib/visible_all"),
        })
        .set("WG", WG)
        .set("D4", d.div_ceil(4))
        .set("V4", width.div_ceil(4))
        .set("BQ", rows)
        .set("SPLITS", splits);
    let mut binds = Vec::new();
    for (name, x, width) in [("q", q, d), ("k", k, d), ("v", v, width)] {
        kernel = kernel.reads(name, x.elem).function(row_reader(name, width));
        binds.push(x.into());
    }
    kernel = match a.mask {
        None => kernel.link(source!("lib/score_plain")),
        Some(mask) => {
            binds.push(mask.x.into());
            kernel.link(source!("lib/score_masked")).reads("mask", mask.x.elem)
        }
    };
    let (mask_row, mask_key) = a.mask.map_or((0, 0), |mask| (mask.row, mask.key));
    let params = Params::new().u32(teams).u32(a.group).u32(a.seq).u32(a.keys).dynamic(a.pos).f32(a.scale);
    let params = params.u32(tiles).u32(choose::PART_MIN).u32(a.steps[0]).u32(a.steps[1]);
    let params = params.u32(mask_row).u32(mask_key).u32(a.teams.sizes.len() as u32);
    let params = (0..5).fold(params.words8(padded(&a.teams.sizes)), |p, x| p.words8(padded(a.teams.of(x))));
    let groups = u64::from(teams) * u64::from(tiles) * u64::from(splits);
    merged(lower, out, splits, (kernel, binds), params, groups)
}

/// Parts of the keys of which a software adapter finishes each: what shaders/attention.wgsl loops over for [`WG`] keys at a time.
fn software_parts(keys: u32, d4: u32, v4: u32, rows: u32) -> u32 {
    let at_once = [4, 2, 1].into_iter().find(|n| d4.is_multiple_of(*n)).unwrap_or(1);
    let scores = d4 / at_once * (1 + rows) + 3 * rows;
    let turns = scores + 2 * (rows + WG / rows) + (rows * v4).div_ceil(WG) * 17 + 1;
    let at_a_time = (SOFTWARE_TURNS / u64::from(turns)).max(1) as u32;
    keys.div_ceil(WG).div_ceil(at_a_time)
}

/// The step that attends to `splits` parts of the keys, and the one that merges them where they are several.
pub(super) fn merged(
    lower: &mut Lower<'_>,
    out: Operand,
    splits: u32,
    (kernel, mut binds): (Kernel, Vec<Bind>),
    params: Params,
    groups: u64,
) -> Result<()> {
    if splits == 1 {
        binds.push(out.into());
        let kernel = kernel.link(source!("lib/attention_direct")).writes("out", out.elem);
        let kernel = kernel.function(row_writer(out.dims.last()));
        return lower.step(kernel, &binds, params, groups);
    }
    let fours = out.dims.last().div_ceil(4);
    let rows = out.dims.numel() / out.dims.last().max(1);
    let parts = lower.scratch(u64::from(rows) * u64::from(splits) * u64::from(fours + 1) * 16);
    binds.push(parts);
    let kernel = kernel.link(source!("lib/attention_partial"));
    let kernel = kernel.role("parts", RoleType::Array("vec4<f32>"), Access::Write);
    lower.step(kernel, &binds, params, groups)?;
    let wide = fours.next_power_of_two();
    let merge = Kernel::new(source!("attention_merge"))
        .set("WG", wide.max(128))
        .set("WIDE", wide)
        .set("V4", fours)
        .array("parts", "vec4<f32>")
        .writes("out", out.elem)
        .function(row_writer(out.dims.last()));
    lower.step(merge, &[parts, out.into()], Params::new().u32(rows).u32(splits), u64::from(rows))
}

/// `row_NAME(row, d)`: elements 4 d to 4 d + 3 of a row of `width` elements, zeros beyond its end.
fn row_reader(name: &str, width: u32) -> String {
    let body = if width.is_multiple_of(4) {
        format!("return load4_{name}(row * {}u + d);", width / 4)
    } else {
        let element = format!("x[j] = load_{name}(row * {width}u + d * 4u + j);");
        let each = format!("for (var j = 0u; j < min(4u, {width}u - d * 4u); j++)");
        format!("var x = vec4<f32>(); {each} {{ {element} }} return x;")
    };
    format!("fn row_{name}(row: u32, d: u32) -> vec4<f32> {{ {body} }}")
}

/// `row_out(row, d, x)`: writes what [`row_reader`] reads.
fn row_writer(width: u32) -> String {
    let body = if width.is_multiple_of(4) {
        format!("store4_out(row * {}u + d, x);", width / 4)
    } else {
        let each = format!("for (var j = 0u; j < min(4u, {width}u - d * 4u); j++)");
        format!("{each} {{ store_out(row * {width}u + d * 4u + j, x[j]); }}")
    };
    format!("fn row_out(row: u32, d: u32, x: vec4<f32>) {{ {body} }}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_software_adapter_gets_parts_that_it_finishes() {
        assert_eq!(software_parts(4096, 16, 16, 16), 1);
        assert_eq!(software_parts(65536, 16, 16, 16), 4);
        assert_eq!(software_parts(65536, 1024, 1024, 1), 15);
    }
}
