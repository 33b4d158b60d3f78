//! `etwgpu-bench` times a program, skips what does not fit it, and refuses what it cannot use.
#![allow(clippy::expect_used, clippy::unwrap_used)]

mod common;

use std::process::{Command, Output};

use serde_json::Value;

fn bench(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_etwgpu-bench")).args(args).output().unwrap()
}

#[test]
fn a_program_is_timed_and_profiled() {
    let json = std::env::temp_dir().join(format!("etwgpu-bench-{}.json", std::process::id()));
    let (model, json_flag) = (common::tiny_llama(), format!("--json={}", json.display()));
    let model = format!("--model={}", model.display());
    let args = [&model, &json_flag, "--prefill=7,9999", "--depth=5,9999", "--decode=4", "--calls=3", "--profile"];
    let output = bench(&args);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("prefill 9999     skipped: one call takes at most 127 tokens"), "{text}");
    assert!(text.contains("et_vk.linear_q4gsw.default, "), "{text}");

    let times: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let counts: Vec<_> = (0..4).map(|run| times["runs"][run]["milliseconds"].as_array().map(Vec::len)).collect();
    assert_eq!(counts, [Some(3), None, Some(4), None]);
    assert_eq!(times["profiles"][1]["run"], "decode at 5");
    assert!(times["device_bytes"]["weights"].as_u64().unwrap() > 0);
    std::fs::remove_file(json).unwrap();
}

#[test]
fn logits_are_compared_with_those_of_another_run() {
    let file = std::env::temp_dir().join(format!("etwgpu-logits-{}.f32", std::process::id()));
    let model = format!("--model={}", common::tiny_llama().display());
    let with = |flag: &str| bench(&[&model, &format!("{flag}={}", file.display()), "--spec=force_f32_gemm=true"]);
    let written = with("--logits");
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let bytes = std::fs::read(&file).unwrap();
    assert_eq!(bytes.len(), 4 * 512 * size_of::<f32>());
    let same = with("--expect");
    assert!(same.status.success(), "{}", String::from_utf8_lossy(&same.stderr));
    assert!(String::from_utf8_lossy(&same.stdout).contains("largest difference: 0.00e0"));
    let moved: Vec<u8> = bytes[4..].iter().chain(&bytes[..4]).copied().collect();
    for (changed, word) in
        [(&moved[..], "the logits differ"), (&bytes[..12], "found 3 logits"), (&bytes[1..], "multiple")]
    {
        std::fs::write(&file, changed).unwrap();
        let output = with("--expect");
        assert_eq!(output.status.code(), Some(1), "{word}");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(word), "{text}");
    }
    std::fs::remove_file(file).unwrap();
}

#[test]
fn mistakes_are_told() {
    for (args, word) in [(&["--decode=1", "--model=a"][..], "--decode"), (&["--model=none.pte"], "none.pte")] {
        let output = bench(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(word), "{args:?}");
    }
}
