//! One process of several: what it sends to the others, and what it does with what they send.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use maniple_analysis::distribution::Rank;
use maniple_realm::locks::Mutex;
use maniple_realm::machine::NodeId;
use maniple_realm::net::{Endpoint, HandlerId, Handlers, Incoming, Loan, Loss, Message, Options, SendError, Transport};
use maniple_realm::threads::Parker;
use maniple_realm::{Fault, Realm, fault};
use rustc_hash::FxHashMap;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::failure::{Failure, Told};
use super::found::Finds;
use super::latest::{Doing, Latest};
use super::mailbox::{Awaited, Delivery, Mailbox};
use super::network::{self, Connection};
use super::parcel::{ParcelHeader, ParcelName};
use super::profiled::Profiled;
use super::tree::{Combine, Done, Gathering, Step, children, contribution_goes_to, outcome_goes_to, parent};
use crate::error::Error;
use crate::migration::{Message as Migrating, Migration};
use crate::statistics::{PeerCounters, PeerStatistics};

/// Brings a [`Delivery`].
const PARCEL: HandlerId = HandlerId(0);
/// Brings a contribution to something that all nodes compute.
const UP: HandlerId = HandlerId(1);
/// Brings the outcome, from the node above.
const DOWN: HandlerId = HandlerId(2);

/// Says that a node has come to the end of the program.
const END: HandlerId = HandlerId(3);
/// Brings a piece of the payload of the next message of another kind.
const PIECE: HandlerId = HandlerId(6);

/// Longer payloads come in several messages, which takes longer: no message may have more.
const LONGEST: usize = 1 << 30;

/// Asks for tasks to steal, or says that there are none.
pub(super) const STEAL: HandlerId = HandlerId(4);
/// Brings tasks that migrate.
pub(super) const PACKET: HandlerId = HandlerId(5);
/// Brings their results back.
pub(super) const MIGRATED: HandlerId = HandlerId(7);

/// Asks for the pieces of a partition that was found.
pub(super) const ASK_PIECES: HandlerId = HandlerId(8);
/// Brings what a node has of them.
pub(super) const PIECES: HandlerId = HandlerId(9);

/// What a profile calls messages, but for those of which the next one tells.
const MESSAGES: [(HandlerId, &str); 9] = [
    (PARCEL, "parcel"),
    (UP, "contribution"),
    (DOWN, "outcome"),
    (END, "end"),
    (STEAL, "steal request"),
    (PACKET, "migrated tasks"),
    (MIGRATED, "results of migrated tasks"),
    (ASK_PIECES, "question for pieces"),
    (PIECES, "pieces"),
];

/// What all nodes call something that they compute together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct TogetherName {
    /// The operation of the program.
    pub(crate) operation: u64,
    /// Which of several of one operation.
    pub(crate) part: u32,
}

/// The part of comparisons: see [`agreement`](super::agreement).
pub(super) const COMPARISON: u32 = u32::MAX;

impl TogetherName {
    /// Nobody waits for comparisons: they go with other messages, or after a heartbeat or two.
    fn haste(self) -> Haste {
        if self.part == COMPARISON { Haste::None } else { Haste::Now }
    }
}

/// When a message is to leave.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Haste {
    Now,
    /// With another one.
    None,
}

/// An encoded header: all are short.
type Head = SmallVec<[u8; 32]>;

/// What is to be sent, however long it is.
pub(super) struct Letter {
    handler: HandlerId,
    header: Head,
    payload: Bytes,
    haste: Haste,
}

impl Letter {
    /// Without a header, to leave at once.
    pub(super) fn new(handler: HandlerId, payload: impl Into<Bytes>) -> Self {
        Self { handler, header: Head::new(), payload: payload.into(), haste: Haste::Now }
    }

    pub(super) fn with_header(self, header: &impl Serialize) -> Self {
        Self { header: encode_head(header), ..self }
    }

    pub(super) fn with_encoded_header(self, header: &[u8]) -> Self {
        Self { header: Head::from_slice(header), ..self }
    }
}

