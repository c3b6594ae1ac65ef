//! One node of a job: what its program and the layers above it do with the others.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use maniple_realm::locks::Mutex;
use maniple_realm::machine::NodeId;
use maniple_realm::net::{Endpoint, Loan};
use maniple_realm::threads::Parker;
use maniple_realm::{Event, Fault, Realm};
use serde::de::DeserializeOwned;

use crate::error::{Error, Failure, Result};
use crate::matching::{Delivery, ParcelFuture};
use crate::message::{JobMessageKind, Outgoing, Urgency};
use crate::names::{COMPARISON, CollectiveName, OperationName, ParcelName, Rank};
use crate::received::Messenger;
use crate::shared::SharedJob;
use crate::tree::{Combine, Done};
use crate::wire::{Head, concatenate, decode, encode, frame, frames};

/// A node of a job; a handle, cheap to clone. Made by a [`JobBuilder`](crate::JobBuilder).
///
/// A program that is done with a job [leaves](Self::leave) or [aborts](Self::abort) it: if the last handle is dropped
/// without that, the other nodes lose this one.
#[derive(Clone)]
pub struct Job {
    endpoint: Arc<Endpoint>,
    pub(crate) shared: Arc<SharedJob>,
}

/// How an operation waits for other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// With its thread: the future is ready when it is polled for the first time.
    Blocking,
    /// As a task, while its thread does something else.
    Async,
}

/// The contributions of all nodes to an [all-gather](Job::all_gather).
pub struct Gathered(Bytes);

impl Gathered {
    /// Each node's part, in the order of nodes; none for what cannot be read.
    pub fn decode<T: DeserializeOwned>(&self) -> impl Iterator<Item = Option<T>> {
        frames(&self.0).map(decode)
    }
}

impl Job {
    pub(crate) fn new(endpoint: Arc<Endpoint>, shared: Arc<SharedJob>) -> Self {
        Self { endpoint, shared }
    }

    /// The realm of the node, as a [visitor](Realm::visitor).
    #[must_use]
    pub fn realm(&self) -> &Realm {
        &self.shared.realm
    }

    /// The number of this node.
    #[must_use]
    pub fn rank(&self) -> Rank {
        self.shared.rank
    }

    /// The number of this node, as the machine names it.
    #[must_use]
    pub fn id(&self) -> NodeId {
        NodeId(self.shared.rank as u16)
    }

