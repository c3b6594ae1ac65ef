//! Messages between nodes of one machine by memory that they share, over another transport that does the rest.
//!
//! Each node has an inbox, a file in memory with a ring of bytes for each neighbour, and offers it to them over the
//! other transport. A neighbour that can open it says so and sends messages by it from then on, long ones by memory
//! that it lends; bytes of puts and gets, signs of life, and how a node ends, stay with the other transport. A message
//! takes well under a microsecond, if a worker looks: see [`Polled`]. `README.md` in the folder above describes the
//! protocol.

mod attendance;
mod inbox;
mod lending;
mod memory_file;
mod neighbour;
mod reception;

use std::cell::Cell;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, OnceLock, Weak};

use crate::locks::{Mutex, MutexGuard};
use bytes::{Bytes, BytesMut};

use self::attendance::Attendance;
use self::inbox::{Damaged, Inbox, Offer};
use self::lending::Lending;
use self::memory_file::MemoryFile;
use self::neighbour::{Incoming, Neighbour, Outgoing, Writing};
use self::reception::Reception;
use super::error::Loss;
use super::frame::{Body, Frame, Header, Lane, Violation};
use super::transport::{Close, Flush, Frames, Loan, Polled, Receiver, Transport};
use super::wire::Decoded;
use crate::machine::NodeId;
use crate::topology::{addresses_of_this_process, memory_of_this_process};

/// The bytes of a ring.
const CAPACITY: usize = 256 << 10;

/// The bytes of all rings of a node, unless they would be shorter than [`LEAST`].
const ALL: usize = 16 << 20;

const LEAST: usize = 16 << 10;

/// So many bytes at most may be under way in memory that a node lends; it takes no more of the system than ever were.
/// Together, nodes of a machine lend a quarter of its memory.
const MOST_LENT: u64 = 1 << 30;

/// So much of one neighbour is received before others have their turn.
const TURN: usize = 256 << 10;

/// So many short frames are handled before the writer is told of the room that they leave.
const PUBLISHED_EVERY: u64 = 64;

/// A thread that looks at memory looks at the other transport every so many times, which takes longer by as much.
const LOOKS_NEAR: u32 = 64;

thread_local! {
    /// Whether this thread is receiving.
    static RECEIVING: Cell<bool> = const { Cell::new(false) };
    /// How often this thread has looked, whatever at.
    static LOOKS: Cell<u32> = const { Cell::new(0) };
}

/// The treatment of a neighbour of which another thread is receiving.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Care {
    /// Leave it for the next look, which is soon.
    Quick,
    /// Wait: there may be no next look.
    Thorough,
}

/// A transport that sends messages to neighbours by memory.
pub struct SharedMemory {
    this: Weak<Self>,
    other: Arc<dyn Transport>,
    /// The other transport again, if messages of some nodes come by it.
    distant: Option<Arc<dyn Polled>>,
    inbox: Inbox,
    /// The memory of this node that neighbours read in place.
    lending: Arc<Lending>,
    /// The inbox's file, until all neighbours have tried to open it, and how many have not.
    file: Mutex<(Option<MemoryFile>, usize)>,
    offer: Offer,
    neighbours: Vec<Neighbour>,
    /// By node.
    places: Vec<Option<u32>>,
    /// Whether a neighbour was sent something without a bell.
    owes_bells: AtomicBool,
    attendance: Attendance,
    receiver: OnceLock<Arc<dyn Receiver>>,
    is_closing: AtomicBool,
    /// To be done when what is pending has gone.
    closing: Mutex<Option<Close>>,
}

impl SharedMemory {
    /// Sends messages to the nodes that are near by memory, if there are any and the system has memory to share;
    /// otherwise this is the other transport.
    #[must_use]
    pub fn over(other: Arc<dyn Transport>) -> Arc<dyn Transport> {
        let all = (0..other.nodes()).map(|node| NodeId(node as u16));
        let near: Vec<NodeId> = all.filter(|&node| node != other.rank() && other.is_near(node)).collect();
        if near.is_empty() {
            return other;
        }
        // Of all nodes of this machine together, should all ever use as much.
        let nodes = near.len() as u64 + 1;
        // Each has what all of them lend among its addresses, which may be few.
        let lent =
            (memory_of_this_process() / (4 * nodes)).min(addresses_of_this_process() / (16 * nodes)).min(MOST_LENT);
        match Inbox::create(near.len(), (ALL / near.len()).clamp(LEAST, CAPACITY), lent as usize) {
            Ok((inbox, file, offer)) => Arc::new_cyclic(|this| Self::new(this, other, &near, inbox, file, offer)),
            Err(error) => {
                tracing::warn!(%error, "there is no memory to be shared with the other nodes of this machine: messages take longer");
                other
            }
        }
    }

