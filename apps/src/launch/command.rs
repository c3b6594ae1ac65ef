//! How a node is started, here or on another machine, and kept on its leash.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufReader, IsTerminal, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use maniple::environment::{BOUND, JOIN_TIMEOUT, NEIGHBOURS, NODES, RANK, Rendezvous, SECRET, SHARED_MEMORY, SILENCE};
use rustix::process::{Pid, Signal, kill_process_group};

use super::cores::Shares;
use super::hosts::Place;
use crate::error::{Error, Result};

/// In both scripts below: kills every process that has this node's rank and this job's secret in its environment,
/// wherever it has gone, where the system has Linux's `/proc`. Neither the script nor what it starts has them there. A
/// process that is just becoming another program shows neither environment nor command line: it is hardly missed if
/// there was no such process, and nothing to kill, five times in a row. One that never shows a command line is not
/// waited for as long.
macro_rules! sweep {
    () => {
        "sweep() { rounds=0; clean=0; while [ $clean -lt 5 ] && [ $((rounds += 1)) -lt 1000 ]; do clean=$((clean + 1)); \
            for file in $(grep -Lz '' /proc/[0-9]*/cmdline); do \
                [ $rounds -lt 100 ] && [ -e \"${file%cmdline}exe\" ] && clean=0; \
            done; \
            for file in $(printf 'MANIPLE_SECRET=%s\\n' \"$secret\" | grep -lzxF -f - /proc/[0-9]*/environ); do \
                grep -qzxF \"MANIPLE_RANK=$rank\" \"$file\" || continue; \
                file=${file%/environ}; kill -s KILL \"${file#/proc/}\" && clean=0; \
            done; \
        done; }; "
    };
}

/// Beside a node of this machine, in the same process group: reads the secret, then the names of signals for the group.
/// SIGKILL is the last. If no process can send any more, the launcher was killed: then this removes the job's
/// directory, if it is given one, and kills what is left wherever it is. It has made that directory itself, and said
/// so: the launcher may be killed at any time.
const GUARD: &str = concat!(
    "trap '' HUP INT TERM QUIT USR1 USR2 TSTP PIPE; ",
    sweep!(),
    "rank=$1; shift; if [ $# != 0 ]; then if mkdir -m 700 -- \"$1\"; then echo made; else set --; fi; fi; exec >/dev/null; \
    IFS= read -r secret; while IFS= read -r signal; do kill -s \"$signal\" 0; done; \
    [ $# = 0 ] || rm -rf -- \"$1\"; sweep; kill -s KILL 0"
);

/// On another machine: reads the secret, becomes the node, and leaves a guard behind. There `$$` is the node, and the
/// leader of its process group where ssh's server has started it. SIGTSTP has no effect on a group without a terminal,
/// hence SIGSTOP, for the node alone: the guard is of the same group.
const REMOTE: &str = concat!(
    "IFS= read -r secret || exit 1; exec 3<&0; rank=$MANIPLE_RANK; ",
    sweep!(),
    "send() { kill -s \"$1\" -- \"-$$\" || kill -s \"$1\" \"$$\"; }; \
    (trap '' HUP INT TERM QUIT USR1 USR2; \
        while IFS= read -r signal; do case $signal in TSTP) kill -s STOP \"$$\";; *) send \"$signal\";; esac; done; \
        sweep; send KILL) <&3 3<&- >/dev/null 2>&1 & \
    MANIPLE_SECRET=$secret; export MANIPLE_SECRET; unset secret; exec \"$@\" </dev/null 3<&-"
);

/// Starts the nodes of a job.
pub struct Starter<'a> {
    /// The program and its arguments.
    pub program: &'a [OsString],
    /// On which machine each node is.
    pub places: &'a [Place],
    /// The rendezvous of the nodes.
    pub rendezvous: Rendezvous,
    /// The directory of the job, if it needs one: the guard of the first node makes it, and it is removed with the job.
    pub directory: Option<&'a Directory>,
    /// How to reach other machines.
    pub remote: Option<Remote>,
    /// Cores for the nodes of this machine, unless they share all of them.
    pub cores: Option<Shares>,
}

/// How another machine is reached.
pub struct Remote {
    ssh: Vec<String>,
    directory: String,
}

