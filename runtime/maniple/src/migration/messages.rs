//! Migration's messages, and what follows from each.
//!
//! ```text
//! idle --Steal--> a victim with work to spare --Packet--> executes, or forwards --Results--> completes
//!                 without                     --Steal (refusal)--> asks the next one; when enough have been asked, waits for a packet
//! ```

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use maniple_analysis::distribution::Rank;
use maniple_realm::locks::Mutex;
use maniple_realm::machine::NodeId;
use maniple_realm::operation::with_context;
use maniple_realm::{Class, Realm, Spawn, WorkerContext};

use super::encoding::{PacketHeader, Steal, decode, decode_results, encode, encode_results};
use super::in_flight::{InFlight, Sent};
use super::packet::{Reason, TaskPacket};
use super::remote::{Done, Executor, Letter, MigrationMessage, Network, Remote};
use super::result::TaskResult;
use super::steal::{Search, Thieves};
use crate::support::error::Error;

/// So many tasks must be queued here before one is given to a thief that did not just ask: the next one is wanted here
/// too.
const SPARE: usize = 2;

/// The migration of tasks from a node of a job and to it.
pub(crate) struct Migration {
    node: NodeId,
    nodes: usize,
    network: Box<dyn Network>,
    executor: OnceLock<Weak<dyn Executor>>,
    /// Calls that came before the executor was there: other nodes may be ahead.
    early: Mutex<Vec<Call>>,
    in_flight: InFlight,
    /// The number of tasks of this node whose instances wait for results of other nodes, or are being given them.
    with_data: AtomicUsize,
    pub(super) thieves: Thieves,
    search: Search,
}

/// A call with the executor, or without one if it is gone.
type Call = Box<dyn FnOnce(Option<Arc<dyn Executor>>) + Send>;

impl Migration {
    /// That of a node among so many, which sends messages by `network` and has those that come
    /// [received](Self::receive).
    pub(crate) fn new(node: NodeId, nodes: usize, network: Box<dyn Network>) -> Arc<Self> {
        Arc::new(Self {
            node,
            nodes,
            network,
            executor: OnceLock::new(),
            early: Mutex::default(),
            in_flight: InFlight::default(),
            with_data: AtomicUsize::new(0),
            thieves: Thieves::default(),
            search: Search::default(),
        })
    }

    /// This node.
    pub(crate) fn node(&self) -> NodeId {
        self.node
    }

    /// The number of nodes of the job.
    pub(crate) fn nodes(&self) -> usize {
        self.nodes
    }

    pub(super) fn realm(&self) -> &Realm {
        self.network.realm()
    }

    /// From now on tasks may come and go.
    pub(crate) fn open(&self, executor: Weak<dyn Executor>) {
        let early = {
            let mut early = self.early.lock();
            let _ = self.executor.set(executor);
            std::mem::take(&mut *early)
        };
        early.into_iter().for_each(|call| call(self.executor()));
    }

    /// Nothing is received any more: the packets in flight fail.
    pub(crate) fn close(&self, error: &Error) {
        self.in_flight.close(error);
    }

