//! Puts and gets: bytes straight from registered memory of one node into that of another.
//!
//! The node that starts a transfer numbers it and keeps the callback for its end. A put is chunks and an end, answered
//! by how it went; a get is a request, answered by chunks, or by the reason why not. Chunks travel in the bulk lane: a
//! message waits for one chunk, not for all. A transfer counts as activity of the node that started it, so there is no
//! quiescence while it lasts.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use crate::locks::Mutex;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::peer::Peer;
use super::{Done, Endpoint};
use crate::machine::NodeId;
use crate::net::error::NetError;
use crate::net::frame::{Body, Callback, Frame, Header, MAX_HEADER, Outcome, Violation};
use crate::net::message::HandlerId;
use crate::net::segment::{Segment, Span};
use crate::net::transport::{BytesPlace, Flush, Frames};

/// Names registered memory of some node: plain data, to be sent to the node that is to put into it or get from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RemoteSegment {
    node: u16,
    segment: u64,
    length: u64,
}

impl RemoteSegment {
    /// The node whose memory it is.
    #[must_use]
    pub fn node(&self) -> NodeId {
        NodeId(self.node)
    }

    /// How many bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// A part of it. Whether it is within is found out by the transfer.
    #[must_use]
    pub fn span(self, range: Range<u64>) -> RemoteSpan {
        RemoteSpan { segment: self, range }
    }

    /// All of it.
    #[must_use]
    pub fn whole(self) -> RemoteSpan {
        self.span(0..self.length)
    }
}

/// A part of registered memory of some node.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RemoteSpan {
    segment: RemoteSegment,
    range: Range<u64>,
}

impl RemoteSpan {
    fn len(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }
}

/// Memory that other nodes can reach, as long as this value lives. Transfers that began before it is dropped may still
/// use the memory.
pub struct Registration {
    endpoint: Weak<Endpoint>,
    remote: RemoteSegment,
}

impl Registration {
    /// The name by which other nodes refer to the memory.
    #[must_use]
    pub fn remote(&self) -> RemoteSegment {
        self.remote
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(endpoint) = self.endpoint.upgrade() {
            let segment = endpoint.transfers.segments.lock().remove(&self.remote.segment);
            drop(segment);
        }
    }
}

/// Bytes to be written into memory of another node.
pub struct Put {
    from: Span,
    to: RemoteSpan,
    notify: Option<(HandlerId, SmallVec<[u8; 40]>)>,
    on_sent: Option<Callback<()>>,
    on_done: Option<Done>,
}

impl Put {
    /// A put from here to there.
    #[must_use]
    pub fn new(from: Span, to: RemoteSpan) -> Self {
        Self { from, to, notify: None, on_sent: None, on_done: None }
    }

    /// Has a message with this header handled over there, once the bytes are there.
    #[must_use]
    pub fn notify(mut self, handler: HandlerId, header: &[u8]) -> Self {
        self.notify = Some((handler, SmallVec::from_slice(header)));
        self
    }

    /// Calls when the bytes here may change again (local completion). Not called if the put fails before that.
    #[must_use]
    pub fn on_sent(mut self, call: impl FnOnce(()) + Send + 'static) -> Self {
        self.on_sent = Some(Box::new(call));
        self
    }

    /// Calls when the bytes are there (remote completion), or when they will never be.
    #[must_use]
    pub fn on_done(mut self, call: impl FnOnce(Result<(), NetError>) + Send + 'static) -> Self {
        self.on_done = Some(Box::new(call));
        self
    }
}

/// Bytes to be read from memory of another node.
pub struct Get {
    from: RemoteSpan,
    into: Span,
    on_done: Option<Done>,
}

impl Get {
    /// A get from there to here.
    #[must_use]
    pub fn new(from: RemoteSpan, into: Span) -> Self {
        Self { from, into, on_done: None }
    }

    /// Calls when the bytes are here, or when they will never be.
    #[must_use]
    pub fn on_done(mut self, call: impl FnOnce(Result<(), NetError>) + Send + 'static) -> Self {
        self.on_done = Some(Box::new(call));
        self
    }
}

/// The memory that others reach, and the transfers that were started here and have not ended.
#[derive(Default)]
pub(super) struct Transfers {
    next: AtomicU64,
    segments: Mutex<FxHashMap<u64, Segment>>,
    pending: Mutex<FxHashMap<u64, Pending>>,
}

struct Pending {
    /// The other node's end.
    there: RemoteSpan,
    /// For a get: where bytes go, and how many are still to come.
    into: Option<(Span, usize)>,
    done: Option<Done>,
}