/// A node that was started.
pub struct Started {
    /// The node, or the ssh that looks after it.
    pub process: Child,
    /// The leash, which ends the node and every process that it has started.
    pub leash: Leash,
}

/// Held by the launcher; a node does not outlive it.
pub struct Leash {
    guard: Child,
    pipe: Option<ChildStdin>,
    /// The other machine's.
    remote: Option<ChildStdin>,
}

impl Remote {
    /// Commands on other machines are run by this one, in the directory that we are in.
    ///
    /// # Errors
    /// [`Error::Usage`] if the command has open quotes, or the directory's name is no text.
    pub fn new(ssh: &str) -> Result<Self> {
        let words = shlex::split(ssh).filter(|words| !words.is_empty());
        let ssh = words.ok_or_else(|| Error::Usage(format!("--ssh `{ssh}`: expected a command with its arguments")))?;
        let directory = env::current_dir().map_err(Error::launch("finding the current directory"))?;
        Ok(Self { ssh, directory: text(directory.as_os_str())?.to_owned() })
    }
}

impl Starter<'_> {
    /// Starts a node.
    ///
    /// # Errors
    /// [`Error::Launch`] if the system refuses, [`Error::Usage`] if an argument cannot be told to another machine.
    pub fn start(&self, rank: usize, place: &Place) -> Result<Started> {
        let mut command = match place {
            None => self.local(rank),
            Some(host) => self.elsewhere(rank, host)?,
        };
        let directory = self.directory.filter(|_| rank == 0);
        let mut guard = Command::new("/bin/sh");
        guard
            .args(["-c", GUARD, "guard", &rank.to_string()])
            .args(directory.map(|directory| &directory.path))
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(if directory.is_some() { Stdio::piped() } else { Stdio::null() })
            .stderr(Stdio::null());
        let mut guard = guard.spawn().map_err(Error::launch("starting /bin/sh, which guards a node"))?;
        let pipe = guard.stdin.take();
        let says = guard.stdout.take();
        let mut leash = Leash { guard, pipe, remote: None };
        if let (Some(directory), Some(says)) = (directory, says) {
            await_made(directory, says)?;
        }
        let secret = self.rendezvous.secret.to_hex();
        leash.tell(&secret);
        // Into a group that exists already: there is no moment in which the node would stay if we were killed.
        command.process_group(leash.guard.id().cast_signed()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let name = command.get_program().to_string_lossy().into_owned();
        let mut start = || command.spawn();
        let started = match &self.cores {
            Some(cores) if place.is_none() => cores.on_share(self.before(rank), start),
            _ => start(),
        };
        let mut process = started.map_err(Error::launch(format!("starting `{name}` for node {rank}")))?;
        if place.is_some() {
            leash.remote = process.stdin.take();
            leash.tell(&secret);
        }
        Ok(Started { process, leash })
    }

    /// How many nodes of the same machine come before this one.
    fn before(&self, rank: usize) -> usize {
        self.places[..rank].iter().filter(|place| **place == self.places[rank]).count()
    }

    fn variables(&self, rank: usize) -> Vec<(&'static str, String)> {
        let mut variables = self.rendezvous.variables();
        variables.extend([(RANK, rank.to_string()), (NODES, self.places.len().to_string())]);
        let neighbours = self.places.iter().filter(|place| **place == self.places[rank]).count();
        variables.push((NEIGHBOURS, neighbours.to_string()));
        // Said of each node: the launcher may itself run on a node of a job whose nodes have cores of their own.
        let is_bound = self.cores.is_some() && self.places[rank].is_none();
        variables.push((BOUND, u8::from(is_bound).to_string()));
        variables
    }

    fn local(&self, rank: usize) -> Command {
        let mut command = Command::new(&self.program[0]);
        command.args(&self.program[1..]).envs(self.variables(rank)).env(SECRET, self.rendezvous.secret.to_hex());
        // A process group in the background cannot read from the terminal.
        let is_heard = rank == 0 && !io::stdin().is_terminal();
        command.stdin(if is_heard { Stdio::inherit() } else { Stdio::null() });
        command
    }

    fn elsewhere(&self, rank: usize, host: &str) -> Result<Command> {
        let remote = self.remote.as_ref().expect("there are places on other machines only if there is a way to them");
        let mut line = format!("cd {} && exec env", quoted(&remote.directory)?);
        let mut add = |word: &str| -> Result<()> {
            line.push(' ');
            line.push_str(&quoted(word)?);
            Ok(())
        };
        let limits =
            [JOIN_TIMEOUT, SILENCE, SHARED_MEMORY].into_iter().filter_map(|name| Some((name, env::var(name).ok()?)));
        for (name, value) in self.variables(rank).into_iter().chain(limits) {
            add(&format!("{name}={value}"))?;
        }
        for word in ["/bin/sh", "-c", REMOTE, "maniple"] {
            add(word)?;
        }
        for word in self.program {
            add(text(word)?)?;
        }
        let mut command = Command::new(&remote.ssh[0]);
        command.args(&remote.ssh[1..]).arg(host).arg(line).stdin(Stdio::piped());
        Ok(command)
    }
}

