//! Leaf tasks of a slice that are away together with their data, and others' here: one message there, and one back when all have ended.

use std::sync::Arc;

use bytes::Bytes;
use maniple_cluster::{JobBuilder, Kind, Received, decode, encode};
use maniple_realm::locks::Mutex;
use maniple_realm::machine::NodeId;
use maniple_realm::{Class, Spawn};
use rustc_hash::FxHashMap;

use super::luggage::{Header, Word, letter, take_letter};
use super::node::{Node, Post, handler};
use crate::core::RuntimeCore;
use crate::error::Error;
use crate::luggage::{Answer, BatchDescription, Departed, Leg, divide, host};
use crate::profiling::MAPPING;

/// Brings leaf tasks of a slice with their data.
const BATCH: Kind = Kind::new(6);
/// Brings back what they have made.
const BATCH_RETURN: Kind = Kind::new(7);

/// Gives a job the messages about batches.
pub(super) fn register(builder: JobBuilder, post: &Arc<Post>) -> JobBuilder {
    let builder = builder.on(BATCH, "slice with its data", handler(post, Post::take_batch));
    builder.on(BATCH_RETURN, "data of a slice", handler(post, Post::take_batch_return))
}

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
    /// Another node's, which has sent them here: so many, which have gone on. This is done with the answers.
    Others(usize, Relay),
}

/// What is done with the answers about tasks.
type Relay = Box<dyn FnOnce(Vec<Answer>) + Send>;

impl Whose {
    fn tasks(&self) -> usize {
        match self {
            Self::Ours(departed) => departed.len(),
            Self::Others(tasks, _) => *tasks,
        }
    }
}

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

    /// Sends tasks of another node on. Gives back what was to be done with the answers if nothing is received any more.
    fn send_batch_on(
        &self,
        to: NodeId,
        (description, values): (&BatchDescription, Vec<u8>),
        relay: Relay,
    ) -> Option<Relay> {
        match self.note(relay, |relay| Whose::Others(description.tasks(), relay)) {
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
        if self.is_closed() {
            return Err(whose);
        }
        let number = away.next;
        away.next += 1;
        away.by_number.insert(number, noted(whose));
        Ok(number)
    }

    fn send_noted(&self, to: NodeId, number: u64, (description, values): (&BatchDescription, Vec<u8>)) {
        let letter = letter(BATCH, (number, false), (&encode(description), values));
        self.send(usize::from(to.0), letter);
    }
}

/// The answers about the tasks of a batch so far.
struct Ended<D> {
    answers: Vec<Option<Answer>>,
    missing: usize,
    done: Option<D>,
}

impl<D: FnOnce(Vec<Answer>)> Ended<D> {
    fn new(tasks: usize, done: D) -> Self {
        Self { answers: (0..tasks).map(|_| None).collect(), missing: tasks, done: Some(done) }
    }

    /// One has ended. What is to be done, if it was the last one.
    fn end(&mut self, task: usize, answer: Answer) -> Option<(D, Vec<Answer>)> {
        self.answers[task] = Some(answer);
        self.missing -= 1;
        let done = if self.missing == 0 { self.done.take() } else { None };
        Some((done?, self.answers.drain(..).flatten().collect()))
    }
}

/// What is done when the task of a batch that has this number has ended.
type End = Arc<dyn Fn(usize, Answer) + Send + Sync>;

/// Has tasks of another node run here, or elsewhere if their slice is to be sliced again.
fn receive(core: &Arc<RuntimeCore>, batch: BatchDescription, values: Bytes, end: End) {
    if !batch.is_to_be_sliced() {
        let all = (0..batch.tasks()).collect();
        return run(core, (batch, values, all), &end);
    }
    let (again, spawn) = (Arc::clone(core), Spawn { class: Class::Runtime, tag: MAPPING, ..Spawn::ANYWHERE });
    core.spawn_own("slicing again what has come from another node", spawn, move || {
        match divide(&again, &batch, &values) {
            Ok(legs) => legs.into_iter().for_each(|leg| go(&again, leg, &end)),
            Err(error) => (0..batch.tasks()).for_each(|task| end(task, Answer::Failed(error.clone()))),
        }
    });
}

