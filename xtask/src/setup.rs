//! The Python environment in the user's cache: the ExecuTorch wheel (runtime, headers, flatc), CMake, Ninja, exporters.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::paths::{Python, cache_dir, root};
use crate::process::{self, heading, output, succeeds};
use crate::{Result, system};

/// CPython 3.x versions for which ExecuTorch 1.5.1 has a wheel.
const MINORS: std::ops::RangeInclusive<u32> = 10..=14;
const STAMP: &str = "requirements.stamp";

/// Installs what is missing and returns the Python environment.
pub fn run() -> Result<Python> {
    system::install_missing()?;
    let venv = cache_dir()?.join("venv");
    let requirements = Requirements::read()?;
    if fs::read_to_string(venv.join(STAMP)).ok().as_deref() != Some(requirements.text.as_str()) {
        heading(&format!("Python environment in {}", venv.display()));
        println!("packages (about 5 GB, a few minutes):\n{}", requirements.text.trim_end());
        create(&venv)?;
        requirements.install(&venv)?;
    }
    let executorch = locate_executorch(&venv)?;
    Ok(Python { venv, executorch: executorch.into() })
}

/// A Python for which there is an ExecuTorch wheel.
pub fn find_python() -> Result<String> {
    let versioned = MINORS.rev().map(|minor| format!("python3.{minor}"));
    let found = std::iter::once("python3".to_owned()).chain(versioned).find(|name| is_supported(name));
    found.ok_or_else(|| format!("found no Python 3.{} to 3.{}, which ExecuTorch needs", MINORS.start(), MINORS.end()))
}

fn is_supported(python: &str) -> bool {
    let check = format!("import sys; sys.exit(not {} <= sys.version_info.minor <= {})", MINORS.start(), MINORS.end());
    succeeds(Command::new(python).args(["-c", &check]))
}

struct Requirements {
    text: String,
}

impl Requirements {
    const FILES: [(&str, &[&str]); 2] = [("requirements.txt", &[]), ("requirements-nodeps.txt", &["--no-deps"])];

    fn read() -> Result<Self> {
        let mut text = String::new();
        for (file, _) in Self::FILES {
            let path = root().join("python").join(file);
            text += &fs::read_to_string(&path).map_err(|error| format!("{} is unreadable: {error}", path.display()))?;
        }
        Ok(Self { text })
    }

    fn install(&self, venv: &Path) -> Result {
        for (file, options) in Self::FILES {
            let mut pip = Command::new(venv.join("bin/python"));
            pip.args(["-m", "pip", "install", "--disable-pip-version-check", "--no-input"]).args(options);
            process::run(pip.arg("-r").arg(root().join("python").join(file)))?;
        }
        let stamp = venv.join(STAMP);
        fs::write(&stamp, &self.text).map_err(|error| format!("{} cannot be written: {error}", stamp.display()))
    }
}

fn create(venv: &Path) -> Result {
    if succeeds(Command::new(venv.join("bin/python")).args(["-m", "pip", "--version"])) {
        return Ok(());
    }
    let python = find_python()?;
    process::run(Command::new(python).args(["-m", "venv", "--clear"]).arg(venv))
}

fn locate_executorch(venv: &Path) -> Result<String> {
    let code = "import importlib.util as u; print(u.find_spec('executorch').submodule_search_locations[0])";
    Ok(output(Command::new(venv.join("bin/python")).args(["-c", code]))?.trim().to_owned())
}