    fn new(
        this: &Weak<Self>,
        other: Arc<dyn Transport>,
        near: &[NodeId],
        inbox: Inbox,
        file: MemoryFile,
        offer: Offer,
    ) -> Self {
        let mut places = vec![None; other.nodes()];
        for (place, node) in near.iter().enumerate() {
            places[usize::from(node.0)] = Some(place as u32);
        }
        let has_distant = near.len() + 1 < other.nodes();
        let distant = has_distant.then(|| Arc::clone(&other).polled()).flatten();
        // No worker looks yet.
        inbox.bell().store(1, Ordering::SeqCst);
        Self {
            this: Weak::clone(this),
            other,
            distant,
            lending: inbox.lending(),
            inbox,
            file: Mutex::new((Some(file), near.len())),
            offer,
            neighbours: near.iter().copied().map(Neighbour::new).collect(),
            places,
            owes_bells: AtomicBool::new(false),
            attendance: Attendance::start(this),
            receiver: OnceLock::new(),
            is_closing: AtomicBool::new(false),
            closing: Mutex::default(),
        }
    }

    fn neighbour(&self, node: NodeId) -> Option<(usize, &Neighbour)> {
        let place = self.places.get(usize::from(node.0)).copied().flatten()? as usize;
        Some((place, &self.neighbours[place]))
    }

    /// Something lies in a neighbour's inbox.
    fn announce(&self, neighbour: &Neighbour, inbox: &Inbox, flush: Flush) {
        if !inbox.has_few_rings() {
            inbox.mail().store(1, Ordering::Release);
        }
        match flush {
            Flush::Now => self.ring(neighbour, inbox),
            Flush::Later => {
                neighbour.is_owed_bell.store(true, Ordering::Release);
                self.owes_bells.store(true, Ordering::Release);
            }
        }
    }

    /// Tells a neighbour of what lies in its inbox, unless a worker there looks anyway.
    fn ring(&self, neighbour: &Neighbour, inbox: &Inbox) {
        // Against the one in `turn_on`.
        fence(Ordering::SeqCst);
        let bell = inbox.bell();
        if bell.load(Ordering::Relaxed) != 0 && bell.swap(0, Ordering::Relaxed) != 0 {
            self.tell(neighbour.node, Header::Bell, Bytes::new());
        }
    }

    /// Sends a frame over the other transport.
    fn tell(&self, node: NodeId, header: Header, body: Bytes) {
        let mut frames = Frames::new();
        frames.push(Frame { body: Body::Bytes(body), ..Frame::new(header) });
        self.other.send(node, frames, Flush::Now);
    }

    /// Tells all neighbours that were not told yet of what lies in their inboxes.
    fn ring_where_owed(&self) {
        if self.owes_bells.load(Ordering::Relaxed) && self.owes_bells.swap(false, Ordering::AcqRel) {
            for neighbour in &self.neighbours {
                if neighbour.is_owed_bell.swap(false, Ordering::AcqRel)
                    && let Outgoing::Ring(writing) = &*neighbour.outgoing.lock()
                {
                    self.ring(neighbour, &writing.inbox);
                }
            }
        }
    }

    /// Receives what has come and sends what waits for room; the thread of the attendance does so now and then.
    fn look_now_and_then(&self) {
        while self.look(Care::Thorough) {}
        self.neighbours.iter().for_each(|neighbour| _ = self.push(neighbour));
        self.close_if_sent();
    }

    /// Tries to send what a neighbour's ring had no room for; gives whether there was anything.
    fn push(&self, neighbour: &Neighbour) -> bool {
        if !neighbour.has_pending.load(Ordering::Acquire) {
            return false;
        }
        let mut outgoing = neighbour.outgoing.lock();
        let Outgoing::Ring(writing) = &mut *outgoing else { return false };
        match writing.push() {
            Ok(is_left) => {
                neighbour.has_pending.store(is_left, Ordering::Release);
                self.announce(neighbour, &writing.inbox, Flush::Now);
            }
            Err(Damaged) => self.give_up(neighbour, outgoing),
        }
        true
    }

    /// Receives what is in the inbox, if the flag says that there is anything; gives whether there was.
    fn look(&self, care: Care) -> bool {
        self.has_mail() && self.look_closely(care)
    }

