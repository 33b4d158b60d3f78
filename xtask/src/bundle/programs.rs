//! Test programs, as cargo and CMake built them.

use std::fs;
use std::path::PathBuf;

use crate::paths::{Python, build_dir};
use crate::process::{heading, output};
use crate::{Result, compile};

/// Cargo's selections of the tests that run without a source tree.
const SELECTIONS: [&[&str]; 2] = [
    &["--package", "executorch-webgpu", "--lib", "--tests"],
    &["--package", "etwgpu-host", "--test", "goldens", "--test", "perplexity", "--test", "program"],
];

/// Builds the Rust tests for release; gives their names and files.
pub fn rust_tests(python: &Python) -> Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for selection in SELECTIONS {
        heading(&format!("release tests: {}", selection.join(" ")));
        let arguments = ["test", "--release", "--no-run", "--message-format", "json-render-diagnostics"];
        let messages = output(&mut compile::cargo(python, &[&arguments, selection].concat())?)?;
        found.extend(messages.lines().filter_map(test_program));
    }
    if found.is_empty() { Err("cargo built no tests".to_owned()) } else { Ok(found) }
}

/// The test program that a message of cargo tells of; a crate's own tests are called `unit`.
fn test_program(message: &str) -> Option<(String, PathBuf)> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    if message["profile"]["test"] != true {
        return None;
    }
    let file = message["executable"].as_str()?;
    let is_test = message["target"]["kind"].as_array()?.iter().any(|kind| kind == "test");
    let name = if is_test { message["target"]["name"].as_str()? } else { "unit" };
    Some((name.to_owned(), file.into()))
}

/// The C++ tests, which CMake has built.
pub fn abi_tests() -> Result<Vec<(String, PathBuf)>> {
    let folder = build_dir();
    let entries = fs::read_dir(&folder).map_err(|error| format!("{} is unreadable: {error}", folder.display()))?;
    let files = entries.flatten().map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()));
    let found: Vec<_> = files.filter(|(name, path)| name.starts_with("abi_") && path.is_file()).collect();
    if found.is_empty() { Err(format!("{} has no abi_* tests", folder.display())) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tests_are_found_in_messages() {
        let message = |kind: &str, test: bool, executable: &str| {
            let target = format!(r#"{{"kind":["{kind}"],"name":"ops"}}"#);
            format!(r#"{{"target":{target},"profile":{{"test":{test}}},"executable":{executable}}}"#)
        };
        let named = |name: &str| Some((name.to_owned(), PathBuf::from("/a")));
        assert_eq!(test_program(&message("test", true, r#""/a""#)), named("ops"));
        assert_eq!(test_program(&message("lib", true, r#""/a""#)), named("unit"));
        assert_eq!(test_program(&message("bin", false, r#""/a""#)), None);
        assert_eq!(test_program(&message("lib", true, "null")), None);
        assert_eq!(test_program("not json"), None);
    }
}
