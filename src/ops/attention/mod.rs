//! Attention over a KV cache, and the writes to the cache.

mod choose;
mod coop;
mod few;
mod rotary;

pub use choose::{Cut, choose};
pub use rotary::{INTERNAL, ROTARY};

use few::Few;
use rotary::New;

use super::{Bind, DynInt, FLOATS, Lower, Op, Operand, Params};
use crate::error::Result;
use crate::graph::Value;
use crate::shader::{Access, Kernel, RoleType};
use crate::source;

/// Attention that first writes its keys and values to the cache: `(q, k, v, K cache, V cache, position, length, mask, dropout,
/// causal, scale) -> out`.
pub const SDPA: &str = "sdpa_with_kv_cache.default";

/// Rows of this family.
pub const OPS: &[Op] = &[
    Op::new(SDPA, FLOATS, sdpa_with_kv_cache)
        .writes(&[3, 4])
        .notes("causal; batch 1; head size a multiple of 4 up to 256"),
    Op::new("update_cache.default", FLOATS, update_cache).writes(&[1]).notes("batch 1"),
];

const WG: u32 = 64;

/// Rows, heads and head size of a tensor `[1.., S, H, D]`.
fn shape(lower: &Lower<'_>, x: Operand, what: &str) -> Result<[u32; 3]> {
    match x.dims[..] {
        [ref batch @ .., s, h, d] if batch.iter().all(|&n| n == 1) && x.elem.is_float() => Ok([s, h, d]),
        _ => Err(lower.refuse(format!("{what} is {} {}, expected numbers of shape [1, S, H, D]", x.dtype, x.dims))),
    }
}

/// Writes the rows of `value` to rows `pos..` of `cache`.
fn append_rows(lower: &mut Lower<'_>, value: Operand, cache: Operand, pos: DynInt) -> Result<()> {
    let [rows, heads, d] = shape(lower, value, "the new rows")?;
    let [capacity, cache_heads, cache_d] = shape(lower, cache, "the cache")?;
    if (heads, d) != (cache_heads, cache_d) {
        return Err(lower.refuse(format!("rows of {heads} heads of {d} for a cache of {cache_heads} of {cache_d}")));
    }
    lower.bound(pos, rows, capacity, "position in the KV cache")?;
    if (heads * d) % 4 != 0 {
        return Err(lower.unsupported(format!("a cache row of {heads} x {d} elements is no multiple of 4")));
    }
    let kernel =
        Kernel::new(source!("cache_append")).set("WG", WG).reads("value", value.elem).writes("cache", cache.elem);
    let quads = rows * heads * d / 4;
    let params = Params::new().u32(quads).u32(heads * d / 4).dynamic(pos).u32(capacity);
    lower.step(kernel, &[value.into(), cache.into()], params, u64::from(quads.div_ceil(WG)))
}

fn update_cache(lower: &mut Lower<'_>) -> Result<()> {
    let (value, cache) = (lower.tensor(0)?, lower.tensor(1)?);
    let pos = lower.dyn_int(2)?;
    if let Some(reader) = lower.output_reader() {
        return Err(lower.unsupported(format!("its result is read by {reader}; read the cache instead")));
    }
    append_rows(lower, value, cache, pos)
}

#[derive(Clone, Copy)]
struct Attention {
    q: Operand,
    k_cache: Operand,
    v_cache: Operand,
    out: Operand,
    pos: DynInt,
    scale: f32,
    seq: u32,
    heads_q: u32,
    heads_kv: u32,
    d: u32,
    capacity: u32,
}

fn sdpa_with_kv_cache(lower: &mut Lower<'_>) -> Result<()> {
    let (attention, [k, v]) = arguments(lower)?;
    attend(lower, &attention, &New { k, v, rotation: None, turned: None })
}

/// The attention that the arguments ask for, and the new keys and values.
fn arguments(lower: &mut Lower<'_>) -> Result<(Attention, [Operand; 2])> {
    let [q, k, v] = [lower.tensor(0)?, lower.tensor(1)?, lower.tensor(2)?];
    let [k_cache, v_cache] = [lower.tensor(3)?, lower.tensor(4)?];
    let pos = lower.dyn_int(5)?;
    refuse_other_forms(lower)?;
    let [seq, heads_q, d] = shape(lower, q, "q")?;
    let [capacity, heads_kv, cache_d] = shape(lower, k_cache, "the K cache")?;
    if d % 4 != 0 || d == 0 || d > 256 {
        return Err(lower.unsupported(format!("head size {d} is not a multiple of 4 from 4 to 256")));
    }
    let new = [seq, heads_kv, d];
    if shape(lower, k, "k")? != new || shape(lower, v, "v")? != new {
        return Err(lower.refuse(format!("k is {}, v is {}, expected [1, {seq}, {heads_kv}, {d}]", k.dims, v.dims)));
    }
    if cache_d != d || shape(lower, v_cache, "the V cache")? != [capacity, heads_kv, d] {
        return Err(lower.refuse(format!("the caches are {} and {}, q is {}", k_cache.dims, v_cache.dims, q.dims)));
    }
    if heads_kv == 0 || heads_q % heads_kv != 0 {
        return Err(lower.refuse(format!("{heads_q} query heads are no multiple of {heads_kv} cache heads")));
    }
    let scale = lower.double_or(10, 1.0 / f64::from(d).sqrt())? as f32;
    let out = lower.output(0, q.dims)?;
    lower.expect_floating_output()?;
    Ok((Attention { q, k_cache, v_cache, out, pos, scale, seq, heads_q, heads_kv, d, capacity }, [k, v]))
}

