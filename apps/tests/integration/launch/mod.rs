//! `maniple launch` as its users run it: what each node is told, what is shown, and that no process is left behind.
//!
//! Nodes are shell scripts. A process that is to be there while a test looks opens a *line*, a named pipe of which the
//! test reads the other end: it says there what it has done, and the test has read all of it when no process holds the
//! line any more, however the processes ended. So nothing here waits for a time.

mod failure;
#[cfg(target_os = "linux")]
mod hosts;
mod orphans;
mod output;
mod place;
mod signals;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use maniple::environment::Place;
use rustix::process::{Pid, Signal, kill_process};

/// The exit code and the output of a launch.
#[derive(Debug)]
struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Run {
    /// The lines that a node has printed, without its number.
    fn of(&self, rank: usize) -> Vec<&str> {
        let prefix = format!("[{rank}] ");
        self.stdout.lines().filter_map(|line| line.strip_prefix(&prefix)).collect()
    }
}

fn maniple_launch(options: &[&str], program: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_maniple"));
    command.arg("launch").args(options).arg("--").args(program);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn finish(launcher: Child) -> Run {
    let output = launcher.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn launch(options: &[&str], program: &[&str]) -> Run {
    finish(maniple_launch(options, program).spawn().unwrap())
}

/// Runs a script as each node.
fn script(options: &[&str], script: &str) -> Run {
    launch(options, &["sh", "-c", script])
}

/// A folder for one test, empty.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("launch-{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir(&path).unwrap();
    path
}

/// A launch that the test looks at while it runs.
struct Watched {
    launcher: Child,
    line: BufReader<File>,
}

impl Watched {
    /// Starts nodes that run a script with the line as descriptor 3.
    fn start(name: &str, options: &[&str], script: &str) -> Self {
        Self::start_in(&folder(name), options, script)
    }

    fn start_in(folder: &Path, options: &[&str], script: &str) -> Self {
        Self::watch(folder, Self::command(folder, options, script))
    }

    /// The launch, to be changed.
    fn command(folder: &Path, options: &[&str], script: &str) -> Command {
        let path = folder.join("line");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let program = ["sh", "-c", &format!("exec 3>\"$1\"; {script}"), "node", path.to_str().unwrap()];
        let mut command = maniple_launch(options, &program);
        command.env("TMPDIR", folder);
        command
    }

    fn watch(folder: &Path, mut command: Command) -> Self {
        let launcher = command.spawn().unwrap();
        // Waits until a process opens the other end.
        let line = BufReader::new(File::open(folder.join("line")).unwrap());
        Self { launcher, line }
    }

    /// Returns the next lines, so many, that processes on the line say, sorted.
    fn hear(&mut self, many: usize) -> Vec<String> {
        let mut said: Vec<_> = self.line.by_ref().lines().take(many).map(Result::unwrap).collect();
        said.sort_unstable();
        assert_eq!(said.len(), many, "{said:?}");
        said
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.launcher), signal).unwrap();
    }

    /// Waits until no process is on the line; gives what they still said, and what the launcher gave.
    fn end(mut self) -> (String, Run) {
        let mut rest = String::new();
        self.line.read_to_string(&mut rest).unwrap();
        (rest, finish(self.launcher))
    }
}

/// Never ends by itself, and has a child that does not either.
const FOR_EVER: &str = "sleep 100000 & sleep 100000";

/// Waits so that a signal is heard at once, whenever it comes: a shell that waits for a child in the foreground hears
/// it when the child has ended, and the child may have missed it.
const WAITING: &str = "sleep 100000 & wait";
