//! `maniple launch`: starts the nodes of a job.
//!
//! [`hosts`] says which node runs where, [`command`] how it is started there and told its place, [`cores`] which cores
//! it has, [`output`] how what it prints is shown, [`signals`] which signals it is sent, and [`job`] what happens when
//! nodes end, fail, or are to be ended.
//!
//! # No process is left behind
//!
//! Each node has a *leash*: a pipe of which the launcher holds one end, and a small shell beside the node the other.
//! The shell passes on the signals that are written into the pipe, and kills the node with all that it has started when
//! the pipe is closed. It is closed when the launcher ends, however that happens. Here the node and its shell are a
//! process group of their own. Elsewhere, the leash is what ssh's standard input becomes.
//!
//! A process can leave its group, by `setsid`. So on Linux the launcher adopts what nodes of its machine have started,
//! and kills what is left of that at the end ([`descendants`]). Where it cannot, because it was killed or is on another
//! machine, the shell kills the processes that have the node's rank and the job's secret in their environment.

pub mod command;
#[cfg(target_os = "linux")]
pub mod cores;
#[cfg(target_os = "linux")]
pub mod descendants;
pub mod hosts;
pub mod job;
pub mod output;
pub mod signals;

use std::env;
use std::ffi::OsString;
use std::hash::{BuildHasher, RandomState};
use std::io::IsTerminal;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use maniple::environment::{
    self, JOIN_TIMEOUT, Meeting, NODES, PlaceError, RANK, RENDEZVOUS, Rendezvous, SECRET, SHARED_MEMORY, SILENCE,
    Secret, Way,
};

use self::command::{Directory, Remote, Starter};
use self::hosts::Hosts;
use crate::error::{Error, Result};

/// The long description of `maniple launch`, which its `--help` shows.
pub const ABOUT: &str = "\
Start a program as several nodes: processes that share the work of one run.

Any program that uses the library can be started, and need not be changed: each process finds in its environment which of how many nodes it \
is, where the nodes meet, and a fresh secret that keeps strangers out. What they print is shown line by line with the number of the node before \
it. When nobody reads that any more, the job ends, as any program does that writes into a pipe.

SIGINT (Ctrl-C), SIGTERM, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGTSTP (Ctrl-Z) and SIGCONT are passed on to all nodes; SIGINT, SIGTERM or SIGQUIT a second time kills them.

If a node fails, the others have a second to notice and to say so; then they are ended, by SIGTERM, and if that is not enough, by SIGKILL. The launcher then exits as the first node that failed: \
with its exit code, or 128 and the number of the signal that killed it. When the launcher is killed itself, so are all nodes. Its exit code is 141 if nobody reads what nodes print, and 1 if that cannot be \
written, as on a full disk.

With --hosts, nodes run on the machines that a file lists, one machine a line:

  node-a.example slots=2
  node-b.example slots=2   # the rest of the line is a comment
  [fd00::7] slots=4        # by address; brackets may be left out

They are started by ssh, which must not ask for a password, in the same directory as here. The program must be there. The secret does not appear \
on any command line.";

/// The examples that `maniple launch --help` ends with.
pub const EXAMPLES: &str = "\
Examples:
  maniple launch -n 4 -- ./my-program --size 1000    four nodes here
  maniple launch --hosts machines -- ./my-program    a node for each slot named
  maniple launch -n 2 -- env RUST_LOG=info ./my-program

Under Slurm or Open MPI the program is started by `srun` or `mpirun` instead; it finds its place there too. A launcher of your own sets:
  MANIPLE_RANK, MANIPLE_NODES     which node, from 0, and how many there are
  MANIPLE_RENDEZVOUS              where they meet: HOST:PORT or [IPV6]:PORT of node 0, or a file with a / in its name
  MANIPLE_SECRET                  64 random hexadecimal digits, the same for all nodes
  MANIPLE_LISTEN                  0.0.0.0 for nodes on several machines
Who is impatient, or has slow machines, sets for all nodes, or for the launcher:
  MANIPLE_JOIN_TIMEOUT            seconds to wait until all nodes have come [60]
  MANIPLE_SILENCE                 seconds without a sign of life after which a node is lost [20]
