//! Building the delegate, the C++ programs and the Rust host programs.

use std::process::Command;

use crate::Result;
use crate::paths::{BACKEND, Python, build_dir, models_dir, root};
use crate::process::{self, heading};

/// Builds everything that is not a test.
pub fn run(python: &Python) -> Result {
    heading("delegate and C++ programs");
    let ninja = python.program("ninja");
    let mut configure = Command::new(python.program("cmake"));
    configure.arg("-S").arg(root()).arg("-B").arg(build_dir()).args(["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]);
    configure.arg(format!("-DCMAKE_MAKE_PROGRAM={}", ninja.display()));
    configure.arg(format!("-DEXECUTORCH_DIR={}", python.executorch.display()));
    process::run(&mut configure)?;
    process::run(Command::new(python.program("cmake")).arg("--build").arg(build_dir()))?;
    heading("host programs");
    process::run(&mut cargo(python, &["build", "--release", "--package", "etwgpu-host"])?)?;
    process::run(&mut cargo(python, &["build", "--release", "--package", "executorch-webgpu", "--bin", "etwgpu-ops"])?)
}

/// Cargo with the environment that the host crate and the tests read.
pub fn cargo(python: &Python, arguments: &[&str]) -> Result<Command> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root()).args(arguments);
    with_environment(&mut command, python)?;
    Ok(command)
}

/// Tells `command` where ExecuTorch, the delegate and the exported models are.
pub fn with_environment(command: &mut Command, python: &Python) -> Result {
    command.env("EXECUTORCH_DIR", &python.executorch);
    command.env("ETWGPU_BACKEND", build_dir().join(BACKEND));
    command.env("ETWGPU_MODELS", models_dir()?);
    Ok(())
}
