//! Rounds of communication in which nodes find out together what none of them knows alone.
//!
//! A round is an all-gather of one value a node, and with it a sparse all-to-all: each node sends messages to some
//! others. So nodes first ask those that know more, which answer in another round. A round takes `O(log n)` steps for
//! the values, which also say which node sends messages to which, and one step for the messages.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use maniple_realm::locks::Mutex;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::job::{Job, Wait};
use crate::matching::ParcelFuture;
use crate::names::{CollectiveName, ParcelName, Rank};
use crate::wire::{decode, encode};

/// The rounds of one operation of the program, in which all nodes take part.
pub struct Rounds<'a> {
    job: &'a Job,
    operation: u64,
    /// The number of the next one.
    next: u32,
}

/// The contribution of one node, and the nodes to which it sends messages.
#[derive(Serialize, Deserialize)]
struct Contribution<V> {
    value: V,
    receivers: Vec<Rank>,
}

/// The result of a round.
pub struct Exchanged<V, M> {
    /// The value of each node, by number.
    pub values: Vec<V>,
    /// The messages that have arrived here, by sender, in order.
    pub messages: Vec<(Rank, M)>,
}

/// Exchanges of parcels from here on belong to rounds.
const ROUNDS: u32 = 1 << 31;

impl<'a> Rounds<'a> {
    /// Creates the rounds of an operation, from number `first` on: other code may have had rounds for it before, with
    /// smaller numbers.
    #[must_use]
    pub fn new(job: &'a Job, operation: u64, first: u32) -> Self {
        Self { job, operation, next: first }
    }

    /// A round with all other nodes, which do the same. At most one message goes to a node. The thread waits.
    ///
    /// # Errors
    /// [`Error::Over`] if the job ends before.
    pub fn exchange<V, M>(&mut self, value: V, messages: Vec<(Rank, M)>) -> Result<Exchanged<V, M>>
    where
        V: Serialize + DeserializeOwned,
        M: Serialize + DeserializeOwned,
    {
        ready(self.exchange_by(Wait::Blocking, value, messages))
    }

    /// The same, which may wait as a task.
    ///
    /// # Errors
    /// As [`exchange`](Self::exchange).
    pub async fn exchange_by<V, M>(&mut self, wait: Wait, value: V, messages: Vec<(Rank, M)>) -> Result<Exchanged<V, M>>
    where
        V: Serialize + DeserializeOwned,
        M: Serialize + DeserializeOwned,
    {
        let (job, number) = (self.job, self.next);
        self.next += 1;
        // Should the program have ended elsewhere, no node takes part.
        job.ask();
        let name = ParcelName { operation: self.operation, exchange: ROUNDS | number, number: 0 };
        let (mut own, mut receivers) = (None, Vec::new());
        for (to, message) in messages {
            if to == job.rank() {
                own = Some(message);
                continue;
            }
            job.send_parcel(to, name, Ok(encode(&message).into()));
            receivers.push(to);
        }
        let mine = encode(&Contribution { value, receivers });
        let (gathered, all) = (job.realm().user_event(), Arc::new(Mutex::new(None)));
        let (outcome, realm) = (Arc::clone(&all), job.realm().clone());
        let values = CollectiveName { operation: self.operation, part: 1 + number };
        job.all_gather(values, &mine, move |all| {
            *outcome.lock() = Some(all);
            realm.trigger(gathered);
        });
        job.wait(gathered.event(), wait).await?;
        let all = all.lock().take().ok_or(MALFORMED)?;
        let all: Option<Vec<Contribution<V>>> = all.decode().collect();
        let all = all.filter(|all| all.len() == job.nodes()).ok_or(MALFORMED)?;
        let (mut values, mut from) = (Vec::with_capacity(all.len()), Vec::new());
        for (rank, Contribution { value, receivers }) in all.into_iter().enumerate() {
            values.push(value);
            if receivers.contains(&job.rank()) {
                from.push(rank);
            }
        }
        let parcels = ParcelFuture::new(from.len(), job.realm());
        job.expect(&parcels, from.iter().map(|&from| (from, name)));
        job.wait(parcels.complete(job.realm()), wait).await?;
        let mut messages = Vec::with_capacity(from.len() + 1);
        for (number, from) in from.into_iter().enumerate() {
            let bytes = parcels.take(number, job.realm()).ok_or(MALFORMED)??;
            messages.push((from, decode(&bytes).ok_or(MALFORMED)?));
        }
        if let Some(own) = own {
            let place = messages.partition_point(|(from, _)| *from < job.rank());
            messages.insert(place, (job.rank(), own));
        }
        Ok(Exchanged { values, messages })
    }
}

const MALFORMED: Error = Error::Malformed("a round of an operation");

/// The outcome of something that [blocks](Wait::Blocking).
///
/// # Panics
/// If it does not: its first poll must find it ready.
pub fn ready<T>(blocks: impl Future<Output = T>) -> T {
    match pin!(blocks).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => unreachable!("it has blocked until it was ready"),
    }
}
