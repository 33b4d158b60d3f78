use std::cmp::Reverse;
use std::collections::HashMap;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use super::buffers::Buffer;
use super::cache::{DiskCache, default_directory};
use super::device::{Gpu, lock};
use crate::error::{Error, Result};
use crate::shader::{Access, Kernel, LIVE_VECTORS, assemble};

/// Bytes between the parameters of two steps, and the most that one step may have.
pub const PARAMS_STRIDE: u32 = 256;

/// A compiled kernel variant.
pub struct Pipeline {
    pub(super) raw: wgpu::ComputePipeline,
    layout: wgpu::BindGroupLayout,
}

/// Buffers bound to a pipeline.
pub struct BindGroup(pub(super) wgpu::BindGroup);

/// A range of a buffer: byte offset and length.
pub struct BufferRange<'a> {
    /// The buffer.
    pub buffer: &'a Buffer,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub bytes: u64,
}

pub(super) struct Pipelines {
    known: Mutex<HashMap<Kernel, Arc<Pipeline>>>,
    /// The driver's cache on disk; set by the first program that is loaded.
    disk: OnceLock<Option<DiskCache>>,
    common: wgpu::BindGroupLayout,
}

impl Pipelines {
    pub(super) fn new(device: &wgpu::Device) -> Pipelines {
        let uniform = |binding, dynamic, bytes: u64| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty: wgpu::BufferBindingType::Uniform,
                has_dynamic_offset: dynamic,
                min_binding_size: NonZeroU64::new(bytes),
            },
            count: None,
        };
        let entries = [uniform(0, true, u64::from(PARAMS_STRIDE)), uniform(1, false, (LIVE_VECTORS * 16) as u64)];
        let descriptor = wgpu::BindGroupLayoutDescriptor { label: Some("common"), entries: &entries };
        let (known, disk) = Default::default();
        Pipelines { known, disk, common: device.create_bind_group_layout(&descriptor) }
    }
}

impl Gpu {
    /// The pipeline of a variant; compiled on first use, then shared by all programs of the device.
    pub fn pipeline(&self, kernel: &Kernel) -> Result<Arc<Pipeline>> {
        if let Some(pipeline) = lock(&self.pipelines.known).get(kernel) {
            return Ok(pipeline.clone());
        }
        let pipeline = Arc::new(self.compile(kernel)?);
        lock(&self.pipelines.known).insert(kernel.clone(), pipeline.clone());
        Ok(pipeline)
    }

