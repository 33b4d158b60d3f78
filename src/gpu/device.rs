use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::caps::{Caps, CoopShape};
use super::check::{coop_types, cooperative_product};
use super::choose::adapter;
use super::pipelines::Pipelines;
use super::shared::Shared;
use crate::error::{Error, Result};

/// How much of an adapter to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// All limits and all features that kernels know.
    #[default]
    Full,
    /// WebGPU's guaranteed limits, half of its invocations in a workgroup and no optional feature.
    Minimal,
    /// All features, but bindings and buffers of no more than these bytes: for tests.
    Capped {
        /// Largest storage binding.
        binding: u64,
        /// Largest buffer.
        buffer: u64,
    },
}

/// A device with its queue, its pipelines and what it can do. Shared by all programs that chose the same adapter.
pub struct Gpu {
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    pub(super) pipelines: Pipelines,
    /// Bytes that were written and not submitted yet, and the last submission of written bytes that may still run.
    pub(super) pending: AtomicUsize,
    pub(super) streamed: Mutex<Option<wgpu::SubmissionIndex>>,
    /// Weights of all programs.
    pub shared: Shared,
    objects: AtomicU64,
    /// Microseconds of the last wait for the device.
    pub(super) waited: AtomicU64,
    caps: Caps,
    info: wgpu::AdapterInfo,
    lost: Arc<Mutex<Option<String>>>,
}

struct Entry {
    selector: Option<String>,
    profile: Profile,
    gpu: Arc<Gpu>,
}

static OPEN: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a future that wgpu completes on the calling thread.
pub(super) fn ready<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::yield_now(),
        }
    }
}

impl Gpu {
    /// The device that `selector` names (see [`crate::options::Options::adapter`]); opened on first use, and again after a
    /// loss.
    pub fn open(selector: Option<&str>, profile: Profile) -> Result<Arc<Gpu>> {
        let mut open = lock(&OPEN);
        open.retain(|entry| entry.gpu.check().is_ok());
        let known = open.iter().find(|e| e.selector.as_deref() == selector && e.profile == profile);
        if let Some(entry) = known {
            return Ok(entry.gpu.clone());
        }
        let gpu = Arc::new(Gpu::create(&adapter(selector)?, profile)?);
        open.push(Entry { selector: selector.map(str::to_string), profile, gpu: gpu.clone() });
        Ok(gpu)
    }

    fn create(adapter: &wgpu::Adapter, profile: Profile) -> Result<Gpu> {
        let (features, mut limits) = match profile {
            Profile::Minimal => (wgpu::Features::empty(), least_limits()),
            _ => (adapter.features() & wanted_features(), adapter.limits()),
        };
        if let Profile::Capped { binding, buffer } = profile {
            limits.max_storage_buffer_binding_size = limits.max_storage_buffer_binding_size.min(binding);
            limits.max_buffer_size = limits.max_buffer_size.min(buffer);
        }
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("executorch-webgpu"),
            required_features: features,
            required_limits: limits.clone(),
            // SAFETY: the one experimental feature in use, cooperative matrices, is only reached by kernels of this crate.
            experimental_features: unsafe { wgpu::ExperimentalFeatures::enabled() },
            memory_hints: wgpu::MemoryHints::Performance,
            trace: wgpu::Trace::Off,
        };
        let info = adapter.get_info();
        let (device, queue) = ready(adapter.request_device(&descriptor))
            .map_err(|e| Error::Device(format!("{} gave no device: {e}", info.name)))?;
        let lost = Arc::new(Mutex::new(None));
        let told = lost.clone();
        device.set_device_lost_callback(move |reason, text| {
            *lock(&told) = Some(format!("{reason:?} {text}"));
        });
        device.on_uncaptured_error(Arc::new(|error: wgpu::Error| log::error!("uncaptured: {error}")));
        let caps = capabilities(adapter, features, &limits);
        let pipelines = Pipelines::new(&device);
        let (pending, objects, waited) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let (streamed, shared) = (Mutex::new(None), Shared::default());
        let mut gpu = Gpu {
            device,
            queue,
            pipelines,
            pending,
            streamed,
            shared,
            objects,
            waited,
            caps,
            info: info.clone(),
            lost,
        };
        gpu.drop_wrong_features();
        let caps = &gpu.caps;
        log::info!("adapter {} ({:?}, {} {}): {caps}", info.name, info.backend, info.driver, info.driver_info);
        Ok(gpu)
    }

    /// Cooperative matrices of other shapes than the kernels', or that fail a small product, are not used.
    fn drop_wrong_features(&mut self) {
        let Some((lanes, _)) = self.caps.subgroup else {
            self.caps.coop.clear();
            return;
        };
        let mut kept = Vec::new();
        for shape in std::mem::take(&mut self.caps.coop).into_iter().filter(|&shape| coop_types(shape).is_some()) {
            match cooperative_product(self, shape, lanes) {
                Ok(true) => kept.push(shape),
                other => {
                    let name = self.name();
                    log::warn!("{name}: cooperative matrices {shape:?} are not used, a small product gave {other:?}");
                }
            }
        }
        self.caps.coop = kept;
    }

    /// What the device can do.
    pub fn caps(&self) -> &Caps {
        &self.caps
    }

    /// The adapter's name.
    pub fn name(&self) -> &str {
        &self.info.name
    }

    pub(super) fn info(&self) -> &wgpu::AdapterInfo {
        &self.info
    }

    /// Buffers, bind groups, pipelines and query sets made so far. A call of shapes that were foreseen at load makes none,
    /// unless it is timed.
    pub fn objects_made(&self) -> u64 {
        self.objects.load(Ordering::Relaxed)
    }

    /// Makes one device object, and counts it.
    pub(super) fn make<T>(&self, work: impl FnOnce() -> T) -> Result<T> {
        self.count_objects(1);
        self.guarded(work)
    }

    pub(super) fn count_objects(&self, count: u64) {
        self.objects.fetch_add(count, Ordering::Relaxed);
    }

    /// Fails once the device is lost.
    pub fn check(&self) -> Result<()> {
        match &*lock(&self.lost) {
            Some(reason) => Err(Error::Device(format!("{} is lost: {reason}; load the program again", self.name()))),
            None => Ok(()),
        }
    }

    /// Loses the device on purpose, as a driver reset would.
    pub fn destroy(&self) {
        self.device.destroy();
        let _ = self.device.poll(wgpu::PollType::Poll);
        lock(&self.lost).get_or_insert_with(|| "destroyed".to_string());
    }

    /// Runs `work` and turns every error of the graphics API in it into an [`Error`].
    pub(super) fn guarded<T>(&self, work: impl FnOnce() -> T) -> Result<T> {
        self.check()?;
        let filters = [wgpu::ErrorFilter::Internal, wgpu::ErrorFilter::Validation, wgpu::ErrorFilter::OutOfMemory];
        let scopes = filters.map(|filter| self.device.push_error_scope(filter));
        let output = work();
        let mut first = None;
        for scope in scopes.into_iter().rev() {
            let error = ready(scope.pop());
            first = first.or(error);
        }
        match first {
            None => Ok(output),
            Some(wgpu::Error::OutOfMemory { .. }) => Err(Error::OutOfMemory(format!("on {}", self.name()))),
            Some(error) => {
                self.check()?;
                Err(Error::Device(error.to_string()))
            }
        }
    }
}

