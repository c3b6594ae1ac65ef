//! Nodes meet: each tells all others a word, and sends some of them a letter.
//!
//! That is how nodes find out together what none of them knows alone: first letters go to those who know more, then these answer in letters of another meeting. A
//! meeting takes `O(log n)` rounds for the words, of which one part says who sends letters to whom, and a message a letter. Its caller waits.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use maniple_analysis::distribution::Rank;
use maniple_realm::locks::Mutex;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::mailbox::Awaited;
use super::node::{Node, TogetherName, decode, encode};
use super::parcel::ParcelName;
use super::spread::{frame, frames};
use super::tree::together;
use crate::error::{Error, Result};

/// The meetings of one operation of the program.
pub(super) struct Meetings<'a> {
    node: &'a Arc<Node>,
    operation: u64,
    /// How many there were.
    count: u32,
}

/// Where who meets others waits for them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiting {
    /// With this thread.
    Here,
    /// As a task, while its thread does something else.
    Later,
}

/// What comes of something that waits [here](Waiting::Here).
pub(super) fn at_once<T>(waits_here: impl Future<Output = T>) -> T {
    match pin!(waits_here).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => unreachable!("it has waited for all that it waits for"),
    }
}

/// What one node says, and to whom it sends letters.
#[derive(Serialize, Deserialize)]
struct Said<W> {
    word: W,
    letters_to: Vec<Rank>,
}

/// What has come of a meeting.
pub(super) struct Met<W, L> {
    /// What each node says, by number.
    pub(super) words: Vec<W>,
    /// What has come here, in the order of nodes.
    pub(super) letters: Vec<(Rank, L)>,
}

/// Numbers of exchanges that are no exchanges before a launch.
const MEETING: u32 = 1 << 31;

/// So often nodes meet at most to plan a launch.
const MOST_FOR_A_PLAN: u32 = 8;

impl<'a> Meetings<'a> {
    /// Those of an operation. What all nodes do is compared first: if it differs, they would wait for ever.
    pub(super) fn new(node: &'a Arc<Node>, operation: u64) -> Self {
        Self { node, operation, count: 0 }
    }

    /// Those before a launch, after those for which the launch is planned: nodes plan a launch once, and prepare it each time.
    pub(super) fn after_plan(node: &'a Arc<Node>, operation: u64) -> Self {
        Self { node, operation, count: MOST_FOR_A_PLAN }
    }

    /// Meets all others, who do the same. Of letters each goes to another node. The thread waits.
    ///
    /// # Errors
    /// The job's, if it is over.
    pub(super) fn meet<W, L>(&mut self, word: W, letters: Vec<(Rank, L)>) -> Result<Met<W, L>>
    where
        W: Serialize + DeserializeOwned,
        L: Serialize + DeserializeOwned,
    {
        at_once(self.meet_waiting(Waiting::Here, word, letters))
    }

    /// The same, for one who may have something else to do meanwhile.
    pub(super) async fn meet_waiting<W, L>(
        &mut self,
        waiting: Waiting,
        word: W,
        letters: Vec<(Rank, L)>,
    ) -> Result<Met<W, L>>
    where
        W: Serialize + DeserializeOwned,
        L: Serialize + DeserializeOwned,
    {
        let (node, number) = (self.node, self.count);
        self.count += 1;
        // Should the program have ended elsewhere, nobody comes.
        node.ask();
        let name = ParcelName { operation: self.operation, exchange: MEETING | number, number: 0 };
        let (mut own, mut letters_to) = (None, Vec::new());
        for (to, letter) in letters {
            if to == node.rank() {
                own = Some(letter);
                continue;
            }
            node.send_parcel(to, name, Ok(encode(&letter).into()));
            letters_to.push(to);
        }
        let said = encode(&Said { word, letters_to });
        let (met, all) = (node.realm().user_event(), Arc::new(Mutex::new(Bytes::new())));
        let (told, waiter) = (Arc::clone(&all), node.realm().clone());
        let done = move |outcome: Bytes| {
            *told.lock() = outcome;
            waiter.trigger(met);
        };
        let words = TogetherName { operation: self.operation, part: 1 + number };
        node.together(words, frame(&said), Box::new(together), Box::new(done));
        node.wait_for(met.event(), waiting).await?;
        let all = std::mem::take(&mut *all.lock());
        let all: Option<Vec<Said<W>>> = frames(&all).map(decode).collect();
        let all = all.filter(|all| all.len() == node.nodes()).ok_or_else(nonsense)?;
        let (mut words, mut from) = (Vec::with_capacity(all.len()), Vec::new());
        for (rank, Said { word, letters_to }) in all.into_iter().enumerate() {
            words.push(word);
            if letters_to.contains(&node.rank()) {
                from.push(rank);
            }
        }
        let awaited = Awaited::new(from.len(), node.realm());
        node.expect(&awaited, from.iter().map(|&from| (from, name)));
        node.wait_for(awaited.complete(node.realm()), waiting).await?;
        let mut letters = Vec::with_capacity(from.len() + 1);
        for (number, from) in from.into_iter().enumerate() {
            let delivery = awaited.take(number, node.realm()).ok_or_else(nonsense)?;
            let bytes = delivery.map_err(|failure| node.hear(failure))?;
            letters.push((from, decode(&bytes).ok_or_else(nonsense)?));
        }
        if let Some(own) = own {
            let place = letters.partition_point(|(from, _)| *from < node.rank());
            letters.insert(place, (node.rank(), own));
        }
        Ok(Met { words, letters })
    }
}

/// What nodes said makes no sense.
#[derive(Debug, thiserror::Error)]
#[error("what nodes said when they met makes no sense")]
struct Nonsense;

fn nonsense() -> Error {
    Error::internal(Nonsense)
}
