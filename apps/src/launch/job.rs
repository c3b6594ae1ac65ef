//! What happens when nodes end, fail, or are to be ended.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitCode, ExitStatus};
use std::sync::Arc;
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
    /// Something that a node has printed could not be shown.
    Unshown(io::Error),
    /// All that comes from an output of a node was shown, or will not be.
    Shown,
}

/// Why a job does not end well.
enum Failure {
    /// A node has failed.
    Node(ExitStatus),
    /// What nodes print cannot be shown.
    Unshown(io::Error),
}

/// Starts the nodes of a job and waits until all have ended.
///
/// # Errors
/// If one of them cannot be started; then none is left. If what they print cannot be shown, other than because nobody reads it.
pub fn run(starter: &Starter<'_>, style: Style, grace: Duration) -> Result<ExitCode> {
    let places = starter.places;
    // Before the first node, so that no signal ends us without ending it.
    let (sender, events) = channel();
    signals::listen({
        let sender = sender.clone();
        move |signal| sender.send(Event::Signal(signal)).is_ok()
    })?;
    let [out, err] = Screen::both();
    let mut job = Job {
        places,
        grace,
        events,
        screens: [Arc::clone(&out), Arc::clone(&err)],
        telling: tell_on(Arc::clone(&err), sender.clone())?,
        // Ssh may leave a connection for others to use, which is no part of the job.
        #[cfg(target_os = "linux")]
        descendants: places.iter().any(Option::is_none).then(Descendants::adopt),
        leashes: Vec::new(),
        running: 0,
        outputs: 1,
        failure: None,
        passed_on: Vec::new(),
    };
    for (rank, place) in places.iter().enumerate() {
        let Started { process, leash } = starter.start(rank, place)?;
        #[cfg(target_os = "linux")]
        if let Some(descendants) = &mut job.descendants {
            [process.id(), leash.guard()].into_iter().for_each(|own| descendants.except(own));
        }
        job.leashes.push(leash);
        attend(rank, process, [&out, &err], style, &sender)?;
        (job.running, job.outputs) = (job.running + 1, job.outputs + 2);
    }
    job.attend();
    job.end();
    job.outcome()
}

/// Shows what a node prints, and tells when it has ended.
fn attend(
    rank: usize,
    mut process: Child,
    [out, err]: [&Arc<Screen>; 2],
    style: Style,
    sender: &Sender<Event>,
) -> Result<()> {
    let prefix = style.prefix(rank);
    show(process.stdout.take(), 2 * rank, prefix.clone(), Arc::clone(out), sender.clone())?;
    show(process.stderr.take(), 2 * rank + 1, prefix, Arc::clone(err), sender.clone())?;
    let sender = sender.clone();
    spawn(move || {
        // A process that is ours can be waited for.
        let status = process.wait().unwrap_or_else(|_| ExitStatus::from_raw(1 << 8));
        let _ = sender.send(Event::Ended { rank, status });
    })
}

/// Shows what comes by a pipe, on a thread of its own.
fn show(
    pipe: Option<impl io::Read + Send + 'static>,
    source: usize,
    prefix: String,
    screen: Arc<Screen>,
    sender: Sender<Event>,
) -> Result<()> {
    spawn(move || {
        if let Some(mut pipe) = pipe
            && let Err(error) = output::show(&mut pipe, source, &prefix, &screen)
        {
            // Before the pipe is closed: that ends nodes, which then is no failure of theirs.
            let _ = sender.send(Event::Unshown(error));
        }
        let _ = sender.send(Event::Shown);
    })
}

/// Shows the launcher's own messages, on a thread of its own: who reads them may take its time, in which the nodes are not to be left alone.
fn tell_on(screen: Arc<Screen>, sender: Sender<Event>) -> Result<Sender<String>> {
    let (telling, messages) = channel::<String>();
    spawn(move || {
        messages.iter().for_each(|message| screen.tell(&message));
        let _ = sender.send(Event::Shown);
    })?;
    Ok(telling)
}

fn spawn(work: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = thread::Builder::new().stack_size(128 << 10).spawn(work);
    thread.map(drop).map_err(Error::launch("starting a thread"))
}

