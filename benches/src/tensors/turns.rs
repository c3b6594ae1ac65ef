//! Programs that do the same thing over and over, each whenever it is its turn: memory of all is set up before, and all
//! meet the same noise.
//!
//! A program sets up what it needs, does its work once, says that it is ready, and then does it again for each line
//! that it is sent. It prints the seconds and the answer, and ends with its input.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use maniple::task::{Codec, TaskDefinition, TaskOptions, Value};
use maniple::{Context, TaskLauncher};

use crate::error::{Error, Result};
use crate::toolbox::program::{Outcome, outcome};

/// Tells the outcome of the last turn, if there was one, and waits for the next. Whether there is one. Of several
/// nodes, only the first talks; what it hears, all know.
///
/// # Errors
/// If the other side is gone.
pub async fn next_turn(cx: &Context, said: Option<(f64, u64)>) -> maniple::Result<bool> {
    let turn = TaskDefinition::new("turn").codec(Codec::of::<bool>()).leaf(TaskOptions::default(), |call| {
        let said: &Option<(f64, u64)> = call.arguments()?;
        Ok(Value::new(talk(*said).map_err(maniple::Error::from_task)?))
    });
    cx.launch(TaskLauncher::new(&Arc::new(turn)).arguments(said).typed::<bool>()).await
}

fn talk(said: Option<(f64, u64)>) -> std::io::Result<bool> {
    let mut output = std::io::stdout().lock();
    match said {
        Some((seconds, answer)) => writeln!(output, "{seconds:.9} {answer}")?,
        None => writeln!(output, "ready")?,
    }
    output.flush()?;
    let mut line = String::new();
    Ok(std::io::stdin().lock().read_line(&mut line)? > 0)
}

/// A program that waits for its turn.
#[derive(Debug)]
pub struct Player {
    name: String,
    child: Child,
    /// None once the program is to end.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// Threads of some libraries look for more work for a while before they sleep: those of NumPy's OpenBLAS for some 100
/// ms, in which the next program would have half of the cores. It waits so long before its turn.
const PAUSE: Duration = Duration::from_millis(200);

impl Player {
    /// Starts a program.
    ///
    /// # Errors
    /// [`Error::Program`] if it cannot be started, or ends before it is ready.
    pub fn start(mut command: Command) -> Result<Self> {
        let name = format!("{command:?}");
        let failed = |error: std::io::Error| Error::Program { program: name.clone(), found: error.to_string() };
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = (input, output) else { unreachable!("both are pipes") };
        let mut player = Self { name, child, input: Some(input), output: BufReader::new(output) };
        match player.line()?.as_str() {
            "ready" => Ok(player),
            other => Err(player.failed(format!("it should say that it is ready, but said {other:?}"))),
        }
    }

    /// Lets it do its work once.
    ///
    /// # Errors
    /// [`Error::Program`] if it ends instead, or says something else.
    pub fn turn(&mut self) -> Result<Outcome> {
        thread::sleep(PAUSE);
        if let Some(input) = &mut self.input {
            // If it has ended, it says nothing more.
            let _ = input.write_all(b"\n").and_then(|()| input.flush());
        }
        let line = self.line()?;
        outcome(&line).ok_or_else(|| self.failed(format!("it should print seconds and answer, but printed {line:?}")))
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        match self.output.read_line(&mut line) {
            Ok(1..) => Ok(line.trim().to_owned()),
            Ok(0) => Err(self.failed("it ended before its turn was over".to_owned())),
            Err(error) => Err(self.failed(error.to_string())),
        }
    }

    fn failed(&self, found: String) -> Error {
        Error::Program { program: self.name.clone(), found }
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.input = None;
        // It has nothing more to read, and ends.
        let _ = self.child.wait();
    }
}

/// The command of a program with arguments.
pub fn command(program: impl Into<OsString>, arguments: impl IntoIterator<Item = String>) -> Command {
    let mut command = Command::new(program.into());
    command.args(arguments);
    command
}
