//! The state that a node keeps about another one: the window of messages to it, and what has arrived of the next
//! message from it.
//!
//! **The window.** A message that is sent outside of handlers counts from when it is sent until the other node says
//! that it was handled. A message is refused once the window is full; one message may overfill it. The other node gives
//! credit back when it is asked: by a mark on the message with which another quarter of the window was used. So less
//! than half a window can be under way without credit having been asked for (a quarter before the last mark that was
//! set, if threads overtook each other between counting and sending, and a quarter after), and a sender that finds the
//! window full will hear of room.
//!
//! The credit is sent behind whatever the handlers of those messages have answered. So the answers that wait at a node
//! for its requester are no more than what the handlers make of one window, although they are never refused.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::locks::Mutex;
use bytes::Bytes;
use smallvec::SmallVec;

use super::buffers::{Buffer, Buffers};
use super::{Done, cost};
use crate::net::error::Loss;
use crate::net::frame::{Header, Outcome, Violation};
use crate::net::message::HandlerId;

#[derive(Default)]
pub(super) struct Peer {
    /// Bytes of messages to it that it has not handled, as far as we know.
    outstanding: AtomicU64,
    /// How many of them were sent since credit was asked for.
    unasked: AtomicU64,
    /// The senders that wait for room.
    waiting: Mutex<Vec<Done>>,
    loss: OnceLock<Loss>,
    /// Changed by the one thread that receives from it; a lock so that it need not be proved.
    pub(super) arrivals: Mutex<Arrivals>,
}

/// The state of what has come from a node and is not dealt with yet.
#[derive(Default)]
pub(super) struct Arrivals {
    /// The message that parts are still to come of.
    assembly: Option<Assembly>,
    /// Credit that was not given back: for messages that were handled, and the one that is.
    pub(super) owed: u64,
    /// The put whose bytes are being dropped, and why.
    pub(super) refused: Option<(u64, Outcome)>,
}

/// A message that came in parts.
pub(super) struct Arrived {
    pub(super) handler: HandlerId,
    pub(super) head: SmallVec<[u8; 40]>,
    pub(super) payload: Bytes,
    pub(super) ask: bool,
}

struct Assembly {
    message: Arrived,
    payload: Buffer,
    missing: usize,
    credit: u64,
}

impl Peer {
    /// Takes room for a message, if any is left: then whether credit should be asked for.
    pub(super) fn take_room(&self, window: u64, cost: u64) -> Option<bool> {
        let take = |outstanding| (outstanding < window).then_some(outstanding + cost);
        self.outstanding.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).ok()?;
        let ask = self.unasked.fetch_add(cost, Ordering::AcqRel) + cost >= window / 4;
        if ask {
            // Other threads that counted since then have found that much too, and ask as well.
            self.unasked.store(0, Ordering::Release);
        }
        Some(ask)
    }

    /// Keeps the call until there is room, or gives it back with what it is to be told.
    pub(super) fn when_room(&self, window: u64, call: Done) -> Option<(Done, Result<(), Loss>)> {
        let mut waiting = self.waiting.lock();
        // Looked at under the lock: a thread that makes room, or loses the node, takes the lock afterwards.
        if let Some(loss) = self.loss.get() {
            return Some((call, Err(loss.clone())));
        }
        if self.outstanding.load(Ordering::Acquire) < window {
            return Some((call, Ok(())));
        }
        waiting.push(call);
        None
    }

    /// Messages of so many bytes were handled. Gives the calls that waited for room, if there is room.
    pub(super) fn credit(&self, window: u64, bytes: u64) -> Result<Vec<Done>, Violation> {
        let give = |outstanding: u64| outstanding.checked_sub(bytes);
        let before = self.outstanding.fetch_update(Ordering::AcqRel, Ordering::Acquire, give);
        let before = before.map_err(|_| Violation::OutOfPlace("credit for more than was sent"))?;
        Ok(if before - bytes < window { self.take_waiting() } else { Vec::new() })
    }

    pub(super) fn take_waiting(&self) -> Vec<Done> {
        std::mem::take(&mut *self.waiting.lock())
    }

    pub(super) fn loss(&self) -> Option<&Loss> {
        self.loss.get()
    }

    /// Notes that it is lost, the first time, and gives the calls that waited for room.
    pub(super) fn lose(&self, loss: Loss) -> Option<Vec<Done>> {
        self.loss.set(loss).ok()?;
        Some(self.take_waiting())
    }
}

impl Arrivals {
    /// A message has come that has as many bytes as it says, or the first part of one; gives whether it is complete.
    /// Credit for it is owed from then on.
    pub(super) fn begin(
        &mut self,
        header: &Header,
        head: &[u8],
        body: &[u8],
        max: usize,
        buffers: &Arc<Buffers>,
    ) -> Result<bool, Violation> {
        let Header::Message { handler, payload, counted, ask } = *header else {
            return Err(Violation::OutOfPlace("no message"));
        };
        if self.assembly.is_some() {
            return Err(Violation::OutOfPlace("a message within the parts of another"));
        }
        let limit = max as u64;
        if payload > limit {
            return Err(Violation::TooLong { part: "payload", found: payload, limit });
        }
        let length = payload as usize;
        let credit = if counted { cost(head.len(), length) } else { 0 };
        let missing =
            length.checked_sub(body.len()).ok_or(Violation::OutOfPlace("a message with more bytes than it has"))?;
        if missing == 0 {
            self.owed += credit;
            return Ok(true);
        }
        // Room is made as bytes come, not for what a message says that will come.
        let message = Arrived { handler, head: SmallVec::from_slice(head), payload: Bytes::new(), ask };
        let mut payload = Buffer::expecting(length, buffers);
        payload.append(body);
        self.assembly = Some(Assembly { message, payload, missing, credit });
        Ok(false)
    }

    /// The next part of a message; gives the message if it is complete.
    pub(super) fn go_on(&mut self, body: &[u8]) -> Result<Option<Arrived>, Violation> {
        let assembly = self.assembly.as_mut().ok_or(Violation::OutOfPlace("a part of no message"))?;
        assembly.missing = match assembly.missing.checked_sub(body.len()) {
            Some(missing) if !body.is_empty() => missing,
            _ => return Err(Violation::OutOfPlace("a part that is empty or too long")),
        };
        assembly.payload.append(body);
        if assembly.missing > 0 {
            return Ok(None);
        }
        self.owed += assembly.credit;
        Ok(self.assembly.take().map(|assembly| Arrived { payload: assembly.payload.freeze(), ..assembly.message }))
    }
}
