//! Leaf tasks of a slice that are away together with their data, and others' here: one message there, and one back when all have ended.

use std::sync::Arc;

use bytes::Bytes;
use maniple_realm::locks::Mutex;
use maniple_realm::machine::NodeId;
use maniple_realm::net::Incoming;
use rustc_hash::FxHashMap;

use super::luggage::{Header, Word, from, letter};
use super::node::{BATCH, BATCH_RETURN, Node, Post, decode, encode};
use crate::error::Error;
use crate::luggage::{BatchDescription, Departed, Hosted, host};

/// The batches that are elsewhere.
#[derive(Default)]
pub(super) struct Batches(Mutex<Away>);

#[derive(Default)]
struct Away {
    next: u64,
    by_number: FxHashMap<u64, Vec<Departed>>,
}

impl Batches {
    /// How many batches are away.
    pub(super) fn away(&self) -> usize {
        self.0.lock().by_number.len()
    }

    /// The tasks that are away have failed: nothing is received any more.
    pub(super) fn come_back(&self, error: &Error) {
        let away = std::mem::take(&mut self.0.lock().by_number);
        away.into_values().flatten().for_each(|departed| departed.give_up(error.clone()));
    }
}

impl Node {
    /// Sends tasks away with their values. Gives them back if nothing is received any more: then they have to stay.
    pub(crate) fn send_batch(
        &self,
        to: NodeId,
        description: &BatchDescription,
        values: Vec<u8>,
        departed: Vec<Departed>,
    ) -> Option<Vec<Departed>> {
        let mut away = self.post.batches.0.lock();
        // Looked at under the lock: whoever closes takes back what is there afterwards.
        if self.post.is_closed() {
            return Some(departed);
        }
        let number = away.next;
        away.next += 1;
        self.post.away.count_more(departed.len());
        away.by_number.insert(number, departed);
        drop(away);
        let letter = letter(BATCH, (number, false), (&encode(description), values));
        self.post.send(&self.endpoint, usize::from(to.0), letter);
        None
    }
}

/// What has come of the tasks of a batch so far.
struct Ended<D> {
    outcomes: Vec<Option<Hosted>>,
    missing: usize,
    done: Option<D>,
}

impl<D: FnOnce(Vec<Hosted>)> Ended<D> {
    fn new(tasks: usize, done: D) -> Self {
        Self { outcomes: (0..tasks).map(|_| None).collect(), missing: tasks, done: Some(done) }
    }

    /// One has ended. What is to be done, if it was the last one.
    fn end(&mut self, task: usize, hosted: Hosted) -> Option<(D, Vec<Hosted>)> {
        self.outcomes[task] = Some(hosted);
        self.missing -= 1;
        let done = if self.missing == 0 { self.done.take() } else { None };
        Some((done?, self.outcomes.drain(..).flatten().collect()))
    }
}

impl Post {
    pub(super) fn take_batch(self: &Arc<Self>, incoming: &mut Incoming<'_>) -> Option<()> {
        let (Header { number, .. }, said, values) = self.take_letter(incoming)?;
        let tasks = decode::<BatchDescription>(&said)?.unpack(values)?;
        let (rank, from) = (self.rank, from(incoming));
        let (post, endpoint) = (Arc::clone(self), Arc::downgrade(incoming.endpoint()));
        let done = move |hosted: Vec<Hosted>| {
            let mut all = Vec::new();
            let words = hosted.into_iter().map(|hosted| {
                let (word, mut values) = post.word(hosted);
                let bytes = values.len();
                all.append(&mut values);
                (word, bytes)
            });
            let words: Vec<(Word, usize)> = words.collect();
            if let Some(endpoint) = endpoint.upgrade() {
                post.send(&endpoint, from, letter(BATCH_RETURN, (number, false), (&encode(&words), all)));
            }
        };
        self.guests.when_open(move |core| {
            let ended = Arc::new(Mutex::new(Ended::new(tasks.len(), done)));
            if let Some(core) = core {
                core.counters.slices_received.add(1);
            }
            for (task, of_task) in tasks.into_iter().enumerate() {
                let ended = Arc::clone(&ended);
                let end = move |hosted| {
                    let last = ended.lock().end(task, hosted);
                    if let Some((done, hosted)) = last {
                        done(hosted);
                    }
                };
                match core {
                    Some(core) => host(core, of_task, end),
                    None => end(Hosted::Refused(format!("node {rank}: it has ended"))),
                }
            }
        });
        Some(())
    }

    pub(super) fn take_batch_return(self: &Arc<Self>, incoming: &mut Incoming<'_>) -> Option<()> {
        let (Header { number, .. }, said, mut values) = self.take_letter(incoming)?;
        let words: Vec<(Word, usize)> = decode(&said)?;
        let departed = self.batches.0.lock().by_number.remove(&number)?;
        let is_whole = departed.len() == words.len() && words.iter().map(|word| word.1).sum::<usize>() == values.len();
        is_whole.then_some(())?;
        for (departed, (word, bytes)) in departed.into_iter().zip(words) {
            let values: Bytes = values.split_to(bytes);
            self.bring_home(departed, word, values);
        }
        Some(())
    }
}