/// Where a node's program has ended.
#[derive(Clone, Serialize, Deserialize)]
struct End {
    node: usize,
    program: u64,
    came_to: Progress,
    /// With which failure.
    failure: Option<Failure>,
}

/// How far a node's program has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Progress {
    /// The number of the next operation. Operations of all programs of the job are numbered through.
    operations: u64,
    /// How many results it has asked the other nodes for.
    questions: u64,
}

impl Progress {
    fn is_beyond(self, other: Self) -> bool {
        self.operations > other.operations || self.questions > other.questions
    }
}

/// A node of a job, as its runtime sees it.
pub(crate) struct Node {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) post: Arc<Post>,
    migration: Arc<Migration>,
    /// What was exchanged with each node.
    peers: Box<[PeerCounters]>,
}

/// What handlers know.
pub(super) struct Post {
    pub(super) rank: Rank,
    pub(super) nodes: usize,
    /// Does not keep the realm up: workers that look for something to do hold this for a moment, and who drops the runtime is to find that none holds the realm.
    realm: Realm,
    mailbox: Mailbox,
    gatherings: Mutex<FxHashMap<TogetherName, Gathering>>,
    /// See [`Progress`].
    operations: AtomicU64,
    questions: AtomicU64,
    /// How often nodes have compared what they do.
    comparisons: AtomicU64,
    ends: Mutex<Ends>,
    /// Whether the end of the program that runs here may have been heard of: operations need not look otherwise.
    has_heard_of_end: AtomicBool,
    latest: Latest,
    pub(super) told: Told,
    /// What a panic of the program said.
    panic: OnceLock<String>,
    /// The beginnings of payloads that are too long for one message, by who sends them.
    begun: Mutex<FxHashMap<Rank, Vec<Bytes>>>,
    /// How many there are.
    begun_count: AtomicUsize,
    /// So many bytes fit into one message.
    longest: usize,
    pub(super) finds: Finds,
    /// Whether the endpoint is gone: nothing is received any more.
    closed: AtomicBool,
    profiled: Option<Profiled>,
    /// Messages for which there was no room, by where they go.
    waiting: Mutex<FxHashMap<Rank, VecDeque<Message>>>,
}

/// The programs that have run here, and where they ended, here or elsewhere.
#[derive(Default)]
struct Ends {
    program: u64,
    heard: FxHashMap<u64, End>,
}

impl Node {
    /// Joins a job. When a node of it is lost, the realm gives up.
    pub(crate) fn join(transport: Arc<dyn Transport>, realm: &Realm) -> Self {
        Self::join_with(transport, realm, LONGEST)
    }

    pub(super) fn join_with(transport: Arc<dyn Transport>, realm: &Realm, longest: usize) -> Self {
        let post = Arc::new(Post {
            rank: usize::from(transport.rank().0),
            nodes: transport.nodes(),
            realm: realm.visitor(),
            mailbox: Mailbox::default(),
            gatherings: Mutex::default(),
            operations: AtomicU64::new(0),
            questions: AtomicU64::new(0),
            comparisons: AtomicU64::new(0),
            ends: Mutex::default(),
            has_heard_of_end: AtomicBool::new(false),
            latest: Latest::new(transport.nodes()),
            told: Told::default(),
            panic: OnceLock::new(),
            begun: Mutex::default(),
            begun_count: AtomicUsize::new(0),
            longest,
            finds: Finds::default(),
            closed: AtomicBool::new(false),
            profiled: realm.profiler().map(|profiler| Profiled::new(profiler, transport.nodes(), &MESSAGES)),
            waiting: Mutex::default(),
        });
        let connected = Arc::new(OnceLock::new());
        let connection = Connection { post: Arc::clone(&post), endpoint: Arc::clone(&connected) };
        let migration = Migration::new(NodeId(post.rank as u16), post.nodes, Box::new(connection));
        let migrating = |message| network::receive(&migration, message);
        let on_loss = {
            let post = Arc::clone(&post);
            move |node: NodeId, loss: &Loss| post.lose(usize::from(node.0), loss)
        };
        let handlers = Handlers::new()
            .on(PARCEL, handler(&post, PARCEL, Post::take_parcel))
            .on(UP, handler(&post, UP, Post::take_contribution))
            .on(DOWN, handler(&post, DOWN, Post::take_outcome))
            .on(END, handler(&post, END, Post::take_end))
            .on(PIECE, handler(&post, PIECE, Post::take_piece))
            .on(STEAL, handler(&post, STEAL, migrating(Migrating::Steal)))
            .on(PACKET, handler(&post, PACKET, migrating(Migrating::Packet)))
            .on(MIGRATED, handler(&post, MIGRATED, migrating(Migrating::Results)))
            .on(ASK_PIECES, handler(&post, ASK_PIECES, Post::take_question))
            .on(PIECES, handler(&post, PIECES, Post::take_pieces))
            .on_loss(on_loss);
        let endpoint = Endpoint::start(transport, handlers, Options::default());
        let _ = connected.set(Arc::downgrade(&endpoint));
        if let Some(polled) = endpoint.polled() {
            realm.poll(polled);
        }
        let peers = (0..post.nodes).map(|_| PeerCounters::default()).collect();
        Self { endpoint, post, migration, peers }
    }

