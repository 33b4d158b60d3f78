//! What continuous integration runs: the checks that need no device, then all tests.

use crate::process::{self, heading};
use crate::{Result, compile, generate, setup, test};

const CHECKS: [(&str, &[&str]); 3] = [
    ("formatting", &["fmt", "--all", "--check"]),
    ("lints", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
    ("documentation", &["doc", "--no-deps", "--workspace"]),
];

/// Runs the checks and the tests, up to the first that fails.
pub fn run() -> Result {
    let python = setup::run()?;
    for (name, arguments) in CHECKS {
        heading(name);
        let mut cargo = compile::cargo(&python, arguments)?;
        process::run(cargo.env("RUSTDOCFLAGS", "-D warnings")).map_err(|error| format!("{name}: {error}"))?;
    }
    generate::check()?;
    test::run()
}
