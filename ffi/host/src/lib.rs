//! ExecuTorch's C++ `Module` driven from Rust: what tests, `etwgpu-bench` and `etwgpu-chat` run programs with.
//!
//! The delegate is not linked: [`Plugin`] loads it, after which every [`Program`] of the process can use it.

mod bridge;
mod error;
mod flags;
mod llama;
mod memory;
mod option;
mod perplexity;
mod plugin;
mod program;
mod scalar;
mod value;

pub use error::{Error, Result};
pub use flags::split_flags;
pub use llama::{Llama, argmax};
pub use memory::{host_peak_bytes, mebibytes};
pub use option::{OptionValue, RuntimeOption};
pub use perplexity::{Perplexity, read_tokens};
pub use plugin::{DeviceMemory, Plugin};
pub use program::{Program, ProgramFiles, Step, ValueInfo};
pub use scalar::{Element, ScalarType};
pub use value::{Tensor, Value};