impl Transfers {
    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The calls of all transfers with a node, or of all, which will not come to their end.
    pub(super) fn take_all(&self, node: Option<NodeId>) -> Vec<Done> {
        let mut pending = self.pending.lock();
        let is_meant = |other: NodeId| node.is_none_or(|node| node == other);
        let mut numbers: Vec<u64> =
            pending.iter().filter(|(_, transfer)| is_meant(transfer.there.segment.node())).map(|(&n, _)| n).collect();
        // In the order in which they were started: a simulation is to be the same every time.
        numbers.sort_unstable();
        numbers.iter().filter_map(|number| pending.remove(number)?.done).collect()
    }

    /// A part of memory that another node names.
    fn find(&self, segment: u64, offset: u64, length: u64) -> Result<Span, Outcome> {
        let segments = self.segments.lock();
        let found = segments.get(&segment).ok_or(Outcome::NoSegment)?;
        let end = offset.checked_add(length).and_then(|end| usize::try_from(end).ok()).ok_or(Outcome::OutOfRange)?;
        found.span(offset as usize..end).ok_or(Outcome::OutOfRange)
    }
}

impl Endpoint {
    /// Lets other nodes reach memory.
    #[must_use]
    pub fn register(self: &Arc<Self>, segment: Segment) -> Registration {
        let number = self.transfers.number();
        let remote = RemoteSegment { node: self.rank.0, segment: number, length: segment.len() as u64 };
        self.transfers.segments.lock().insert(number, segment);
        Registration { endpoint: Arc::downgrade(self), remote }
    }

    /// Writes bytes into memory of another node, or of this one. The put's calls are made only if this returns no
    /// error.
    ///
    /// # Errors
    ///
    /// If the ends differ in length, the notification's header is too long, or the node or this one is gone.
    pub fn put(&self, put: Put) -> Result<(), NetError> {
        let Put { from, to, notify, on_sent, on_done } = put;
        let header = notify.as_ref().map_or(0, |(_, header)| header.len());
        if header > MAX_HEADER {
            return Err(NetError::HeaderTooLong { found: header, limit: MAX_HEADER });
        }
        let (node, segment, start) = (to.segment.node(), to.segment.segment, to.range.start);
        let transfer = self.start_transfer(from.len() as u64, to, None, on_done)?;
        let mut frames = chunks(&from, self.options.chunk, |offset| Header::PutChunk {
            transfer,
            segment,
            offset: start.wrapping_add(offset),
        });
        if let Some(last) = frames.last_mut() {
            last.sent = on_sent;
        }
        let (notify, head) = notify.map_or((None, SmallVec::new()), |(handler, header)| (Some(handler), header));
        frames.push(Frame { head, ..Frame::new(Header::PutEnd { transfer, notify }) });
        self.transport.send(node, frames, Flush::Now);
        Ok(())
    }

    /// Reads bytes from memory of another node, or of this one. The get's call is made only if this returns no error.
    ///
    /// # Errors
    ///
    /// If the ends differ in length, or the node or this one is gone.
    pub fn get(&self, get: Get) -> Result<(), NetError> {
        let Get { from, into, on_done } = get;
        let (node, segment, offset, length) =
            (from.segment.node(), from.segment.segment, from.range.start, into.len() as u64);
        let transfer = self.start_transfer(length, from, Some(into), on_done)?;
        let mut frames = Frames::new();
        frames.push(Frame::new(Header::GetAsk { transfer, segment, offset, length }));
        self.transport.send(node, frames, Flush::Now);
        Ok(())
    }

    fn start_transfer(
        &self,
        here: u64,
        there: RemoteSpan,
        into: Option<Span>,
        done: Option<Done>,
    ) -> Result<u64, NetError> {
        if here != there.len() {
            return Err(NetError::LengthsDiffer { here, there: there.len() });
        }
        let node = there.segment.node();
        self.reach(node)?;
        let number = self.transfers.number();
        let into = into.map(|span| {
            let missing = span.len();
            (span, missing)
        });
        let mut pending = self.transfers.pending.lock();
        pending.insert(number, Pending { there, into, done });
        // Again, under the lock: a thread that loses the node or closes the endpoint takes it afterwards, to find the
        // transfers that wait.
        if let Err(error) = self.reach(node) {
            pending.remove(&number);
            return Err(error);
        }
        self.activate();
        Ok(number)
    }