    #[inline]
    fn has_mail(&self) -> bool {
        let has_next = |(place, neighbour): (usize, &Neighbour)| {
            self.inbox.has_next(place, neighbour.read.load(Ordering::Relaxed))
        };
        self.inbox.mail().load(Ordering::Relaxed) != 0
            || (self.inbox.has_few_rings() && self.neighbours.iter().enumerate().any(has_next))
    }

    fn look_closely(&self, care: Care) -> bool {
        // Sequentially consistent: what is written before the flag is set again is seen the next time, the rest below.
        if self.inbox.mail().load(Ordering::Relaxed) != 0 {
            self.inbox.mail().swap(0, Ordering::SeqCst);
        }
        let was_receiving = RECEIVING.replace(true);
        let (mut has_found, mut has_pushed) = (false, false);
        for (place, neighbour) in self.neighbours.iter().enumerate() {
            has_pushed |= self.push(neighbour);
            let incoming = match care {
                Care::Thorough if !was_receiving => Some(neighbour.incoming.lock()),
                _ => neighbour.incoming.try_lock(),
            };
            match incoming {
                Some(mut incoming) => has_found |= self.receive(place, &mut incoming, TURN),
                // Another thread receives of it, but may have looked before this came.
                None => self.inbox.mail().store(1, Ordering::Relaxed),
            }
        }
        RECEIVING.set(was_receiving);
        // What handlers have sent goes out together.
        self.flush();
        // The thread that closes looks as well, after it has said so: only what was pending here until now may have
        // kept it from closing.
        if has_pushed || self.is_closing.load(Ordering::Relaxed) {
            self.close_if_sent();
        }
        has_found
    }

    /// Receives what is in a ring; gives whether there was anything.
    fn receive(&self, place: usize, incoming: &mut Incoming, limit: usize) -> bool {
        if !incoming.by_ring {
            return false;
        }
        let neighbour = &self.neighbours[place];
        match self.receive_cells(place, incoming, limit) {
            Ok(length) => {
                if length >= limit {
                    self.inbox.mail().store(1, Ordering::Relaxed);
                }
                length > 0
            }
            Err(violation) => {
                neighbour.stop_reading(incoming);
                self.lose(neighbour, Loss::Violation(violation.to_string()));
                true
            }
        }
    }

    /// Receives what is in a ring; gives how many bytes.
    fn receive_cells(&self, place: usize, incoming: &mut Incoming, limit: usize) -> Result<usize, Violation> {
        let damaged = |Damaged| Violation::OutOfPlace("positions of shared memory that make no sense");
        let neighbour = &self.neighbours[place];
        let mut length = 0;
        // Short frames, each in a cell of its own, and nothing of a longer one before.
        while incoming.buffer.is_empty()
            && length < limit
            && let Some(cell) = self.inbox.peek(place, incoming.read).map_err(damaged)?
        {
            let bytes = cell.bytes();
            let decoded = Header::decode(bytes)?.filter(|decoded| decoded.body.end == bytes.len());
            let Some(Decoded { header, head, body }) = decoded else { break };
            (incoming.read, length) = (incoming.read + 1, length + bytes.len());
            neighbour.read.store(incoming.read, Ordering::Relaxed);
            if incoming.read.is_multiple_of(PUBLISHED_EVERY) {
                self.inbox.publish_read(place, incoming.read);
            }
            self.take_frame(neighbour.node, &header, &bytes[head], || Bytes::copy_from_slice(&bytes[body]))?;
        }
        if length > 0 {
            self.inbox.publish_read(place, incoming.read);
        }
        let rest = limit.saturating_sub(length);
        let read = self.inbox.read(place, &mut incoming.read, &mut incoming.buffer, rest).map_err(damaged)?;
        neighbour.read.store(incoming.read, Ordering::Relaxed);
        length += read;
        if length > 0 && self.inbox.take_wish(place) {
            self.tell_of_room(neighbour);
        }
        self.take_frames(neighbour.node, &mut incoming.buffer)?;
        Ok(length)
    }

    fn take_frames(&self, from: NodeId, buffer: &mut BytesMut) -> Result<(), Violation> {
        while let Some(Decoded { header, head, body }) = Header::decode(buffer)? {
            if buffer.len() < body.end {
                break;
            }
            let frame = buffer.split_to(body.end).freeze();
            self.take_frame(from, &header, &frame[head], || frame.slice(body))?;
        }
        Ok(())
    }