    /// Compiles the variants that are not known yet, several at a time, and keeps what the driver makes of them in
    /// `directory`: the default one for `None`, nowhere for "none". The first call of a device decides where.
    pub fn prepare(&self, kernels: &[&Kernel], directory: Option<&str>) -> Result<()> {
        let disk = self.pipelines.disk.get_or_init(|| self.open_disk(directory));
        let mut todo: Vec<&Kernel> = {
            let known = lock(&self.pipelines.known);
            kernels.iter().filter(|kernel| !known.contains_key(**kernel)).copied().collect()
        };
        if todo.is_empty() {
            return Ok(());
        }
        // Long texts take longest: none of them shall be the last.
        todo.sort_by_cached_key(|kernel| Reverse(assemble(kernel).len()));
        let start = Instant::now();
        let (next, failed, slowest) = (AtomicUsize::new(0), Mutex::new(None), Mutex::new((Duration::ZERO, "")));
        let work = || {
            while let Some(kernel) = todo.get(next.fetch_add(1, Ordering::Relaxed)) {
                let start = Instant::now();
                if let Err(error) = self.pipeline(kernel) {
                    lock(&failed).get_or_insert(error);
                }
                let mut slowest = lock(&slowest);
                *slowest = (*slowest).max((start.elapsed(), kernel.body.name()));
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(todo.len());
        std::thread::scope(|scope| {
            // A thread that cannot be started is one fewer; this one works too.
            let started = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
            let others: Vec<_> = (1..threads).map(started).collect();
            work();
            drop(others);
        });
        if let Some(error) = lock(&failed).take() {
            return Err(error);
        }
        let (time, name) = *lock(&slowest);
        let (count, all) = (todo.len(), start.elapsed());
        log::info!("{count} kernels compiled in {all:.2?} by {threads} threads, the slowest, {name}, in {time:.2?}");
        if let Some(disk) = disk {
            disk.save();
        }
        Ok(())
    }

    fn open_disk(&self, directory: Option<&str>) -> Option<DiskCache> {
        let directory = match directory {
            Some("none") => None,
            Some(name) => Some(PathBuf::from(name)),
            None => default_directory(),
        };
        let directory = directory.filter(|_| self.caps().pipeline_cache)?;
        DiskCache::open(&self.device, self.info(), &directory)
    }

    /// Number of pipelines compiled so far.
    pub fn pipeline_count(&self) -> usize {
        lock(&self.pipelines.known).len()
    }

    fn compile(&self, kernel: &Kernel) -> Result<Pipeline> {
        let text = assemble(kernel);
        log::debug!("compiling {}", kernel.body.name());
        let entries: Vec<_> = kernel
            .roles
            .iter()
            .enumerate()
            .map(|(binding, role)| wgpu::BindGroupLayoutEntry {
                binding: binding as u32,
                visibility: wgpu::ShaderStages::COMPUTE,
                ty: wgpu::BindingType::Buffer {
                    ty: wgpu::BufferBindingType::Storage { read_only: role.access == Access::Read },
                    has_dynamic_offset: false,
                    min_binding_size: None,
                },
                count: None,
            })
            .collect();
        let name = kernel.body.name();
        self.make(|| {
            let descriptor = wgpu::BindGroupLayoutDescriptor { label: Some(name), entries: &entries };
            let layout = self.device.create_bind_group_layout(&descriptor);
            let pipeline_layout = self.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: Some(name),
                bind_group_layouts: &[Some(&layout), Some(&self.pipelines.common)],
                immediate_size: 0,
            });
            let source = wgpu::ShaderSource::Wgsl(text.as_str().into());
            let module = wgpu::ShaderModuleDescriptor { label: Some(name), source };
            // SAFETY: every kernel bounds its indices by its parameters, and every loop of a kernel ends.
            let module =
                unsafe { self.device.create_shader_module_trusted(module, wgpu::ShaderRuntimeChecks::unchecked()) };
            let raw = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(name),
                layout: Some(&pipeline_layout),
                module: &module,
                entry_point: Some("main"),
                compilation_options: wgpu::PipelineCompilationOptions {
                    zero_initialize_workgroup_memory: false,
                    ..Default::default()
                },
                cache: self.pipelines.disk.get().and_then(|disk| disk.as_ref()).map(|disk| &disk.raw),
            });
            Pipeline { raw, layout }
        })
        .map_err(|e| match e {
            Error::Device(why) if self.check().is_ok() => {
                log::debug!("{}", numbered(&text));
                Error::Internal(format!("kernel {name}: {why}"))
            }
            other => other,
        })
    }

    /// Binds one range per role.
    pub fn bind(&self, pipeline: &Pipeline, ranges: &[BufferRange<'_>]) -> Result<BindGroup> {
        let entries: Vec<_> = ranges
            .iter()
            .enumerate()
            .map(|(binding, range)| wgpu::BindGroupEntry {
                binding: binding as u32,
                resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                    buffer: &range.buffer.raw,
                    offset: range.offset,
                    size: NonZeroU64::new(range.bytes),
                }),
            })
            .collect();
        let descriptor = wgpu::BindGroupDescriptor { label: None, layout: &pipeline.layout, entries: &entries };
        self.make(|| BindGroup(self.device.create_bind_group(&descriptor)))
    }

    /// Binds the parameters of all steps and the live values.
    pub fn bind_common(&self, params: &Buffer, live: &Buffer) -> Result<BindGroup> {
        let entries = [
            wgpu::BindGroupEntry {
                binding: 0,
                resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                    buffer: &params.raw,
                    offset: 0,
                    size: NonZeroU64::new(u64::from(PARAMS_STRIDE)),
                }),
            },
            wgpu::BindGroupEntry { binding: 1, resource: live.raw.as_entire_binding() },
        ];
        let layout = &self.pipelines.common;
        let descriptor = wgpu::BindGroupDescriptor { label: Some("common"), layout, entries: &entries };
        self.make(|| BindGroup(self.device.create_bind_group(&descriptor)))
    }
}

fn numbered(text: &str) -> String {
    text.lines().enumerate().map(|(i, line)| format!("{:4} {line}\n", i + 1)).collect()
}
