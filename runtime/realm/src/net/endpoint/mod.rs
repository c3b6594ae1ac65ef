//! A node's end of the network: messages, transfers and agreements, made of the frames of any transport.

mod barrier;
mod buffers;
mod handlers;
mod peer;
mod quiescence;
mod receive;
mod together;
mod transfer;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::locks::Mutex;
use bytes::Bytes;
use smallvec::SmallVec;

use self::buffers::{Buffer, Buffers};
use self::peer::Peer;
use self::receive::Reception;
use self::together::Together;
use self::transfer::Transfers;
use super::error::{Loss, NetError, SendError};
use super::frame::{Body, Callback, Frame, Header, MAX_BODY, MAX_HEADER};
use super::message::{HandlerId, Message};
use super::transport::{Close, Flush, Frames, Loan, Polled, Transport};
use crate::fault::install_panic_hook;
use crate::machine::NodeId;

pub use self::handlers::{Handlers, Incoming};
pub use self::together::Activity;
pub use self::transfer::{Get, Put, Registration, RemoteSegment, RemoteSpan};

/// Sizes that an endpoint keeps to. Nodes of a job may have different ones, except for `max_message`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many bytes of messages may be under way to one node before [`Endpoint::send`] refuses more.
    pub window: u64,
    /// The longest payload of a message, for sending and for receiving.
    pub max_message: usize,
    /// Longer payloads travel in parts of so many bytes; at most [`MAX_BODY`].
    pub part: usize,
    /// Puts and gets travel in chunks of so many bytes; at most [`MAX_BODY`]. A message waits for one chunk at most.
    pub chunk: usize,
}

/// Payloads of fewer bytes are copied: that takes no longer than to find memory for them that another node can read.
const LENT_FROM: usize = 2 << 10;

impl Default for Options {
    fn default() -> Self {
        Self { window: 4 << 20, max_message: 1 << 30, part: 64 << 10, chunk: 512 << 10 }
    }
}

/// A node's end of the network.
///
/// It is made of a [`Transport`] and [`Handlers`], by [`start`](Self::start); transfers need registered memory besides
/// ([`register`](Self::register)). A node that drops the last handle before [`shutdown`](Self::shutdown) was completed
/// leaves the job as one that has failed. What is called back runs where handlers run, and must be as short.
pub struct Endpoint {
    rank: NodeId,
    options: Options,
    handlers: Arc<Handlers>,
    transport: Arc<dyn Transport>,
    /// A place for every node; filled when there is something to be kept, so that thousands of nodes that never meet
    /// cost little.
    peers: Box<[OnceLock<Box<Peer>>]>,
    counters: Counters,
    together: Mutex<Together>,
    /// Whether quiescence is waited for.
    is_watching: AtomicBool,
    transfers: Transfers,
    buffers: Arc<Buffers>,
    /// The first node that was lost: agreements of all nodes are impossible from then on.
    first_lost: OnceLock<(NodeId, Loss)>,
    has_closed: AtomicBool,
}

/// The counters that quiescence is found from.
#[derive(Default)]
struct Counters {
    sent: AtomicU64,
    handled: AtomicU64,
    activations: AtomicU64,
    active: AtomicU64,
}

impl Endpoint {
    /// Joins a job: from now on messages are handled.
    #[must_use]
    pub fn start(transport: Arc<dyn Transport>, handlers: Handlers, mut options: Options) -> Arc<Self> {
        install_panic_hook();
        options.part = options.part.clamp(1, MAX_BODY);
        options.chunk = options.chunk.clamp(1, MAX_BODY);
        let (rank, nodes) = (transport.rank(), transport.nodes());
        let endpoint = Arc::new(Self {
            rank,
            options,
            handlers: handlers.share(),
            transport,
            peers: (0..nodes).map(|_| OnceLock::new()).collect(),
            counters: Counters::default(),
            together: Mutex::new(Together::new(rank, nodes)),
            is_watching: AtomicBool::new(false),
            transfers: Transfers::default(),
            buffers: Arc::default(),
            first_lost: OnceLock::new(),
            has_closed: AtomicBool::new(false),
        });
        endpoint.transport.start(Arc::new(Reception(Arc::downgrade(&endpoint))));
        endpoint
    }

    /// This node.
    #[must_use]
    pub fn rank(&self) -> NodeId {
        self.rank
    }

