//! The state that a node keeps of another one on its machine: the way there, and what comes from there.

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::locks::Mutex;
use bytes::{Bytes, BytesMut};

use super::inbox::{Damaged, Inbox, WriterPosition};
use crate::machine::NodeId;
use crate::net::frame::{Body, Frame, Header};
use crate::net::transport::Frames;

pub(super) struct Neighbour {
    pub(super) node: NodeId,
    pub(super) outgoing: Mutex<Outgoing>,
    /// Whether there are bytes that the ring had no room for.
    pub(super) has_pending: AtomicBool,
    /// Whether it was not told yet of what lies in its inbox.
    pub(super) is_owed_bell: AtomicBool,
    /// Whether it has tried to open our inbox, or never will.
    pub(super) has_answered: AtomicBool,
    /// Whether it has opened our inbox, and reads what we lend.
    pub(super) can_borrow: AtomicBool,
    /// How much of its ring was read, for a thread that asks whether there is more.
    pub(super) read: AtomicU64,
    /// Locked while anything of this node is received: one frame at a time.
    pub(super) incoming: Mutex<Incoming>,
}

impl Neighbour {
    pub(super) fn new(node: NodeId) -> Self {
        Self {
            node,
            outgoing: Mutex::new(Outgoing::Other),
            has_pending: AtomicBool::new(false),
            is_owed_bell: AtomicBool::new(false),
            has_answered: AtomicBool::new(false),
            can_borrow: AtomicBool::new(false),
            read: AtomicU64::new(0),
            incoming: Mutex::default(),
        }
    }

    /// Nothing in its ring is looked at any more.
    pub(super) fn stop_reading(&self, incoming: &mut Incoming) {
        incoming.by_ring = false;
        self.read.store(BEYOND, Ordering::Relaxed);
    }
}

/// More cells than are ever written.
const BEYOND: u64 = u64::MAX - 1;

/// How messages get there.
pub(super) enum Outgoing {
    /// By the other transport: the neighbour's inbox is not open, or cannot be opened.
    Other,
    /// By a ring of its inbox.
    Ring(Writing),
    /// Not any more.
    Lost,
}

pub(super) struct Writing {
    pub(super) inbox: Inbox,
    ring: usize,
    written: WriterPosition,
    pending: VecDeque<Bytes>,
}

impl Writing {
    pub(super) fn new(inbox: Inbox, ring: usize) -> Self {
        Self { inbox, ring, written: WriterPosition::default(), pending: VecDeque::new() }
    }

    /// Writes a frame, if all of it can be written now.
    pub(super) fn send_directly(&mut self, header: &Header, head: &[u8], body: &[u8]) -> Result<bool, Damaged> {
        let encoded = header.encode(head.len(), body.len());
        let pieces = [encoded.as_slice(), head, body];
        Ok(self.pending.is_empty() && self.inbox.write_whole(self.ring, &mut self.written, &pieces)?)
    }

    /// Writes frames, as far as there is room; gives whether some bytes are left.
    pub(super) fn send(&mut self, frames: Frames) -> Result<bool, Damaged> {
        for Frame { header, head, body, sent } in frames {
            let encoded = header.encode(head.len(), body.len());
            let Body::Bytes(body) = body else {
                debug_assert!(false, "memory is sent in the other lane");
                continue;
            };
            let pieces = [encoded.as_slice(), &head[..], &body[..]];
            let mut skip = match self.pending.is_empty() {
                true => self.inbox.write(self.ring, &mut self.written, &pieces)?,
                false => 0,
            };
            let mut rest = BytesMut::new();
            for piece in pieces {
                let taken = skip.min(piece.len());
                skip -= taken;
                rest.extend_from_slice(&piece[taken..]);
            }
            if !rest.is_empty() {
                self.pending.push_back(rest.freeze());
            }
            sent.into_iter().for_each(|sent| sent(()));
        }
        self.push()
    }

    /// Writes what is left, as far as there is room; gives whether some bytes still are.
    pub(super) fn push(&mut self) -> Result<bool, Damaged> {
        let mut has_asked = false;
        while let Some(first) = self.pending.front_mut() {
            let done = self.inbox.write(self.ring, &mut self.written, &[&first[..]])?;
            bytes::Buf::advance(first, done);
            if first.is_empty() {
                self.pending.pop_front();
            } else if mem::replace(&mut has_asked, true) {
                return Ok(true);
            } else {
                self.inbox.want_room(self.ring);
            }
        }
        Ok(false)
    }
}

/// The state of what comes from the neighbour.
#[derive(Default)]
pub(super) struct Incoming {
    /// Whether it has said that its messages come by the ring from now on.
    pub(super) by_ring: bool,
    pub(super) read: u64,
    /// Bytes that were read and are no whole frame yet.
    pub(super) buffer: BytesMut,
}