    pub(crate) fn realm(&self) -> &Realm {
        &self.post.realm
    }

    /// The migration of tasks between this node and the others.
    #[inline]
    pub(crate) fn migration(&self) -> &Arc<Migration> {
        &self.migration
    }

    pub(crate) fn rank(&self) -> Rank {
        self.post.rank
    }

    pub(crate) fn nodes(&self) -> usize {
        self.post.nodes
    }

    /// What was exchanged with a node.
    pub(super) fn peer(&self, node: Rank) -> &PeerCounters {
        &self.peers[node]
    }

    /// What was exchanged with each node.
    pub(crate) fn peers(&self) -> Vec<PeerStatistics> {
        self.peers.iter().map(PeerCounters::read).collect()
    }

    /// How much is not over that this node does together with others.
    pub(crate) fn open_exchanges(&self) -> usize {
        let post = &self.post;
        let waiting: usize = post.waiting.lock().values().map(VecDeque::len).sum();
        let together = post.gatherings.lock().len() + post.begun.lock().len();
        post.mailbox.kept() + together + waiting + self.migration.in_flight() + post.finds.open()
    }

    /// What others are told of an error here.
    pub(crate) fn tell(&self, error: &Error) -> Failure {
        self.post.told.tell(error, self.post.rank)
    }

    /// The error that another node tells of.
    pub(crate) fn hear(&self, failure: Failure) -> Error {
        self.post.told.hear(failure)
    }

    /// The program panics.
    pub(crate) fn note_panic(&self, message: String) {
        let _ = self.post.panic.set(message);
    }

    /// What others are told of a panic of the program.
    pub(crate) fn panicked(&self) -> String {
        let (place, said) = (self.post.latest.here(), self.post.panic.get());
        format!("its program panicked{place}{}", said.map_or_else(String::new, |said| format!(": {said}")))
    }

    /// The number of an operation of the program that begins now.
    pub(crate) fn number_operation(&self, doing: Doing) -> u64 {
        let number = self.post.operations.fetch_add(1, Ordering::SeqCst);
        self.post.latest.begin(number, doing);
        self.post.check_progress();
        number
    }

    /// The number of the next operation.
    pub(crate) fn operations(&self) -> u64 {
        self.post.operations.load(Ordering::SeqCst)
    }

    /// The number of a comparison that begins now.
    pub(crate) fn number_comparison(&self) -> u64 {
        self.post.comparisons.fetch_add(1, Ordering::Relaxed)
    }

    /// How many comparisons have begun here.
    pub(super) fn comparisons(&self) -> u64 {
        self.post.comparisons.load(Ordering::Relaxed)
    }