    fn take_frame(
        &self,
        from: NodeId,
        header: &Header,
        head: &[u8],
        body: impl FnOnce() -> Bytes,
    ) -> Result<(), Violation> {
        if let Header::Lent { handler, counted, ask, block, length } = *header {
            let Some(body) = self.borrow(from, block, length)? else { return Ok(()) };
            let header = Header::Message { handler, payload: length, counted, ask };
            return self.give(from, &header, head, body);
        }
        if header.lane() != Lane::Messages || header.is_for_transports() {
            return Err(Violation::OutOfPlace("a frame by shared memory that does not go that way"));
        }
        self.give(from, header, head, body())
    }

    fn give(&self, from: NodeId, header: &Header, head: &[u8], body: Bytes) -> Result<(), Violation> {
        match self.receiver.get() {
            Some(receiver) if !self.is_closing.load(Ordering::Relaxed) => receiver.receive(from, header, head, body),
            _ => Ok(()),
        }
    }

    /// Bytes that a neighbour lends. None if it was lost meanwhile, and is heard no more.
    fn borrow(&self, from: NodeId, block: u64, length: u64) -> Result<Option<Bytes>, Violation> {
        let neighbour = self.neighbour(from).map(|(_, neighbour)| neighbour.outgoing.lock());
        match neighbour.as_deref() {
            Some(Outgoing::Ring(writing)) => {
                let borrowed = writing.inbox.borrow(block, length);
                let damaged = |Damaged| Violation::OutOfPlace("a place in shared memory that makes no sense");
                borrowed.map(Some).map_err(damaged)
            }
            Some(Outgoing::Lost) => Ok(None),
            Some(Outgoing::Other) | None => Err(Violation::OutOfPlace("bytes in memory that is not shared")),
        }
    }

    /// A neighbour's inbox is damaged: it is told, and ends its connection, which tells this node.
    fn give_up(&self, neighbour: &Neighbour, mut outgoing: MutexGuard<'_, Outgoing>) {
        *outgoing = Outgoing::Lost;
        drop(outgoing);
        neighbour.has_pending.store(false, Ordering::Release);
        let reason = Bytes::from_static(b"positions of its shared memory make no sense");
        self.tell(neighbour.node, Header::Abort, reason);
    }

    fn tell_of_room(&self, neighbour: &Neighbour) {
        match &*neighbour.outgoing.lock() {
            Outgoing::Ring(writing) => {
                writing.inbox.mail().store(1, Ordering::Release);
                self.ring(neighbour, &writing.inbox);
            }
            Outgoing::Other => self.tell(neighbour.node, Header::Bell, Bytes::new()),
            Outgoing::Lost => {}
        }
    }

    /// Nothing more is sent to a neighbour, or received of it.
    fn lose(&self, neighbour: &Neighbour, loss: Loss) {
        let lost = mem::replace(&mut *neighbour.outgoing.lock(), Outgoing::Lost);
        neighbour.has_pending.store(false, Ordering::Release);
        if let Loss::Violation(_) = loss
            && !matches!(lost, Outgoing::Lost)
        {
            self.tell(
                neighbour.node,
                Header::Abort,
                Bytes::from(format!("it could not go on with {}: {loss}", neighbour.node)),
            );
        }
        if let Some(receiver) = self.receiver.get() {
            receiver.lost(neighbour.node, loss);
        }
    }

    /// A neighbour has tried to open the inbox.
    fn take_answer(&self, neighbour: &Neighbour) {
        if neighbour.has_answered.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut file = self.file.lock();
        file.1 = file.1.saturating_sub(1);
        if file.1 == 0 {
            file.0 = None;
        }
    }

    fn take_offer(&self, neighbour: &Neighbour, offer: &[u8]) -> Result<(), Violation> {
        let offer: Offer = postcard::from_bytes(offer).map_err(|_| Violation::OutOfPlace("an offer of no inbox"))?;
        let mut outgoing = neighbour.outgoing.lock();
        if !matches!(*outgoing, Outgoing::Other) {
            return Err(Violation::OutOfPlace("a second offer of an inbox"));
        }
        match Inbox::open(&offer) {
            Ok(inbox) => {
                // Under the lock: behind all that went the other way.
                self.tell(neighbour.node, Header::Switch, Bytes::new());
                *outgoing = Outgoing::Ring(Writing::new(inbox, offer.ring()));
            }
            Err(error) => {
                tracing::debug!(node = %neighbour.node, %error, "its memory cannot be shared");
                self.tell(neighbour.node, Header::Decline, Bytes::new());
            }
        }
        Ok(())
    }

