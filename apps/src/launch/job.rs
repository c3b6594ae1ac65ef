//! The life of a job: its nodes are started, and end, fail, or are ended.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGCHLD, SIGPIPE, SIGTERM, SIGTSTP};
use signal_hook::low_level::signal_name;

use super::command::{Leash, Started, Starter};
#[cfg(target_os = "linux")]
use super::descendants::Descendants;
use super::hosts::Place;
use super::output::{self, Screen, Style};
use super::signals;
use crate::error::{Error, Result};

/// How long the others have, when one node has failed, to notice that and to say what they make of it, before they are
/// sent a signal.
const MOMENT: Duration = Duration::from_secs(1);

/// How long to wait before looking again for processes that were being started.
const AGAIN: Duration = Duration::from_millis(10);

/// The next step against the nodes that are left when one has failed.
#[derive(Clone, Copy, Debug)]
enum TerminationStep {
    Terminate,
    Kill,
}

/// An event that the launcher handles.
enum LauncherEvent {
    /// It was sent a signal.
    Signal(i32),
    /// A node was started, the next by rank.
    Started(Box<Started>),
    /// All were started, or one could not be; then no more are.
    StartedAll(Result<()>),
    /// A node has ended.
    Ended { rank: usize, status: ExitStatus },
    /// Something that a node has printed could not be shown.
    Unshown(io::Error),
    /// All that comes from an output of a node was shown, or will not be.
    Shown,
}

/// Why a job does not end well.
enum Failure {
    /// A node has failed.
    Node(ExitStatus),
    /// The output of a node cannot be shown.
    Unshown(io::Error),
    /// A node could not be started.
    Unstarted(Error),
}

/// Starts the nodes of a job and waits until all have ended.
///
/// # Errors
/// If one of them cannot be started; then none is left. If what they print cannot be shown, other than because no
/// process reads it.
pub fn run(starter: &Starter<'_>, style: Style, grace: Duration) -> Result<ExitCode> {
    let places = starter.places;
    // Before the first node, so that no signal ends us without ending it.
    let (sender, events) = channel();
    signals::listen({
        let sender = sender.clone();
        move |signal| sender.send(LauncherEvent::Signal(signal)).is_ok()
    })?;
    let [out, err] = Screen::both();
    let is_over = AtomicBool::new(false);
    let mut job = LaunchedJob {
        places,
        grace,
        style,
        telling: tell_on(Arc::clone(&err), sender.clone())?,
        sender,
        events,
        screens: [out, err],
        // Ssh may leave a connection for others to use, which is no part of the job.
        #[cfg(target_os = "linux")]
        descendants: places.iter().any(Option::is_none).then(Descendants::adopt),
        leashes: Vec::new(),
        is_starting: true,
        is_over: &is_over,
        started: 0,
        running: 0,
        outputs: 1,
        failure: None,
        is_killed: false,
        passed_on: Vec::new(),
    };
    let sender = job.sender.clone();
    thread::scope(|scope| {
        // To start a process is to wait for it, which may be stopped: the others are not to be left alone meanwhile.
        let starting = thread::Builder::new().stack_size(512 << 10).spawn_scoped(scope, || {
            let _ = sender.send(LauncherEvent::StartedAll(start_all(starter, &is_over, &sender)));
        });
        let starting = starting.map_err(Error::launch("starting a thread"))?;
        job.attend();
        job.end(|| starting.is_finished());
        job.outcome()
    })
}

/// Starts the nodes one by one, unless the job is over before.
fn start_all(starter: &Starter<'_>, is_over: &AtomicBool, sender: &Sender<LauncherEvent>) -> Result<()> {
    for (rank, place) in starter.places.iter().enumerate() {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let _ = sender.send(LauncherEvent::Started(Box::new(starter.start(rank, place)?)));
    }
    Ok(())
}

/// Shows what a node prints, and tells when it has ended.
fn attend(
    rank: usize,
    mut process: Child,
    [out, err]: [&Arc<Screen>; 2],
    style: Style,
    sender: &Sender<LauncherEvent>,
) -> Result<()> {
    let prefix = style.prefix(rank);
    show(process.stdout.take(), 2 * rank, prefix.clone(), Arc::clone(out), sender.clone())?;
    show(process.stderr.take(), 2 * rank + 1, prefix, Arc::clone(err), sender.clone())?;
    let sender = sender.clone();
    spawn(move || {
        // A process that is ours can be waited for.
        let status = process.wait().unwrap_or_else(|_| ExitStatus::from_raw(1 << 8));
        let _ = sender.send(LauncherEvent::Ended { rank, status });
    })
}

