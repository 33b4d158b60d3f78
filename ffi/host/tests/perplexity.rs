//! Perplexity on the delegate against eager PyTorch.
//!
//! Model, tokens and eager's figure come from `python/etwgpu_export`; `ETWGPU_MODELS` names their folder.
#![allow(clippy::expect_used, clippy::unwrap_used)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use etwgpu_host::{Llama, OptionValue, Perplexity, Program, ProgramFiles, RuntimeOption, read_tokens};

fn load(program: &Path) -> Llama {
    common::plugin().unwrap();
    let files = ProgramFiles { program: program.to_owned(), data: Vec::new(), traced: false };
    let exact = RuntimeOption::new("force_f32_gemm", OptionValue::Bool(true)).unwrap();
    Llama::new(Program::load(&files, &[exact]).unwrap()).unwrap()
}

#[test]
fn a_tiny_model_has_the_perplexity_of_eager() {
    let models = PathBuf::from(std::env::var_os("ETWGPU_MODELS").expect("ETWGPU_MODELS names the folder of models"));
    let program = models.join("tiny/llama_all_logits.pte");
    let mut llama = load(&program);
    let tokens = read_tokens(&program.with_extension("tokens")).unwrap();
    let eager: serde_json::Value =
        serde_json::from_slice(&fs::read(program.with_extension("perplexity.json")).unwrap()).unwrap();
    assert_eq!(eager["window"], llama.longest_call());

    let found = Perplexity::measure(&mut llama, &tokens).unwrap();
    let windows = tokens.len().div_ceil(llama.longest_call());
    assert!(windows > 2 && tokens.len() % llama.longest_call() > 1, "a last window that is not full");
    assert_eq!(found.predicted, tokens.len() - windows);
    let expected = eager["nll"].as_f64().unwrap();
    assert!((found.nll - expected).abs() < 1e-5, "found {}, expected {expected}", found.nll);
}

#[test]
fn logits_of_the_last_token_alone_are_refused() {
    let error = Perplexity::measure(&mut load(&common::tiny_llama()), &[1, 2, 3]).unwrap_err();
    assert!(error.to_string().contains("[1, 3, 512]"), "{error}");
}
