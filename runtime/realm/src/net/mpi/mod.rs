//! Nodes that an MPI launcher starts, over whatever network its library drives.
//!
//! [`Mpi::join`] gives a [`Transport`] for an [`Endpoint`](super::Endpoint). One thread initialises MPI, makes all
//! calls of it, runs handlers, and finalises it; so the library need offer no more than `MPI_THREAD_FUNNELED`. Other
//! threads leave what they send in queues, and wake it.
//!
//! In reading order: `net::outbox`, what is to be sent; `flight`, what MPI is moving; `driver`, what the thread does;
//! `error`.

mod driver;
mod error;
mod flight;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle, Thread, ThreadId};
use std::time::Duration;

use crate::locks::Mutex;

use self::driver::MpiEvent;
pub use self::error::JoinError;
use super::frame::Frame;
use super::outbox::{Outbox, Sent};
use super::transport::{Close, Flush, Frames, Receiver, Transport};
use crate::machine::NodeId;

/// How patient a node is.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How often to give a sign of life if there is nothing else to say: every second.
    pub heartbeat: Duration,
    /// After how long without one a node is lost: 20 seconds. Also how long the end may take.
    pub silence: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { heartbeat: Duration::from_secs(1), silence: Duration::from_secs(20) }
    }
}

/// The state that senders and the thread share.
struct SharedMpi {
    rank: NodeId,
    /// By rank; that of this node stays empty.
    outboxes: Box<[Outbox]>,
    /// Nodes with something in their outbox that the thread does not know of.
    listed: Mutex<Vec<NodeId>>,
    /// Frames that this node sends to itself.
    own: Mutex<VecDeque<Frame>>,
    /// Whether all that waits is to leave.
    wants_flush: AtomicBool,
    /// Whether nothing is received any more.
    is_closing: AtomicBool,
    thread: Thread,
}

impl SharedMpi {
    fn outbox(&self, node: NodeId) -> Option<&Outbox> {
        self.outboxes.get(usize::from(node.0))
    }

    fn send(&self, to: NodeId, frames: Frames, flush: Flush) {
        if to == self.rank {
            self.own.lock().extend(frames);
            self.thread.unpark();
        } else if let Some(outbox) = self.outbox(to) {
            self.note(to, outbox.send(frames, flush));
        }
    }

    /// The last frame for a node.
    fn send_last(&self, to: NodeId, frame: Frame, is_rest_wanted: bool) {
        if let Some(outbox) = self.outbox(to).filter(|_| to != self.rank) {
            self.note(to, outbox.close(frame, is_rest_wanted));
        }
    }

    fn note(&self, to: NodeId, sent: Sent) {
        if sent.is_new {
            self.listed.lock().push(to);
        }
        if sent.is_due {
            self.thread.unpark();
        }
    }
}

/// A node's end of an MPI job.
pub struct Mpi {
    shared: Arc<SharedMpi>,
    events: Sender<MpiEvent>,
    thread: Mutex<Option<JoinHandle<()>>>,
    thread_id: ThreadId,
}

impl Mpi {
    /// Initialises MPI and meets the other nodes; all must call it, each once.
    ///
    /// MPI is finalised when all nodes have come to the end, in order or because one has given up and said so. When one
    /// is gone without a word it is not, since that would wait for it: then the process ends without, at which the
    /// launcher ends the others, if they have not ended by themselves.
    ///
    /// # Errors
    ///
    /// If MPI was started before, does not suit, or nodes run different programs.
    pub fn join(settings: Settings) -> Result<Arc<dyn Transport>, JoinError> {
        let (sender, joined) = channel();
        let (events, incoming) = channel();
        let thread = thread::Builder::new().name("mpi network".to_owned());
        let thread = thread.spawn(move || driver::run(settings, &sender, incoming));
        let thread = thread.map_err(|error| JoinError::Io { what: "starting a thread", error })?;
        let joined = joined.recv().unwrap_or_else(|_| {
            let error = std::io::Error::other("the network's thread has ended");
            Err(JoinError::Io { what: "starting MPI", error })
        });
        let thread_id = thread.thread().id();
        Ok(Arc::new(Self { shared: joined?, events, thread: Mutex::new(Some(thread)), thread_id }))
    }

    fn tell(&self, event: MpiEvent) {
        // The thread may have ended.
        let _ = self.events.send(event);
        self.shared.thread.unpark();
    }
}

impl Transport for Mpi {
    fn rank(&self) -> NodeId {
        self.shared.rank
    }

    fn nodes(&self) -> usize {
        self.shared.outboxes.len()
    }

    fn start(&self, receiver: Arc<dyn Receiver>) {
        self.tell(MpiEvent::Start(receiver));
    }

    fn send(&self, to: NodeId, frames: Frames, flush: Flush) {
        self.shared.send(to, frames, flush);
    }

    fn flush(&self) {
        self.shared.wants_flush.store(true, Ordering::Release);
        self.shared.thread.unpark();
    }

    fn close(&self, close: Close) {
        self.tell(MpiEvent::Close(close));
    }

    fn join(&self) {
        if thread::current().id() == self.thread_id {
            return;
        }
        // Under the lock, so that a second caller waits too.
        if let Some(thread) = self.thread.lock().take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        let reason = "its transport was dropped".to_owned();
        self.tell(MpiEvent::Close(Close::Abort(reason)));
    }
}
