//! Leaf tasks that are away with their data, and others' here: what is said of them.
//!
//! ```text
//! could begin here --Task, with its values--> another node: it is run --Return, with what it has made--> ends here
//!                                             has no room   --Return: refused--> runs here
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use maniple_cluster::{Failure, JobBuilder, Kind, Outgoing, Received, decode, encode};
use maniple_realm::locks::Mutex;
use maniple_realm::machine::NodeId;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::node::{Node, Post, handler};
use crate::error::Error;
use crate::luggage::{Answer, Departed, Description, host};

/// Brings a leaf task with its data.
const LUGGAGE: Kind = Kind::new(2);
/// Brings back what one has made.
const RETURN: Kind = Kind::new(3);

/// Gives a job the messages about leaf tasks with their data.
pub(super) fn register(builder: JobBuilder, post: &Arc<Post>) -> JobBuilder {
    let builder = builder.on(LUGGAGE, "task with its data", handler(post, Post::take_luggage));
    builder.on(RETURN, "data of a task", handler(post, Post::take_return))
}

/// What comes with a task or a return.
#[derive(Serialize, Deserialize)]
pub(super) struct Header {
    /// Whether the task was sent because the other node had nothing to do; so the return says too.
    was_asked_for: bool,
    /// The sender's name for the task, which the return has too.
    pub(super) number: u64,
    /// So many bytes at the end of the payload are a [`Description`], or a [`Word`]; those before them are values.
    said: usize,
}

/// How a task has ended where it was run.
#[derive(Serialize, Deserialize)]
pub(super) enum Word {
    /// With this value.
    Ended(Vec<u8>),
    Failed(Failure),
    /// It was not run, for this reason.
    Refused(String),
}

/// The tasks that are elsewhere.
#[derive(Default)]
pub(super) struct Away {
    tasks: Mutex<Tasks>,
    /// Those that are elsewhere, or on their way into this node's data.
    count: AtomicUsize,
}

#[derive(Default)]
struct Tasks {
    next: u64,
    by_number: FxHashMap<u64, Departed>,
}

impl Away {
    /// How many tasks are away.
    pub(super) fn count(&self) -> usize {
        self.tasks.lock().by_number.len()
    }

    /// So many more tasks are away, or on their way into this node's data.
    pub(super) fn count_more(&self, tasks: usize) {
        self.count.fetch_add(tasks, Ordering::SeqCst);
    }

    /// The tasks that are away have failed: nothing is received any more.
    pub(super) fn come_back(&self, error: &Error) {
        let tasks = std::mem::take(&mut self.tasks.lock().by_number);
        tasks.into_values().for_each(|departed| departed.give_up(error.clone()));
    }
}

impl Node {
    /// Whether tasks are elsewhere whose end will give room back here.
    pub(crate) fn has_tasks_away(&self) -> bool {
        self.post.away.count.load(Ordering::SeqCst) > 0
    }

    /// Sends a task away with its values. Gives it back if nothing is received any more: then it has to stay.
    pub(crate) fn send_task(
        &self,
        to: NodeId,
        (description, values, was_asked_for): (&Description, Vec<u8>, bool),
        departed: Departed,
    ) -> Option<Departed> {
        let away = &self.post.away;
        let mut tasks = away.tasks.lock();
        // Looked at under the lock: whoever closes takes back what is there afterwards.
        if self.is_closed() {
            return Some(departed);
        }
        let number = tasks.next;
        tasks.next += 1;
        tasks.by_number.insert(number, departed);
        away.count_more(1);
        drop(tasks);
        let letter = letter(LUGGAGE, (number, was_asked_for), (&encode(description), values));
        self.send(usize::from(to.0), letter);
        None
    }
}

/// A message of values and what is said of them, which comes last, as the values may be many.
pub(super) fn letter(
    kind: Kind,
    (number, was_asked_for): (u64, bool),
    (said, mut payload): (&[u8], Vec<u8>),
) -> Outgoing {
    payload.extend_from_slice(said);
    Outgoing::new(kind, payload).with_header(&Header { was_asked_for, number, said: said.len() })
}

impl Post {
    fn take_luggage(self: &Arc<Self>, received: Received<'_, '_>) -> Option<()> {
        let (from, messenger) = (received.from(), received.messenger());
        let (Header { number, was_asked_for, .. }, said, values) = take_letter(received)?;
        if was_asked_for {
            self.guests.may_ask_again();
        }
        let description: Description = decode(&said)?;
        let post = Arc::clone(self);
        let done = move |answer| {
            let (word, values) = post.word(answer);
            messenger.send(from, letter(RETURN, (number, was_asked_for), (&encode(&word), values.into())));
        };
        let rank = self.rank;
        self.guests.when_open(move |core| match core {
            Some(core) => host(core, (description, values), done),
            None => done(Answer::Refused(format!("node {rank}: it has ended"))),
        });
        Some(())
    }

    fn take_return(self: &Arc<Self>, received: Received<'_, '_>) -> Option<()> {
        let from = received.from();
        let (Header { number, was_asked_for, .. }, said, values) = take_letter(received)?;
        let word = decode(&said)?;
        if was_asked_for && !matches!(word, Word::Refused(_)) {
            self.guests.hunger.may_have_another(from);
        }
        let departed = self.away.tasks.lock().by_number.remove(&number)?;
        self.bring_home(departed, self.hear(word, values));
        Some(())
    }

    /// What is said to whose task has been run here, or not, and the values that go with that.
    pub(super) fn word(&self, answer: Answer) -> (Word, Bytes) {
        match answer {
            Answer::Ended { value, values } => (Word::Ended(value), values),
            Answer::Failed(error) => (Word::Failed(self.sent_errors.tell(&error, self.rank)), Bytes::new()),
            Answer::Refused(why) => (Word::Refused(why), Bytes::new()),
        }
    }

    /// What was said, with the values that came with it.
    pub(super) fn hear(&self, word: Word, values: Bytes) -> Answer {
        match word {
            Word::Ended(value) => Answer::Ended { value, values },
            Word::Failed(failure) => Answer::Failed(self.sent_errors.hear(failure)),
            Word::Refused(why) => Answer::Refused(why),
        }
    }

    /// Ends a task that was away, or has it run here.
    pub(super) fn bring_home(self: &Arc<Self>, departed: Departed, answer: Answer) {
        let (post, core) = (Arc::clone(self), departed.core().clone());
        departed.come_back(answer, move || {
            post.away.count.fetch_sub(1, Ordering::SeqCst);
            // Who found no room since the task has ended, and saw that it was still counted, waits for this.
            core.task_ended();
        });
    }
}

/// The header, what is said of a task, and values.
pub(super) fn take_letter(mut received: Received<'_, '_>) -> Option<(Header, Bytes, Bytes)> {
    let header: Header = received.header()?;
    let mut values = received.take_payload();
    let said = values.split_off(values.len().checked_sub(header.said)?);
    Some((header, said, values))
}
