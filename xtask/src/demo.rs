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
    let mut chat = etwgpu_chat(&python)?;
    chat.args(["--raw", "--max-new-tokens", "64", "--prompt", prompt]);
    chat.arg("--model").arg(model.join(format!("{MODEL}.pte")));
    process::run(chat.arg("--tokenizer").arg(model.join("tokenizer.json")))
}

/// Sets up, builds and runs `etwgpu-chat` with `arguments`.
pub fn chat(arguments: &[&str]) -> Result {
    let python = setup::run()?;
    compile::run(&python)?;
    process::run(etwgpu_chat(&python)?.args(arguments))
}

fn etwgpu_chat(python: &Python) -> Result<Command> {
    let arguments = ["run", "--quiet", "--release", "--package", "etwgpu-host", "--bin", "etwgpu-chat", "--"];
    compile::cargo(python, &arguments)
}