struct Job<'a> {
    places: &'a [Place],
    grace: Duration,
    events: Receiver<Event>,
    screens: [Arc<Screen>; 2],
    telling: Sender<String>,
    /// By rank. Those that are left are cut before descendants are looked for.
    leashes: Vec<Leash>,
    #[cfg(target_os = "linux")]
    descendants: Option<Descendants>,
    /// Nodes that have not ended.
    running: usize,
    /// Outputs of nodes, and our own, of which all has not been shown.
    outputs: usize,
    /// The first that went wrong.
    failure: Option<Failure>,
    /// The signals that were passed on.
    passed_on: Vec<i32>,
}

impl Job<'_> {
    /// Until all nodes have ended.
    fn attend(&mut self) {
        let mut next: Option<(Instant, Step)> = None;
        while self.running > 0 {
            let event = match next {
                None => self.events.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some((at, _)) => self.events.recv_timeout(at.saturating_duration_since(Instant::now())),
            };
            match event {
                Ok(event) => {
                    let was_well = self.failure.is_none();
                    self.handle(event);
                    if was_well && self.failure.is_some() {
                        next = Some((Instant::now() + MOMENT.min(self.grace), Step::Terminate));
                    }
                }
                Err(RecvTimeoutError::Timeout) => next = next.and_then(|(_, step)| self.take(step)),
                // Whoever waits for a node tells its end, whatever it is.
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Signal(SIGCHLD) => self.reap(),
            Event::Signal(signal) => self.pass_on(signal),
            Event::Ended { rank, status } => {
                self.running -= 1;
                if self.failure.is_none() && !status.success() {
                    self.failure = Some(Failure::Node(status));
                    self.tell_of_failure(rank, status);
                }
            }
            Event::Unshown(error) => self.failure = self.failure.take().or(Some(Failure::Unshown(error))),
            Event::Shown => self.outputs -= 1,
        }
    }

    /// Ends the nodes that are left; gives what is to be done if that does not help.
    fn take(&mut self, step: Step) -> Option<(Instant, Step)> {
        match step {
            Step::Terminate => {
                if self.passed_on.last() != Some(&SIGTERM) {
                    self.signal_all(SIGTERM);
                }
                Some((Instant::now() + self.grace, Step::Kill))
            }
            Step::Kill => {
                let nodes = if self.running == 1 { "a node is" } else { "nodes are" };
                self.say(&format!("{nodes} still there {} s after SIGTERM: killed", self.grace.as_secs_f64()));
                self.kill();
                None
            }
        }
    }

    fn pass_on(&mut self, signal: i32) {
        if signals::ends(signal) && self.passed_on.last() == Some(&signal) {
            // Whoever says it twice does not want to wait.
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
        // As shells know it.
        let name = signal_name(signal).unwrap_or("SIGTERM").trim_start_matches("SIG");
        self.leashes.iter_mut().for_each(|leash| leash.tell(name));
    }

    fn kill(&mut self) {
        self.leashes.iter_mut().for_each(Leash::cut);
    }

    fn reap(&self) {
        #[cfg(target_os = "linux")]
        self.descendants.iter().for_each(Descendants::reap);
    }

    /// When all nodes have ended: ends what they have left behind, and shows the last that was printed.
    fn end(&mut self) {
        self.leashes.clear();
        #[cfg(target_os = "linux")]
        self.descendants.iter_mut().for_each(Descendants::end);
        // Our own messages end here.
        self.telling = channel().0;
        while self.outputs > 0 {
            match self.events.recv_timeout(self.grace) {
                // Nodes are no more, so it is for us alone.
                Ok(Event::Signal(signal)) if signals::ends(signal) => {
                    let status = ExitStatus::from_raw(signal);
                    self.failure.get_or_insert(Failure::Node(status));
                    return;
                }
                Ok(event) => self.handle(event),
                // Whoever reads may take its time. But what was not ended may hold on to a pipe, and nobody waits for that for ever.
                Err(_) if self.screens.iter().any(|screen| screen.is_busy()) => {}
                Err(_) => return,
            }
        }
    }

    fn tell_of_failure(&self, rank: usize, status: ExitStatus) {
        if status.signal().is_some_and(|signal| self.passed_on.contains(&signal)) {
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
        let _ = self.telling.send(format!("maniple launch: {words}\n"));
    }

    fn outcome(self) -> Result<ExitCode> {
        let code = match self.failure {
            None => 0,
            Some(Failure::Node(status)) => status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1),
            // As of any writer whose reader has gone.
            Some(Failure::Unshown(error)) if error.kind() == io::ErrorKind::BrokenPipe => 128 + SIGPIPE,
            Some(Failure::Unshown(error)) => return Err(Error::launch("cannot show what the nodes print")(error)),
        };
        Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
    }
}
