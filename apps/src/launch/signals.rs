//! Which signals the launcher passes on to the nodes.
//!
//! Signals that ask a program to end, to stop or to go on, or that have a meaning of the program's own (SIGUSR1,
//! SIGUSR2) are passed on: their sender means the job. Other signals are caused by acts of the launcher itself, or are
//! about its own terminal and children.

use std::thread;

use rustix::process::{Signal, getpid, kill_process};
use signal_hook::consts::{SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use crate::error::{Error, Result};

/// Signals that ask a program to end. The same one a second time kills.
const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGQUIT];

/// Signals that are passed on unless the launcher was started to ignore them, as by `nohup`: then nodes ignore them
/// too.
const OTHERS: [i32; 5] = [SIGHUP, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT];

/// Whether the job ends at once if the signal is sent twice.
#[must_use]
pub fn ends(signal: i32) -> bool {
    ENDING.contains(&signal)
}

/// Tells of each signal that comes, and when a child has ended, until `tell` returns `false`.
///
/// # Errors
/// [`Error::Launch`] if the system refuses.
pub fn listen(tell: impl Fn(i32) -> bool + Send + 'static) -> Result<()> {
    let ignored = ignored();
    let others = OTHERS.into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0);
    let signals = ENDING.into_iter().chain(others).chain([SIGCHLD]);
    let mut signals = Signals::new(signals).map_err(Error::launch("listening to signals"))?;
    let listening = move || {
        let _ = signals.forever().find(|&signal| !tell(signal));
    };
    let thread = thread::Builder::new().stack_size(128 << 10).spawn(listening);
    thread.map(drop).map_err(Error::launch("starting a thread"))
}

/// Stops this process as SIGTSTP does, until SIGCONT comes.
pub fn stop() {
    let _ = kill_process(getpid(), Signal::STOP);
}

/// The signals that this process ignores, a bit each, if the system tells.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