    /// The number of packets that have been sent and not answered.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.count()
    }

    /// Whether tasks are elsewhere whose end will free memory here.
    pub(crate) fn has_data_away(&self) -> bool {
        self.with_data.load(Ordering::SeqCst) > 0
    }

    fn executor(&self) -> Option<Arc<dyn Executor>> {
        self.executor.get().and_then(Weak::upgrade)
    }

    /// Calls with the executor: now, or as soon as it is there.
    fn when_open(&self, call: impl FnOnce(Option<Arc<dyn Executor>>) + Send + 'static) {
        let mut early = self.early.lock();
        match self.executor.get() {
            None => early.push(Box::new(call)),
            Some(executor) => {
                drop(early);
                call(executor.upgrade());
            }
        }
    }

    /// Has a worker do work of migration's own, which may be much: the thread that calls may be the network's.
    pub(super) fn spawn(&self, during: &'static str, spawn: Spawn<'_>, work: impl FnOnce() + Send + 'static) {
        let body = move |worker: &WorkerContext<'_>| {
            worker.realm().unheard(|| during.to_owned(), work);
        };
        self.realm().spawn(spawn, with_context(body));
    }

    /// Sends tasks with their values. If nothing is received any more, they are refused at once.
    pub(crate) fn send(&self, to: NodeId, packet: &TaskPacket, values: Vec<u8>, remote: Box<dyn Remote>) {
        let sent = Sent::new(packet, remote);
        let with_data = sent.with_data;
        // Before the results can come.
        self.with_data.fetch_add(with_data, Ordering::SeqCst);
        match self.in_flight.insert(sent) {
            Ok(number) => {
                if let (true, Some(executor)) = (packet.is_slice(), self.executor()) {
                    executor.counters().slices_sent.add(1);
                }
                self.send_message(to, MigrationMessage::Packet, number, &encode(packet), values);
            }
            Err(Sent { remote, tasks, .. }) => {
                self.with_data.fetch_sub(with_data, Ordering::SeqCst);
                remote.complete((0..tasks).map(|_| TaskResult::too_late()).collect());
            }
        }
    }

    /// Sends a message between mappers.
    pub(crate) fn send_letter(&self, to: NodeId, letter: &Letter, text: Vec<u8>) {
        self.network.send(to, MigrationMessage::Letter, &encode(letter), text);
    }

    /// Says that so many bytes of messages between mappers that a node has sent were heard here.
    pub(crate) fn say_heard(&self, to: NodeId, bytes: u64) {
        self.network.send(to, MigrationMessage::Heard, &[], encode(&bytes));
    }

    /// Sends values and what is said of them, which comes last, as the values may be many.
    fn send_message(&self, to: NodeId, message: MigrationMessage, number: u64, said: &[u8], mut payload: Vec<u8>) {
        payload.extend_from_slice(said);
        self.network.send(to, message, &encode(&PacketHeader { number, encoded: said.len() }), payload);
    }

    /// Takes a message of another node. None if it makes no sense.
    pub(crate) fn receive(
        self: &Arc<Self>,
        from: NodeId,
        message: MigrationMessage,
        header: &[u8],
        payload: Bytes,
    ) -> Option<()> {
        match message {
            MigrationMessage::Steal => return self.receive_steal(from, &decode(&payload)?),
            MigrationMessage::Letter => {
                let letter = decode::<Letter>(header)?;
                self.when_open(move |executor| {
                    if let Some(executor) = executor {
                        executor.deliver(from, letter, payload);
                    }
                });
                return Some(());
            }
            MigrationMessage::Heard => {
                let bytes = decode::<u64>(&payload)?;
                if let Some(executor) = self.executor() {
                    executor.letters_heard(from, bytes);
                }
                return Some(());
            }
            MigrationMessage::Packet | MigrationMessage::Results => {}
        }
        let (PacketHeader { number, encoded }, mut values) = (decode(header)?, payload);
        let said = values.split_off(values.len().checked_sub(encoded)?);
        match message {
            MigrationMessage::Packet => self.receive_packet(from, number, decode(&said)?, values),
            _ => self.receive_results(from, number, decode_results(&said, values, &*self.network)?),
        }
    }

    fn receive_packet(self: &Arc<Self>, from: NodeId, number: u64, packet: TaskPacket, values: Bytes) -> Option<()> {
        let tasks = packet.tasks();
        // Of none there would be no results.
        (tasks > 0).then_some(())?;
        if packet.reason == Reason::Stolen {
            self.search.end();
        }
        let migration = Arc::clone(self);
        let done: Done = Box::new(move |results| {
            // To answer is too late when this node has left.
            if !migration.in_flight.is_closed() {
                let (results, values) = encode_results(results, &*migration.network);
                migration.send_message(from, MigrationMessage::Results, number, &results, values);
            }
        });
        let node = self.node.0;
        self.when_open(move |executor| match executor {
            Some(executor) => {
                if packet.is_slice() {
                    executor.counters().slices_received.add(1);
                }
                executor.execute(packet, values, done);
            }
            None => done((0..tasks).map(|_| TaskResult::Refused(format!("node {node}: it has ended"))).collect()),
        });
        Some(())
    }

    fn receive_results(self: &Arc<Self>, from: NodeId, number: u64, results: Vec<TaskResult>) -> Option<()> {
        let Sent { remote, tasks, reason, with_data } = self.in_flight.remove(number)?;
        // One for each task, or some would never end.
        (results.len() == tasks).then_some(())?;
        // A node that steals tasks without data asks by itself.
        if reason == Reason::Stolen
            && with_data > 0
            && results.iter().any(|result| !matches!(result, TaskResult::Refused(_)))
        {
            self.thieves.may_have_another(usize::from(from.0));
        }
        let migration = Arc::clone(self);
        let spawn = Spawn { class: Class::Runtime, ..Spawn::ANYWHERE };
        self.spawn("the results of migrated tasks", spawn, move || {
            remote.complete(results);
            if with_data > 0 {
                migration.with_data.fetch_sub(with_data, Ordering::SeqCst);
                // Work that found no memory since the tasks have ended, and saw that they were still counted, waits for
                // this.
                if let Some(executor) = migration.executor() {
                    executor.memory_may_be_free();
                }
            }
        });
        Some(())
    }

    fn receive_steal(self: &Arc<Self>, from: NodeId, steal: &Steal) -> Option<()> {
        match steal {
            Steal::Request => {
                self.thieves.ask(usize::from(from.0));
                // Noted before the queues are looked at: what is queued afterwards is given by the thread that queues
                // it.
                let migration = Arc::clone(self);
                self.when_open(move |_| {
                    if !migration.give(1) {
                        migration.say(from, &Steal::Refusal);
                    }
                });
            }
            Steal::Refusal => {
                self.search.refused();
                self.ask_next();
            }
        }
        Some(())
    }

    /// This node is idle: it asks for a task, unless it has asked. Whether it did.
    pub(crate) fn is_idle(&self) -> bool {
        let begins = self.search.begin();
        if begins {
            self.ask_next();
        }
        begins
    }

    fn ask_next(&self) {
        if let Some(victim) = self.search.next_victim(usize::from(self.node.0), self.nodes) {
            self.say(id(victim), &Steal::Request);
        }
    }

    fn say(&self, to: NodeId, steal: &Steal) {
        self.network.send(to, MigrationMessage::Steal, &[], encode(steal));
    }

    /// Whether another node has asked for work.
    #[inline]
    pub(crate) fn has_thieves(&self) -> bool {
        self.thieves.have_asked()
    }

    /// Gives a task that can be spared to a thief.
    #[cold]
    pub(crate) fn give_spare(&self) {
        self.give(SPARE);
    }

    /// Gives the first thief a task, if so many are queued here; whether it did.
    fn give(&self, at_least: usize) -> bool {
        let Some(executor) = self.executor() else { return false };
        let given = self.thieves.give_first(|thief| executor.steal(id(thief), at_least));
        let Some((thief, (packet, remote))) = given else { return false };
        self.send(id(thief), &packet, Vec::new(), remote);
        true
    }

    /// Whether another node is to be given a leaf task.
    #[inline]
    pub(crate) fn has_thieves_of_leaves(&self) -> bool {
        self.thieves.take_leaves()
    }

    /// The thief that gets a leaf task next, or a share of the launch with it: see [`Thieves::take`].
    #[cold]
    pub(super) fn take_thief(&self, is_share: bool, is_permitted: impl FnOnce(NodeId) -> bool) -> Option<NodeId> {
        self.thieves.take(is_share, |rank| is_permitted(id(rank))).map(id)
    }

    /// The thieves that get parts of a launch, at most so many.
    #[cold]
    pub(crate) fn take_thieves(&self, most: usize, is_permitted: impl Fn(NodeId) -> bool) -> Vec<NodeId> {
        let next = || self.thieves.give_first(|thief| is_permitted(id(thief)).then_some(()));
        std::iter::from_fn(next).map(|(thief, ())| id(thief)).take(most).collect()
    }

    /// A thief that was taken is given nothing after all.
    #[cold]
    pub(crate) fn put_back_thief(&self, node: NodeId) {
        self.thieves.ask(usize::from(node.0));
    }

    /// Nothing but what runs could begin here.
    #[cold]
    pub(crate) fn backlog_is_over(&self) {
        self.thieves.backlog_is_over();
    }
}

fn id(rank: Rank) -> NodeId {
    NodeId(rank as u16)
}
