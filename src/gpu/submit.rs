use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::buffers::{Buffer, MemoryKind};
use super::device::Gpu;
use super::pipelines::{BindGroup, Pipeline};
use crate::error::{Error, Result};

/// A wait short enough to spend awake.
const MOMENT: Duration = Duration::from_millis(2);

/// One dispatch, ready to encode.
#[derive(Clone)]
pub struct Dispatch {
    /// Kernel.
    pub pipeline: Arc<Pipeline>,
    /// Its buffers.
    pub group: Arc<BindGroup>,
    /// Byte offset of its parameters.
    pub params: u32,
    /// Workgroups.
    pub grid: [u32; 3],
}

/// A copy from a buffer's start to a place in a staging buffer; offset and length are multiples of 4.
pub struct Copy<'a> {
    /// Source.
    pub from: &'a Buffer,
    /// Offset in the staging buffer.
    pub to: u64,
    /// Number of bytes.
    pub bytes: u64,
}

/// A buffer that the host reads results from.
pub struct Staging {
    buffer: Buffer,
}

/// Commands that can be submitted, once.
pub struct Encoded {
    commands: wgpu::CommandBuffer,
    timing: Option<wgpu::Buffer>,
}

/// Work that the queue has taken.
pub struct Submission {
    index: wgpu::SubmissionIndex,
    timing: Option<wgpu::Buffer>,
}

/// What a submission takes the time of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timed {
    /// Nothing.
    #[default]
    Nothing,
    /// Each dispatch, in a pass of its own: some microseconds are added to each.
    Steps,
    /// All dispatches from this one on together.
    From(usize),
}

/// When dispatches ran: nanoseconds on the device's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Start.
    pub start: u64,
    /// End.
    pub end: u64,
}

impl Staging {
    /// Allocates room for `bytes`.
    pub fn new(gpu: &Gpu, bytes: u64) -> Result<Staging> {
        Ok(Staging { buffer: gpu.buffer(MemoryKind::Staging, bytes, "output staging")? })
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.buffer.bytes()
    }
}

impl Gpu {
    /// Submits commands.
    pub fn submit(&self, encoded: Encoded) -> Result<Submission> {
        let Encoded { commands, timing } = encoded;
        self.guarded(|| Submission { index: self.queue.submit([commands]), timing })
    }

