//! Whole networks, which take longer than tests may.

use crate::process::{self, heading};
use crate::{Result, compile, export, setup};

/// Exports the networks, runs them, and fails if one departs from eager PyTorch; with names, those alone.
pub fn run(names: &[&str]) -> Result {
    let python = setup::run()?;
    compile::run(&python)?;
    heading("networks");
    process::run(export::interpreter(&python)?.args(["-m", "etwgpu_export.nets"]).args(names))
}
