//! `cargo xtask COMMAND`: everything that takes more than one tool.

mod backend_suite;
mod bundle;
mod ci;
mod compile;
mod demo;
mod export;
mod generate;
mod networks;
mod paths;
mod perplexity;
mod process;
mod setup;
mod system;
mod test;

use std::process::ExitCode;

/// What went wrong, as one sentence for the terminal.
type Result<T = ()> = std::result::Result<T, String>;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  setup              install what is missing: system packages (Debian, Ubuntu), a Python environment with ExecuTorch
  build              setup, then build the delegate, the C++ programs and the chat program
  demo [PROMPT]      build, export SmolLM2 and let it continue PROMPT (default: \"The capital of France is\")
  chat ARGUMENTS     build, then run etwgpu-chat (--help shows its arguments)
  bench ARGUMENTS    build, then run etwgpu-bench (--help shows its arguments)
  perplexity [ARGUMENTS]
                     build, and compare SmolLM2's perplexity with eager PyTorch's; ARGUMENTS are those of etwgpu-bench
  nets [NAMES]       build, export whole networks, and compare them with eager PyTorch; prints a table
  backend-suite [ARGUMENTS]
                     build, and run ExecuTorch's own backend tests; ARGUMENTS are pytest's, such as -k conv or --flow f16
  test               build, export the models and run all tests
  bundle [--smollm2] [--nets] [--check]
                     pack tests, benches and models for a machine that has only a GPU driver; --check runs the pack here
  generate           rewrite the generated files
  generate --check   fail if a generated file differs from what would be written
  ci                 formatting, lints, documentation, generated files, then test";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[&str]) -> Result {
    match words {
        ["setup"] => setup::run().map(drop),
        ["build"] => setup::run().and_then(|python| compile::run(&python)),
        ["demo"] => demo::run("The capital of France is"),
        ["demo", prompt] => demo::run(prompt),
        ["chat", arguments @ ..] => demo::run_program("etwgpu-chat", arguments),
        ["bench", arguments @ ..] => demo::run_program("etwgpu-bench", arguments),
        ["perplexity", arguments @ ..] => perplexity::run(arguments),
        ["nets", names @ ..] => networks::run(names),
        ["backend-suite", arguments @ ..] => backend_suite::run(arguments),
        ["bundle", arguments @ ..] => bundle::run(arguments),
        ["test"] => test::run(),
        ["generate"] => generate::write(),
        ["generate", "--check"] => generate::check(),
        ["ci"] => ci::run(),
        [] | ["help" | "-h" | "--help"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => Err(format!("unknown command `{}`\n{USAGE}", words.join(" "))),
    }
}