    /// Encodes all dispatches into one compute pass, then the copies; what is timed has passes of its own.
    pub fn encode(
        &self,
        dispatches: &[Dispatch],
        common: &BindGroup,
        copies: &[Copy<'_>],
        staging: &Staging,
        timed: Timed,
    ) -> Result<Encoded> {
        self.guarded(|| {
            let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            let able = self.caps().timestamps && !dispatches.is_empty();
            let timing = match timed {
                Timed::Steps if able => Some(self.encode_timed(&mut encoder, dispatches.chunks(1), common)),
                Timed::From(first) if able => {
                    let (before, timed) = dispatches.split_at(first.min(dispatches.len()));
                    encode(&mut encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default()), before, common);
                    Some(self.encode_timed(&mut encoder, timed.chunks(timed.len().max(1)), common))
                }
                _ => {
                    encode(
                        &mut encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default()),
                        dispatches,
                        common,
                    );
                    None
                }
            };
            for copy in copies.iter().filter(|copy| copy.bytes > 0) {
                let (from, to) = (&copy.from.raw, &staging.buffer.raw);
                encoder.copy_buffer_to_buffer(from, 0, to, copy.to, copy.bytes);
            }
            Encoded { commands: encoder.finish(), timing }
        })
    }

    fn encode_timed(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        passes: std::slice::Chunks<'_, Dispatch>,
        common: &BindGroup,
    ) -> wgpu::Buffer {
        // A query set holds at most 4096 entries in WebGPU; longer sequences are timed up to there.
        let timed = passes.len().min(2048);
        self.count_objects(3);
        let count = 2 * timed as u32;
        let set = self.device.create_query_set(&wgpu::QuerySetDescriptor {
            label: None,
            ty: wgpu::QueryType::Timestamp,
            count,
        });
        for (i, dispatches) in passes.enumerate() {
            let writes = wgpu::ComputePassTimestampWrites {
                query_set: &set,
                beginning_of_pass_write_index: Some(2 * i as u32),
                end_of_pass_write_index: Some(2 * i as u32 + 1),
            };
            let timestamp_writes = (i < timed).then_some(writes);
            let descriptor = wgpu::ComputePassDescriptor { label: None, timestamp_writes };
            encode(&mut encoder.begin_compute_pass(&descriptor), dispatches, common);
        }
        let size = u64::from(count) * 8;
        let buffer = |usage| {
            self.device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
        };
        let resolved = buffer(wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC);
        let mapped = buffer(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
        encoder.resolve_query_set(&set, 0..count, &resolved, 0);
        encoder.copy_buffer_to_buffer(&resolved, 0, &mapped, 0, size);
        mapped
    }

    /// Waits for a submission, hands the first `bytes` of the staging buffer to `read` and returns the timings, if any.
    pub fn finish(
        &self,
        submission: Submission,
        staging: &Staging,
        bytes: u64,
        read: impl FnOnce(&[u8]) -> Result<()>,
    ) -> Result<Vec<Timing>> {
        let bytes = bytes.next_multiple_of(8);
        let timing = submission.timing.as_ref();
        let maps = [(bytes > 0).then_some((&staging.buffer.raw, bytes)), timing.map(|b| (b, b.size()))];
        let waiting: Vec<_> = maps.iter().flatten().map(|(buffer, bytes)| request(buffer, *bytes)).collect();
        self.await_work(submission.index)?;
        waiting.iter().try_for_each(|done| self.arrival(done))?;
        let result = match bytes {
            0 => read(&[]),
            _ => mapped(&staging.buffer.raw, bytes, read)?,
        };
        let timings = match timing {
            Some(buffer) => mapped(buffer, buffer.size(), |bytes| self.timings(bytes))?,
            None => Vec::new(),
        };
        result.map(|()| timings)
    }

    /// Waits for a submission. Where the last one took no longer than [`MOMENT`] from here on, it asks all the time for as long
    /// before it sleeps: waking up costs some tens of microseconds.
    fn await_work(&self, index: wgpu::SubmissionIndex) -> Result<()> {
        let start = Instant::now();
        let soon = !self.caps().cpu && self.waited.load(Ordering::Relaxed) < MOMENT.as_micros() as u64;
        let wait = wgpu::PollType::Wait { submission_index: Some(index), timeout: None };
        let waited = self.guarded(|| {
            while soon && start.elapsed() < MOMENT {
                if self.device.poll(wgpu::PollType::Poll)?.is_queue_empty() {
                    return Ok(());
                }
                std::hint::spin_loop();
            }
            self.device.poll(wait).map(|_| ())
        })?;
        waited.map_err(|e: wgpu::PollError| Error::Device(e.to_string()))?;
        self.waited.store(start.elapsed().as_micros() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Waits until a mapping is told of. Another thread's poll may have collected the callback and not yet run it.
    fn arrival(&self, done: &Mapping) -> Result<()> {
        loop {
            match done.recv_timeout(std::time::Duration::from_millis(1)) {
                Ok(Ok(())) => return Ok(()),
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    self.check()?;
                    self.device.poll(wgpu::PollType::Poll).map_err(|e| Error::Device(e.to_string()))?;
                }
                _ => {
                    self.check()?;
                    return Err(Error::Device("an output could not be mapped".into()));
                }
            }
        }
    }

    fn timings(&self, bytes: &[u8]) -> Vec<Timing> {
        let period = f64::from(self.queue.get_timestamp_period());
        let ticks: Vec<u64> = bytes
            .chunks_exact(8)
            .map(|b| b.iter().rev().fold(0u64, |n, &byte| n << 8 | u64::from(byte)))
            .map(|ticks| (ticks as f64 * period) as u64)
            .collect();
        ticks.chunks_exact(2).filter_map(|t| Some(Timing { start: *t.first()?, end: *t.last()? })).collect()
    }
}

fn encode(pass: &mut wgpu::ComputePass<'_>, dispatches: &[Dispatch], common: &BindGroup) {
    for dispatch in dispatches {
        pass.set_pipeline(&dispatch.pipeline.raw);
        pass.set_bind_group(0, &dispatch.group.0, &[]);
        pass.set_bind_group(1, &common.0, &[dispatch.params]);
        let [x, y, z] = dispatch.grid;
        pass.dispatch_workgroups(x, y, z);
    }
}

type Mapping = mpsc::Receiver<Result<(), wgpu::BufferAsyncError>>;

fn request(buffer: &wgpu::Buffer, bytes: u64) -> Mapping {
    let (tell, done) = mpsc::channel();
    buffer.slice(..bytes).map_async(wgpu::MapMode::Read, move |result| {
        // The receiver is gone only when the wait failed.
        let _ = tell.send(result);
    });
    done
}

fn mapped<T>(buffer: &wgpu::Buffer, bytes: u64, read: impl FnOnce(&[u8]) -> T) -> Result<T> {
    let output = match buffer.slice(..bytes).get_mapped_range() {
        Ok(view) => Ok(read(&view)),
        Err(e) => Err(Error::Device(e.to_string())),
    };
    buffer.unmap();
    output
}
