//! Leaf tasks of a slice that are away together with their data, and others' here: one message there, and one back when all have ended.

use std::sync::Arc;

use bytes::Bytes;
use maniple_realm::locks::Mutex;
use maniple_realm::machine::NodeId;
use maniple_realm::net::Incoming;
use maniple_realm::{Class, Spawn};
use rustc_hash::FxHashMap;

use super::luggage::{Header, Word, from, letter};
use super::node::{BATCH, BATCH_RETURN, Node, Post, decode, encode};
use crate::error::Error;
use crate::luggage::{BatchDescription, Departed, Hosted, Leg, divide, host};
use crate::runtime::RuntimeCore;

/// The batches that are elsewhere.
#[derive(Default)]
pub(super) struct Batches(Mutex<Away>);

#[derive(Default)]
struct Away {
    next: u64,
    by_number: FxHashMap<u64, Whose>,
}

/// Whose the tasks of a batch are.
enum Whose {
    /// This node's.
    Ours(Vec<Departed>),
    /// Another node's, which has sent them here. They have gone on, and this is done with what has come of them.
    Others(Relay),
}

/// What is done with what has come of tasks.
pub(super) type Relay = Box<dyn FnOnce(Vec<Hosted>) + Send>;

impl Batches {
    /// How many batches are away.
    pub(super) fn away(&self) -> usize {
        self.0.lock().by_number.len()
    }

    /// The tasks that are away have failed: nothing is received any more.
    pub(super) fn come_back(&self, error: &Error) {
        let away = std::mem::take(&mut self.0.lock().by_number);
        for whose in away.into_values() {
            // To other nodes nothing can be said any more.
            let Whose::Ours(departed) = whose else { continue };
            departed.into_iter().for_each(|departed| departed.give_up(error.clone()));
        }
    }
}

impl Node {
    /// Sends tasks away with their values. Gives them back if nothing is received any more: then they have to stay.
    pub(crate) fn send_batch(
        &self,
        to: NodeId,
        (description, values): (&BatchDescription, Vec<u8>),
        departed: Vec<Departed>,
    ) -> Option<Vec<Departed>> {
        let tasks = departed.len();
        match self.note(departed, Whose::Ours) {
            Ok(number) => {
                self.post.away.count_more(tasks);
                self.send_noted(to, number, (description, values));
                None
            }
            Err(departed) => Some(departed),
        }
    }

    /// Sends tasks of another node on. Gives back what was to be done at their return if nothing is received any more.
    fn send_batch_on(
        &self,
        to: NodeId,
        (description, values): (&BatchDescription, Vec<u8>),
        relay: Relay,
    ) -> Option<Relay> {
        match self.note(relay, Whose::Others) {
            Ok(number) => {
                self.send_noted(to, number, (description, values));
                None
            }
            Err(relay) => Some(relay),
        }
    }

    /// Notes whose tasks are about to leave: their number.
    fn note<W>(&self, whose: W, noted: impl FnOnce(W) -> Whose) -> std::result::Result<u64, W> {
        let mut away = self.post.batches.0.lock();
        // Looked at under the lock: whoever closes takes back what is there afterwards.
        if self.post.is_closed() {
            return Err(whose);
        }
        let number = away.next;
        away.next += 1;
        away.by_number.insert(number, noted(whose));
        Ok(number)
    }