    fn close_if_sent(&self) {
        let mut closing = self.closing.lock();
        if closing.is_some() && !self.neighbours.iter().any(|neighbour| neighbour.has_pending.load(Ordering::Acquire)) {
            let close = closing.take();
            drop(closing);
            close.into_iter().for_each(|close| self.other.close(close));
        }
    }
}

impl Transport for SharedMemory {
    fn rank(&self) -> NodeId {
        self.other.rank()
    }

    fn nodes(&self) -> usize {
        self.other.nodes()
    }

    fn is_near(&self, node: NodeId) -> bool {
        self.other.is_near(node)
    }

    fn start(&self, receiver: Arc<dyn Receiver>) {
        let _ = self.receiver.set(receiver);
        self.other.start(Arc::new(Reception(Weak::clone(&self.this))));
        for (place, neighbour) in self.neighbours.iter().enumerate() {
            let offer = postcard::to_stdvec(&self.offer.of_ring(place)).expect("plain data has an encoding");
            self.tell(neighbour.node, Header::Offer, Bytes::from(offer));
        }
    }

    fn send(&self, to: NodeId, frames: Frames, flush: Flush) {
        let neighbour =
            self.neighbour(to).filter(|_| frames.first().is_some_and(|frame| frame.lane() == Lane::Messages));
        let Some((_, neighbour)) = neighbour else { return self.other.send(to, frames, flush) };
        let mut outgoing = neighbour.outgoing.lock();
        let Outgoing::Ring(writing) = &mut *outgoing else {
            // With the lock, so that nothing comes behind the word that messages go another way from now on. The frames
            // of a lost node are dropped there.
            return self.other.send(to, frames, flush);
        };
        let sent = writing.send(frames).and_then(|is_left| {
            if is_left {
                neighbour.has_pending.store(true, Ordering::Release);
                // Asks for room once more: a thread that was told of it before this found nothing that waits for it.
                neighbour.has_pending.store(writing.push()?, Ordering::Release);
            }
            Ok(())
        });
        match sent {
            Ok(()) => self.announce(neighbour, &writing.inbox, flush),
            Err(Damaged) => self.give_up(neighbour, outgoing),
        }
    }

    fn send_directly(&self, to: NodeId, header: &Header, head: &[u8], body: &[u8], flush: Flush) -> bool {
        let Some((_, neighbour)) = self.neighbour(to).filter(|_| header.lane() == Lane::Messages) else { return false };
        let mut outgoing = neighbour.outgoing.lock();
        let Outgoing::Ring(writing) = &mut *outgoing else { return false };
        let sent = writing.send_directly(header, head, body);
        if sent == Ok(true) {
            self.announce(neighbour, &writing.inbox, flush);
        }
        // What is wrong with the ring is found again when the frame goes there the other way.
        sent == Ok(true)
    }

    fn lend(&self, to: NodeId, length: usize) -> Option<Loan> {
        let (_, neighbour) = self.neighbour(to)?;
        if neighbour.can_borrow.load(Ordering::Acquire) { self.lending.lend(length) } else { None }
    }

    fn send_lent(&self, to: NodeId, header: &Header, head: &[u8], body: &[u8], flush: Flush) -> bool {
        let Some((_, neighbour)) = self.neighbour(to) else { return false };
        let Header::Message { handler, counted, ask, .. } = *header else { return false };
        let Some(block) = self.lending.share(body) else { return false };
        let lent = Header::Lent { handler, counted, ask, block, length: body.len() as u64 };
        let is_sent = neighbour.can_borrow.load(Ordering::Acquire) && self.send_directly(to, &lent, head, &[], flush);
        if !is_sent {
            self.lending.take_back(block);
        }
        is_sent
    }

    fn flush(&self) {
        self.ring_where_owed();
        self.other.flush();
    }

    fn close(&self, close: Close) {
        if self.is_closing.swap(true, Ordering::AcqRel) {
            return;
        }
        self.flush();
        match close {
            // What was sent before still arrives: when it has gone, if the rings have no room for it now.
            Close::Orderly => {
                *self.closing.lock() = Some(close);
                self.close_if_sent();
            }
            Close::Abort(_) => self.other.close(close),
        }
    }

    fn join(&self) {
        // A thread that receives may hold what the other transport's thread waits for.
        if !RECEIVING.get() {
            self.other.join();
            // Nothing comes any more; and what the thread has recorded is to be written before a profile ends.
            self.attendance.stop();
        }
    }

    fn polled(self: Arc<Self>) -> Option<Arc<dyn Polled>> {
        Some(self)
    }
}
