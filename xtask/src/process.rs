//! Running other programs: named in errors, never waiting for input.

use std::process::{Command, Stdio};

use crate::Result;

/// Prints a heading, so that a reader of the log sees what the following lines belong to.
pub fn heading(text: &str) {
    println!("\n== {text}");
}

/// Runs `command` with its output on the terminal; an exit status other than 0 is an error that shows the command.
pub fn run(command: &mut Command) -> Result {
    let status = command.stdin(Stdio::null()).status().map_err(|error| cannot_start(command, &error))?;
    if status.success() { Ok(()) } else { Err(format!("`{}` failed: {status}", shown(command))) }
}

/// Runs `command` and returns its standard output; standard error goes to the terminal.
pub fn output(command: &mut Command) -> Result<String> {
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    let result = command.output().map_err(|error| cannot_start(command, &error))?;
    if !result.status.success() {
        return Err(format!("`{}` failed: {}", shown(command), result.status));
    }
    String::from_utf8(result.stdout).map_err(|_| format!("`{}` printed text that is not UTF-8", shown(command)))
}

/// Whether `command` starts and succeeds; its output is dropped.
pub fn succeeds(command: &mut Command) -> bool {
    let silent = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    silent.status().is_ok_and(|status| status.success())
}

fn cannot_start(command: &Command, error: &std::io::Error) -> String {
    format!("`{}` could not be started: {error}", shown(command))
}

fn shown(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy()];
    words.extend(command.get_args().map(|word| word.to_string_lossy()));
    words.join(" ")
}
