//! All tests, stage by stage, up to the first that fails.

use std::process::Command;

use crate::paths::{Python, build_dir};
use crate::process::{self, heading};
use crate::{Result, compile, export, setup};

/// Sets up, builds, exports the models and runs every test.
pub fn run() -> Result {
    let python = setup::run()?;
    compile::run(&python)?;
    for name in ["tiny", "smollm2"] {
        export::run(&python, name)?;
    }
    for (stage, mut command) in stages(&python)? {
        heading(stage);
        process::run(&mut command).map_err(|error| format!("{stage}: {error}"))?;
    }
    Ok(())
}

fn stages(python: &Python) -> Result<[(&'static str, Command); 4]> {
    let mut ctest = Command::new(python.program("ctest"));
    ctest.args(["--output-on-failure", "--no-tests=error", "--test-dir"]).arg(build_dir());
    compile::with_environment(&mut ctest, python)?;
    let mut pytest = export::interpreter(python)?;
    pytest.args(["-m", "pytest", "-p", "no:cacheprovider", "tests/python"]);
    Ok([
        ("Rust tests", compile::cargo(python, &["test"])?),
        ("C++ tests", ctest),
        ("end-to-end tests", compile::cargo(python, &["test", "--release", "--package", "etwgpu-host"])?),
        ("Python tests", pytest),
    ])
}