    /// A program has ended on all nodes, with so many comparisons on one of them, and fewer on those that failed earlier: who still waits for one hears nothing more.
    /// The next one has the same number everywhere.
    pub(super) fn end_comparisons(&self, all: u64) {
        self.post.comparisons.fetch_max(all, Ordering::Relaxed);
        self.post.gatherings.lock().retain(|name, _| name.part != COMPARISON || name.operation >= all);
    }

    /// All nodes have begun so many operations.
    pub(super) fn hear_of_all(&self, operations: u64) {
        let Some(latest) = operations.checked_sub(1) else { return };
        (0..self.nodes()).for_each(|node| self.post.latest.hear(node, latest));
    }

    /// The nodes do not run the same program.
    pub(crate) fn differ(&self, difference: String) {
        self.post.realm.give_up(Fault::new(Error::NodesDiffer { difference }));
    }

    /// The program asks the other nodes for results.
    pub(crate) fn ask(&self) {
        self.post.questions.fetch_add(1, Ordering::SeqCst);
        self.post.check_progress();
    }

    /// The program has ended here. Should it have ended elsewhere with other operations behind it, or go on elsewhere beyond this, the job is over: nodes would
    /// wait for each other for ever.
    pub(crate) fn end_program(&self, failure: Option<Failure>) {
        let (post, mut ends) = (&self.post, self.post.ends.lock());
        let program = ends.program;
        let own = End { node: post.rank, program, came_to: post.progress(), failure };
        ends.program += 1;
        ends.heard.retain(|ended, _| ended + 2 >= program);
        let known = ends.heard.insert(program, own.clone());
        post.has_heard_of_end.store(ends.heard.contains_key(&ends.program), Ordering::SeqCst);
        drop(ends);
        match known {
            None => post.pass_on(&self.endpoint, &own, None),
            Some(other) if other.came_to != own.came_to => post.differ(&own, &other),
            Some(_) => {}
        }
    }

    /// Sends a parcel, or why there is none. Never waits.
    pub(crate) fn send_parcel(&self, to: Rank, name: ParcelName, delivery: Delivery) {
        let header = Head::from_slice(&name.encode(delivery.is_ok()));
        let payload = delivery.unwrap_or_else(|failure| encode(&failure).into());
        let letter = Letter { handler: PARCEL, header, payload, haste: Haste::Now };
        self.post.send(&self.endpoint, to, letter);
    }

    /// Memory for the bytes of a parcel.
    pub(crate) fn lend(&self, to: Rank, length: usize) -> Loan {
        self.endpoint.lend(NodeId(to as u16), length)
    }

    /// Sends a parcel with values of a few bytes. Never waits.
    pub(crate) fn send_short_parcel(&self, to: Rank, name: ParcelName, values: &[u8]) {
        if !self.post.send_short(&self.endpoint, to, &name.encode(true), values) {
            self.send_parcel(to, name, Ok(Bytes::copy_from_slice(values)));
        }
    }

    /// Waits for parcels: see [`Mailbox::expect`].
    pub(crate) fn expect(&self, awaited: &Arc<Awaited>, parcels: impl Iterator<Item = (Rank, ParcelName)>) {
        self.post.mailbox.expect(awaited, parcels, &self.post.realm);
        if self.post.is_closed() {
            self.post.mailbox.forget(&self.post.realm);
        }
    }

    /// Computes something together with all other nodes, which contribute under the same name. The outcome is given to `done` where it arrives: both
    /// functions must be short.
    pub(crate) fn together(&self, name: TogetherName, mine: Bytes, combine: Combine, done: Done) {
        let (rank, nodes) = (self.post.rank, self.post.nodes);
        let mut gatherings = self.post.gatherings.lock();
        // Looked at under the lock: whoever closes takes what is there afterwards.
        if self.post.is_closed() {
            return;
        }
        let gathering = gatherings.entry(name).or_insert_with(|| Gathering::new(rank, nodes));
        let step = gathering.contribute((rank, nodes), (mine.clone(), combine, done));
        drop(gatherings);
        for other in contribution_goes_to(rank, nodes) {
            self.post.contribute(&self.endpoint, name, other, mine.clone());
        }
        self.post.go_on(&self.endpoint, name, step);
    }

