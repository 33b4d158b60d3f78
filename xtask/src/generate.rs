//! Files that are written by a program and kept in the tree: the payload's reader, the C header, the README's op table.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::paths::{Python, build_dir, root};
use crate::process::{self, heading, output};
use crate::{Result, compile, setup};

const BEGIN: &str = "<!-- ops:begin -->\n";
const END: &str = "<!-- ops:end -->";

struct Generated {
    path: PathBuf,
    text: String,
}

/// Writes every generated file that differs from what its source says.
pub fn write() -> Result {
    for file in all()? {
        if fs::read_to_string(&file.path).is_ok_and(|found| found == file.text) {
            continue;
        }
        fs::write(&file.path, &file.text).map_err(|error| format!("{} cannot be written: {error}", shown(&file)))?;
        println!("wrote {}", shown(&file));
    }
    Ok(())
}

/// Fails if a generated file differs from what its source says; names each and its first differing line.
pub fn check() -> Result {
    let drifted: Vec<String> = all()?.iter().filter_map(drift).collect();
    if drifted.is_empty() { Ok(()) } else { Err(format!("{}; run `cargo xtask generate`", drifted.join("; "))) }
}

fn drift(file: &Generated) -> Option<String> {
    let found = fs::read_to_string(&file.path).unwrap_or_default();
    if found == file.text {
        return None;
    }
    let same = found.lines().zip(file.text.lines()).take_while(|(left, right)| left == right).count();
    Some(format!("{} is out of date from line {} on", shown(file), same + 1))
}

fn shown(file: &Generated) -> String {
    file.path.strip_prefix(root()).unwrap_or(&file.path).display().to_string()
}

fn all() -> Result<[Generated; 3]> {
    let python = setup::run()?;
    heading("generated files");
    Ok([payload_reader(&python)?, c_header()?, op_table(&python)?])
}

fn payload_reader(python: &Python) -> Result<Generated> {
    let name = "vulkan_payload_generated.rs";
    let folder = build_dir().join("generated");
    let flatc = python.executorch.join("data/bin/flatc");
    let schema = root().join("schema/vulkan_payload.fbs");
    process::run(Command::new(flatc).args(["--rust", "-o"]).arg(&folder).arg(schema))?;
    let written = folder.join(name);
    let style = root().join("rustfmt.toml");
    process::run(Command::new("rustfmt").args(["--edition", "2024", "--config-path"]).arg(style).arg(&written))?;
    let text = fs::read_to_string(&written).map_err(|error| format!("{} is unreadable: {error}", written.display()))?;
    Ok(Generated { path: root().join("schema").join(name), text })
}

fn c_header() -> Result<Generated> {
    let config = cbindgen::Config::from_file(root().join("cbindgen.toml"))?;
    let builder = cbindgen::Builder::new().with_config(config);
    let builder = builder.with_src(root().join("src/ffi/abi.rs")).with_src(root().join("src/ffi.rs"));
    let bindings = builder.generate().map_err(|error| format!("cbindgen cannot read src/ffi: {error}"))?;
    let mut text = Vec::new();
    bindings.write(&mut text);
    let text = String::from_utf8(text).map_err(|error| format!("cbindgen wrote bytes that are not UTF-8: {error}"))?;
    Ok(Generated { path: root().join("include/executorch_webgpu.h"), text })
}

fn op_table(python: &Python) -> Result<Generated> {
    let path = root().join("README.md");
    let readme = fs::read_to_string(&path).map_err(|error| format!("README.md is unreadable: {error}"))?;
    let arguments = ["run", "--quiet", "--package", "executorch-webgpu", "--bin", "etwgpu-ops"];
    let table = output(&mut compile::cargo(python, &arguments)?)?;
    Ok(Generated { path, text: with_table(&readme, &table)? })
}

fn with_table(readme: &str, table: &str) -> Result<String> {
    let missing = |marker: &str| format!("README.md has no line {}", marker.trim_end());
    let (before, rest) = readme.split_once(BEGIN).ok_or_else(|| missing(BEGIN))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| missing(END))?;
    Ok(format!("{before}{BEGIN}{}\n{END}{after}", table.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_replaces_what_lies_between_the_markers() {
        let readme = "intro\n<!-- ops:begin -->\nold\n<!-- ops:end -->\nrest\n";
        let expected = "intro\n<!-- ops:begin -->\n| new |\n<!-- ops:end -->\nrest\n";
        assert_eq!(with_table(readme, "| new |\n"), Ok(expected.to_owned()));
        assert_eq!(with_table(expected, "| new |"), Ok(expected.to_owned()));
        assert!(with_table("no markers", "").is_err());
    }

    #[test]
    fn drift_names_the_first_line_that_differs() {
        let file = Generated { path: root().join("rustfmt.toml"), text: String::new() };
        assert_eq!(drift(&file), Some("rustfmt.toml is out of date from line 1 on".to_owned()));
    }
}