fn refuse_other_forms(lower: &mut Lower<'_>) -> Result<()> {
    if lower.optional_tensor(7)?.is_some() {
        return Err(lower.unsupported("an attention mask besides causality"));
    }
    if lower.double_or(8, 0.0)? != 0.0 {
        return Err(lower.unsupported("dropout"));
    }
    match lower.value(9)? {
        Value::Null => Ok(()),
        _ if lower.boolean(9)? => Ok(()),
        _ => Err(lower.unsupported("attention that is not causal")),
    }
}

/// Brings the new keys and values to the cache, then attends.
fn attend(lower: &mut Lower<'_>, a: &Attention, new: &New<'_>) -> Result<()> {
    let group = a.heads_q / a.heads_kv;
    let (caps, options) = (lower.caps(), lower.env.options);
    match choose((a.seq, group, a.d), a.heads_kv, a.capacity, caps, options) {
        Cut::Few { splits } if a.seq > 0 => match Few::of(a.seq, group, a.d, caps) {
            Some(few) => few::lower(lower, a, new, few, splits),
            None => Err(lower.unsupported("attention by subgroups on a device without them")),
        },
        Cut::Few { .. } => Ok(()),
        Cut::Tile { rows, splits } => {
            let a = rotary::append(lower, a, new)?;
            if coop::applies(lower, &a) { coop::lower(lower, &a) } else { tiles(lower, &a, rows, splits) }
        }
    }
}

fn tiles(lower: &mut Lower<'_>, a: &Attention, rows: u32, splits: u32) -> Result<()> {
    let tiles = (a.seq * (a.heads_q / a.heads_kv)).div_ceil(rows);
    let kernel = Kernel::new(source!("attention"))
        .set("WG", WG)
        .set("D", a.d)
        .set("BQ", rows)
        .set("SPLITS", splits)
        .reads("q", a.q.elem)
        .reads("k_cache", a.k_cache.elem)
        .reads("v_cache", a.v_cache.elem);
    let params = Params::new().u32(a.seq).u32(a.heads_q).u32(a.heads_kv).u32(a.capacity);
    let params = params.dynamic(a.pos).f32(a.scale).u32(tiles).u32(choose::PART_MIN);
    let groups = u64::from(a.heads_kv) * u64::from(tiles) * u64::from(splits);
    merged(lower, a, splits, (kernel, vec![a.q.into(), a.k_cache.into(), a.v_cache.into()]), params, groups)
}

/// The step that attends to `splits` parts of the keys, and the one that merges them where they are several.
fn merged(
    lower: &mut Lower<'_>,
    a: &Attention,
    splits: u32,
    (kernel, mut binds): (Kernel, Vec<Bind>),
    params: Params,
    groups: u64,
) -> Result<()> {
    if splits == 1 {
        binds.push(a.out.into());
        let kernel = kernel.link(source!("lib/attention_direct")).writes("out", a.out.elem);
        return lower.step(kernel, &binds, params, groups);
    }
    let rows = a.seq * a.heads_q;
    let parts = lower.scratch(u64::from(rows) * u64::from(splits) * u64::from(a.d / 4 + 1) * 16);
    binds.push(parts);
    let kernel = kernel.link(source!("lib/attention_partial"));
    let kernel = kernel.role("parts", RoleType::Array("vec4<f32>"), Access::Write);
    lower.step(kernel, &binds, params, groups)?;
    let wide = (a.d / 4).next_power_of_two();
    let merge = Kernel::new(source!("attention_merge"))
        .set("WG", wide.max(128))
        .set("WIDE", wide)
        .set("D4", a.d / 4)
        .array("parts", "vec4<f32>")
        .writes("out", a.out.elem);
    lower.step(merge, &[parts, a.out.into()], Params::new().u32(rows).u32(splits), u64::from(rows))
}