    /// Leaves the job, once all nodes want to. If one of them is lost meanwhile, this one leaves as one that has failed: the lost one may still be there, and
    /// would wait for ever for the others.
    pub(crate) fn leave(&self) {
        let parker = Arc::new(Parker::default());
        let (leaving, failure) = (Leaving(Arc::clone(&parker)), Arc::new(Mutex::new(None)));
        let failed = Arc::clone(&failure);
        self.endpoint.shutdown(move |outcome| {
            *failed.lock() = outcome.err();
            drop(leaving);
        });
        parker.park();
        if let Some(error) = failure.lock().take() {
            self.endpoint.abort(error.to_string());
        }
        self.endpoint.join();
        self.close();
    }

    /// Leaves the job for a reason that ends it for the others too.
    pub(crate) fn abort(&self, reason: &str) {
        self.endpoint.abort(reason);
        self.endpoint.join();
        self.close();
    }

    fn close(&self) {
        self.post.close();
        let over = || Error::launch("a task on another node", "it will not come back, as this node has left the job");
        self.migration.close(&self.post.realm.breakdown().map_or_else(over, |why| Error::of_fault(why, "", None)));
    }
}

/// Takes messages of a kind by `handle`, and shows them in profiles. A panic of a handler ends this node's part, and the others are told.
fn handler(
    post: &Arc<Post>,
    id: HandlerId,
    handle: impl Fn(&Arc<Post>, &mut Incoming<'_>) -> Option<()> + Send + Sync + 'static,
) -> impl Fn(&mut Incoming<'_>) + Send + Sync + 'static {
    let post = Arc::clone(post);
    move |incoming| {
        let understood = match post.profiled.as_ref().filter(|_| id != PIECE) {
            None => handle(&post, incoming),
            Some(profiled) => {
                let activity = profiled.receive(incoming.from(), id);
                let understood = handle(&post, incoming);
                activity.end();
                understood
            }
        };
        assert!(understood.is_some(), "a message from {} makes no sense", incoming.from());
    }
}

/// Tells one who waits for all nodes to leave, when this goes: should the transport go before all have left, nobody is there to be waited for.
struct Leaving(Arc<Parker>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.unpark();
    }
}

impl Post {
    pub(super) fn realm(&self) -> &Realm {
        &self.realm
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Nothing is received any more: lets go of what waits for a message, which may own the node. Something is left only if the job has failed,
    /// or the program here has panicked.
    fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.mailbox.forget(&self.realm);
        let gatherings = std::mem::take(&mut *self.gatherings.lock());
        drop(gatherings);
    }

    fn take_parcel(self: &Arc<Self>, incoming: &mut Incoming<'_>) -> Option<()> {
        let (name, is_good) = ParcelName::decode(incoming.header())?;
        let payload = self.take_payload(incoming);
        let delivery = match is_good {
            true => Ok(payload),
            false => Err(decode::<Failure>(&payload)?),
        };
        self.latest.hear(usize::from(incoming.from().0), name.operation);
        self.mailbox.arrive(usize::from(incoming.from().0), name, delivery, &self.realm).then_some(())
    }

    fn take_contribution(self: &Arc<Self>, incoming: &mut Incoming<'_>) -> Option<()> {
        let name: TogetherName = decode(incoming.header())?;
        let (from, payload) = (usize::from(incoming.from().0), self.take_payload(incoming));
        if name.part == 0 {
            self.latest.hear(from, name.operation);
        }
        let mut gatherings = self.gatherings.lock();
        let gathering = gatherings.entry(name).or_insert_with(|| Gathering::new(self.rank, self.nodes));
        let step = gathering.receive((self.rank, self.nodes), from, payload)?;
        drop(gatherings);
        self.go_on(incoming.endpoint(), name, step);
        Some(())
    }

    fn take_outcome(self: &Arc<Self>, incoming: &mut Incoming<'_>) -> Option<()> {
        let name: TogetherName = decode(incoming.header())?;
        let done = self.gatherings.lock().remove(&name)?.finish()?;
        let outcome = self.take_payload(incoming);
        self.finish(incoming.endpoint(), name, (outcome, done));
        Some(())
    }

    fn take_piece(self: &Arc<Self>, incoming: &mut Incoming<'_>) -> Option<()> {
        let from = usize::from(incoming.from().0);
        let mut begun = self.begun.lock();
        begun.entry(from).or_default().push(incoming.take_payload());
        self.begun_count.store(begun.len(), Ordering::Relaxed);
        Some(())
    }

    /// The payload of a message, with the pieces that came before it.
    pub(super) fn take_payload(&self, incoming: &mut Incoming<'_>) -> Bytes {
        let last = incoming.take_payload();
        // Relaxed: messages of a node are handled one after the other, and the pieces of others are not waited for here.
        if self.begun_count.load(Ordering::Relaxed) == 0 {
            return last;
        }
        let mut begun = self.begun.lock();
        let pieces = begun.remove(&usize::from(incoming.from().0));
        self.begun_count.store(begun.len(), Ordering::Relaxed);
        drop(begun);
        match pieces {
            None => last,
            Some(mut pieces) => {
                pieces.push(last);
                pieces.concat().into()
            }
        }
    }

    /// Each node passes on the first end of a program that it hears of, and compares the others: two that differ meet somewhere.
    fn take_end(self: &Arc<Self>, incoming: &mut Incoming<'_>) -> Option<()> {
        let end: End = decode(&self.take_payload(incoming))?;
        let mut ends = self.ends.lock();
        let known = ends.heard.get(&end.program).cloned();
        if known.is_none() {
            ends.heard.insert(end.program, end.clone());
            // Against `check_progress`: either the operation that begins meanwhile sees this, or its number is seen here.
            self.has_heard_of_end.store(true, Ordering::SeqCst);
        }
        drop(ends);
        match known {
            Some(other) if other.came_to != end.came_to => self.differ(&other, &end),
            Some(_) => {}
            None => {
                self.pass_on(incoming.endpoint(), &end, Some(usize::from(incoming.from().0)));
                self.check_progress();
            }
        }
        Some(())
    }

    /// Tells the neighbours in the tree.
    fn pass_on(self: &Arc<Self>, endpoint: &Arc<Endpoint>, end: &End, from: Option<Rank>) {
        let neighbours = parent(self.rank).into_iter().chain(children(self.rank, self.nodes));
        for to in neighbours.filter(|to| Some(*to) != from) {
            self.send(endpoint, to, Letter::new(END, encode(end)));
        }
    }

    fn progress(&self) -> Progress {
        let (operations, questions) = (self.operations.load(Ordering::SeqCst), self.questions.load(Ordering::SeqCst));
        Progress { operations, questions }
    }

    /// Should the program that runs here have ended elsewhere, it must not have gone beyond that here.
    fn check_progress(&self) {
        if !self.has_heard_of_end.load(Ordering::SeqCst) {
            return;
        }
        let ends = self.ends.lock();
        let Some(end) = ends.heard.get(&ends.program) else {
            self.has_heard_of_end.store(false, Ordering::SeqCst);
            return;
        };
        let here = self.progress();
        if here.is_beyond(end.came_to) {
            let (end, program) = (end.clone(), ends.program);
            drop(ends);
            self.differ(&end, &End { node: self.rank, program, came_to: here, failure: None });
        }
    }

    fn differ(&self, one: &End, other: &End) {
        if let Some(failure) = one.failure.as_ref().or(other.failure.as_ref()) {
            return self.realm.give_up(Fault::new(self.told.hear(failure.clone())));
        }
        let is_first = one.came_to.operations <= other.came_to.operations;
        let (one, other) = if is_first { (one, other) } else { (other, one) };
        let (ended, went_on) = (one.came_to, other.came_to);
        let difference = if ended.operations < went_on.operations {
            // Numbers begin at 0: this is the first that the other one does not have.
            let next = self.latest.name(ended.operations);
            format!(
                "node {} has ended where node {} comes to operation {}{next}",
                one.node, other.node, ended.operations
            )
        } else {
            format!(
                "with as many operations behind them, node {} has asked the others for {} result(s), node {} for {}",
                one.node, ended.questions, other.node, went_on.questions
            )
        };
        self.realm.give_up(Fault::new(Error::NodesDiffer { difference }));
    }

    fn go_on(self: &Arc<Self>, endpoint: &Arc<Endpoint>, name: TogetherName, step: Step) {
        match step {
            Step::Wait => {}
            Step::Up(parent, bytes) => self.contribute(endpoint, name, parent, bytes),
            Step::Finish(outcome, done) => {
                self.gatherings.lock().remove(&name);
                self.finish(endpoint, name, (outcome, done));
            }
        }
    }

    fn contribute(self: &Arc<Self>, endpoint: &Arc<Endpoint>, name: TogetherName, to: Rank, bytes: Bytes) {
        let letter = Letter { handler: UP, header: encode_head(&name), payload: bytes, haste: name.haste() };
        self.send(endpoint, to, letter);
    }

    fn finish(self: &Arc<Self>, endpoint: &Arc<Endpoint>, name: TogetherName, (outcome, done): (Bytes, Done)) {
        for child in outcome_goes_to(self.rank, self.nodes) {
            let (header, payload) = (encode_head(&name), outcome.clone());
            self.send(endpoint, child, Letter { handler: DOWN, header, payload, haste: name.haste() });
        }
        // It may run functions of the program.
        if let Err(fault) = fault::catch(|| done(outcome)) {
            self.realm.break_down("taking in what all nodes have computed", &fault);
        }
    }

    /// Sends something, or queues it until there is room for it. What is too long for one message is sent in pieces, between which nothing else comes.
    pub(super) fn send(self: &Arc<Self>, endpoint: &Arc<Endpoint>, to: Rank, letter: Letter) {
        let Letter { handler, header, mut payload, haste } = letter;
        let mut waiting = self.waiting.lock();
        if let Some(profiled) = &self.profiled {
            profiled.send(to);
        }
        let mut is_full = false;
        while payload.len() > self.longest {
            let piece = Message::new(PIECE).payload(payload.split_to(self.longest));
            is_full |= self.send_in_turn(endpoint, to, (piece, haste), &mut waiting);
        }
        let message = Message::new(handler).header(&header).payload(payload);
        is_full |= self.send_in_turn(endpoint, to, (message, haste), &mut waiting);
        drop(waiting);
        if is_full {
            self.send_when_there_is_room(endpoint, to);
        }
    }

    /// Sends a parcel of a few bytes, if that can be done now, and nothing has to go before it.
    fn send_short(&self, endpoint: &Endpoint, to: Rank, header: &ParcelHeader, values: &[u8]) -> bool {
        let waiting = self.waiting.lock();
        // What a profile counts must be sent for sure.
        if self.profiled.is_some() || waiting.get(&to).is_some_and(|queue| !queue.is_empty()) {
            return false;
        }
        endpoint.send_short(NodeId(to as u16), PARCEL, header, values) == Ok(true)
    }

    /// Sends a message, or queues it. Whether it is the first in the queue: then it is for the caller to ask for room.
    fn send_in_turn(
        &self,
        endpoint: &Endpoint,
        to: Rank,
        message: (Message, Haste),
        waiting: &mut FxHashMap<Rank, VecDeque<Message>>,
    ) -> bool {
        if let Some(queue) = waiting.get_mut(&to).filter(|queue| !queue.is_empty()) {
            queue.push_back(message.0);
            return false;
        }
        let Some(message) = self.try_to_send(endpoint, to, message) else { return false };
        waiting.entry(to).or_default().push_back(message);
        true
    }

    /// The message, if there is no room for it now.
    fn try_to_send(&self, endpoint: &Endpoint, to: Rank, (message, haste): (Message, Haste)) -> Option<Message> {
        let node = NodeId(to as u16);
        let sent = match haste {
            Haste::Now => endpoint.send(node, message),
            Haste::None => endpoint.send_later(node, message),
        };
        match sent {
            Ok(()) => None,
            Err(SendError::Busy { message, .. }) => Some(message),
            Err(error) => {
                // A lost node has been told of already; what is too long would be missed for ever.
                tracing::debug!(node = to, %error, "a message was not sent");
                if self.realm.breakdown().is_none() {
                    self.realm.give_up(Fault::new(Error::internal(error)));
                }
                None
            }
        }
    }

    fn send_when_there_is_room(self: &Arc<Self>, endpoint: &Arc<Endpoint>, to: Rank) {
        let (post, sender) = (Arc::clone(self), Arc::downgrade(endpoint));
        endpoint.when_room(NodeId(to as u16), move |_| {
            let Some(endpoint) = sender.upgrade() else { return };
            loop {
                let mut waiting = post.waiting.lock();
                let Some(message) = waiting.get_mut(&to).and_then(VecDeque::pop_front) else { return };
                if let Some(message) = post.try_to_send(&endpoint, to, (message, Haste::Now)) {
                    waiting.entry(to).or_default().push_front(message);
                    drop(waiting);
                    return post.send_when_there_is_room(&endpoint, to);
                }
            }
        });
    }

    fn lose(&self, node: Rank, loss: &Loss) {
        let mut reason = loss.to_string();
        // Who gave up has said why.
        if !matches!(loss, Loss::Aborted(_)) {
            reason += &self.latest.tell(node);
        }
        self.realm.give_up(Fault::new(Error::NodeLost { node, reason }));
    }
}

pub(crate) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_stdvec(value).expect("plain data has an encoding, and memory for it is there")
}

