//! The reception of frames: from the transport beneath, and from the inbox as workers look.

use std::sync::Weak;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::{Care, LOOKS, LOOKS_NEAR, SharedMemory, TURN};
use crate::machine::NodeId;
use crate::net::error::Loss;
use crate::net::frame::{Header, Violation};
use crate::net::transport::{BytesPlace, Polled, Receiver};

/// The receiver that the other transport gives its frames to.
pub(super) struct Reception(pub(super) Weak<SharedMemory>);

impl Receiver for Reception {
    fn place(&self, from: NodeId, header: &Header, length: usize) -> Result<BytesPlace, Violation> {
        let shared = self.0.upgrade();
        let receiver = shared.as_ref().and_then(|shared| shared.receiver.get());
        receiver.map_or(Ok(BytesPlace::Nowhere), |receiver| receiver.place(from, header, length))
    }

    fn placed(&self, from: NodeId, header: &Header, length: usize) {
        let Some(shared) = self.0.upgrade() else { return };
        let one_at_a_time = shared.neighbour(from).map(|(_, neighbour)| neighbour.incoming.lock());
        shared.receiver.get().inspect(|receiver| receiver.placed(from, header, length));
        drop(one_at_a_time);
        shared.ring_where_owed();
    }

    fn receive(&self, from: NodeId, header: &Header, head: &[u8], body: Bytes) -> Result<(), Violation> {
        let Some(shared) = self.0.upgrade() else { return Ok(()) };
        let Some((_, neighbour)) = shared.neighbour(from) else {
            let receiver = shared.receiver.get();
            let received = receiver.map_or(Ok(()), |receiver| receiver.receive(from, header, head, body));
            shared.ring_where_owed();
            return received;
        };
        match header {
            Header::Offer => return shared.take_offer(neighbour, &body),
            Header::Decline => shared.take_answer(neighbour),
            Header::Switch => {
                shared.take_answer(neighbour);
                neighbour.can_borrow.store(true, Ordering::Release);
                neighbour.incoming.lock().by_ring = true;
                shared.look_closely(Care::Thorough);
            }
            Header::Bell => {
                shared.look_closely(Care::Thorough);
                shared.attendance.rang(shared.inbox.bell());
                while shared.look(Care::Thorough) {}
            }
            _ => {
                let one_at_a_time = neighbour.incoming.lock();
                let receiver = shared.receiver.get();
                let received = receiver.map_or(Ok(()), |receiver| receiver.receive(from, header, head, body));
                drop(one_at_a_time);
                shared.ring_where_owed();
                return received;
            }
        }
        Ok(())
    }

    fn lost(&self, node: NodeId, loss: Loss) {
        let Some(shared) = self.0.upgrade() else { return };
        match shared.neighbour(node) {
            None => _ = shared.receiver.get().inspect(|receiver| receiver.lost(node, loss)),
            Some((place, neighbour)) => {
                // What it had said before is heard.
                let mut incoming = neighbour.incoming.lock();
                while shared.receive(place, &mut incoming, TURN) {}
                neighbour.stop_reading(&mut incoming);
                drop(incoming);
                shared.take_answer(neighbour);
                shared.lose(neighbour, loss);
                shared.close_if_sent();
            }
        }
    }
}

impl Polled for SharedMemory {
    fn begin(&self) {
        self.attendance.begin(self.inbox.bell());
    }

    fn poll(&self) -> bool {
        let found = self.look(Care::Quick);
        let Some(distant) = &self.distant else { return found };
        let looks = LOOKS.get();
        LOOKS.set(looks.wrapping_add(1));
        let is_due = looks.is_multiple_of(LOOKS_NEAR);
        found | (is_due && distant.poll())
    }

    fn end(&self) -> bool {
        self.attendance.end(self.inbox.bell());
        let found = self.look(Care::Thorough);
        found | self.distant.as_ref().is_some_and(|distant| distant.end())
    }
}
