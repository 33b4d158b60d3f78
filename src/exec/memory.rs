//! Device memory of one program: allocation of all buffers, upload of constants, resolution of bindings.

use std::sync::Arc;

use super::convert::to_device;
use super::host::DataSource;
use crate::error::{Error, Result};
use crate::gpu::{Buffer, BufferRange, Gpu, Memory, MemoryKind};
use crate::graph::{Constant, Graph, Tensor, ValueId};
use crate::ops::Bind;
use crate::plan::{NONE, Plan, Storage, StorageKind};
use crate::shader::Elem;

/// All tensor memory of a program.
pub(super) struct Arena {
    /// Shared activation buffers first, in the plan's order, then those of each constant storage.
    buffers: Vec<Arc<Buffer>>,
    /// For each storage, its first buffer.
    place: Vec<u32>,
}

/// A binding as buffer number, offset and length in bytes.
pub(super) type Place = (u32, u64, u64);

impl Arena {
    pub fn new(gpu: &Gpu, plan: &Plan, payload: &[u8], data: &dyn DataSource) -> Result<Arena> {
        let mut arena = Arena { buffers: Vec::new(), place: vec![NONE; plan.storages.len()] };
        for (&bytes, kind) in plan.buffers.iter().zip(plan.buffer_kinds()) {
            arena.buffers.push(gpu.buffer(kind, bytes, "activations")?.into());
        }
        for (index, storage) in plan.storages.iter().enumerate().filter(|(_, storage)| storage.used) {
            let place = match storage.kind {
                StorageKind::Activation(buffer) => buffer,
                kind => {
                    let first = arena.buffers.len() as u32;
                    let kind = if kind == StorageKind::Cache { MemoryKind::Caches } else { MemoryKind::Weights };
                    arena.buffers.extend(upload(gpu, plan, storage, kind, (payload, data))?);
                    first
                }
            };
            if let Some(slot) = arena.place.get_mut(index) {
                *slot = place;
            }
        }
        Ok(arena)
    }

    /// Overwrites all activations and scratch with `byte`.
    pub fn fill(&self, gpu: &Gpu, byte: u8) -> Result<()> {
        let shared = |b: &&Arc<Buffer>| matches!(b.kind(), MemoryKind::Activations | MemoryKind::Scratch);
        self.buffers.iter().filter(shared).try_for_each(|b| gpu.stream(b, 0, &vec![byte; b.bytes() as usize]))
    }

    /// Bytes by kind.
    pub fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        self.buffers.iter().for_each(|buffer| memory.add(buffer.kind(), buffer.bytes()));
        memory
    }

    /// The first buffer of a tensor, the only one but for large weights.
    pub fn of(&self, plan: &Plan, id: ValueId) -> Result<&Buffer> {
        let storage = plan.storage.get(id.index()).copied().unwrap_or(NONE);
        let place = self.place.get(storage as usize).copied().unwrap_or(NONE);
        let missing = || Error::Internal(format!("{} has no memory", plan.graph.describe(id)));
        self.buffers.get(place as usize).map(Arc::as_ref).ok_or_else(missing)
    }

    /// Finds what a binding of node `node` points at.
    pub fn place(&self, gpu: &Gpu, plan: &Plan, node: usize, bind: Bind) -> Place {
        let id = match bind {
            Bind::Scratch(n) => {
                let buffers = plan.scratch.get(node).and_then(|areas| areas.get(n as usize)).copied();
                let buffer = buffers.unwrap_or(NONE);
                let bytes = self.buffers.get(buffer as usize).map_or(0, |buffer| buffer.bytes());
                return (buffer, 0, bytes.min(gpu.caps().max_binding & !15));
            }
            Bind::Value(id) | Bind::Range(id, ..) => id,
        };
        let storage = plan.storage.get(id.index()).copied().unwrap_or(NONE);
        let (block, offset, bytes) = plan.bound(bind);
        (self.place.get(storage as usize).copied().unwrap_or(NONE).saturating_add(block), offset, bytes)
    }

    /// A place as a range to bind.
    pub fn range(&self, (buffer, offset, bytes): Place) -> Result<BufferRange<'_>> {
        let buffer = self.buffers.get(buffer as usize);
        let buffer = buffer.ok_or_else(|| Error::Internal("a binding points at no buffer".into()))?;
        if offset + bytes > buffer.bytes() {
            let room = buffer.bytes();
            return Err(Error::Internal(format!("a binding of {bytes} bytes at {offset} passes the {room} there are")));
        }
        Ok(BufferRange { buffer, offset, bytes })
    }

    /// Makes sure that the scratch areas of a node hold `sizes`; a shape that no probe foresaw may need more.
    pub fn grow_scratch(&mut self, gpu: &Gpu, plan: &mut Plan, node: usize, sizes: &[u64]) -> Result<()> {
        let Some(areas) = plan.scratch.get_mut(node) else { return Ok(()) };
        for (n, &bytes) in sizes.iter().enumerate() {
            let held = areas.get(n).and_then(|&b| self.buffers.get(b as usize)).map_or(0, |buffer| buffer.bytes());
            if held >= bytes {
                continue;
            }
            log::warn!("a shape outside the probed ones needs {bytes} bytes of scratch");
            self.buffers.push(gpu.buffer(MemoryKind::Scratch, bytes, "scratch")?.into());
            areas.resize(areas.len().max(n + 1), NONE);
            if let Some(area) = areas.get_mut(n) {
                *area = self.buffers.len() as u32 - 1;
            }
        }
        Ok(())
    }
}