fn wanted_features() -> wgpu::Features {
    wgpu::Features::SHADER_F16
        | wgpu::Features::SUBGROUP
        | wgpu::Features::TIMESTAMP_QUERY
        | wgpu::Features::PIPELINE_CACHE
        | wgpu::Features::IMMEDIATES
        | wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX
}

/// WebGPU's guaranteed limits, but for workgroups, of which Vulkan guarantees half.
fn least_limits() -> wgpu::Limits {
    wgpu::Limits {
        max_compute_invocations_per_workgroup: 128,
        max_compute_workgroup_size_x: 128,
        max_compute_workgroup_size_y: 128,
        ..wgpu::Limits::default()
    }
}

fn capabilities(adapter: &wgpu::Adapter, features: wgpu::Features, limits: &wgpu::Limits) -> Caps {
    let info = adapter.get_info();
    let has = |feature| features.contains(feature);
    let f16 = has(wgpu::Features::SHADER_F16);
    let cpu = info.device_type == wgpu::DeviceType::Cpu;
    let coop = if f16 && has(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX) {
        adapter.cooperative_matrix_properties().iter().filter_map(coop_shape).collect()
    } else {
        Vec::new()
    };
    Caps {
        f16,
        subgroup: has(wgpu::Features::SUBGROUP).then_some((info.subgroup_min_size, info.subgroup_max_size)),
        // Vulkan and DX12 name the instruction, and their GPUs have had it for years; elsewhere it is emulated.
        packed_dot: !cpu && matches!(info.backend, wgpu::Backend::Vulkan | wgpu::Backend::Dx12),
        cpu,
        timestamps: has(wgpu::Features::TIMESTAMP_QUERY),
        pipeline_cache: has(wgpu::Features::PIPELINE_CACHE),
        immediate_bytes: if has(wgpu::Features::IMMEDIATES) { limits.max_immediate_size } else { 0 },
        coop,
        max_binding: limits.max_storage_buffer_binding_size,
        max_buffer: limits.max_buffer_size,
        max_storage_buffers: limits.max_storage_buffers_per_shader_stage,
        shared_bytes: limits.max_compute_workgroup_storage_size,
        max_invocations: limits.max_compute_invocations_per_workgroup,
        max_size_x: limits.max_compute_workgroup_size_x,
        max_groups: limits.max_compute_workgroups_per_dimension,
        storage_alignment: limits.min_storage_buffer_offset_alignment,
        uniform_alignment: limits.min_uniform_buffer_offset_alignment,
    }
}

fn coop_shape(p: &wgpu::CooperativeMatrixProperties) -> Option<CoopShape> {
    use wgpu::CooperativeScalarType::{F16, F32};
    let half = p.ab_type == F16 && (p.cr_type == F16 || p.cr_type == F32);
    half.then_some(CoopShape { m: p.m_size, n: p.n_size, k: p.k_size, f16_accumulate: p.cr_type == F16 })
}