Nodes of one machine send messages by memory that they share. If that is not wanted:
  MANIPLE_SHARED_MEMORY           0";

/// The program to start, and on which machines.
#[derive(Args, Clone, Debug)]
pub struct LaunchOptions {
    /// How many nodes [default: as many as the machines of --hosts have slots]
    #[arg(short, long, value_name = "N", value_parser = node_count, allow_hyphen_values = true, required_unless_present = "hosts")]
    pub nodes: Option<usize>,

    /// Start the nodes on the machines that this file lists, by ssh
    #[arg(long, value_name = "FILE")]
    pub hosts: Option<PathBuf>,

    /// The command that runs another one on a machine: it is given the machine's name and a line for the shell there
    #[arg(long, value_name = "COMMAND", default_value = "ssh -o BatchMode=yes", requires = "hosts")]
    pub ssh: String,

    /// Address at which other machines reach node 0 [default: the first machine by its name, and a random port]
    #[arg(long, value_name = "HOST:PORT", value_parser = meeting_address, requires = "hosts")]
    pub rendezvous: Option<String>,

    /// How many seconds nodes have between SIGTERM and SIGKILL
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds, allow_hyphen_values = true)]
    pub grace: Duration,

    /// Show what nodes print as it is, without their numbers
    #[arg(long)]
    pub no_prefix: bool,

    /// Give each node of this machine its share of the cores, also where other programs use them
    #[arg(long, conflicts_with = "no_bind")]
    pub bind: bool,

    /// Let nodes of this machine use all of its cores, instead of giving each its share
    #[arg(long)]
    pub no_bind: bool,

    /// The program and its arguments
    #[arg(value_name = "PROGRAM", trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    pub program: Vec<OsString>,
}

fn node_count(text: &str) -> Result<usize, String> {
    crate::options::at_most(1 << 16, text)
}

fn seconds(text: &str) -> Result<Duration, String> {
    let time = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.ok_or_else(|| "it must be a number of seconds".to_owned())
}

/// Starts the nodes, waits until all have ended, and gives the status of the job.
///
/// # Errors
/// [`Error::Usage`] if the options make no sense or there is no such program, [`Error::Launch`] if something cannot be
/// started.
pub fn run(options: &LaunchOptions) -> Result<ExitCode> {
    let places = match &options.hosts {
        Some(file) => Hosts::read(file)?.places(options.nodes)?,
        None => vec![None; options.nodes.unwrap_or(1)],
    };
    // Where the nodes of this machine meet. It is made with the first of them, by its guard, which is left to remove
    // it if we are killed.
    let path = std::path::absolute(env::temp_dir().join(format!("maniple-{:016x}", random())))
        .map_err(Error::launch("finding the folder for temporary files"))?;
    let directory = Directory::new(path);
    let rendezvous = rendezvous(options, &places, directory.path())?;
    let remote = options.hosts.as_ref().map(|_| Remote::new(&options.ssh)).transpose()?;
    check(&rendezvous)?;
    if remote.is_none() {
        command::find_program(&options.program[0])?;
    }
    let coloured = !options.no_prefix && std::io::stdout().is_terminal() && console::colors_enabled();
    let starter = Starter {
        program: &options.program,
        places: &places,
        directory: matches!(rendezvous.meeting, Meeting::File(_)).then_some(&directory),
        rendezvous,
        remote,
        cores: cores(options, &places),
    };
    let style = output::Style { nodes: places.len(), has_prefix: !options.no_prefix, coloured };
    job::run(&starter, style, options.grace)
}

/// A number by the randomness of the system. One that is made of the time may be that of another job, which begins at
/// the same moment.
fn random() -> u64 {
    RandomState::new().hash_one(())
}

#[cfg(target_os = "linux")]
fn cores(options: &LaunchOptions, places: &[hosts::Place]) -> Option<cores::Shares> {
    let here = places.iter().filter(|place| place.is_none()).count();
    match (options.bind, options.no_bind) {
        (_, true) => None,
        (true, false) => cores::Shares::new(here),
        (false, false) => cores::Shares::new_if_idle(here),
    }
}