/// Shows what comes by a pipe, on a thread of its own.
fn show(
    pipe: Option<impl io::Read + Send + 'static>,
    source: usize,
    prefix: String,
    screen: Arc<Screen>,
    sender: Sender<LauncherEvent>,
) -> Result<()> {
    spawn(move || {
        if let Some(mut pipe) = pipe
            && let Err(error) = output::show(&mut pipe, source, &prefix, &screen)
        {
            // Before the pipe is closed: that ends nodes, which then is no failure of theirs.
            let _ = sender.send(LauncherEvent::Unshown(error));
        }
        let _ = sender.send(LauncherEvent::Shown);
    })
}

/// Shows the launcher's own messages, on a thread of its own: the reader may take its time, in which the nodes are not
/// to be left alone.
fn tell_on(screen: Arc<Screen>, sender: Sender<LauncherEvent>) -> Result<Sender<String>> {
    let (telling, messages) = channel::<String>();
    spawn(move || {
        messages.iter().for_each(|message| screen.tell(&message));
        let _ = sender.send(LauncherEvent::Shown);
    })?;
    Ok(telling)
}

fn spawn(work: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = thread::Builder::new().stack_size(128 << 10).spawn(work);
    thread.map(drop).map_err(Error::launch("starting a thread"))
}

struct LaunchedJob<'a> {
    places: &'a [Place],
    grace: Duration,
    style: Style,
    sender: Sender<LauncherEvent>,
    events: Receiver<LauncherEvent>,
    screens: [Arc<Screen>; 2],
    telling: Sender<String>,
    /// By rank. Those that are left are cut before descendants are looked for.
    leashes: Vec<Leash>,
    #[cfg(target_os = "linux")]
    descendants: Option<Descendants>,
    /// Whether nodes are still being started.
    is_starting: bool,
    /// Whether no more are to be.
    is_over: &'a AtomicBool,
    /// Nodes that were started, and those of them that have not ended.
    started: usize,
    running: usize,
    /// Outputs of nodes, and our own, of which all has not been shown.
    outputs: usize,
    /// The first that went wrong.
    failure: Option<Failure>,
    /// Whether all nodes were killed.
    is_killed: bool,
    /// The signals that were passed on.
    passed_on: Vec<i32>,
}

