//! Chatting with a model on the delegate.

use std::process::Command;

use crate::paths::{Python, models_dir};
use crate::process::{self, heading};
use crate::{Result, compile, export, setup};

const MODEL: &str = "smollm2-135m";

/// Sets up, builds, exports SmolLM2 and lets it continue `prompt`.
pub fn run(prompt: &str) -> Result {
    let python = setup::run()?;
    compile::run(&python)?;
    export::run(&python, "smollm2")?;
    heading("demo");
    let model = models_dir()?.join(MODEL);
    let mut chat = host_program(&python, "etwgpu-chat")?;
    chat.args(["--raw", "--max-new-tokens", "64", "--prompt", prompt]);
    chat.arg("--model").arg(model.join(format!("{MODEL}.pte")));
    process::run(chat.arg("--tokenizer").arg(model.join("tokenizer.json")))
}

/// Sets up, builds and runs the host program `name` with `arguments`.
pub fn run_program(name: &str, arguments: &[&str]) -> Result {
    let python = setup::run()?;
    compile::run(&python)?;
    // Paths among the arguments are the caller's.
    let here = std::env::current_dir().map_err(|error| format!("no current directory: {error}"))?;
    process::run(host_program(&python, name)?.current_dir(here).args(arguments))
}

/// Cargo's command that runs the host program `name` with the arguments that are added.
pub fn host_program(python: &Python, name: &str) -> Result<Command> {
    let arguments = ["run", "--quiet", "--release", "--package", "etwgpu-host", "--bin", name, "--"];
    compile::cargo(python, &arguments)
}
