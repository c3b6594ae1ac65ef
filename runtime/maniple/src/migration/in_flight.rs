//! The packets that have been sent and not answered.

use maniple_realm::locks::Mutex;
use rustc_hash::FxHashMap;

use super::packet::{Reason, TaskPacket};
use super::remote::Remote;
use super::result::TaskResult;
use crate::support::error::Error;

/// A packet that is in flight.
pub(super) struct Sent {
    pub(super) remote: Box<dyn Remote>,
    pub(super) tasks: usize,
    pub(super) reason: Reason,
    /// The number of its tasks whose instances wait here for what they make. A node that forwards tasks has no
    /// instances for them.
    pub(super) with_data: usize,
}

impl Sent {
    pub(super) fn new(packet: &TaskPacket, remote: Box<dyn Remote>) -> Self {
        let with_data = if packet.hops == 1 { packet.leaves.len() } else { 0 };
        Self { remote, tasks: packet.tasks(), reason: packet.reason, with_data }
    }
}

/// All of them, until the node leaves the job.
#[derive(Default)]
pub(super) struct InFlight(Mutex<InFlightTable>);

#[derive(Default)]
struct InFlightTable {
    next: u64,
    by_number: FxHashMap<u64, Sent>,
    is_closed: bool,
}

impl InFlight {
    /// Notes a packet that is about to be sent, and gives its number; or gives it back if the table is closed.
    pub(super) fn insert(&self, sent: Sent) -> Result<u64, Sent> {
        let mut table = self.0.lock();
        if table.is_closed {
            return Err(sent);
        }
        let number = table.next;
        table.next += 1;
        table.by_number.insert(number, sent);
        Ok(number)
    }

    /// Takes out a packet whose results have come.
    pub(super) fn remove(&self, number: u64) -> Option<Sent> {
        self.0.lock().by_number.remove(&number)
    }

    pub(super) fn count(&self) -> usize {
        self.0.lock().by_number.len()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.0.lock().is_closed
    }

    /// Fails what is in flight, and refuses what comes later: nothing is received any more.
    pub(super) fn close(&self, error: &Error) {
        let sent = {
            let mut table = self.0.lock();
            table.is_closed = true;
            std::mem::take(&mut table.by_number)
        };
        for Sent { remote, tasks, .. } in sent.into_values() {
            remote.complete((0..tasks).map(|_| TaskResult::Failed(error.clone())).collect());
        }
    }
}
