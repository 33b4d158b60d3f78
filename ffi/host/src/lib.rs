//! ExecuTorch's C++ `Module` driven from Rust: what tests, benchmarks and `etwgpu-chat` run programs with.
//!
//! The delegate is not linked: [`Plugin`] loads it, after which every [`Program`] of the process can use it.

mod bridge;
mod error;
mod option;
mod plugin;
mod program;
mod scalar;
mod value;

pub use error::{Error, Result};
pub use option::{OptionValue, RuntimeOption};
pub use plugin::{DeviceMemory, Plugin};
pub use program::{Program, ProgramFiles, ValueInfo};
pub use scalar::{Element, ScalarType};
pub use value::{Tensor, Value};
