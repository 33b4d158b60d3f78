use std::sync::Mutex;
use std::sync::atomic::Ordering;

use super::device::{Gpu, lock};
use crate::error::{Error, Result};

/// What a buffer is for, in memory reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// Immutable constants.
    Weights,
    /// Constants that the program writes.
    Caches,
    /// Inputs, outputs and intermediate tensors.
    Activations,
    /// Buffers of one operator at a time.
    Scratch,
    /// Buffers that the host maps.
    Staging,
    /// Kernel parameters and per-call values.
    Parameters,
}

/// Bytes on the device by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    bytes: [u64; 6],
    peak: u64,
}

impl Memory {
    /// Bytes of one kind.
    pub fn of(&self, kind: MemoryKind) -> u64 {
        self.bytes.get(kind as usize).copied().unwrap_or(0)
    }

    /// Bytes of all kinds.
    pub fn total(&self) -> u64 {
        self.bytes.iter().sum()
    }

    /// The highest total so far.
    pub fn peak(&self) -> u64 {
        self.peak
    }

    /// Counts a buffer.
    pub fn add(&mut self, kind: MemoryKind, bytes: u64) {
        if let Some(count) = self.bytes.get_mut(kind as usize) {
            *count += bytes;
        }
        self.peak = self.peak.max(self.total());
    }

    fn remove(&mut self, kind: MemoryKind, bytes: u64) {
        if let Some(count) = self.bytes.get_mut(kind as usize) {
            *count = count.saturating_sub(bytes);
        }
    }
}

static MEMORY: Mutex<Memory> = Mutex::new(Memory { bytes: [0; 6], peak: 0 });

/// What all programs of the process hold now.
pub fn memory() -> Memory {
    *lock(&MEMORY)
}

/// A device buffer; its size is a multiple of 16 bytes, so that kernels may read whole vectors.
pub struct Buffer {
    pub(super) raw: wgpu::Buffer,
    kind: MemoryKind,
    bytes: u64,
}

impl Buffer {
    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What it is for.
    pub fn kind(&self) -> MemoryKind {
        self.kind
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        lock(&MEMORY).remove(self.kind, self.bytes);
    }
}

/// Bytes that are submitted together, and that a thread copies.
const CHUNK: usize = 4 << 20;
const PIECE: usize = 1 << 20;

impl Gpu {
    /// Allocates a buffer of at least `bytes`, named `what` in errors.
    pub fn buffer(&self, kind: MemoryKind, bytes: u64, what: &str) -> Result<Buffer> {
        let bytes = bytes.max(16).next_multiple_of(16);
        if bytes > self.caps().max_buffer {
            let limit = self.caps().max_buffer;
            return Err(Error::OutOfMemory(format!("{what} needs {bytes} bytes, one buffer holds {limit}")));
        }
        let usage = match kind {
            MemoryKind::Staging => wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            MemoryKind::Parameters => wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            _ => wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC,
        };
        let descriptor = wgpu::BufferDescriptor { label: None, size: bytes, usage, mapped_at_creation: false };
        let raw = self.make(|| self.device.create_buffer(&descriptor)).map_err(|e| match e {
            Error::OutOfMemory(_) => Error::OutOfMemory(format!("{what} needs {bytes} bytes on {}", self.name())),
            other => other,
        })?;
        lock(&MEMORY).add(kind, bytes);
        Ok(Buffer { raw, kind, bytes })
    }

    /// Writes `data` at `offset`, a multiple of 4; the write happens before the next submission. Bytes up to the next
    /// multiple of 4 become 0.
    pub fn write(&self, buffer: &Buffer, offset: u64, data: &[u8]) -> Result<()> {
        let (body, tail) = data.split_at(data.len() & !3);
        self.guarded(|| {
            if !body.is_empty() {
                self.queue.write_buffer(&buffer.raw, offset, body);
            }
            if !tail.is_empty() {
                let mut word = [0; 4];
                word.iter_mut().zip(tail).for_each(|(to, from)| *to = *from);
                self.queue.write_buffer(&buffer.raw, offset + body.len() as u64, &word);
            }
        })
    }

    /// Writes by several threads: the pages on both sides are new, and finding them takes longer than copying.
    fn write_pieces(&self, buffer: &Buffer, offset: u64, data: &[u8]) -> Result<()> {
        let write = |(index, piece): (usize, &[u8])| self.write(buffer, offset + (index * PIECE) as u64, piece);
        let mut pieces = data.chunks(PIECE).enumerate();
        let last = pieces.next_back();
        std::thread::scope(|scope| {
            let spawn = |piece| std::thread::Builder::new().spawn_scoped(scope, move || write(piece));
            let others: Vec<_> = pieces.map(|piece| (piece, spawn(piece))).collect();
            last.map_or(Ok(()), write)?;
            others.into_iter().try_for_each(|(piece, thread)| match thread {
                Ok(thread) => thread.join().unwrap_or_else(|_| Err(Error::Internal("a copying thread failed".into()))),
                Err(_) => write(piece),
            })
        })
    }

    /// Writes much data in chunks. While the device takes one the next is copied, so that the host holds little more than two
    /// besides `data`.
    pub fn stream(&self, buffer: &Buffer, offset: u64, data: &[u8]) -> Result<()> {
        for (index, chunk) in data.chunks(CHUNK).enumerate() {
            self.write_pieces(buffer, offset + (index * CHUNK) as u64, chunk)?;
            if self.pending.fetch_add(chunk.len(), Ordering::Relaxed) + chunk.len() >= CHUNK {
                self.pending.store(0, Ordering::Relaxed);
                let now = self.guarded(|| self.queue.submit([]))?;
                if let Some(before) = lock(&self.streamed).replace(now) {
                    self.wait_for(before)?;
                }
            }
        }
        Ok(())
    }

    /// Submits pending writes and waits for them.
    pub fn flush(&self) -> Result<()> {
        self.pending.store(0, Ordering::Relaxed);
        lock(&self.streamed).take();
        let now = self.guarded(|| self.queue.submit([]))?;
        self.wait_for(now)
    }

    fn wait_for(&self, submission: wgpu::SubmissionIndex) -> Result<()> {
        let wait = wgpu::PollType::Wait { submission_index: Some(submission), timeout: None };
        let done = self.guarded(|| self.device.poll(wait))?;
        done.map(|_| ()).map_err(|e| Error::Device(e.to_string()))
    }
}