/// Has tasks run here that have these numbers.
fn run(core: &Arc<RuntimeCore>, (batch, values, tasks): (BatchDescription, Bytes, Vec<usize>), end: &End) {
    let path = batch.path().to_owned();
    let Some(described) = batch.unpack(values) else {
        let error = Error::launch(&path, "another node has sent fewer values than this task uses");
        return tasks.into_iter().for_each(|task| end(task, Answer::Failed(error.clone())));
    };
    for (task, described) in tasks.into_iter().zip(described) {
        let end = Arc::clone(end);
        host(core, described, move |answer| end(task, answer));
    }
}

/// Has tasks run where their slice goes.
fn go(core: &Arc<RuntimeCore>, Leg { to, batch, values, tasks }: Leg, end: &End) {
    let Some(node) = core.node().filter(|node| node.id() != to) else {
        return run(core, (batch, values.into(), tasks), end);
    };
    let (again, end) = (Arc::clone(core), Arc::clone(end));
    let relay: Relay = Box::new(move |answers: Vec<Answer>| {
        // What has come back may be much, and the thread that calls may be the network's.
        let spawn = Spawn { class: Class::Runtime, ..Spawn::ANYWHERE };
        again.spawn_own("the return of a slice that has gone on", spawn, move || {
            tasks.into_iter().zip(answers).for_each(|(task, answer)| end(task, answer));
        });
    });
    core.store.counters.slices_sent.add(1);
    if let Some(relay) = node.send_batch_on(to, (&batch, values), relay) {
        relay((0..batch.tasks()).map(|_| Answer::too_late()).collect());
    }
}

impl Post {
    fn take_batch(self: &Arc<Self>, received: Received<'_, '_>) -> Option<()> {
        let (from, messenger) = (received.from(), received.messenger());
        let (Header { number, .. }, said, values) = take_letter(received)?;
        let batch: BatchDescription = decode(&said)?;
        // Of none there would be no end.
        (batch.tasks() > 0).then_some(())?;
        let (rank, post) = (self.rank, Arc::clone(self));
        let done = move |answers: Vec<Answer>| {
            let mut all = Vec::new();
            let words = answers.into_iter().map(|answer| {
                let (word, values) = post.word(answer);
                all.extend_from_slice(&values);
                (word, values.len())
            });
            let words: Vec<(Word, usize)> = words.collect();
            messenger.send(from, letter(BATCH_RETURN, (number, false), (&encode(&words), all)));
        };
        let ended = Mutex::new(Ended::new(batch.tasks(), done));
        let end: End = Arc::new(move |task, answer| {
            let last = ended.lock().end(task, answer);
            if let Some((done, answers)) = last {
                done(answers);
            }
        });
        self.guests.when_open(move |core| match core {
            Some(core) => {
                core.store.counters.slices_received.add(1);
                receive(core, batch, values, end);
            }
            None => {
                let refused = || Answer::Refused(format!("node {rank}: it has ended"));
                (0..batch.tasks()).for_each(|task| end(task, refused()));
            }
        });
        Some(())
    }

    fn take_batch_return(self: &Arc<Self>, received: Received<'_, '_>) -> Option<()> {
        let (Header { number, .. }, said, mut values) = take_letter(received)?;
        let words: Vec<(Word, usize)> = decode(&said)?;
        let whose = self.batches.0.lock().by_number.remove(&number)?;
        // One for each task, or some would never end.
        let is_whole = words.len() == whose.tasks() && words.iter().map(|word| word.1).sum::<usize>() == values.len();
        is_whole.then_some(())?;
        let answers = words.into_iter().map(|(word, bytes)| self.hear(word, values.split_to(bytes)));
        match whose {
            Whose::Ours(departed) => {
                departed.into_iter().zip(answers).for_each(|(departed, answer)| self.bring_home(departed, answer));
            }
            Whose::Others(_, relay) => relay(answers.collect()),
        }
        Some(())
    }
}