impl LaunchedJob<'_> {
    /// Until all nodes have ended.
    fn attend(&mut self) {
        let mut next: Option<(Instant, TerminationStep)> = None;
        // Of a job that has failed nothing more is started, though that may not be over yet.
        while self.running > 0 || (self.is_starting && self.failure.is_none() && !self.is_killed) {
            let event = match next {
                None => self.events.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some((at, _)) => self.events.recv_timeout(at.saturating_duration_since(Instant::now())),
            };
            match event {
                Ok(event) => {
                    let was_well = self.failure.is_none();
                    self.handle(event);
                    if was_well && self.failure.is_some() {
                        next = Some((Instant::now() + MOMENT.min(self.grace), TerminationStep::Terminate));
                    }
                }
                Err(RecvTimeoutError::Timeout) => next = next.and_then(|(_, step)| self.take(step)),
                // The thread that waits for a node tells its end, whatever it is.
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn handle(&mut self, event: LauncherEvent) {
        match event {
            LauncherEvent::Signal(SIGCHLD) => self.reap(),
            LauncherEvent::Signal(signal) => self.pass_on(signal),
            LauncherEvent::Started(started) => {
                if let Err(error) = self.take_on(*started) {
                    self.give_up(error);
                }
            }
            LauncherEvent::StartedAll(outcome) => {
                self.is_starting = false;
                self.reap();
                if let Err(error) = outcome {
                    self.give_up(error);
                }
            }
            LauncherEvent::Ended { rank, status } => {
                self.running -= 1;
                if self.failure.is_none() && !status.success() {
                    self.fail(Failure::Node(status));
                    self.tell_of_failure(rank, status);
                }
            }
            LauncherEvent::Unshown(error) => self.fail(Failure::Unshown(error)),
            LauncherEvent::Shown => self.outputs -= 1,
        }
    }

    /// The first that goes wrong is what becomes of the job.
    fn fail(&mut self, failure: Failure) {
        self.is_over.store(true, Ordering::Relaxed);
        self.failure.get_or_insert(failure);
    }

    /// A node cannot be started, or looked after: none is left.
    fn give_up(&mut self, error: Error) {
        self.fail(Failure::Unstarted(error));
        self.kill();
    }

    /// Looks after a node that was started.
    fn take_on(&mut self, Started { process, mut leash }: Started) -> Result<()> {
        #[cfg(target_os = "linux")]
        if let Some(descendants) = &mut self.descendants {
            [process.id(), leash.guard()].into_iter().for_each(|own| descendants.except(own));
        }
        let [out, err] = &self.screens;
        attend(self.started, process, [out, err], self.style, &self.sender)?;
        (self.started, self.running, self.outputs) = (self.started + 1, self.running + 1, self.outputs + 2);
        // What all were told before it was there.
        self.passed_on.iter().for_each(|&signal| leash.tell(name_of(signal)));
        if self.is_killed {
            leash.cut();
        }
        self.leashes.push(leash);
        Ok(())
    }

    /// Ends the nodes that are left; gives what is to be done if that does not help.
    fn take(&mut self, step: TerminationStep) -> Option<(Instant, TerminationStep)> {
        match step {
            TerminationStep::Terminate => {
                if self.passed_on.last() != Some(&SIGTERM) {
                    self.signal_all(SIGTERM);
                }
                Some((Instant::now() + self.grace, TerminationStep::Kill))
            }
            TerminationStep::Kill => {
                let nodes = if self.running == 1 { "a node is" } else { "nodes are" };
                self.say(&format!("{nodes} still there {} s after SIGTERM: killed", self.grace.as_secs_f64()));
                self.kill();
                None
            }
        }
    }

    fn pass_on(&mut self, signal: i32) {
        if signals::ends(signal) && self.passed_on.last() == Some(&signal) {
            // A user who sends the signal twice does not want to wait.
            if self.running == 0 {
                // No node will say so.
                self.fail(Failure::Node(ExitStatus::from_raw(signal)));
            }
            return self.kill();
        }
        // At the end, so that it is the last.
        self.passed_on.retain(|&earlier| earlier != signal);
        self.passed_on.push(signal);
        self.signal_all(signal);
        if signal == SIGTSTP {
            signals::stop();
        }
    }

    fn signal_all(&mut self, signal: i32) {
        self.leashes.iter_mut().for_each(|leash| leash.tell(name_of(signal)));
    }

    fn kill(&mut self) {
        self.is_killed = true;
        self.is_over.store(true, Ordering::Relaxed);
        self.leashes.iter_mut().for_each(Leash::cut);
    }

    fn reap(&self) {
        // Nodes are no orphans, and those that are being started are not known yet.
        #[cfg(target_os = "linux")]
        if !self.is_starting {
            self.descendants.iter().for_each(Descendants::reap);
        }
    }

    /// When all nodes have ended: ends what they have left behind, and those that are being started, and shows the last
    /// that was printed.
    fn end(&mut self, has_started_all: impl Fn() -> bool) {
        self.is_over.store(true, Ordering::Relaxed);
        self.is_killed |= self.is_starting;
        self.leashes.clear();
        loop {
            #[cfg(target_os = "linux")]
            self.descendants.iter_mut().for_each(Descendants::end);
            if has_started_all() {
                break;
            }
            if let Ok(event) = self.events.recv_timeout(AGAIN) {
                self.handle(event);
            }
            self.leashes.clear();
        }
        // Our own messages end here.
        self.telling = channel().0;
        while self.outputs > 0 {
            match self.events.recv_timeout(self.grace) {
                // Nodes are no more, so it is for us alone.
                Ok(LauncherEvent::Signal(signal)) if signals::ends(signal) => {
                    let status = ExitStatus::from_raw(signal);
                    self.failure.get_or_insert(Failure::Node(status));
                    return;
                }
                Ok(event) => self.handle(event),
                // The reader may take its time. But what was not ended may hold on to a pipe, and the launcher does not
                // wait for that for ever.
                Err(_) if self.screens.iter().any(|screen| screen.is_busy()) => {}
                Err(_) => return,
            }
        }
    }

    fn tell_of_failure(&self, rank: usize, status: ExitStatus) {
        if status.signal().is_some_and(|signal| self.passed_on.contains(&signal)) {
            // The sender of the signal knows.
            return;
        }
        let host = self.places[rank].as_ref().map(|host| format!(" on {host}")).unwrap_or_default();
        let how = match (status.signal(), status.code()) {
            (Some(signal), _) => format!("was ended by {}", signal_name(signal).unwrap_or("a signal")),
            (None, code) => format!("failed with exit code {}", code.unwrap_or(1)),
        };
        // Those that were not started yet are not started any more.
        let others = match self.places.len() + self.running - self.started {
            0 => String::new(),
            1 => "; ending the other node".to_owned(),
            running => format!("; ending the other {running} nodes"),
        };
        self.say(&format!("node {rank}{host} {how}{others}"));
    }

    fn say(&self, words: &str) {
        let _ = self.telling.send(format!("maniple launch: {words}\n"));
    }

    fn outcome(self) -> Result<ExitCode> {
        let code = match self.failure {
            None => 0,
            Some(Failure::Node(status)) => status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1),
            // As of any writer whose reader has gone.
            Some(Failure::Unshown(error)) if error.kind() == io::ErrorKind::BrokenPipe => 128 + SIGPIPE,
            Some(Failure::Unshown(error)) => return Err(Error::launch("cannot show what the nodes print")(error)),
            Some(Failure::Unstarted(error)) => return Err(error),
        };
        Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
    }
}

/// A signal as shells know it.
fn name_of(signal: i32) -> &'static str {
    signal_name(signal).unwrap_or("SIGTERM").trim_start_matches("SIG")
}
