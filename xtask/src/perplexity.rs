//! Perplexity of SmolLM2 on the delegate, against eager PyTorch.

use crate::paths::models_dir;
use crate::process::{self, heading};
use crate::{Result, compile, demo, export, setup};

const MODEL: &str = "smollm2-135m-perplexity";

/// Exports the model and eager's figure where they are missing, measures with `arguments` of etwgpu-bench, and compares.
pub fn run(arguments: &[&str]) -> Result {
    let python = setup::run()?;
    compile::run(&python)?;
    export::run(&python, "smollm2_perplexity")?;
    heading("perplexity");
    let stem = models_dir()?.join(MODEL).join(MODEL);
    let mut bench = demo::host_program(&python, "etwgpu-bench")?;
    bench.arg("--model").arg(stem.with_extension("pte"));
    bench.arg("--perplexity").arg(stem.with_extension("tokens"));
    bench.arg("--eager").arg(stem.with_extension("perplexity.json"));
    process::run(bench.args(arguments))
}
