//! Trials whose nodes are processes: this process is one of them, as its launcher has put it into the environment.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use maniple::environment::{NODES, Place, RANK, RENDEZVOUS, SECRET, SHARED_MEMORY, Way};
use maniple::net::Transport;
use maniple::net::tcp::{Meeting, Settings, Tcp};

/// This process among those that run the same programs one after another, each as a job of its own.
#[derive(Clone, Debug)]
pub struct Processes {
    place: Place,
    /// How all of them meet over TCP, but for where.
    settings: Option<Settings>,
    /// For how many programs they have met.
    met: Arc<AtomicU64>,
    /// Whether they have failed to.
    is_apart: Arc<AtomicBool>,
}

impl Processes {
    /// Finds this process's place among others; `None` if it is alone.
    ///
    /// # Errors
    /// If its environment makes no sense.
    pub fn find() -> Result<Option<Self>, String> {
        let place = Place::find().map_err(|error| error.to_string())?;
        let settings = match &place.way {
            Way::Alone => return Ok(None),
            Way::Tcp(rendezvous) => {
                Some(rendezvous.settings(place.rank, place.nodes).map_err(|error| error.to_string())?)
            }
            _ => None,
        };
        Ok(Some(Self { place, settings, met: Arc::default(), is_apart: Arc::default() }))
    }

    /// Which of them this is.
    #[must_use]
    pub fn rank(&self) -> usize {
        usize::from(self.place.rank.0)
    }

    /// How many there are.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.place.nodes
    }

    /// Whether they can meet for more than one program. MPI is started once in a process.
    #[must_use]
    pub fn can_meet_again(&self) -> bool {
        self.settings.is_some()
    }

    /// Whether they have failed to meet: then they will not meet again.
    #[must_use]
    pub fn are_apart(&self) -> bool {
        self.is_apart.load(Ordering::Relaxed)
    }

    /// Meets the others for one program. All must do so equally often.
    pub(crate) fn meet(&self) -> Result<Arc<dyn Transport>, String> {
        let met = self.meet_again();
        if met.is_err() {
            self.is_apart.store(true, Ordering::Relaxed);
        }
        met
    }

    fn meet_again(&self) -> Result<Arc<dyn Transport>, String> {
        let number = self.met.fetch_add(1, Ordering::Relaxed);
        let Some(settings) = &self.settings else {
            let transport = self.place.connect().map_err(|error| error.to_string())?;
            return transport.ok_or_else(|| "this process is alone".to_owned());
        };
        let meeting = match &settings.meeting {
            // Where they met for the last program is written in another file.
            Meeting::File(file) => Meeting::File(numbered(file, number)),
            Meeting::At(address) => Meeting::At(address.clone()),
        };
        Tcp::join(Settings { meeting, ..settings.clone() }).map_err(|error| error.to_string())
    }
}

fn numbered(file: &Path, number: u64) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{number}"));
    file.with_file_name(name)
}

/// Runs so many processes as the nodes of a job, and gives their outputs by rank: they meet by this file, which must
/// not be there yet, and may talk by memory that they share.
///
/// # Panics
/// If they cannot be started.
pub fn job(nodes: usize, meeting: &Path, shared_memory: bool, command: impl Fn(usize) -> Command) -> Vec<Output> {
    let start = |rank: usize| {
        let mut command = command(rank);
        command.env(RANK, rank.to_string()).env(NODES, nodes.to_string());
        command.env(RENDEZVOUS, meeting).env(SECRET, "5e".repeat(32));
        command.env(SHARED_MEMORY, u8::from(shared_memory).to_string());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a process is started")
    };
    let processes: Vec<_> = (0..nodes).map(start).collect();
    // Each is listened to at once: a process that writes more than a pipe holds would wait.
    let waiting = processes.into_iter().map(|process| std::thread::spawn(move || process.wait_with_output()));
    let waiting: Vec<_> = waiting.collect();
    let output = |thread: std::thread::JoinHandle<std::io::Result<Output>>| {
        thread.join().expect("a thread that waits does not panic").expect("a process can be waited for")
    };
    waiting.into_iter().map(output).collect()
}
