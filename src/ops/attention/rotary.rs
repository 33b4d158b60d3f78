//! The writes to the cache, and attention whose queries and keys are rotated first: one step rotates both, the keys straight into
//! their cache, and appends the values to theirs.

use super::{Attention, WG, append_rows, arguments, attend};
use crate::error::Result;
use crate::ops::rope::{self, Rotation};
use crate::ops::{FLOATS, Lower, Op, Operand, Params};
use crate::shader::{Kernel, Source};
use crate::source;

/// Attention after a rotary embedding, as pairs (`et_vk.apply_rotary_emb`) and as halves (`et_vk.apply_rotary_emb_hf`):
/// the arguments of attention with q and k as they come, cos, sin, first row of the tables or None
/// `-> [out, rotated q]`.
pub const ROTARY: [&str; 2] = [
    "et_vk.apply_rotary_emb.default+sdpa_with_kv_cache.default",
    "et_vk.apply_rotary_emb_hf.default+sdpa_with_kv_cache.default",
];

/// Rows that only passes name.
pub const INTERNAL: &[Op] =
    &[Op::new(ROTARY[0], FLOATS, pairs).writes(&[3, 4]), Op::new(ROTARY[1], FLOATS, halves).writes(&[3, 4])];

/// The argument that is the first table.
const TABLES: usize = 11;

/// What a call adds to the cache.
pub(super) struct New<'a> {
    pub k: Operand,
    pub v: Operand,
    /// How queries and keys are rotated first, and where rotated queries go when a step of its own rotates them.
    pub rotation: Option<&'a Rotation>,
    pub turned: Option<Operand>,
}

impl New<'_> {
    pub fn tables(&self) -> Vec<Operand> {
        self.rotation.map_or_else(Vec::new, |r| r.tables.clone())
    }

    pub fn style(&self) -> Source {
        self.rotation.map_or(source!("lib/rope_none"), |r| r.style)
    }
}

fn pairs(lower: &mut Lower<'_>) -> Result<()> {
    let (attention, new) = arguments(lower)?;
    let rotation = rope::pairs_of(lower, TABLES, attention.seq, attention.d)?;
    run(lower, &attention, new, &rotation)
}

fn halves(lower: &mut Lower<'_>) -> Result<()> {
    let (attention, new) = arguments(lower)?;
    let start = lower.dyn_int(TABLES + 2)?;
    let rotation = rope::halves_of(lower, TABLES, start, attention.seq, attention.d)?;
    run(lower, &attention, new, &rotation)
}

fn run(lower: &mut Lower<'_>, a: &Attention, [k, v]: [Operand; 2], rotation: &Rotation) -> Result<()> {
    let turned = lower.output(1, a.q.dims)?;
    lower.expect_floating_output()?;
    attend(lower, a, &New { k, v, rotation: Some(rotation), turned: Some(turned) })
}

/// Brings new keys and values to the cache; the attention that is left.
pub(super) fn append(lower: &mut Lower<'_>, a: &Attention, new: &New<'_>) -> Result<Attention> {
    let (Some(r), Some(turned)) = (new.rotation, new.turned) else {
        append_rows(lower, new.k, a.k_cache, a.pos)?;
        append_rows(lower, new.v, a.v_cache, a.pos)?;
        return Ok(*a);
    };
    lower.bound(a.pos, a.seq, a.capacity, "position in the KV cache")?;
    let mut kernel = Kernel::new(source!("rope_append")).link(r.style).set("WG", WG);
    let mut binds = Vec::new();
    for (name, x) in
        ["q", "k", "v"].into_iter().zip([a.q, new.k, new.v]).chain(["cos", "sin"].into_iter().zip(new.tables()))
    {
        kernel = kernel.reads(name, x.elem);
        binds.push(x.into());
    }
    for (name, out) in ["turned", "k_cache", "v_cache"].into_iter().zip([turned, a.k_cache, a.v_cache]) {
        kernel = kernel.writes(name, out.elem);
        binds.push(out.into());
    }
    let count = a.seq * (a.heads_q + 2 * a.heads_kv) * a.d;
    let params = Params::new().u32(count).u32(a.heads_q).u32(a.heads_kv).u32(a.d);
    let params = params.u32(r.rotary).u32(r.table).dynamic(r.start).dynamic(a.pos).u32(a.capacity);
    lower.step(kernel, &binds, params, u64::from(count.div_ceil(WG)))?;
    Ok(Attention { q: turned, ..*a })
}