    /// A transfer that was started here has ended.
    fn end_transfer(&self, pending: Pending, outcome: Outcome) {
        if let Some(done) = pending.done {
            let node = pending.there.segment.node();
            let segment = pending.there.segment.segment;
            let Range { start: offset, end } = pending.there.range;
            done(match outcome {
                Outcome::Done => Ok(()),
                Outcome::NoSegment => Err(NetError::NoSegment { node, segment }),
                Outcome::OutOfRange => Err(NetError::OutOfRange { node, segment, offset, end }),
            });
        }
        self.deactivate();
    }

    pub(super) fn transfer_ended(&self, from: NodeId, number: u64, outcome: Outcome) -> Result<(), Violation> {
        let pending = {
            let mut all = self.transfers.pending.lock();
            match all.get(&number) {
                Some(found) if found.there.segment.node() == from => {}
                _ => return Err(Violation::OutOfPlace("the end of a transfer that does not exist")),
            }
            all.remove(&number)
        };
        if let Some(pending) = pending {
            self.end_transfer(pending, outcome);
        }
        Ok(())
    }

    pub(super) fn place(&self, from: NodeId, header: &Header, length: usize) -> Result<BytesPlace, Violation> {
        match *header {
            Header::PutChunk { transfer, segment, offset } => {
                let peer = self.peer(from).ok_or(Violation::OutOfPlace("a chunk from a node that does not exist"))?;
                Ok(self.transfers.find(segment, offset, length as u64).map_or_else(
                    |outcome| {
                        peer.arrivals.lock().refused.get_or_insert((transfer, outcome));
                        BytesPlace::Nowhere
                    },
                    BytesPlace::Memory,
                ))
            }
            Header::GetChunk { transfer, offset } => {
                let all = self.transfers.pending.lock();
                let pending = all.get(&transfer).filter(|pending| pending.there.segment.node() == from);
                let into = pending.and_then(|pending| pending.into.as_ref());
                let end = usize::try_from(offset).ok().and_then(|start| Some(start..start.checked_add(length)?));
                let span = match (into, end) {
                    (Some((span, missing)), Some(range)) if length <= *missing => span.part(range),
                    _ => None,
                };
                span.map(BytesPlace::Memory).ok_or(Violation::OutOfPlace("bytes that were not asked for"))
            }
            _ => Err(Violation::OutOfPlace("bytes for unknown memory")),
        }
    }

    pub(super) fn placed(&self, from: NodeId, header: &Header, length: usize) {
        let Header::GetChunk { transfer, .. } = *header else { return };
        let complete = {
            let mut all = self.transfers.pending.lock();
            let Some(pending) = all.get_mut(&transfer) else { return };
            let Some((_, missing)) = &mut pending.into else { return };
            *missing = missing.saturating_sub(length);
            if *missing > 0 || pending.there.segment.node() != from {
                return;
            }
            all.remove(&transfer)
        };
        if let Some(pending) = complete {
            self.end_transfer(pending, Outcome::Done);
        }
    }

    /// All bytes of a put to this node are here, or were dropped.
    pub(super) fn end_put(
        self: &Arc<Self>,
        from: NodeId,
        peer: &Peer,
        transfer: u64,
        notify: Option<HandlerId>,
        head: &[u8],
    ) -> Result<(), Violation> {
        let refused = peer.arrivals.lock().refused.take();
        let outcome = refused.map_or(Outcome::Done, |(_, outcome)| outcome);
        if refused.is_some_and(|(number, _)| number != transfer) {
            return Err(Violation::OutOfPlace("the end of a put within another"));
        }
        if let (Outcome::Done, Some(handler)) = (outcome, notify) {
            self.run_handler(from, handler, head, bytes::Bytes::new())?;
        }
        self.send_header(from, Header::Ended { transfer, outcome });
        Ok(())
    }

    pub(super) fn answer_get(&self, from: NodeId, transfer: u64, segment: u64, offset: u64, length: u64) {
        match self.transfers.find(segment, offset, length) {
            Ok(span) => {
                let frames = chunks(&span, self.options.chunk, |offset| Header::GetChunk { transfer, offset });
                self.transport.send(from, frames, Flush::Later);
            }
            Err(outcome) => self.send_header(from, Header::Ended { transfer, outcome }),
        }
    }
}

/// Frames of the bytes of a span; one even if there are none.
fn chunks(span: &Span, size: usize, header: impl Fn(u64) -> Header) -> Frames {
    let length = span.len();
    let starts = (0..length.max(1)).step_by(size);
    let frame = |start: usize| {
        let part = span.part(start..length.min(start + size))?;
        Some(Frame { body: Body::Span(part), ..Frame::new(header(start as u64)) })
    };
    starts.filter_map(frame).collect()
}
