//! Tasks that idle nodes take from others.
//!
//! A node that has nothing to do asks the others, one after the other, for a task; whoever has none to spare notes that the node is hungry, and gives it the next one that it
//! has too many. What is given is the oldest task of the queues: in a recursion, the largest part of the work that is left. The value comes back when the task has
//! ended, with all that it has launched; whoever gave it waits for that as for any other.
//!
//! ```text
//! idle --Ask--> another one     has one: --Task--> it is run --Done--> the value is there
//!               has none: --None--> asks the next one; or, when enough have been asked, waits to be fed
//! ```
//!
//! A node that is lost ends the job, and with it whoever waits for its tasks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use maniple_analysis::distribution::Rank;
use maniple_cluster::{Failure, JobBuilder, Kind, Messenger, Outgoing, Received, decode, encode};
use maniple_realm::locks::Mutex;
use maniple_realm::machine::NodeId;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::hunger::Hunger;
use super::node::{Node, Post, handler};
use crate::core::RuntimeCore;
use crate::error::Error;
use crate::fork::Traveller;
use crate::fork::host;

/// So many tasks must wait here before one is given to a node that did not just ask: the next one is wanted here too.
const SPARE: usize = 2;

/// So many others are asked at most, by a node that has nothing to do; the next time it begins with another one. More would be more messages the more nodes
/// there are.
const MOST_ASKED: usize = 8;

/// Tasks that idle nodes take from others.
const GUEST: Kind = Kind::new(0);
/// Brings the value of one back.
const DONE: Kind = Kind::new(1);

/// Gives a job the messages about guests.
pub(super) fn register(builder: JobBuilder, post: &Arc<Post>) -> JobBuilder {
    let builder = builder.on(GUEST, "word of a task", handler(post, Post::take_guest));
    builder.on(DONE, "value of a task", handler(post, Post::take_done))
}

/// What is said about guests.
#[derive(Serialize, Deserialize)]
enum Guest {
    Ask,
    None,
    Task {
        /// The giver's name for it.
        number: u64,
        path: String,
        arguments: Vec<u8>,
    },
}

/// How a task has ended for whom it was run.
#[derive(Serialize, Deserialize)]
struct Done {
    number: u64,
    outcome: Result<Vec<u8>, Failure>,
}

/// What a node knows of its tasks elsewhere, and of others' here.
#[derive(Default)]
pub(super) struct Guests {
    core: OnceLock<Weak<RuntimeCore>>,
    /// What came before the core was there: other nodes may be ahead.
    early: Mutex<Vec<Call>>,
    away: Mutex<Away>,
    pub(super) hunger: Hunger,
    /// Whether this node has asked, and was given nothing since.
    is_asking: AtomicBool,
    search: Mutex<Search>,
}

/// What is done with the core of the runtime, or without if that is gone.
type Call = Box<dyn FnOnce(Option<&Arc<RuntimeCore>>) + Send>;

#[derive(Default)]
struct Away {
    next: u64,
    tasks: FxHashMap<u64, Traveller>,
}

/// Whom a node asks.
#[derive(Default)]
struct Search {
    first: usize,
    refused: usize,
}

impl Guests {
    /// Calls when tasks may come and go: now, or as soon as they may.
    pub(super) fn when_open(&self, call: impl FnOnce(Option<&Arc<RuntimeCore>>) + Send + 'static) {
        let mut early = self.early.lock();
        match self.core.get() {
            None => early.push(Box::new(call)),
            Some(core) => {
                drop(early);
                call(core.upgrade().as_ref());
            }
        }
    }

    /// This node was given what it had asked for.
    pub(super) fn may_ask_again(&self) {
        self.is_asking.store(false, Ordering::Release);
    }

    /// How many tasks are away.
    pub(super) fn away(&self) -> usize {
        self.away.lock().tasks.len()
    }

    /// The tasks that are away have failed: nothing is received any more.
    pub(super) fn come_back(&self, error: &Error) {
        let away = std::mem::take(&mut self.away.lock().tasks);
        away.into_values().for_each(|traveller| traveller.come_back(Err(error.clone())));
    }
}

impl Node {
    /// From now on tasks may come and go.
    pub(crate) fn open_to_guests(&self, core: &Arc<RuntimeCore>) {
        let guests = &self.post.guests;
        let early = {
            let mut early = guests.early.lock();
            let _ = guests.core.set(Arc::downgrade(core));
            std::mem::take(&mut *early)
        };
        early.into_iter().for_each(|call| call(Some(core)));
    }

    /// This node has nothing to do: it asks for a task, unless it has asked. Whether it did.
    pub(crate) fn is_idle(&self) -> bool {
        let guests = &self.post.guests;
        if guests.is_asking.swap(true, Ordering::AcqRel) {
            return false;
        }
        let mut search = guests.search.lock();
        search.refused = 0;
        search.first = search.first.wrapping_add(1);
        drop(search);
        self.post.ask_next(&self.messenger());
        true
    }

