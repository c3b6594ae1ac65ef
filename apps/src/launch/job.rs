//! What happens when nodes end, fail, or are to be ended.

use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitCode, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::signal_name;

use super::command::{Leash, Started, Starter};
use super::hosts::Place;
use super::output::{self, Style};
use crate::error::{Error, Result};

/// How long the others have, when one node has failed, to notice that and to say what they make of it, before they are sent a signal.
const MOMENT: Duration = Duration::from_secs(1);

/// What is done next to the others of a node that has failed.
#[derive(Clone, Copy, Debug)]
enum Step {
    Terminate,
    Kill,
}

/// What the launcher hears of.
enum Event {
    /// It was sent a signal.
    Signal(i32),
    /// A node has ended.
    Ended { rank: usize, status: ExitStatus },
}

/// Starts the nodes of a job and waits until all have ended.
///
/// # Errors
/// If one of them cannot be started; then none is left. If all have ended well, and what they print could not be shown.
pub fn run(starter: &Starter<'_>, style: Style, grace: Duration) -> Result<ExitCode> {
    let places = starter.places;
    // Before the first node, so that no signal ends us without ending it.
    let (sender, events) = channel();
    listen(&sender)?;
    let mut job = Job { places, grace, leashes: Vec::new(), running: places.len(), failure: None, passed_on: None };
    let (printing, printed) = channel();
    for (rank, place) in places.iter().enumerate() {
        let Started { process, leash } = starter.start(rank, place)?;
        job.leashes.push(leash);
        attend(rank, process, style, &sender, &printing)?;
    }
    job.attend(&events);
    // With what is left of each node, the last that could print something goes.
    job.leashes.clear();
    drop(printing);
    // What has left its node's process group may still hold on to the pipe: nobody waits for that for ever.
    let until = Instant::now() + grace;
    let mut lost = None;
    while let Ok(error) = printed.recv_timeout(until.saturating_duration_since(Instant::now())) {
        lost = Some(error);
    }
    match lost {
        Some(error) if job.failure.is_none() => Err(Error::launch("cannot show what the nodes print")(error)),
        _ => Ok(job.status()),
    }
}

fn listen(sender: &Sender<Event>) -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGQUIT]).map_err(Error::launch("listening to signals"))?;
    let sender = sender.clone();
    spawn(move || {
        for signal in signals.forever() {
            if sender.send(Event::Signal(signal)).is_err() {
                return;
            }
        }
    })
}

/// Shows what a node prints, and tells when it has ended.
fn attend(
    rank: usize,
    mut process: Child,
    style: Style,
    sender: &Sender<Event>,
    printing: &Sender<io::Error>,
) -> Result<()> {
    let (stdout, stderr, prefix) = (process.stdout.take(), process.stderr.take(), style.prefix(rank));
    let (sender, out, err) = (sender.clone(), printing.clone(), printing.clone());
    spawn({
        let prefix = prefix.clone();
        move || {
            let shown = stdout.map_or(Ok(()), |pipe| output::show(pipe, &prefix, io::stdout()));
            // Whoever reads may have read enough.
            if let Err(error) = shown
                && error.kind() != io::ErrorKind::BrokenPipe
            {
                let _ = out.send(error);
            }
        }
    })?;
    spawn(move || {
        // Where nobody hears of errors, there is nobody to tell of that.
        let _ = stderr.map(|pipe| output::show(pipe, &prefix, io::stderr()));
        drop(err);
    })?;
    spawn(move || {
        // A process that is ours can be waited for.
        let status = process.wait().unwrap_or_else(|_| ExitStatus::from_raw(1 << 8));
        let _ = sender.send(Event::Ended { rank, status });
    })
}

fn spawn(work: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = thread::Builder::new().stack_size(128 << 10).spawn(work);
    thread.map(drop).map_err(Error::launch("starting a thread"))
}

struct Job<'a> {
    places: &'a [Place],
    grace: Duration,
    /// By rank.
    leashes: Vec<Leash>,
    running: usize,
    /// The first node that failed, and how.
    failure: Option<ExitStatus>,
    /// The last signal that was passed on.
    passed_on: Option<i32>,
}

impl Job<'_> {
    fn attend(&mut self, events: &Receiver<Event>) {
        let mut next: Option<(Instant, Step)> = None;
        while self.running > 0 {
            let event = match next {
                None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some((at, _)) => events.recv_timeout(at.saturating_duration_since(Instant::now())),
            };
            match event {
                // Whoever says it twice does not want to wait.
                Ok(Event::Signal(signal)) if self.passed_on == Some(signal) => self.kill(),
                Ok(Event::Signal(signal)) => {
                    self.passed_on = Some(signal);
                    self.signal_all(signal);
                }
                Ok(Event::Ended { rank, status }) => {
                    self.running -= 1;
                    if self.failure.is_none() && !status.success() {
                        self.failure = Some(status);
                        self.tell_of_failure(rank, status);
                        next = Some((Instant::now() + MOMENT.min(self.grace), Step::Terminate));
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    next = match next {
                        Some((_, Step::Terminate)) => {
                            if self.passed_on != Some(SIGTERM) {
                                self.signal_all(SIGTERM);
                            }
                            Some((Instant::now() + self.grace, Step::Kill))
                        }
                        _ => {
                            let nodes = if self.running == 1 { "a node is" } else { "nodes are" };
                            self.say(&format!(
                                "{nodes} still there {} s after SIGTERM: killed",
                                self.grace.as_secs_f64()
                            ));
                            self.kill();
                            None
                        }
                    };
                }
                // Whoever waits for a node tells its end, whatever it is.
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn signal_all(&mut self, signal: i32) {
        // As shells know it.
        let name = signal_name(signal).unwrap_or("SIGTERM").trim_start_matches("SIG");
        self.leashes.iter_mut().for_each(|leash| leash.tell(name));
    }

    fn kill(&mut self) {
        self.leashes.iter_mut().for_each(Leash::cut);
    }

    fn tell_of_failure(&self, rank: usize, status: ExitStatus) {
        if self.passed_on.is_some() && status.signal() == self.passed_on {
            // Who sent the signal knows.
            return;
        }
        let host = self.places[rank].as_ref().map(|host| format!(" on {host}")).unwrap_or_default();
        let how = match (status.signal(), status.code()) {
            (Some(signal), _) => format!("was ended by {}", signal_name(signal).unwrap_or("a signal")),
            (None, code) => format!("failed with exit code {}", code.unwrap_or(1)),
        };
        let others = match self.running {
            0 => String::new(),
            1 => "; ending the other node".to_owned(),
            running => format!("; ending the other {running} nodes"),
        };
        self.say(&format!("node {rank}{host} {how}{others}"));
    }

    fn say(&self, words: &str) {
        // Nobody may be listening.
        let _ = writeln!(io::stderr(), "maniple launch: {words}");
    }

    fn status(&self) -> ExitCode {
        let code =
            self.failure.map_or(0, |status| status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1));
        ExitCode::from(u8::try_from(code).unwrap_or(1))
    }
}