/// A constant on the device, the one of another program of the same source where that has it. Nothing is allocated before its bytes are
/// there.
fn upload(
    gpu: &Gpu,
    plan: &Plan,
    storage: &Storage,
    kind: MemoryKind,
    (payload, data): (&[u8], &dyn DataSource),
) -> Result<Vec<Arc<Buffer>>> {
    let known = (kind == MemoryKind::Weights).then(|| name(&plan.graph, storage, data)).flatten();
    if let Some(buffers) = known.as_deref().and_then(|known| gpu.shared.find(known)) {
        return Ok(buffers);
    }
    let mut run = Run { gpu, buffers: Vec::new(), block: storage.block, written: 0 };
    for part in parts(&plan.graph, storage.owner) {
        let Some(tensor) = plan.graph.tensor(part) else { continue };
        let mut fill = |bytes: &[u8], name: &str| {
            let bytes = content(bytes, tensor, name)?;
            if run.buffers.is_empty() {
                run.reserve(kind, storage.bytes, &plan.graph.describe(storage.owner))?;
            }
            stream(bytes, tensor, Elem::of(tensor.dtype, gpu.caps().f16), |piece| run.write(piece))
        };
        match tensor.constant.and_then(|c| plan.graph.constants.get(c as usize)) {
            Some(Constant::Named { key }) => data.with(key, &mut |bytes| fill(bytes, key))?,
            Some(Constant::Inline { offset, available }) => {
                fill(payload.get(*offset..offset + available).unwrap_or_default(), "inline constant")?;
            }
            Some(Constant::Empty | Constant::Joined(_)) | None => fill(&[], "empty constant")?,
        }
    }
    let buffers: Vec<_> = run.buffers.into_iter().map(Arc::new).collect();
    if let Some(known) = known {
        gpu.shared.keep(known, &buffers);
    }
    Ok(buffers)
}

/// What tells the bytes of a constant on the device from all others: their source and their keys there, and how they lie.
/// `None` where the source has no number, or some part no key.
fn name(graph: &Graph, storage: &Storage, data: &dyn DataSource) -> Option<String> {
    let mut all = format!("source {}, {} bytes in blocks of {}", data.number()?, storage.bytes, storage.block);
    for part in parts(graph, storage.owner) {
        let tensor = graph.tensor(part)?;
        let Some(Constant::Named { key }) = graph.constants.get(tensor.constant? as usize) else { return None };
        let swapped = if tensor.swapped { "swapped " } else { "" };
        all += &format!(", {swapped}{} as {} {} of {key:?}", tensor.stored, tensor.dtype, tensor.max);
    }
    Some(all)
}

/// The tensors whose bytes a constant holds: its own, or those that are joined in it.
fn parts(graph: &Graph, id: ValueId) -> Vec<ValueId> {
    let constant = graph.tensor(id).and_then(|tensor| graph.constants.get(tensor.constant? as usize));
    match constant {
        Some(Constant::Joined(parts)) => parts.clone(),
        _ => vec![id],
    }
}

/// Buffers of `block` bytes each that are written as one.
struct Run<'a> {
    gpu: &'a Gpu,
    buffers: Vec<Buffer>,
    block: u64,
    written: u64,
}