    /// How many nodes there are.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.peers.len()
    }

    /// The transport as idle threads may poll it, if messages come sooner then.
    #[must_use]
    pub fn polled(&self) -> Option<Arc<dyn Polled>> {
        Arc::clone(&self.transport).polled()
    }

    /// Sends a message, at once. The node may be this one. Messages from one node to another are handled in the order
    /// in which they were sent.
    ///
    /// # Errors
    ///
    /// [`SendError::Busy`], with the message, if the window is full; otherwise if the message is too long, or the node
    /// or this one is gone.
    pub fn send(&self, to: NodeId, message: Message) -> Result<(), SendError> {
        self.send_counted(to, message, Flush::Now)
    }

    /// As [`send`](Self::send), for a message of a few bytes, which are not kept if the transport can take them at
    /// once. Gives whether there was room for it.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send), but for a window that is full.
    pub fn send_short(&self, to: NodeId, handler: HandlerId, header: &[u8], payload: &[u8]) -> Result<bool, NetError> {
        let peer = self.check(to, header.len(), payload.len())?;
        let Some(ask) = peer.take_room(self.options.window, cost(header.len(), payload.len())) else {
            return Ok(false);
        };
        self.counters.sent.fetch_add(1, Ordering::SeqCst);
        let frame = Header::Message { handler, payload: payload.len() as u64, counted: true, ask };
        if payload.len() > self.options.part || !self.transport.send_directly(to, &frame, header, payload, Flush::Now) {
            let message = Message::new(handler).header(header).payload(Bytes::copy_from_slice(payload));
            self.send_frames(to, message, frame, Flush::Now);
        }
        Ok(true)
    }

    /// As [`send`](Self::send), but the message waits for others that go with it: for the next that is sent at once to
    /// the same node, for [`flush`](Self::flush), or until about 16 KiB have gathered.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub fn send_later(&self, to: NodeId, message: Message) -> Result<(), SendError> {
        self.send_counted(to, message, Flush::Later)
    }

    /// Memory for the payload of a message to a node. If that node can read it where it is, as nodes of one machine
    /// often can, it is not copied on its way.
    #[must_use]
    pub fn lend(&self, to: NodeId, length: usize) -> Loan {
        let lent = if length < LENT_FROM { None } else { self.transport.lend(to, length) };
        lent.unwrap_or_else(|| Buffer::loan(length, &self.buffers))
    }

    /// Sends what [`send_later`](Self::send_later) has left.
    pub fn flush(&self) {
        self.transport.flush();
    }

    /// Calls once there is room in the window of a node (perhaps now, on this thread), or the node is lost. The room
    /// may be gone again when the message is sent.
    pub fn when_room(&self, to: NodeId, call: impl FnOnce(Result<(), NetError>) + Send + 'static) {
        match self.reach(to) {
            Ok(peer) => {
                if let Some((call, outcome)) = peer.when_room(self.options.window, Box::new(call)) {
                    call(outcome.map_err(|loss| NetError::Lost { node: to, loss }));
                }
            }
            Err(error) => call(Err(error)),
        }
    }

    /// Leaves the job for a reason that is to be told to the others, for which this node is lost from now on.
    pub fn abort(&self, reason: impl Into<String>) {
        self.fail(None, reason.into());
    }

    /// Waits, after [`shutdown`](Self::shutdown) has called or after [`abort`](Self::abort), until the others have
    /// heard of it, as far as they listen. Without that, a process that exits may look as if it had died. Not for
    /// handlers and calls: there it does not wait.
    pub fn join(&self) {
        self.transport.join();
    }

    fn send_counted(&self, to: NodeId, message: Message, flush: Flush) -> Result<(), SendError> {
        let peer = self.check(to, message.header.len(), message.payload.len())?;
        match peer.take_room(self.options.window, cost(message.header.len(), message.payload.len())) {
            Some(ask) => {
                self.dispatch(to, message, true, ask, flush);
                Ok(())
            }
            None => Err(SendError::Busy { to, message }),
        }
    }

    /// Sends a message from a handler. It leaves with the next flush, which the transport does when nothing more is at
    /// hand to be received.
    pub(crate) fn send_from_handler(&self, to: NodeId, message: Message) -> Result<(), NetError> {
        self.check(to, message.header.len(), message.payload.len())?;
        self.dispatch(to, message, false, false, Flush::Later);
        Ok(())
    }

    fn check(&self, to: NodeId, header: usize, payload: usize) -> Result<&Peer, NetError> {
        if header > MAX_HEADER {
            return Err(NetError::HeaderTooLong { found: header, limit: MAX_HEADER });
        }
        if payload > self.options.max_message {
            return Err(NetError::PayloadTooLong { found: payload, limit: self.options.max_message });
        }
        self.reach(to)
    }

    /// The state kept about a node that something can be sent to.
    fn reach(&self, node: NodeId) -> Result<&Peer, NetError> {
        let nodes = self.peers.len();
        let place = self.peers.get(usize::from(node.0)).ok_or(NetError::NoSuchNode { node, nodes })?;
        if self.has_closed.load(Ordering::Acquire) {
            return Err(NetError::Closed);
        }
        let peer = place.get_or_init(Box::default);
        match peer.loss() {
            None => Ok(peer),
            Some(loss) => Err(NetError::Lost { node, loss: loss.clone() }),
        }
    }

    /// The state kept about a node that something has come from.
    fn peer(&self, node: NodeId) -> Option<&Peer> {
        Some(self.peers.get(usize::from(node.0))?.get_or_init(Box::default))
    }

    fn dispatch(&self, to: NodeId, message: Message, counted: bool, ask: bool, flush: Flush) {
        self.counters.sent.fetch_add(1, Ordering::SeqCst);
        let Message { handler, header: head, payload } = &message;
        let header = Header::Message { handler: *handler, payload: payload.len() as u64, counted, ask };
        let is_sent = match payload.len() {
            LENT_FROM.. if self.transport.send_lent(to, &header, head, payload, flush) => true,
            length => length <= self.options.part && self.transport.send_directly(to, &header, head, payload, flush),
        };
        if !is_sent {
            self.send_frames(to, message, header, flush);
        }
    }

    /// Cuts a message into frames, of which the first has this header.
    fn send_frames(&self, to: NodeId, message: Message, header: Header, flush: Flush) {
        let Message { header: head, payload: mut rest, .. } = message;
        let first = rest.split_to(rest.len().min(self.options.part));
        let mut frames = Frames::new();
        frames.push(Frame { header, head, body: Body::Bytes(first), sent: None });
        while !rest.is_empty() {
            let part = rest.split_to(rest.len().min(self.options.part));
            frames.push(Frame { header: Header::Part, head: SmallVec::new(), body: Body::Bytes(part), sent: None });
        }
        self.transport.send(to, frames, flush);
    }

    fn send_header(&self, to: NodeId, header: Header) {
        let mut frames = Frames::new();
        frames.push(Frame::new(header));
        self.transport.send(to, frames, Flush::Later);
    }

    /// Ends this node's part, for the reason that the others are told and perhaps another one for itself.
    fn fail(&self, loss: Option<Loss>, reason: String) {
        if self.has_closed.swap(true, Ordering::AcqRel) {
            return;
        }
        self.transport.close(Close::Abort(reason));
        if let Some(loss) = loss {
            self.handlers.tell_loss(self.rank, &loss);
        }
        self.give_up(&NetError::Closed);
        for place in &self.peers {
            if let Some(peer) = place.get() {
                peer.take_waiting().into_iter().for_each(|call| call(Err(NetError::Closed)));
            }
        }
    }

    /// Tells each waiter for all nodes, or for a transfer, that what it waits for will not come to pass.
    fn give_up(&self, error: &NetError) {
        self.give_up_together(error);
        self.transfers.take_all(None).into_iter().for_each(|done| done(Err(error.clone())));
    }

    /// A node will send nothing any more.
    fn lose(&self, node: NodeId, loss: Loss) {
        let Some(peer) = self.peer(node) else { return };
        let Some(waiting) = peer.lose(loss.clone()) else { return };
        let _ = self.first_lost.set((node, loss.clone()));
        self.handlers.tell_loss(node, &loss);
        let error = NetError::Lost { node, loss };
        waiting.into_iter().for_each(|call| call(Err(error.clone())));
        self.transfers.take_all(Some(node)).into_iter().for_each(|done| done(Err(error.clone())));
        self.give_up_together(&error);
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if !self.has_closed.swap(true, Ordering::AcqRel) {
            self.transport.close(Close::Abort("its endpoint was dropped before it was shut down".to_owned()));
        }
        self.transport.join();
    }
}

/// The share of a window that a message takes: its bytes, and something for the message itself.
fn cost(header: usize, payload: usize) -> u64 {
    64 + header as u64 + payload as u64
}

/// A waiter.
type Done = Callback<Result<(), NetError>>;