fn encode_head<T: Serialize>(value: &T) -> Head {
    let mut place = [0; 32];
    // Byte by byte into something that grows takes longer than all the rest.
    match postcard::to_slice(value, &mut place) {
        Ok(head) => Head::from_slice(head),
        Err(_) => {
            postcard::to_extend(value, Head::new()).expect("plain data has an encoding, and memory for it is there")
        }
    }
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    postcard::from_bytes(bytes).ok()
}

#[cfg(test)]
mod tests {
    use maniple_realm::net::loopback::Network;

    use super::*;

    #[test]
    fn what_is_too_long_for_a_message_comes_in_pieces_and_whole() {
        const LENGTHS: [usize; 6] = [0, 9, 10, 11, 100, 12_345];
        let network = Network::new(2);
        let pump = network.pump();
        let realms = [(); 2].map(|()| Realm::builder().workers(1).build().unwrap());
        let join = |node: usize| Arc::new(Node::join_with(network.node(NodeId(node as u16)), &realms[node], 10));
        let nodes = [join(0), join(1)];
        let name = |length: usize| ParcelName { operation: length as u64, exchange: 0, number: 0 };
        let bytes = |length: usize| Bytes::from_iter((0..length).map(|byte| byte as u8));
        let expected: Vec<_> = LENGTHS.iter().map(|&length| (0, name(length))).collect();
        let awaited = Awaited::new(expected.len(), &realms[1]);
        nodes[1].expect(&awaited, expected.into_iter());
        std::thread::scope(|scope| {
            // Two at a time: nothing comes between the pieces of one.
            for lengths in LENGTHS.chunks(3) {
                let sender = &nodes[0];
                scope.spawn(move || {
                    lengths.iter().for_each(|&length| sender.send_parcel(1, name(length), Ok(bytes(length))))
                });
            }
        });
        realms[1].wait(awaited.complete(&realms[1])).unwrap();
        for (number, &length) in LENGTHS.iter().enumerate() {
            assert_eq!(awaited.take(number, &realms[1]), Some(Ok(bytes(length))));
            assert_eq!(awaited.take(number, &realms[1]), None, "whoever waited keeps no bytes");
        }
        std::thread::scope(|scope| nodes.iter().for_each(|node| drop(scope.spawn(|| node.leave()))));
        drop(pump);
    }
}