impl Run<'_> {
    fn reserve(&mut self, kind: MemoryKind, bytes: u64, what: &str) -> Result<()> {
        let mut left = bytes;
        loop {
            let held = left.min(self.block);
            self.buffers.push(self.gpu.buffer(kind, held, what)?);
            left -= held;
            if left == 0 {
                return Ok(());
            }
        }
    }

    /// Writes what follows all that was written before.
    fn write(&mut self, mut piece: &[u8]) -> Result<()> {
        while !piece.is_empty() {
            let (index, offset) = (self.written / self.block, self.written % self.block);
            let missing = || Error::Internal(format!("there is no buffer {index}"));
            let buffer = self.buffers.get(index as usize).ok_or_else(missing)?;
            let (now, rest) = piece.split_at(piece.len().min((self.block - offset) as usize));
            self.gpu.stream(buffer, offset, now)?;
            self.written += now.len() as u64;
            piece = rest;
        }
        Ok(())
    }
}

/// The bytes of a constant's elements.
fn content<'a>(bytes: &'a [u8], tensor: &Tensor, name: &str) -> Result<&'a [u8]> {
    let needed = tensor.max.numel() as usize * tensor.stored.size();
    let found = bytes.len();
    let missing = || Error::Data(format!("{name} has {found} bytes, {} {} needs {needed}", tensor.stored, tensor.max));
    bytes.get(..needed).ok_or_else(missing)
}

/// Hands over elements as the device holds them, piece by piece.
fn stream(bytes: &[u8], tensor: &Tensor, elem: Elem, mut write: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    const PIECE: usize = 4 << 20;
    let size = tensor.stored.size();
    let mut send = |piece: &[u8]| {
        let converted = to_device(piece, tensor.stored, elem)?;
        write(converted.as_deref().unwrap_or(piece))
    };
    match tensor.max[..] {
        [rows, columns] if tensor.swapped => swapped(bytes, (rows as usize, columns as usize), size, PIECE, send),
        _ => bytes.chunks(PIECE * size).try_for_each(&mut send),
    }
}

/// Hands over a `rows` x `columns` matrix column by column, a multiple of four columns and about `piece` elements at a time.
fn swapped(
    bytes: &[u8],
    (rows, columns): (usize, usize),
    size: usize,
    piece: usize,
    mut send: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let width = (piece / rows.max(1)).max(1).next_multiple_of(4);
    for first in (0..columns).step_by(width) {
        let count = width.min(columns - first);
        let mut block = vec![0; rows * count * size];
        match size {
            4 => swap::<4>(bytes, (rows, columns), first, &mut block),
            2 => swap::<2>(bytes, (rows, columns), first, &mut block),
            8 => swap::<8>(bytes, (rows, columns), first, &mut block),
            _ => swap::<1>(bytes, (rows, columns), first, &mut block),
        }
        send(&block)?;
    }
    Ok(())
}

/// Columns of a `rows` x `columns` matrix of `SIZE`-byte elements, from `first` on, as rows of `block`.
fn swap<const SIZE: usize>(bytes: &[u8], (rows, columns): (usize, usize), first: usize, block: &mut [u8]) {
    let (cells, _) = bytes.as_chunks::<SIZE>();
    let (block, _) = block.as_chunks_mut::<SIZE>();
    // Some columns at a time, so that the lines that are read stay in the cache until they are used up.
    for (n, columns_of) in block.chunks_mut(rows.max(1) * 16).enumerate() {
        let count = columns_of.len() / rows.max(1);
        for row in 0..rows {
            let from = cells.get(row * columns + first + n * 16..).unwrap_or_default();
            for (to, cell) in columns_of.iter_mut().skip(row).step_by(rows.max(1)).zip(from.iter().take(count)) {
                *to = *cell;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_is_swapped_in_pieces() {
        for (rows, columns, piece) in [(3, 10, 12), (1, 5, 100), (7, 4, 1), (2, 9, 8)] {
            let bytes: Vec<u8> = (0..rows * columns).flat_map(|n| (n as u16).to_le_bytes()).collect();
            let mut got = Vec::new();
            swapped(&bytes, (rows, columns), 2, piece, |block| {
                got.extend_from_slice(block);
                Ok(())
            })
            .unwrap();
            let at = |row: usize, column: usize| ((row * columns + column) as u16).to_le_bytes();
            let want: Vec<u8> =
                (0..columns).flat_map(|c| (0..rows).map(move |r| (r, c))).flat_map(|(r, c)| at(r, c)).collect();
            assert_eq!(got, want);
        }
    }
}
