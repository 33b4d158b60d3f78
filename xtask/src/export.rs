//! Exporting models through the Python package `etwgpu_export`; what is exported already is kept.

use std::process::Command;

use crate::Result;
use crate::compile::with_environment;
use crate::paths::{Python, root};
use crate::process::{self, heading};

/// Runs the export module `etwgpu_export.NAME`.
pub fn run(python: &Python, name: &str) -> Result {
    heading(&format!("exported models: {name}"));
    process::run(interpreter(python)?.args(["-m", &format!("etwgpu_export.{name}")]))
}

/// The environment's Python, run in the source tree with this project's packages on its path.
pub fn interpreter(python: &Python) -> Result<Command> {
    let mut command = Command::new(python.program("python"));
    command.current_dir(root()).env("PYTHONPATH", root().join("python"));
    with_environment(&mut command, python)?;
    Ok(command)
}
