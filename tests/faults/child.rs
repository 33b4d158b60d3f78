//! Tests that need a process of their own: for its environment, or because they count what the whole process holds.

use std::process::{Command, Output};

const MARK: &str = "ETWGPU_TEST_CHILD";

/// True in a process that [`output`] started.
pub fn is_child() -> bool {
    std::env::var_os(MARK).is_some()
}

/// Makes a command that starts this binary run one test, alone.
fn command(mut start: Command, name: &str) -> Command {
    start.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(MARK, "1");
    start
}

/// Runs the test `name` of this binary again, alone, with these variables.
pub fn output(name: &str, variables: &[(&str, &str)]) -> Output {
    command(Command::new(std::env::current_exe().unwrap()), name).envs(variables.to_vec()).output().unwrap()
}

/// Runs `body` in a process of its own. `name` is the path of the calling test.
#[track_caller]
pub fn alone(name: &str, variables: &[(&str, &str)], body: impl FnOnce()) {
    match is_child() {
        true => body(),
        false => assert_passed(name, &output(name, variables)),
    }
}

/// The same in a process that gets at most `memory` KiB of address space.
#[track_caller]
pub fn alone_in(memory: u32, name: &str, body: impl FnOnce()) {
    if is_child() {
        return body();
    }
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit -v {memory}; exec \"$@\""), "sh"]).arg(std::env::current_exe().unwrap());
    assert_passed(name, &command(shell, name).output().unwrap());
}

#[track_caller]
fn assert_passed(name: &str, output: &Output) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && out.contains("1 passed"), "{name}: {}\n{out}\n{err}", output.status);
}
