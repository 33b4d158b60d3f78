//! The device: the only module that names wgpu.

mod buffers;
mod cache;
mod caps;
mod check;
mod choose;
mod device;
mod pipelines;
mod shared;
mod submit;

pub use buffers::{Buffer, Memory, MemoryKind, memory};
pub use caps::{Caps, CoopShape};
pub use check::coop_types;
pub use choose::adapter_available;
pub use device::{Gpu, Profile};
pub use pipelines::{BindGroup, BufferRange, PARAMS_STRIDE, Pipeline};
pub use shared::Shared;
pub use submit::{Copy, Dispatch, Encoded, Staging, Submission, Timed, Timing};