    /// The number of nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.shared.nodes
    }

    /// How many exchanges with other nodes are not over: parcels, collectives, messages that wait for room, and what
    /// [layers](crate::Layer::open) count.
    #[must_use]
    pub fn open_exchanges(&self) -> usize {
        self.shared.open_exchanges()
    }

    /// Whether this node has left the job: nothing arrives any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }

    /// The number of an operation of the program that begins now. All nodes count alike.
    pub fn begin_operation(&self, name: impl Into<OperationName>) -> u64 {
        let number = self.shared.ends.begin_operation();
        self.shared.last.begin(number, name.into());
        self.shared.check_progress();
        number
    }

    /// The program asks the other nodes for something, and waits. Should it have ended elsewhere without doing so, the
    /// job ends.
    pub fn ask(&self) {
        self.shared.ends.ask();
        self.shared.check_progress();
    }

    /// The program has ended here, perhaps with a failure. Should it have ended elsewhere with other operations behind
    /// it, or go on elsewhere beyond this, the job ends: nodes would wait for each other for ever.
    pub fn end_program(&self, failure: Option<Failure>) {
        self.shared.follow(&self.endpoint, self.shared.ends.end(failure), None);
    }

    /// The number of the next operation.
    pub(crate) fn operations(&self) -> u64 {
        self.shared.ends.operations()
    }

    /// The number of a comparison of digests that begins now.
    pub(crate) fn begin_comparison(&self) -> u64 {
        self.shared.comparisons.fetch_add(1, Ordering::Relaxed)
    }

    /// How many comparisons have begun here.
    pub(crate) fn comparisons(&self) -> u64 {
        self.shared.comparisons.load(Ordering::Relaxed)
    }

    /// A program has ended on all nodes, with so many comparisons on one of them, and fewer on those that failed
    /// earlier: those that still wait for one hear nothing more. The next comparison has the same number everywhere.
    pub(crate) fn end_comparisons(&self, all: u64) {
        self.shared.comparisons.fetch_max(all, Ordering::Relaxed);
        self.shared.collectives.retain(|name| name.part != COMPARISON || name.operation >= all);
    }

    /// All nodes have begun so many operations.
    pub(crate) fn note_operations_of_all(&self, operations: u64) {
        let Some(last) = operations.checked_sub(1) else { return };
        (0..self.nodes()).for_each(|node| self.shared.last.hear(node, last));
    }

    /// The nodes do not run the same program: the job ends.
    pub fn differ(&self, difference: String) {
        self.shared.give_up(Error::NodesDiffer { difference });
    }

    /// Sends a parcel, or why there is none. This does not block.
    pub fn send_parcel(&self, to: Rank, name: ParcelName, delivery: Delivery) {
        let header = Head::from_slice(&name.encode(delivery.is_ok()));
        let payload = delivery.unwrap_or_else(|failure| encode(&failure).into());
        self.send(to, Outgoing { kind: JobMessageKind::PARCEL, header, payload, urgency: Urgency::Now });
    }

    /// Memory for the bytes of a parcel.
    #[must_use]
    pub fn lend(&self, to: Rank, length: usize) -> Loan {
        self.endpoint.lend(NodeId(to as u16), length)
    }

    /// Sends a parcel with a few bytes, which are copied. This does not block.
    pub fn send_short_parcel(&self, to: Rank, name: ParcelName, values: &[u8]) {
        if !self.shared.outbox.send_short(&self.endpoint, to, &name.encode(true), values) {
            self.send_parcel(to, name, Ok(Bytes::copy_from_slice(values)));
        }
    }

    /// Has a future await parcels, as many as it was [made](ParcelFuture::new) for, each from a node. They may have
    /// arrived already. A parcel is awaited once.
    pub fn expect(&self, future: &Arc<ParcelFuture>, parcels: impl Iterator<Item = (Rank, ParcelName)>) {
        self.shared.matching.expect(future, parcels, &self.shared.realm);
        if self.shared.is_closed() {
            self.shared.matching.forget(&self.shared.realm);
        }
    }

    /// Combines what all nodes contribute under a name, in the order of nodes, and gives each the outcome. `combine`
    /// must be associative. Both functions run where messages arrive, and must be short. Neither is called if the job
    /// ends before.
    pub fn all_reduce(&self, name: CollectiveName, mine: Bytes, combine: Combine, done: Done) {
        self.shared.contribute(&self.endpoint, name, mine, combine, done);
    }

    /// Gives each node what all nodes contribute under a name: an encoded value each. As
    /// [`all_reduce`](Self::all_reduce).
    pub fn all_gather(&self, name: CollectiveName, mine: &[u8], done: impl FnOnce(Gathered) + Send + 'static) {
        self.all_reduce(name, frame(mine), Box::new(concatenate), Box::new(|all| done(Gathered(all))));
    }

    /// Sends a message of a layer's kind. This does not block.
    pub fn send(&self, to: Rank, outgoing: Outgoing) {
        self.shared.send(&self.endpoint, to, outgoing);
    }

    /// Returns a handle by which a layer sends messages, and which does not keep the job up.
    #[must_use]
    pub fn messenger(&self) -> Messenger {
        Messenger::new(&self.shared, &self.endpoint)
    }

    /// Waits for an event that other nodes cause.
    ///
    /// # Errors
    /// [`Error::Over`] if the job ends before.
    pub async fn wait(&self, event: Event, wait: Wait) -> Result<()> {
        let waited = match wait {
            Wait::Blocking => self.realm().wait(event),
            Wait::Async => self.realm().event_future(event).await,
        };
        waited.map_err(|fault| self.over(&fault))
    }

    /// The error of a wait that has ended with a fault: why the job is over, if it is.
    #[must_use]
    pub fn over(&self, fault: &Arc<Fault>) -> Error {
        Error::Over(Arc::clone(self.realm().breakdown().unwrap_or(fault)))
    }

    /// The program here panics, with this message.
    pub fn note_panic(&self, message: String) {
        let _ = self.shared.panic.set(message);
    }

    /// The program gives up on this node, outside of what all nodes run, for this reason. If others go on with another
    /// program, that is what they are told.
    pub fn note_failure(&self, message: String) {
        let _ = self.shared.failure.set(Failure { node: self.shared.rank, message });
    }

    /// The reason to [abort](Self::abort) with after a panic of the program.
    #[must_use]
    pub fn panicked(&self) -> String {
        let (place, said) = (self.shared.last.here(), self.shared.panic.get());
        format!("its program panicked{place}{}", said.map_or_else(String::new, |said| format!(": {said}")))
    }

    /// Leaves the job, once all nodes want to. The thread waits for that. A node that begins another program meanwhile,
    /// or has begun one that this one has not, ends the job: it would wait for this one. If a node is lost meanwhile,
    /// this one leaves as one that has failed: the lost one may still run, and would wait for the others.
    pub fn leave(&self) {
        self.shared.look_no_more();
        self.shared.tell_of_leaving(&self.endpoint);
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
        self.shared.close();
    }

    /// Leaves the job for a reason that ends it for the others too.
    pub fn abort(&self, reason: &str) {
        self.shared.look_no_more();
        self.endpoint.abort(reason);
        self.endpoint.join();
        self.shared.close();
    }
}

/// Wakes a thread that waits for all nodes to leave, when this is dropped: should the transport go before all have
/// left, the call is dropped with it.
struct Leaving(Arc<Parker>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.unpark();
    }
}
