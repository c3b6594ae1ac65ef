//! Commands whose report is not read, or cannot be written.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// A command of each kind that prints a report. Profiles are to be recorded under this name first.
fn commands(profile: &Path) -> Vec<Vec<String>> {
    record(profile);
    let mut commands: Vec<Vec<String>> =
        [CIRCUIT, "run metg --type no_comm --width 1 --cores 1 --reps 1 --budget 0 --verbose", "info"]
            .iter()
            .map(|command| command.split(' ').map(str::to_owned).collect())
            .collect();
    commands.push(["tensor", "A(i,j) = B(i,k) * C(k,j)", "--size", "i=4,j=4,k=4"].map(str::to_owned).into());
    commands.push(["prof", profile.to_str().unwrap(), "--summary"].map(str::to_owned).into());
    commands
}

const CIRCUIT: &str = "run circuit --pieces 2 --nodes-per-piece 5 --wires-per-piece 10 --steps 2";

fn record(profile: &Path) {
    let mut command = maniple(&CIRCUIT.split(' ').map(str::to_owned).collect::<Vec<_>>());
    let output = command.arg("--profile").arg(profile).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn maniple(arguments: &[String]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
    command.args(arguments).env_remove("RUST_BACKTRACE").stdin(Stdio::null()).stderr(Stdio::piped());
    command
}

fn of(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = command.spawn().unwrap().wait_with_output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

fn profile(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[test]
fn a_command_whose_reader_has_gone_ends_as_if_all_was_read() {
    for command in commands(&profile("unread.mprof")) {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        assert_eq!(of(maniple(&command).stdout(writer)), (Some(0), String::new()), "{command:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_report_that_cannot_be_written_is_an_error() {
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    let message = "error: cannot write the report: No space left on device (os error 28)\n";
    for command in commands(&profile("full.mprof")) {
        assert_eq!(of(maniple(&command).stdout(full())), (Some(1), message.to_owned()), "{command:?}");
    }
}

/// Nor does it matter that an error, or what it says beside its report, cannot be told.
#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_told_changes_no_exit_code() {
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    for command in commands(&profile("untold.mprof")) {
        for wrong in [false, true] {
            let mut command = command.clone();
            command.extend(wrong.then(|| "--no-such-option".to_owned()));
            let run = maniple(&command).stdout(Stdio::null()).stderr(full()).status().unwrap();
            assert_eq!(run.code(), Some(if wrong { 2 } else { 0 }), "{command:?}");
        }
    }
}
