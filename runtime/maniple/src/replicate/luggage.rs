//! Leaf tasks that are away with their data, and others' here: what is said of them.
//!
//! ```text
//! could begin here --Task, with its values--> another node: it is run --Return, with what it has made--> ends here
//!                                             has no room   --Return: refused--> runs here
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use maniple_analysis::distribution::Rank;
use maniple_realm::locks::Mutex;
use maniple_realm::machine::NodeId;
use maniple_realm::net::{HandlerId, Incoming};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::failure::Failure;
use super::node::{LUGGAGE, Letter, Node, Post, RETURN, decode, encode};
use crate::error::Error;
use crate::luggage::{Answer, Departed, Description, host};

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
        if self.post.is_closed() {
            return Some(departed);
        }
        let number = tasks.next;
        tasks.next += 1;
        tasks.by_number.insert(number, departed);
        away.count_more(1);
        drop(tasks);
        let letter = letter(LUGGAGE, (number, was_asked_for), (&encode(description), values));
        self.post.send(&self.endpoint, usize::from(to.0), letter);
        None
    }
}

/// A message of values and what is said of them, which comes last, as the values may be many.
pub(super) fn letter(
    handler: HandlerId,
    (number, was_asked_for): (u64, bool),
    (said, mut payload): (&[u8], Vec<u8>),
) -> Letter {
    payload.extend_from_slice(said);
    Letter::new(handler, payload).with_header(&Header { was_asked_for, number, said: said.len() })
}

pub(super) fn from(incoming: &Incoming<'_>) -> Rank {
    usize::from(incoming.from().0)
}

impl Post {
    pub(super) fn take_luggage(self: &Arc<Self>, incoming: &mut Incoming<'_>) -> Option<()> {
        let (Header { number, was_asked_for, .. }, said, values) = self.take_letter(incoming)?;
        if was_asked_for {
            self.guests.may_ask_again();
        }
        let description: Description = decode(&said)?;
        let from = from(incoming);
        let (post, endpoint) = (Arc::clone(self), Arc::downgrade(incoming.endpoint()));
        let done = move |answer| {
            let (word, values) = post.word(answer);
            if let Some(endpoint) = endpoint.upgrade() {
                post.send(&endpoint, from, letter(RETURN, (number, was_asked_for), (&encode(&word), values.into())));
            }
        };
        let rank = self.rank;
        self.guests.when_open(move |core| match core {
            Some(core) => host(core, (description, values), done),
            None => done(Answer::Refused(format!("node {rank}: it has ended"))),
        });
        Some(())
    }

    pub(super) fn take_return(self: &Arc<Self>, incoming: &mut Incoming<'_>) -> Option<()> {
        let (Header { number, was_asked_for, .. }, said, values) = self.take_letter(incoming)?;
        let word = decode(&said)?;
        if was_asked_for && !matches!(word, Word::Refused(_)) {
            self.guests.hunger.may_have_another(from(incoming));
        }
        let departed = self.away.tasks.lock().by_number.remove(&number)?;
        self.bring_home(departed, self.hear(word, values));
        Some(())
    }

    /// What is said to whose task has been run here, or not, and the values that go with that.
    pub(super) fn word(&self, answer: Answer) -> (Word, Bytes) {
        match answer {
            Answer::Ended { value, values } => (Word::Ended(value), values),
            Answer::Failed(error) => (Word::Failed(self.told.tell(&error, self.rank)), Bytes::new()),
            Answer::Refused(why) => (Word::Refused(why), Bytes::new()),
        }
    }

    /// What was said, with the values that came with it.
    pub(super) fn hear(&self, word: Word, values: Bytes) -> Answer {
        match word {
            Word::Ended(value) => Answer::Ended { value, values },
            Word::Failed(failure) => Answer::Failed(self.told.hear(failure)),
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

    /// The header, what is said of a task, and values.
    pub(super) fn take_letter(&self, incoming: &mut Incoming<'_>) -> Option<(Header, Bytes, Bytes)> {
        let header: Header = decode(incoming.header())?;
        let mut values = self.take_payload(incoming);
        let said = values.split_off(values.len().checked_sub(header.said)?);
        Some((header, said, values))
    }
}