fn rendezvous(options: &LaunchOptions, places: &[hosts::Place], directory: &Path) -> Result<Rendezvous> {
    let secret = Secret::random().map_err(|error| Error::launch("making a secret")(std::io::Error::other(error)))?;
    let first = places.first().and_then(Option::as_ref);
    let local = Rendezvous::new(Meeting::File(directory.join("rendezvous")), secret.clone());
    let Some(first) = first else { return Ok(local) };
    let address = match &options.rendezvous {
        Some(address) => address.clone(),
        // A port of the range that is assigned to no service.
        None => address_of(first, 49_152 | random() as u16)?,
    };
    // All addresses: also those of IPv6.
    let listen = Ipv4Addr::UNSPECIFIED.into();
    Ok(Rendezvous { listen, ..Rendezvous::new(Meeting::At(address), secret) })
}

/// Returns the address at which other machines reach a port of a machine, by its name in a host file.
fn address_of(machine: &str, port: u16) -> Result<String> {
    // `user@host` is for ssh.
    let host = machine.rsplit_once('@').map_or(machine, |(_, host)| host);
    if host.contains('%') {
        return Err(Error::Usage(format!(
            "`{machine}` is an address that only one machine knows by this name, so nodes cannot meet there: \
             name another one with --rendezvous HOST:PORT"
        )));
    }
    let is_ipv6 = host.parse::<Ipv6Addr>().is_ok();
    Ok(if is_ipv6 { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
}

/// Reads the address at which nodes of several machines meet.
fn meeting_address(text: &str) -> Result<String, String> {
    let secret = "0".repeat(64);
    let found = environment::Place::find_in(|name| match name {
        RANK => Some("0".to_owned()),
        NODES => Some("2".to_owned()),
        RENDEZVOUS => Some(text.to_owned()),
        SECRET => Some(secret.clone()),
        _ => None,
    });
    match found.map(|place| place.way) {
        Ok(Way::Tcp(Rendezvous { meeting: Meeting::At(address), .. })) => Ok(address),
        _ => Err(
            "it must be a machine that the others reach and a port that is free there, as in `node-a:45217`, `10.0.0.7:45217` or `[fd00::7]:45217`"
                .to_owned(),
        ),
    }
}

/// Whether nodes will make sense of what they are told, and of what our own environment says to them.
fn check(rendezvous: &Rendezvous) -> Result<()> {
    let told = rendezvous.variables();
    let found = environment::Place::find_in(|name| match name {
        RANK => Some("0".to_owned()),
        NODES => Some("2".to_owned()),
        SECRET => Some(rendezvous.secret.to_hex()),
        JOIN_TIMEOUT | SILENCE | SHARED_MEMORY => env::var_os(name).map(|value| value.to_string_lossy().into_owned()),
        _ => told.iter().find(|(told, _)| *told == name).map(|(_, value)| value.clone()),
    });
    found.map(drop).map_err(|error: PlaceError| Error::Usage(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_the_job_has_not_made_is_left() {
        let others = tempfile::tempdir().unwrap();
        drop(Directory::new(others.path().to_owned()));
        assert!(others.path().exists());
        assert_ne!(random(), random());
    }

    #[test]
    fn an_ipv6_address_is_told_from_its_port() {
        for (machine, address) in [
            ("node-a", "node-a:7"),
            ("me@node-a", "node-a:7"),
            ("10.0.0.1", "10.0.0.1:7"),
            ("::1", "[::1]:7"),
            ("me@fd00::7", "[fd00::7]:7"),
        ] {
            assert_eq!(address_of(machine, 7).unwrap(), address);
            assert_eq!(meeting_address(address).as_deref(), Ok(address));
        }
        let error = address_of("fe80::1%eth0", 7).unwrap_err().to_string();
        assert!(error.contains("--rendezvous HOST:PORT"), "{error}");
    }

    #[test]
    fn nodes_meet_at_a_machine_and_a_port() {
        for text in [
            "node-a",
            "node-a:",
            ":7",
            "node-a:0",
            "node-a:70000",
            "/tmp/job",
            "::1",
            "fd00::7:7",
            "[::1]",
            "two words:7",
        ] {
            assert!(meeting_address(text).unwrap_err().contains("`node-a:45217`"), "{text}");
        }
    }
}
