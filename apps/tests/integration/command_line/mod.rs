//! The program as its users run it: what it prints, and the exit codes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The exit code and the output of a run of the program.
struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn maniple(arguments: &str) -> Run {
    maniple_with_log(arguments, "")
}

/// With this in the variable `RUST_LOG`.
fn maniple_with_log(arguments: &str, log: &str) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
    command.args(arguments.split_whitespace()).env_remove("RUST_BACKTRACE").env("RUST_LOG", log).stdin(Stdio::null());
    let output = command.output().expect("the program can be started");
    let text = |bytes| String::from_utf8(bytes).expect("the program prints text");
    Run { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Runs what must succeed and gives what it printed, which is nothing on standard error.
#[track_caller]
fn prints(arguments: &str) -> String {
    let run = maniple(arguments);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "maniple {arguments}\n{}", run.stdout);
    run.stdout
}

/// Runs what must fail: with this exit code, and one message that starts like this.
#[track_caller]
fn fails(arguments: &str, code: i32, message: &str) {
    let run = maniple(arguments);
    assert_eq!((run.code, run.stdout.as_str()), (Some(code), ""), "maniple {arguments}\n{}", run.stderr);
    let found = run.stderr.strip_prefix("error: ").unwrap_or_else(|| panic!("no error message: {}", run.stderr));
    assert!(found.starts_with(message), "maniple {arguments}\nexpected: {message}\nfound:    {found}");
    assert_eq!(run.stderr.matches("error:").count(), 1, "one message: {}", run.stderr);
    assert!(!run.stderr.contains("backtrace") && !run.stderr.contains("panicked"), "{}", run.stderr);
}

/// The value of a line of a report.
#[track_caller]
fn value<'a>(report: &'a str, name: &str) -> &'a str {
    let line = report.lines().find_map(|line| line.trim_start().strip_prefix(name));
    line.unwrap_or_else(|| panic!("no line '{name}' in\n{report}")).trim()
}

/// A file with this text, for one test.
fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("a temporary file can be written");
    path
}

const SMALL_CIRCUIT: &str = "run circuit --pieces 4 --nodes-per-piece 20 --wires-per-piece 60 --steps 20";

mod circuit;
mod mapping;

mod cg;

mod state;

mod stencil;

mod records;

mod taskbench;

mod metg;

mod around;

#[test]
fn a_program_that_needs_more_memory_than_the_system_lets_it_use_is_refused_and_does_not_abort() {
    for kilobytes in [400_000, 600_000, 800_000] {
        let run =
            format!("ulimit -v {kilobytes}; exec \"$0\" run circuit --pieces 5000 --steps 1 --workers 2 --no-verify");
        let output = Command::new("sh").args(["-c", &run, env!("CARGO_BIN_EXE_maniple")]).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "with {kilobytes} kB: {told}");
        assert!(told.starts_with("error: ") && told.contains("memory"), "with {kilobytes} kB: {told}");
    }
}
