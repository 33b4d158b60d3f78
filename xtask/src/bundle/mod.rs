//! `cargo xtask bundle`: what it takes to check and time the delegate on a Linux x86-64 machine that has a GPU driver and
//! little else. The parts are small enough to be carried one by one; `run.sh` among them unpacks and runs them.

mod pack;
mod programs;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::paths::{BACKEND, Python, build_dir, models_dir, root, target_dir};
use crate::process::{self, heading};
use crate::{Result, compile, export, setup, system};
use pack::Part;

const RUN: &str = include_str!("run.sh");
/// Parts of models: exporters and the folders that they write.
const MODELS: [(&str, &[(&str, &str)]); 3] = [
    ("tiny", &[("tiny", "tiny")]),
    ("smollm2", &[("smollm2", "smollm2-135m"), ("smollm2_perplexity", "smollm2-135m-perplexity")]),
    ("nets", &[("nets", "nets")]),
];

/// Libraries of the ExecuTorch wheel that the programs link to.
const EXECUTORCH_LIBRARIES: [&str; 4] = [
    "libexecutorch.so",
    "libexecutorch_etdump.so",
    "libexecutorch_kernels_optimized.so",
    "libexecutorch_threadpool.so",
];

struct Choice {
    smollm2: bool,
    nets: bool,
    check: bool,
}

impl Choice {
    /// Whether a part of models comes along.
    fn takes(&self, part: &str) -> bool {
        match part {
            "smollm2" => self.smollm2,
            "nets" => self.nets,
            _ => true,
        }
    }

    fn parse(words: &[&str]) -> Result<Self> {
        let mut choice = Choice { smollm2: false, nets: false, check: false };
        for word in words {
            match *word {
                "--smollm2" => choice.smollm2 = true,
                "--without-smollm2" => choice.smollm2 = false,
                "--nets" => choice.nets = true,
                "--check" => choice.check = true,
                _ => return Err(format!("bundle: unknown argument `{word}`")),
            }
        }
        Ok(choice)
    }
}

/// Builds, gathers and packs the bundle into `bundle` in cargo's target folder, and with `--check` runs it there.
pub fn run(words: &[&str]) -> Result {
    let choice = Choice::parse(words)?;
    let python = setup::run()?;
    compile::run(&python)?;
    let models: Vec<_> = MODELS.iter().filter(|(part, _)| choice.takes(part)).collect();
    for (exporter, _) in models.iter().flat_map(|(_, folders)| folders.iter()) {
        export::run(&python, exporter)?;
    }
    let tests = programs::rust_tests(&python)?;

    heading("bundle");
    let folder = target_dir().join("bundle");
    let stage = Stage::new(target_dir().join("bundle-stage"))?;
    stage.programs(&python, &tests)?;
    let contents = ["bin", "lib", "fixtures"].map(str::to_owned).to_vec();
    let mut parts = vec![Part { name: "programs", contents }];
    for (name, folders) in models {
        let contents = folders.iter().map(|(_, model)| stage.model(model)).collect::<Result<_>>()?;
        parts.push(Part { name, contents });
    }
    empty(&folder)?;
    write(&folder.join("run.sh"), RUN)?;
    let sizes = parts.iter().map(|part| part.pack(&stage.folder, &folder)).collect::<Result<Vec<_>>>()?;
    sizes.iter().flatten().for_each(|line| println!("{line}"));
    println!("all of it is in {}; there: sh run.sh [LOGS] [MODEL.pte ...]", folder.display());
    if choice.check { check(&folder) } else { Ok(()) }
}

/// Runs the bundle with the smallest measurements, and without perplexity, which takes a CPU the better part of an hour.
fn check(folder: &Path) -> Result {
    heading("bundle: check");
    let mut run = Command::new("sh");
    run.arg(folder.join("run.sh")).arg(target_dir().join("bundle-logs"));
    run.env("ETWGPU_BENCH", "--prefill 16 --depth 16 --decode 3 --calls 3 --profile");
    run.env("ETWGPU_SKIP", "perplexity-*");
    process::run(&mut run)
}

/// The folder that is packed.
struct Stage {
    folder: PathBuf,
}

impl Stage {
    fn new(folder: PathBuf) -> Result<Self> {
        empty(&folder)?;
        Ok(Self { folder })
    }

    /// Stages `bin/rust` and `bin/abi` (tests), `bin` (other programs), `lib` and `fixtures`.
    fn programs(&self, python: &Python, tests: &[(String, PathBuf)]) -> Result {
        for (name, test) in tests {
            self.binary(test, &format!("bin/rust/{name}"))?;
        }
        for (name, test) in programs::abi_tests()? {
            self.binary(&test, &format!("bin/abi/{name}"))?;
        }
        for name in ["etwgpu-chat", "etwgpu-bench", "etwgpu-ops"] {
            self.binary(&target_dir().join("release").join(name), &format!("bin/{name}"))?;
        }
        self.binary(&build_dir().join("etwgpu_runner"), "bin/etwgpu_runner")?;
        self.binary(&build_dir().join(BACKEND), &format!("lib/{BACKEND}"))?;
        for name in EXECUTORCH_LIBRARIES {
            self.binary(&python.executorch.join("lib").join(name), &format!("lib/{name}"))?;
        }
        let loader = system::vulkan_loader().ok_or("ldconfig knows no libvulkan.so.1, which the bundle takes along")?;
        self.binary(&loader, "lib/vulkan/libvulkan.so.1")?;
        copy_folder(&root().join("tests/fixtures"), &self.folder.join("fixtures"))
    }

    /// Stages a folder of models; returns its path in the stage.
    fn model(&self, name: &str) -> Result<String> {
        let kept = format!("models/{name}");
        copy_folder(&models_dir()?.join(name), &self.folder.join(&kept))?;
        Ok(kept)
    }

    /// Stages a program or library without its symbols.
    fn binary(&self, from: &Path, to: &str) -> Result {
        let to = self.folder.join(to);
        copy(from, &to)?;
        process::run(Command::new("strip").arg("--strip-unneeded").arg(&to))
    }
}

fn empty(folder: &Path) -> Result {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| format!("{} cannot be removed: {error}", folder.display()))?;
    }
    fs::create_dir_all(folder).map_err(|error| format!("{} cannot be created: {error}", folder.display()))
}

fn write(path: &Path, contents: impl AsRef<[u8]>) -> Result {
    fs::write(path, contents).map_err(|error| format!("{} cannot be written: {error}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Result {
    let made = to.parent().map_or(Ok(()), fs::create_dir_all);
    made.and_then(|()| fs::copy(from, to))
        .map(drop)
        .map_err(|error| format!("{} cannot be copied to {}: {error}", from.display(), to.display()))
}

fn copy_folder(from: &Path, to: &Path) -> Result {
    let entries = fs::read_dir(from).map_err(|error| format!("{} is unreadable: {error}", from.display()))?;
    entries.flatten().try_for_each(|entry| copy(&entry.path(), &to.join(entry.file_name())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_models_come_along_only_when_asked_for() {
        let parsed = |words: &[&str]| Choice::parse(words).map(|choice| (choice.smollm2, choice.nets, choice.check));
        assert_eq!(parsed(&[]), Ok((false, false, false)));
        assert_eq!(parsed(&["--smollm2", "--check"]), Ok((true, false, true)));
        assert_eq!(parsed(&["--nets"]), Ok((false, true, false)));
        assert_eq!(parsed(&["--without-smollm2"]), Ok((false, false, false)));
        assert!(parsed(&["--smollm3"]).is_err());
    }
}
