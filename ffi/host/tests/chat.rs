//! `etwgpu-chat` refuses what it cannot use, with a sentence and an exit code.

use std::io;
use std::process::{Command, Output};

fn chat(args: &[&str]) -> io::Result<Output> {
    Command::new(env!("CARGO_BIN_EXE_etwgpu-chat")).args(args).output()
}

fn refusal(args: &[&str]) -> io::Result<String> {
    let output = chat(args)?;
    assert_eq!(output.status.code(), Some(1), "{args:?}");
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn help_lists_the_flags() -> io::Result<()> {
    let output = chat(&["--help"])?;
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("--max-new-tokens"));
    Ok(())
}

#[test]
fn mistakes_are_told() -> io::Result<()> {
    assert!(refusal(&[])?.contains("--model is required"));
    assert!(refusal(&["--temperature", "1"])?.contains("unknown flag --temperature"));
    let files = ["--model=none.pte", "--tokenizer=none.json", "--prompt=hello"];
    assert!(refusal(&[&files[..], &["--backend=none.so"]].concat())?.contains("none.so"));
    Ok(())
}