    /// Whether another node has nothing to do.
    #[inline]
    pub(crate) fn has_hungry(&self) -> bool {
        self.post.guests.hunger.has_asked()
    }

    /// Whether another node is to be given a leaf task.
    #[inline]
    pub(crate) fn takes_leaves(&self) -> bool {
        self.post.guests.hunger.takes_leaves()
    }

    /// The node that is to be given a leaf task next: see [`Hunger::take`].
    #[cold]
    pub(crate) fn take_hungry(&self, is_permitted: impl FnOnce(NodeId) -> bool) -> Option<NodeId> {
        let id = |rank: Rank| NodeId(rank as u16);
        self.post.guests.hunger.take(|rank| is_permitted(id(rank))).map(id)
    }

    /// Nothing but what runs could begin here.
    #[cold]
    pub(crate) fn backlog_is_over(&self) {
        self.post.guests.hunger.backlog_is_over();
    }

    /// One that was [taken](Self::take_hungry) is given nothing after all.
    #[cold]
    pub(crate) fn put_back_hungry(&self, node: NodeId) {
        self.post.guests.hunger.ask(usize::from(node.0));
    }

    /// Gives a task that can be spared to a node that has nothing to do.
    #[cold]
    pub(crate) fn feed(&self) {
        self.post.feed(&self.messenger(), SPARE);
    }
}

impl Post {
    fn take_guest(self: &Arc<Self>, mut received: Received<'_, '_>) -> Option<()> {
        let (from, messenger) = (received.from(), received.messenger());
        match decode::<Guest>(&received.take_payload())? {
            Guest::Ask => {
                self.guests.hunger.ask(from);
                // Noted before the queues are looked at: what is queued afterwards is given by whoever queues it.
                if !self.feed(&messenger, 1) {
                    tell(&messenger, from, &Guest::None);
                }
            }
            Guest::None => {
                self.guests.search.lock().refused += 1;
                self.ask_next(&messenger);
            }
            Guest::Task { number, path, arguments } => {
                self.guests.may_ask_again();
                let post = Arc::clone(self);
                let done = move |outcome: crate::Result<Vec<u8>>| {
                    let outcome = outcome.map_err(|error| post.sent_errors.tell(&error, post.rank));
                    messenger.send(from, Outgoing::new(DONE, encode(&Done { number, outcome })));
                };
                match self.guests.core.get().and_then(Weak::upgrade) {
                    Some(core) => host(&core, (&path, &arguments), done),
                    None => done(Err(crate::Error::launch(&path, "the node has ended"))),
                }
            }
        }
        Some(())
    }

    fn take_done(self: &Arc<Self>, mut received: Received<'_, '_>) -> Option<()> {
        let Done { number, outcome } = decode(&received.take_payload())?;
        let traveller = self.guests.away.lock().tasks.remove(&number)?;
        traveller.come_back(outcome.as_deref().map_err(|failure| self.sent_errors.hear(failure.clone())));
        Some(())
    }

    /// Gives the first hungry node a task, if that many wait here; whether it did.
    fn feed(&self, messenger: &Messenger, at_least: usize) -> bool {
        let Some(core) = self.guests.core.get().and_then(Weak::upgrade) else { return false };
        let fed = self.guests.hunger.feed_first(|to| {
            let traveller = Traveller::take(&core, at_least)?;
            if core.permits_steal((traveller.name(), traveller.origin()), NodeId(to as u16)) {
                return Some(traveller);
            }
            traveller.stay();
            None
        });
        let Some((to, mut traveller)) = fed else { return false };
        let mut away = self.guests.away.lock();
        if messenger.is_closed() {
            drop(away);
            traveller.stay();
            return false;
        }
        let number = away.next;
        away.next += 1;
        let (path, arguments) = traveller.take_description();
        away.tasks.insert(number, traveller);
        drop(away);
        tell(messenger, to, &Guest::Task { number, path: path.to_owned(), arguments });
        true
    }

    /// Asks the next of the other nodes, unless enough have refused.
    fn ask_next(&self, messenger: &Messenger) {
        let search = self.guests.search.lock();
        let others = messenger.nodes() - 1;
        if search.refused >= others.min(MOST_ASKED) {
            return;
        }
        let step = (search.first % others + search.refused) % others;
        drop(search);
        tell(messenger, (self.rank + 1 + step) % messenger.nodes(), &Guest::Ask);
    }
}

fn tell(messenger: &Messenger, to: Rank, guest: &Guest) {
    messenger.send(to, Outgoing::new(GUEST, encode(guest)));
}
