//! ExecuTorch's own tests of backends, which take longer than tests may.

use crate::paths::root;
use crate::process::{self, heading};
use crate::{Result, compile, export, setup};

/// Runs the operator tests of ExecuTorch's backend test suite; `arguments` are pytest's and the plug-in's.
pub fn run(arguments: &[&str]) -> Result {
    let python = setup::run()?;
    compile::run(&python)?;
    heading("ExecuTorch's backend test suite");
    let mut pytest = export::interpreter(&python)?;
    let paths = std::env::join_paths([root().join("python"), root().join("tests/python")])
        .map_err(|error| format!("the source tree's path cannot be searched: {error}"))?;
    pytest.env("PYTHONPATH", paths);
    pytest.args(["-m", "pytest", "-p", "backend_suite", "-p", "no:cacheprovider", "-q", "-W", "ignore"]);
    pytest.args(["--pyargs", "executorch.backends.test.suite.operators"]);
    process::run(pytest.args(arguments))
}
