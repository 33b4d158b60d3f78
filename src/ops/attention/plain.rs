//! Attention over keys and values that are arguments: `(q [.., S, D], k [.., C, D], v [.., C, E], mask, scale) -> [.., S, E]`
//! with `softmax(scale * q k^T + mask) v`. All leading dimensions broadcast, and those of the mask to [.., S, C].

use super::tiled::{self, Mask, Sight, Tiled};
use crate::error::Result;
use crate::graph::Dims;
use crate::ops::elementwise::{Map, map};
use crate::ops::layout::{Layout, broadcast_strides};
use crate::ops::{DynInt, Lower, Operand};

/// Leading dimensions of a tensor, and the last two; those that it lacks are 1.
fn split(x: Operand) -> Result<(Dims, [u32; 2])> {
    match x.dims[..] {
        [ref lead @ .., rows, columns] => Ok((Dims::new(lead)?, [rows, columns])),
        _ => Ok((Dims::default(), [1, x.dims.last()])),
    }
}

fn heads(lower: &Lower<'_>, x: Operand, what: &str) -> Result<(Dims, [u32; 2])> {
    if x.elem.is_float() && x.dims.len() >= 2 {
        return split(x);
    }
    Err(lower.refuse(format!("{what} is {} {}, expected numbers of shape [.., S, D]", x.dtype, x.dims)))
}

pub(super) fn lower(lower: &mut Lower<'_>) -> Result<()> {
    let [q, k, v] = [lower.tensor(0)?, lower.tensor(1)?, lower.tensor(2)?];
    let (q_lead, [seq, d]) = heads(lower, q, "q")?;
    let (k_lead, [keys, k_d]) = heads(lower, k, "k")?;
    let (v_lead, [v_keys, width]) = heads(lower, v, "v")?;
    if k_d != d || v_keys != keys {
        let found = format!("q is {}, k is {}, v is {}", q.dims, k.dims, v.dims);
        return Err(lower.refuse(format!("{found}, expected heads of {d} and as many values as keys")));
    }
    let leads = [(q, q_lead), (k, k_lead), (v, v_lead)].map(|(x, dims)| Operand { dims, ..x });
    let lead = lower.broadcast(&leads)?;
    let out = lower.output(0, Dims::new(&[&lead[..], &[seq, width]].concat())?)?;
    lower.expect_floating_output()?;
    let along = |own: Dims, size: u32| -> Vec<u32> { broadcast_strides(own, lead).iter().map(|n| n * size).collect() };
    let mut strides = vec![along(q_lead, seq), along(k_lead, keys), along(v_lead, keys), along(lead, seq)];
    let mask = match lower.optional_tensor(3)? {
        None => None,
        Some(x) => {
            let (own, [rows, columns]) = split(x)?;
            if !repeats(&own, &lead) || !repeats(&[rows, columns], &[seq, keys]) {
                let scores = format!("{lead} times {seq} x {keys}");
                return Err(lower.refuse(format!("the mask is {}, expected one that repeats to {scores}", x.dims)));
            }
            strides.push(along(own, rows * columns));
            Some(Mask { x, row: if rows == 1 { 0 } else { columns }, key: u32::from(columns != 1) })
        }
    };
    let scale = lower.double_or(4, 1.0 / f64::from(d).sqrt())? as f32;
    if keys == 0 || out.dims.numel() == 0 {
        return map(lower, out, &Map { formula: "p.s", inputs: &[], compute: "f32", scalars: [0.0, 0.0] });
    }
    // Every query sees all keys: the last one sits on the last key.
    let pos = DynInt { slot: 0, base: keys.wrapping_sub(seq) as i32 };
    let teams = Layout::new(&lead, &strides);
    let (sight, tensors) = (Sight::Full, [q, k, v, out]);
    tiled::run(lower, &Tiled { tensors, mask, sight, teams, group: 1, seq, keys, pos, scale, steps: [1, 1] })
}

/// True when a tensor of shape `dims` repeats to shape `to`.
fn repeats(dims: &[u32], to: &[u32]) -> bool {
    dims.len() <= to.len() && dims.iter().rev().zip(to.iter().rev()).all(|(&size, &full)| size == 1 || size == full)
}