    fn send_noted(&self, to: NodeId, number: u64, (description, values): (&BatchDescription, Vec<u8>)) {
        let letter = letter(BATCH, (number, false), (&encode(description), values));
        self.post.send(&self.endpoint, usize::from(to.0), letter);
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

/// What is done when a task of a batch has ended, of which this is the number.
type End = Arc<dyn Fn(usize, Hosted) + Send + Sync>;

/// Has tasks of another node run here, or elsewhere if their slice is to be sliced again.
fn receive(core: &Arc<RuntimeCore>, batch: BatchDescription, values: Bytes, end: End) {
    if !batch.is_to_be_sliced() {
        let all = (0..batch.tasks()).collect();
        return run(core, (batch, values, all), &end);
    }
    let again = Arc::clone(core);
    core.spawn_own("slicing again what has come from another node", AT_ONCE, move || {
        match divide(&again, &batch, &values) {
            Ok(legs) => legs.into_iter().for_each(|leg| go(&again, leg, &end)),
            Err(error) => (0..batch.tasks()).for_each(|task| end(task, Hosted::Failed(error.clone()))),
        }
    });
}

const AT_ONCE: Spawn<'static> = Spawn { class: Class::Runtime, ..Spawn::ANYWHERE };

/// Has tasks run here that have these numbers.
fn run(core: &Arc<RuntimeCore>, (batch, values, tasks): (BatchDescription, Bytes, Vec<usize>), end: &End) {
    let path = batch.path().to_owned();
    let Some(described) = batch.unpack(values) else {
        let error = Error::launch(&path, "another node has sent fewer values than this task uses");
        return tasks.into_iter().for_each(|task| end(task, Hosted::Failed(error.clone())));
    };
    for (task, described) in tasks.into_iter().zip(described) {
        let end = Arc::clone(end);
        host(core, described, move |hosted| end(task, hosted));
    }
}

/// Has tasks run where their slice goes.
fn go(core: &Arc<RuntimeCore>, Leg { to, batch, values, tasks }: Leg, end: &End) {
    let Some(node) = core.node().filter(|node| node.id() != to) else {
        return run(core, (batch, values.into(), tasks), end);
    };
    let (again, end) = (Arc::clone(core), Arc::clone(end));
    let relay: Relay = Box::new(move |hosted: Vec<Hosted>| {
        // What has come back may be much, and the thread that calls may be the network's.
        again.spawn_own("the return of a slice that has gone on", AT_ONCE, move || {
            tasks.into_iter().zip(hosted).for_each(|(task, hosted)| end(task, hosted));
        });
    });
    match node.send_batch_on(to, (&batch, values), relay) {
        None => core.counters.slices_sent.add(1),
        Some(relay) => {
            let refused = |_| Hosted::Refused("nothing is received any more".to_owned());
            relay((0..batch.tasks()).map(refused).collect());
        }
    }
}

impl Post {
    pub(super) fn take_batch(self: &Arc<Self>, incoming: &mut Incoming<'_>) -> Option<()> {
        let (Header { number, .. }, said, values) = self.take_letter(incoming)?;
        let batch: BatchDescription = decode(&said)?;
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
        let ended = Mutex::new(Ended::new(batch.tasks(), done));
        let end: End = Arc::new(move |task, hosted| {
            let last = ended.lock().end(task, hosted);
            if let Some((done, hosted)) = last {
                done(hosted);
            }
        });
        self.guests.when_open(move |core| match core {
            Some(core) => {
                core.counters.slices_received.add(1);
                receive(core, batch, values, end);
            }
            None => {
                let refused = || Hosted::Refused(format!("node {rank}: it has ended"));
                (0..batch.tasks()).for_each(|task| end(task, refused()));
            }
        });
        Some(())
    }

    pub(super) fn take_batch_return(self: &Arc<Self>, incoming: &mut Incoming<'_>) -> Option<()> {
        let (Header { number, .. }, said, mut values) = self.take_letter(incoming)?;
        let words: Vec<(Word, usize)> = decode(&said)?;
        let is_whole = words.iter().map(|word| word.1).sum::<usize>() == values.len();
        let whose = self.batches.0.lock().by_number.remove(&number).filter(|_| is_whole)?;
        let mut values_of = |bytes| values.split_to(bytes);
        match whose {
            Whose::Ours(departed) => {
                (departed.len() == words.len()).then_some(())?;
                for (departed, (word, bytes)) in departed.into_iter().zip(words) {
                    self.bring_home(departed, word, values_of(bytes));
                }
            }
            Whose::Others(relay) => {
                relay(words.into_iter().map(|(word, bytes)| self.hosted(word, &values_of(bytes))).collect());
            }
        }
        Some(())
    }
}