/// The directory of a job, which goes when all nodes have ended, if the job has made it.
pub struct Directory {
    path: PathBuf,
    is_made: AtomicBool,
}

impl Directory {
    /// One that is still to be made.
    pub fn new(path: PathBuf) -> Self {
        Self { path, is_made: AtomicBool::new(false) }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if *self.is_made.get_mut() {
            // It may be gone with its guard.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// Waits until a guard has made the job's directory.
fn await_made(directory: &Directory, says: ChildStdout) -> Result<()> {
    let mut said = String::new();
    // Read to its end, as the guard says nothing else.
    let read = BufReader::new(says).read_to_string(&mut said);
    if read.is_ok() && said == "made\n" {
        directory.is_made.store(true, Ordering::Relaxed);
        return Ok(());
    }
    let source =
        std::io::Error::other("there may be no room, or no right to write there; TMPDIR says where it is made");
    Err(Error::launch(format!("making the directory `{}` for the nodes to meet", directory.path.display()))(source))
}

impl Leash {
    /// Sends a signal, by its name, to the node and all that it has started, if that still runs.
    pub fn tell(&mut self, word: &str) {
        // To ssh itself nothing is sent: it lives as long as the node.
        if let Some(pipe) = self.remote.as_mut().or(self.pipe.as_mut()) {
            // The receiver may have ended.
            let _ = writeln!(pipe, "{word}");
        }
    }

    /// Kills what is left of the node's process group, and on another machine of all that it has started.
    pub fn cut(&mut self) {
        self.remote = None;
        // The guard may have been stopped, with the node or alone.
        if let Some(group) = Pid::from_raw(self.guard.id().cast_signed()) {
            let _ = kill_process_group(group, Signal::CONT);
        }
        self.tell("KILL");
        self.pipe = None;
    }

    /// The process that guards the node.
    #[must_use]
    pub fn guard(&self) -> u32 {
        self.guard.id()
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        self.cut();
        let _ = self.guard.wait();
    }
}

/// Whether there is such a program on this machine.
///
/// # Errors
/// [`Error::Usage`] if there is none, or if it is a directory.
pub fn find_program(program: &OsStr) -> Result<()> {
    let path = Path::new(program);
    let is_there = if path.components().count() > 1 {
        path.is_file()
    } else {
        let places = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&places).any(|place| place.join(path).is_file())
    };
    if is_there {
        return Ok(());
    }
    let name = path.display();
    if path.is_dir() {
        return Err(Error::Usage(format!("`{name}` is a directory: expected a program, as in `{name}/PROGRAM`")));
    }
    let hint = if path.is_file() { format!("; the one in this directory is `./{name}`") } else { String::new() };
    Err(Error::Usage(format!("there is no program `{name}`{hint}")))
}

fn text(word: &OsStr) -> Result<&str> {
    word.to_str()
        .ok_or_else(|| Error::Usage(format!("`{}` is no UTF-8: it cannot be told to other machines", word.display())))
}

fn quoted(word: &str) -> Result<String> {
    let quoted =
        shlex::try_quote(word).map_err(|_| Error::Usage(format!("`{word:?}` cannot be told to other machines")))?;
    Ok(quoted.into_owned())
}
