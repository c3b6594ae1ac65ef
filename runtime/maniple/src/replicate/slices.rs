//! Slices that are away, and others' here: what is said of them.
//!
//! ```text
//! its arguments are there --Slice--> another node: its points are run, or sent on --SliceDone, with what has come of each--> ends here
//! ```

use std::sync::Arc;

use maniple_realm::locks::Mutex;
use maniple_realm::machine::NodeId;
use maniple_realm::net::Incoming;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::failure::Failure;
use super::node::{Letter, Node, Post, SLICE, SLICE_DONE, decode, encode};
use crate::error::Error;
use crate::slices::{DepartedSlice, Description, Outcome, host};

/// A slice.
#[derive(Serialize, Deserialize)]
struct Slice<D> {
    /// The sender's name for it.
    number: u64,
    description: D,
}

/// How a slice has ended: what has come of each point, in their order.
#[derive(Serialize, Deserialize)]
struct SliceDone {
    number: u64,
    outcomes: Vec<Result<Vec<u8>, Failure>>,
}

/// The slices that are elsewhere.
#[derive(Default)]
pub(super) struct Slices(Mutex<Away>);

#[derive(Default)]
struct Away {
    next: u64,
    by_number: FxHashMap<u64, DepartedSlice>,
}

impl Slices {
    /// How many slices are away.
    pub(super) fn away(&self) -> usize {
        self.0.lock().by_number.len()
    }

    /// The slices that are away have failed: nothing is received any more.
    pub(super) fn come_back(&self, error: &Error) {
        let away = std::mem::take(&mut self.0.lock().by_number);
        away.into_values().for_each(|departed| departed.give_up(error));
    }
}

impl Node {
    /// Sends a slice to another node. Gives it back, and why, if nothing is received any more.
    pub(crate) fn send_slice(
        &self,
        to: NodeId,
        description: &Description,
        departed: DepartedSlice,
    ) -> Option<(DepartedSlice, Error)> {
        let mut away = self.post.slices.0.lock();
        // Looked at under the lock: whoever closes takes back what is there afterwards.
        if self.post.is_closed() {
            let why = self.post.realm().breakdown().map(|why| Error::of_fault(why, "", None));
            let over = || Error::launch("a slice of a launch", "it cannot be sent to another node, as the job is over");
            return Some((departed, why.unwrap_or_else(over)));
        }
        let number = away.next;
        away.next += 1;
        away.by_number.insert(number, departed);
        drop(away);
        let letter = Letter::new(SLICE, encode(&Slice { number, description }));
        self.post.send(&self.endpoint, usize::from(to.0), letter);
        None
    }
}

impl Post {
    pub(super) fn take_slice(self: &Arc<Self>, incoming: &mut Incoming<'_>) -> Option<()> {
        let from = usize::from(incoming.from().0);
        let Slice { number, description } = decode::<Slice<Description>>(&self.take_payload(incoming))?;
        let (post, endpoint) = (Arc::clone(self), Arc::downgrade(incoming.endpoint()));
        let done = move |outcomes: Vec<Outcome>| {
            let told = |outcome: Outcome| outcome.map_err(|error| post.told.tell(&error, post.rank));
            let outcomes = outcomes.into_iter().map(told).collect();
            if let Some(endpoint) = endpoint.upgrade() {
                post.send(&endpoint, from, Letter::new(SLICE_DONE, encode(&SliceDone { number, outcomes })));
            }
        };
        self.guests.when_open(move |core| match core {
            Some(core) => host(core, &description, done),
            None => done(description.refused(&Error::launch(description.path(), "the node has ended"))),
        });
        Some(())
    }

    pub(super) fn take_slice_done(self: &Arc<Self>, incoming: &mut Incoming<'_>) -> Option<()> {
        let SliceDone { number, outcomes } = decode(&self.take_payload(incoming))?;
        let departed = self.slices.0.lock().by_number.remove(&number)?;
        let heard = |outcome: Result<_, Failure>| outcome.map_err(|failure| self.told.hear(failure));
        departed.come_back(outcomes.into_iter().map(heard).collect());
        Some(())
    }
}
