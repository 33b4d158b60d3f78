//! Shared by the tests that run real programs; each uses a part of it.
#![allow(dead_code)]

use std::path::PathBuf;
use std::sync::OnceLock;

use etwgpu_host::{Error, Plugin, Program, ProgramFiles, Result, RuntimeOption, Tensor};

/// The plug-in, loaded once for the process.
pub fn plugin() -> Result<&'static Plugin> {
    static LOADED: OnceLock<Result<Plugin>> = OnceLock::new();
    LOADED.get_or_init(|| Plugin::load(&Plugin::find()?)).as_ref().map_err(Error::clone)
}

/// The model in `tests/fixtures`, or in the folder that `ETWGPU_FIXTURES` names: tokens int64 [1, up to 127] and position
/// int64 [1] to logits float [1, 512].
pub fn tiny_llama() -> PathBuf {
    let folder = std::env::var_os("ETWGPU_FIXTURES").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures"));
    folder.join("tiny_llama.pte")
}

pub fn load(options: &[RuntimeOption], traced: bool) -> Result<Program> {
    plugin()?;
    let files = ProgramFiles { program: tiny_llama(), data: Vec::new(), traced };
    let mut program = Program::load(&files, options)?;
    program.load_method("forward")?;
    Ok(program)
}

pub fn logits(program: &mut Program, tokens: &[i64], position: i64) -> Result<Tensor> {
    let len = i32::try_from(tokens.len()).map_err(|error| Error::Host(error.to_string()))?;
    let inputs = vec![Tensor::new(&[1, len], tokens)?.into(), Tensor::new(&[1], &[position])?.into()];
    let outputs = program.forward(inputs)?;
    outputs.first().ok_or_else(|| Error::Host("no output".to_owned()))?.tensor().cloned()
}
