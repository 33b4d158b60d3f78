//! Exported models against eager PyTorch: every call's logits, and the greedy choice of every step.
//!
//! The comparison asks for factors in f32; where cooperative matrices multiply halves, the default is held to a wider bound.
//!
//! The models and goldens come from `python/etwgpu_export`; `ETWGPU_MODELS` names their folder.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

mod common;

use std::path::{Path, PathBuf};

use etwgpu_host::{OptionValue, Program, ProgramFiles, RuntimeOption};
use serde_json::Value;

/// A step's logits may differ from eager f32 by this much, absolutely or relatively.
const TOLERANCE: f32 = 1e-3;

struct Goldens {
    program: PathBuf,
    vocab: usize,
    cases: Vec<Case>,
    logits: Vec<f32>,
}

struct Case {
    name: String,
    calls: Vec<Call>,
}

struct Call {
    position: i64,
    tokens: Vec<i64>,
    logits: usize,
}

fn integer(value: &Value) -> i64 {
    value.as_i64().expect("an integer")
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().expect("a list").iter()
}

impl Goldens {
    fn read(program: &Path) -> Goldens {
        let text = std::fs::read_to_string(program.with_extension("json")).expect("goldens beside the program");
        let json: Value = serde_json::from_str(&text).unwrap();
        let bytes = std::fs::read(program.with_extension("f32")).unwrap();
        let logits = bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        let cases = list(&json["cases"]).map(|case| Case {
            name: case["name"].as_str().unwrap().to_owned(),
            calls: list(&case["calls"]).map(call).collect(),
        });
        let vocab = usize::try_from(integer(&json["vocab"])).unwrap();
        Goldens { program: program.to_owned(), vocab, cases: cases.collect(), logits }
    }

    fn load(&self, options: &[RuntimeOption], tolerance: f32) -> Program {
        common::plugin().unwrap();
        let files = ProgramFiles { program: self.program.clone(), data: Vec::new(), traced: false };
        let exact = RuntimeOption::new("force_f32_gemm", OptionValue::Bool(tolerance <= TOLERANCE)).unwrap();
        let mut program = Program::load(&files, &[options, &[exact]].concat()).unwrap();
        program.load_method("forward").unwrap();
        program
    }

    /// Runs a case on a fresh program; returns how many calls were compared.
    fn check(&self, case: &Case, options: &[RuntimeOption], tolerance: f32) -> usize {
        let mut program = self.load(options, tolerance);
        for (index, call) in case.calls.iter().enumerate() {
            let output = common::logits(&mut program, &call.tokens, call.position).unwrap();
            let got: Vec<f32> = output.elements().unwrap();
            let got = &got[got.len() - self.vocab..];
            let want = &self.logits[call.logits..][..self.vocab];
            let worst = worst(got, want);
            let place = format!("{} case {:?} call {index}", self.program.display(), case.name);
            assert!(worst <= tolerance, "{place}: logits differ by {worst}");
            let next = case.calls.get(index + 1).filter(|next| next.tokens.len() == 1 && index > 0);
            if let Some(next) = next.filter(|_| tolerance <= TOLERANCE) {
                let expected = argmax(want);
                assert_eq!(argmax(got), expected, "{place}: another token");
                let chosen = usize::try_from(next.tokens[0]).unwrap();
                assert!(
                    chosen == expected || case.name.contains("token by token"),
                    "{place}: the goldens are not greedy"
                );
            }
        }
        case.calls.len()
    }
}

fn call(json: &Value) -> Call {
    let logits = usize::try_from(integer(&json["logits"])).unwrap();
    Call { position: integer(&json["pos"]), tokens: list(&json["tokens"]).map(integer).collect(), logits }
}

/// The largest difference, absolute or relative, whichever is smaller per element; infinite for NaN.
fn worst(got: &[f32], want: &[f32]) -> f32 {
    let difference = |(a, b): (&f32, &f32)| {
        let absolute = (a - b).abs();
        let smaller = absolute.min(absolute / b.abs().max(1e-6));
        if smaller.is_nan() { f32::INFINITY } else { smaller }
    };
    got.iter().zip(want).map(difference).fold(0.0, f32::max)
}

fn argmax(logits: &[f32]) -> usize {
    (0..logits.len()).fold(0, |best, i| if logits[i] > logits[best] { i } else { best })
}

fn models(folder: &str) -> Vec<PathBuf> {
    let root = std::env::var_os("ETWGPU_MODELS").expect("ETWGPU_MODELS names the folder of exported models");
    let folder = PathBuf::from(root).join(folder);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.extension().is_some_and(|ending| ending == "pte"));
    found.sort();
    assert!(!found.is_empty(), "no programs in {}", folder.display());
    found
}

#[test]
fn the_fixture_follows_eager() {
    let goldens = Goldens::read(&common::tiny_llama());
    assert_eq!(goldens.cases.iter().map(|case| goldens.check(case, &[], TOLERANCE)).sum::<usize>(), 9);
}

#[test]
fn tiny_models_follow_eager_at_every_length_and_in_chunks() {
    let models = models("tiny");
    assert!(models.len() >= 6, "Llama, Qwen2 and Qwen3 style, tied and untied: {models:?}");
    for path in models {
        let goldens = Goldens::read(&path);
        assert!(goldens.cases.len() >= 5, "{}", path.display());
        goldens.cases.iter().for_each(|case| assert!(goldens.check(case, &[], TOLERANCE) >= 9));
    }
}

#[test]
fn the_default_arithmetic_stays_close_to_eager() {
    for path in models("tiny") {
        let goldens = Goldens::read(&path);
        goldens.cases.iter().for_each(|case| assert!(goldens.check(case, &[], 3e-2) >= 9));
    }
}

#[test]
fn half_caches_stay_close_to_eager() {
    let option = RuntimeOption::new("enable_f16_kv_cache", OptionValue::Bool(true)).unwrap();
    for path in models("tiny") {
        let goldens = Goldens::read(&path);
        let case = goldens.cases.last().unwrap();
        goldens.check(case, std::slice::from_ref(&option), 3e-2);
    }
}

#[test]
fn smollm2_follows_eager_token_for_token() {
    for path in models("smollm2-135m") {
        let goldens = Goldens::read(&path);
        assert!(goldens.cases.len() >= 3);
        goldens.cases.iter().for_each(|case| assert!(goldens.check(case, &[], TOLERANCE) >= 64));
    }
}
