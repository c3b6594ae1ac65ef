//! Slices that are away, and others' here: what is said of them.
//!
//! ```text
//! its arguments are there --Slice--> another node: its points are run, or sent on --SliceDone, with what has come of each--> ends here
//! ```

use std::sync::Arc;

use maniple_cluster::{Failure, JobBuilder, Kind, Outgoing, Received, decode, encode};
use maniple_realm::locks::Mutex;
use maniple_realm::machine::NodeId;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::node::{Node, Post, handler};
use crate::error::Error;
use crate::slices::{DepartedSlice, Description, Outcome, host};

/// Brings a slice of an index launch.
const SLICE: Kind = Kind::new(4);
/// Brings the results of one back.
const SLICE_DONE: Kind = Kind::new(5);

/// Gives a job the messages about slices.
pub(super) fn register(builder: JobBuilder, post: &Arc<Post>) -> JobBuilder {
    let builder = builder.on(SLICE, "slice of a launch", handler(post, Post::take_slice));
    builder.on(SLICE_DONE, "results of a slice", handler(post, Post::take_slice_done))
}

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
        if self.is_closed() {
            let why = self.realm().breakdown().map(|why| Error::of_fault(why, "", None));
            let over = || Error::launch("a slice of a launch", "it cannot be sent to another node, as the job is over");
            return Some((departed, why.unwrap_or_else(over)));
        }
        let number = away.next;
        away.next += 1;
        away.by_number.insert(number, departed);
        drop(away);
        let letter = Outgoing::new(SLICE, encode(&Slice { number, description }));
        self.send(usize::from(to.0), letter);
        None
    }
}

impl Post {
    fn take_slice(self: &Arc<Self>, mut received: Received<'_, '_>) -> Option<()> {
        let (from, messenger) = (received.from(), received.messenger());
        let Slice { number, description } = decode::<Slice<Description>>(&received.take_payload())?;
        let post = Arc::clone(self);
        let done = move |outcomes: Vec<Outcome>| {
            let told = |outcome: Outcome| outcome.map_err(|error| post.sent_errors.tell(&error, post.rank));
            let outcomes = outcomes.into_iter().map(told).collect();
            messenger.send(from, Outgoing::new(SLICE_DONE, encode(&SliceDone { number, outcomes })));
        };
        self.guests.when_open(move |core| match core {
            Some(core) => host(core, &description, done),
            None => done(description.refused(&Error::launch(description.path(), "the node has ended"))),
        });
        Some(())
    }

    fn take_slice_done(self: &Arc<Self>, mut received: Received<'_, '_>) -> Option<()> {
        let SliceDone { number, outcomes } = decode(&received.take_payload())?;
        let departed = self.slices.0.lock().by_number.remove(&number)?;
        let heard = |outcome: Result<_, Failure>| outcome.map_err(|failure| self.sent_errors.hear(failure));
        departed.come_back(outcomes.into_iter().map(heard).collect());
        Some(())
    }
}
