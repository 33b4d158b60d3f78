//! Attention, over a KV cache or over keys and values that are arguments, and the writes to the cache.

mod choose;
mod coop;
mod few;
mod plain;
mod rotary;
mod tiled;

pub use choose::Cut;
pub use rotary::{INTERNAL, ROTARY};

use super::layout::Layout;
use super::{DynInt, FLOATS, Lower, Op, Operand, Params};
use crate::error::Result;
use crate::graph::Value;
use crate::shader::Kernel;
use crate::source;
use rotary::New;
use tiled::{Mask, Sight, Tiled};

/// Attention that first writes its keys and values to the cache: `(q, k, v, K cache, V cache, position, length, mask, dropout,
/// causal, scale) -> out`.
pub const SDPA: &str = "sdpa_with_kv_cache.default";

/// Rows of this family.
pub const OPS: &[Op] = &[
    Op::new(SDPA, FLOATS, sdpa_with_kv_cache)
        .writes(&[3, 4])
        .notes("head size a multiple of 4 up to 256; a mask covers the whole cache and excludes causality"),
    Op::new("update_cache.default", FLOATS, update_cache).writes(&[1]),
    Op::new("et_vk.sdpa.default", FLOATS, plain::lower)
        .notes("all but the last two dimensions broadcast; head size up to 4096; the mask is added to the scores"),
];

const WG: u32 = 64;

/// Batch, rows, heads and head size of a tensor `[.., S, H, D]`.
fn shape(lower: &Lower<'_>, x: Operand, what: &str) -> Result<[u32; 4]> {
    match x.dims[..] {
        [ref batch @ .., s, h, d] if x.elem.is_float() => Ok([batch.iter().product(), s, h, d]),
        _ => Err(lower.refuse(format!("{what} is {} {}, expected numbers of shape [B, S, H, D]", x.dtype, x.dims))),
    }
}

/// Writes the rows of `value` to rows `pos..` of `cache`.
fn append_rows(lower: &mut Lower<'_>, value: Operand, cache: Operand, pos: DynInt) -> Result<()> {
    let [batch, rows, heads, d] = shape(lower, value, "the new rows")?;
    let [cache_batch, capacity, cache_heads, cache_d] = shape(lower, cache, "the cache")?;
    if (batch, heads, d) != (cache_batch, cache_heads, cache_d) {
        return Err(lower.refuse(format!("rows of shape {} for a cache of shape {}", value.dims, cache.dims)));
    }
    lower.bound(pos, rows, capacity, "position in the KV cache")?;
    if (heads * d) % 4 != 0 {
        return Err(lower.unsupported(format!("a cache row of {heads} x {d} elements is no multiple of 4")));
    }
    let kernel =
        Kernel::new(source!("cache_append")).set("WG", WG).reads("value", value.elem).writes("cache", cache.elem);
    let quads = value.dims.numel() / 4;
    let params = Params::new().u32(quads).u32(heads * d / 4).u32(rows).dynamic(pos).u32(capacity);
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
    mask: Option<Operand>,
    sight: Sight,
    pos: DynInt,
    scale: f32,
    batch: u32,
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
    let [batch, seq, heads_q, d] = shape(lower, q, "q")?;
    let [cache_batch, capacity, heads_kv, cache_d] = shape(lower, k_cache, "the K cache")?;
    let (mask, sight) = sight(lower, [seq, capacity])?;
    if d % 4 != 0 || d == 0 || d > 256 {
        return Err(lower.unsupported(format!("head size {d} is not a multiple of 4 from 4 to 256")));
    }
    let new = [batch, seq, heads_kv, d];
    if shape(lower, k, "k")? != new || shape(lower, v, "v")? != new {
        return Err(lower.refuse(format!("k is {}, v is {}, expected {new:?}", k.dims, v.dims)));
    }
    let cache = [batch, capacity, heads_kv, d];
    if (cache_batch, cache_d) != (batch, d) || shape(lower, v_cache, "the V cache")? != cache {
        return Err(lower.refuse(format!("the caches are {} and {}, q is {}", k_cache.dims, v_cache.dims, q.dims)));
    }
    if heads_kv == 0 || heads_q % heads_kv != 0 {
        return Err(lower.refuse(format!("{heads_q} query heads are no multiple of {heads_kv} cache heads")));
    }
    let scale = lower.double_or(10, 1.0 / f64::from(d).sqrt())? as f32;
    let out = lower.output(0, q.dims)?;
    lower.expect_floating_output()?;
    let attention =
        Attention { q, k_cache, v_cache, out, mask, sight, pos, scale, batch, seq, heads_q, heads_kv, d, capacity };
    Ok((attention, [k, v]))
}

/// The mask, of shape `scores`, and what queries see. None as causality means causal, unless there is a mask.
fn sight(lower: &mut Lower<'_>, scores: [u32; 2]) -> Result<(Option<Operand>, Sight)> {
    if lower.double_or(8, 0.0)? != 0.0 {
        return Err(lower.unsupported("dropout"));
    }
    let mask = lower.optional_tensor(7)?;
    let causal = match lower.value(9)? {
        Value::Null => mask.is_none(),
        _ => lower.boolean(9)?,
    };
    match mask {
        Some(_) if causal => Err(lower.unsupported("a mask besides causality")),
        Some(mask) if mask.dims[..] != scores => {
            Err(lower
                .refuse(format!("the mask is {}, expected {scores:?}: a row of the cache for each query", mask.dims)))
        }
        _ => Ok((mask, if causal { Sight::Causal } else { Sight::Full })),
    }
}

/// Brings the new keys and values to the cache, then attends.
fn attend(lower: &mut Lower<'_>, a: &Attention, new: &New<'_>) -> Result<()> {
    if let Some((few, splits)) = few::applies(lower, a) {
        return few::lower(lower, a, new, few, splits);
    }
    let a = &rotary::append(lower, a, new)?;
    if coop::applies(lower, a) {
        return coop::lower(lower, a);
    }
    let group = a.heads_q / a.heads_kv;
    let (queries, keys) = (vec![a.seq * a.heads_q, group], vec![a.capacity * a.heads_kv, 1]);
    let strides = [queries.clone(), keys.clone(), keys, queries];
    // With a mask every row of the cache counts.
    let whole = DynInt { slot: 0, base: a.capacity.wrapping_sub(a.seq) as i32 };
    let tiled = Tiled {
        tensors: [a.q, a.k_cache, a.v_cache, a.out],
        mask: a.mask.map(|x| Mask { x, row: a.capacity, key: 1 }),
        sight: a.sight,
        teams: Layout::new(&[a.batch, a.heads_kv], &strides),
        group,
        seq: a.seq,
        keys: a.capacity,
        pos: if a.mask.is_some() { whole } else { a.pos },
        scale: a.scale,
        steps: [a.heads_q, a.heads_kv],
    };
    tiled::run(lower, &tiled)
}
