//! The seam: what moves frames between nodes, and what gets them.
//!
//! A transport knows nothing of messages, windows or barriers: [`Endpoint`](super::Endpoint) makes those of frames, for
//! every transport alike. A transport owes to it:
//!
//! * frames of one lane from one node to another arrive in the order in which they were sent, each once, or the node is
//!   reported lost;
//! * of one sending node, one frame is received at a time;
//! * `send` neither blocks nor fails, from any thread, and never receives anything itself before it returns;
//! * while frames are received, sends from the receiver may stay in queues, but they leave when the transport has
//!   nothing more at hand to receive;
//! * a frame's `sent` is called when its bytes have been taken;
//! * frames for lost nodes are dropped.

use std::sync::Arc;

use bytes::Bytes;
use smallvec::SmallVec;

use super::error::Loss;
use super::frame::{Body, Frame, Header, Violation};
use super::segment::Span;
use crate::machine::NodeId;

/// Frames that follow each other.
pub type Frames = SmallVec<[Frame; 1]>;

/// When a frame is to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// At once.
    Now,
    /// With others: at the next frame to the same node that leaves at once, at [`Transport::flush`], when much has
    /// gathered, or, if it is sent while something is received, after that.
    Later,
}

/// How a node ends its part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Close {
    /// All nodes have agreed to end, and nothing is under way.
    Orderly,
    /// It gives up, for this reason: for the others it is lost.
    Abort(String),
}

/// Moves frames between the nodes of a job; seen from one of them.
pub trait Transport: Send + Sync {
    /// The node that this is.
    fn rank(&self) -> NodeId;

    /// How many nodes there are.
    fn nodes(&self) -> usize;

    /// Begins to give what arrives to the receiver. Called once, before anything else is sent.
    fn start(&self, receiver: Arc<dyn Receiver>);

    /// Sends frames, all of one lane, without others of the lane in between. The node may be this one.
    fn send(&self, to: NodeId, frames: Frames, flush: Flush);

    /// Sends a frame of the messages' lane, if it can go at once and without a copy. False if not: then nothing was
    /// sent.
    fn send_directly(&self, to: NodeId, header: &Header, head: &[u8], body: &[u8], flush: Flush) -> bool {
        let _ = (to, header, head, body, flush);
        false
    }

    /// Memory for the body of a message to a node, if there is some that the node can read it from without a copy.
    fn lend(&self, to: NodeId, length: usize) -> Option<Loan> {
        let _ = (to, length);
        None
    }

    /// Sends a message whose body may be memory that was [lent](Self::lend) for it, if that can be done without a copy.
    /// False if not: then nothing was sent.
    fn send_lent(&self, to: NodeId, header: &Header, head: &[u8], body: &[u8], flush: Flush) -> bool {
        let _ = (to, header, head, body, flush);
        false
    }

    /// Lets everything leave that waits in queues.
    fn flush(&self);

    /// Ends this node's part. What was sent before still arrives; nothing is received any more. The second call does
    /// nothing.
    fn close(&self, close: Close);

    /// Waits until nothing is left to be done for [`close`](Self::close), unless the calling thread is the one that
    /// would do it.
    fn join(&self);

    /// Whether a node runs on this machine, so that memory may be shared with it, as far as the transport knows.
    fn is_near(&self, node: NodeId) -> bool {
        let _ = node;
        false
    }

    /// This transport as idle threads may poll it, if messages come sooner then.
    fn polled(self: Arc<Self>) -> Option<Arc<dyn Polled>> {
        None
    }
}

/// Memory that a transport [lends](Transport::lend): as long as this lives, it has no other use.
pub trait Lent: AsRef<[u8]> + AsMut<[u8]> + Send + Sync + 'static {}

/// Memory for the body of a message: to be filled, and then to be sent. What it holds at first is of no meaning.
pub struct Loan(Box<dyn Lent>);

impl Loan {
    /// Of memory of some kind.
    #[must_use]
    pub fn new(lent: impl Lent) -> Self {
        Self(Box::new(lent))
    }

    /// The memory.
    #[must_use]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        (*self.0).as_mut()
    }

    /// Turns its bytes into the body of a message: they change no more.
    #[must_use]
    pub fn freeze(self) -> Bytes {
        Bytes::from_owner(Frozen(self.0))
    }
}

/// Memory that changes no more.
struct Frozen(Box<dyn Lent>);

impl AsRef<[u8]> for Frozen {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

/// Receives on threads that have nothing else to do, or are between two things.
///
/// While no worker looks, what comes is received by a thread of the transport's own; that takes the time of waking it.
pub trait Polled: Send + Sync {
    /// A worker looks from now on, often. To be said again before each search for work; that costs little.
    fn begin(&self);

    /// Receives what is at hand, on this thread, which runs the handlers; gives whether there was anything.
    fn poll(&self) -> bool;

    /// Whether that costs a look at one flag if there is nothing: then it is worth it between any two things. It may
    /// cost calls of the system.
    fn is_cheap(&self) -> bool {
        true
    }

    /// No worker looks any more, except that this does once more; gives whether it found anything.
    fn end(&self) -> bool;
}

/// Gets what arrives at a node.
pub trait Receiver: Send + Sync {
    /// The place for the bytes of a frame that [is placed](Header::is_placed).
    ///
    /// # Errors
    ///
    /// If the frame does not fit what came before it.
    fn place(&self, from: NodeId, header: &Header, length: usize) -> Result<BytesPlace, Violation>;

    /// The bytes of a frame are where they were to go.
    fn placed(&self, from: NodeId, header: &Header, length: usize);

    /// A frame of any other kind.
    ///
    /// # Errors
    ///
    /// If the frame does not fit what came before it.
    fn receive(&self, from: NodeId, header: &Header, head: &[u8], body: Bytes) -> Result<(), Violation>;

    /// A node will send nothing any more. Told once a node.
    fn lost(&self, node: NodeId, loss: Loss);
}

/// The place for bytes.
#[derive(Debug)]
pub enum BytesPlace {
    /// Into registered memory.
    Memory(Span),
    /// Nowhere: the transfer was refused.
    Nowhere,
}

/// Receives a frame within one process.
pub(crate) fn hand_over(receiver: &dyn Receiver, from: NodeId, frame: Frame) -> Result<(), Violation> {
    let Frame { header, head, body, sent } = frame;
    let sent = || sent.into_iter().for_each(|sent| sent(()));
    match body {
        Body::Span(source) => {
            let length = source.len();
            if let BytesPlace::Memory(target) = receiver.place(from, &header, length)? {
                source.copy_to(&target);
            }
            sent();
            receiver.placed(from, &header, length);
            Ok(())
        }
        Body::Bytes(bytes) => {
            sent();
            receiver.receive(from, &header, &head, bytes)
        }
    }
}
