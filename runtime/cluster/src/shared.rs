//! The state of a node of a job, which the handlers of the job's own messages share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use maniple_realm::locks::Mutex;
use maniple_realm::net::{Endpoint, Incoming, Loss};
use maniple_realm::threads::Ticker;
use maniple_realm::{Fault, Realm, fault};

use crate::collectives::Collectives;
use crate::ends::{Consequence, End, Ends, difference};
use crate::error::{Error, Failure};
use crate::fragments::Fragments;
use crate::last_operations::LastOperations;
use crate::layer::Layer;
use crate::leaving::{Leave, Leaves};
use crate::matching::Matching;
use crate::message::{JobMessageKind, Outgoing, Urgency};
use crate::names::{COMPARISON, CollectiveName, END, ParcelName, Rank};
use crate::outbox::Outbox;
use crate::profile::MessageProfile;
use crate::running::Running;
use crate::standstill::{Standstill, period};
use crate::tree::{CollectiveStep, Combine, Done, children, contribution_goes_to, outcome_goes_to, parent};
use crate::wire::{decode, encode, encode_head};

/// The state of a node of a job.
pub(crate) struct SharedJob {
    pub(crate) rank: Rank,
    pub(crate) nodes: usize,
    /// A visitor, which does not keep the realm up: workers that look for work hold this for a moment, and the thread
    /// that drops the runtime is to find that none of them holds the realm.
    pub(crate) realm: Realm,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) matching: Matching,
    pub(crate) collectives: Collectives,
    pub(crate) ends: Ends,
    pub(crate) last: LastOperations,
    pub(crate) running: Running,
    leaves: Leaves,
    /// Looks at the program that runs.
    looks: Mutex<Option<Ticker>>,
    /// How many comparisons of digests have begun here.
    pub(crate) comparisons: AtomicU64,
    /// The message of a panic of the program.
    pub(crate) panic: OnceLock<String>,
    /// Why the program gives up on this node, outside of what it runs on all nodes.
    pub(crate) failure: OnceLock<Failure>,
    fragments: Fragments,
    /// Set once the endpoint has closed; no message arrives after that.
    closed: AtomicBool,
    layers: Box<[Arc<dyn Layer>]>,
    pub(crate) profile: Option<Arc<MessageProfile>>,
}

impl SharedJob {
    pub(crate) fn new(
        rank: Rank,
        nodes: usize,
        realm: &Realm,
        layers: Vec<Arc<dyn Layer>>,
        profile: Option<MessageProfile>,
        longest: usize,
    ) -> Arc<Self> {
        let profile = profile.map(Arc::new);
        Arc::new(Self {
            rank,
            nodes,
            realm: realm.visitor(),
            outbox: Outbox::new(realm.visitor(), longest, profile.clone()),
            matching: Matching::default(),
            collectives: Collectives::new(rank, nodes),
            ends: Ends::new(rank),
            last: LastOperations::new(nodes),
            running: Running::default(),
            leaves: Leaves::default(),
            looks: Mutex::default(),
            comparisons: AtomicU64::new(0),
            panic: OnceLock::new(),
            failure: OnceLock::new(),
            fragments: Fragments::default(),
            closed: AtomicBool::new(false),
            layers: layers.into(),
            profile,
        })
    }

    /// From now on the program that runs is looked at every so often, unless no other node is there.
    pub(crate) fn begin_to_look(self: &Arc<Self>, endpoint: &Arc<Endpoint>) {
        if self.nodes < 2 {
            return;
        }
        let (shared, endpoint): (Weak<Self>, Weak<Endpoint>) = (Arc::downgrade(self), Arc::downgrade(endpoint));
        let look = move || {
            let (Some(endpoint), Some(shared)) = (endpoint.upgrade(), shared.upgrade()) else { return };
            let program = shared.running.get().filter(|_| shared.realm.breakdown().is_none());
            if let Some(shown) = program.and_then(|program| program.look()) {
                shared.send_to_neighbours(&endpoint, JobMessageKind::STANDSTILL, &shown, None);
            }
        };
        match Ticker::start("looks", period(self.nodes), look) {
            Ok(ticker) => *self.looks.lock() = Some(ticker),
            Err(error) => tracing::warn!(%error, "nodes that do not run the same program may wait for ever"),
        }
    }

    /// The program is not looked at any more, by the time that this returns.
    pub(crate) fn look_no_more(&self) {
        let looks = self.looks.lock().take();
        looks.into_iter().for_each(Ticker::stop);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Nothing arrives any more: lets go of what waits for a message, which may own the job. Something is left only if
    /// the job has failed, or the program here has panicked.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.matching.forget(&self.realm);
        self.collectives.clear();
        let why = self.realm.breakdown();
        self.layers.iter().for_each(|layer| layer.close(why));
    }

    pub(crate) fn open_exchanges(&self) -> usize {
        let own = self.matching.kept() + self.collectives.open() + self.fragments.open() + self.outbox.waiting();
        own + self.layers.iter().map(|layer| layer.open()).sum::<usize>()
    }

    pub(crate) fn send(&self, endpoint: &Arc<Endpoint>, to: Rank, outgoing: Outgoing) {
        self.outbox.send(endpoint, to, outgoing);
    }

    /// The job is over, for a reason that is found on this node.
    pub(crate) fn give_up(&self, error: Error) {
        let recalled = match &error {
            Error::Failed(failure) => self.layers.iter().find_map(|layer| layer.recall(failure)),
            _ => None,
        };
        self.realm.give_up(recalled.unwrap_or_else(|| Fault::new(error)));
    }

    /// A node is lost.
    pub(crate) fn lose(&self, node: Rank, loss: &Loss) {
        self.give_up(match loss {
            Loss::Aborted(message) => Error::of_abort(node, message),
            _ => Error::NodeLost { node, reason: loss.to_string() + &self.last.describe(node) },
        });
    }

    /// The payload of a message, with the fragments that came before it.
    pub(crate) fn take_payload(&self, incoming: &mut Incoming<'_>) -> Bytes {
        let last = incoming.take_payload();
        self.fragments.complete(from(incoming), last)
    }

    pub(crate) fn take_parcel(&self, incoming: &mut Incoming<'_>) -> Option<()> {
        let (name, is_good) = ParcelName::decode(incoming.header())?;
        let payload = self.take_payload(incoming);
        let delivery = match is_good {
            true => Ok(payload),
            false => Err(decode::<Failure>(&payload)?),
        };
        self.last.hear(from(incoming), name.operation);
        self.matching.arrive(from(incoming), name, delivery, &self.realm).then_some(())
    }

    pub(crate) fn take_contribution(&self, incoming: &mut Incoming<'_>) -> Option<()> {
        let name: CollectiveName = decode(incoming.header())?;
        let (from, payload) = (from(incoming), self.take_payload(incoming));
        if matches!(name.part, 0 | END) {
            self.last.hear(from, name.operation);
        }
        let step = self.collectives.receive(name, from, payload)?;
        self.advance(incoming.endpoint(), name, step);
        Some(())
    }

    pub(crate) fn take_outcome(&self, incoming: &mut Incoming<'_>) -> Option<()> {
        let name: CollectiveName = decode(incoming.header())?;
        let done = self.collectives.take_done(&name)?;
        let outcome = self.take_payload(incoming);
        self.finish(incoming.endpoint(), name, outcome, done);
        Some(())
    }

    pub(crate) fn take_fragment(&self, incoming: &mut Incoming<'_>) -> Option<()> {
        self.fragments.add(from(incoming), incoming.take_payload());
        Some(())
    }

    pub(crate) fn take_end(&self, incoming: &mut Incoming<'_>) -> Option<()> {
        let end: End = decode(&self.take_payload(incoming))?;
        let consequence = self.ends.hear(end);
        let is_news = matches!(consequence, Consequence::PassOn(_));
        self.follow(incoming.endpoint(), consequence, Some(from(incoming)));
        if is_news {
            self.check_progress();
        }
        Some(())
    }

    pub(crate) fn take_standstill(&self, incoming: &mut Incoming<'_>) -> Option<()> {
        let shown: Standstill = decode(&self.take_payload(incoming))?;
        let program = self.running.get().filter(|_| self.realm.breakdown().is_none());
        if let Some((answer, error)) = program.and_then(|program| program.compare_with(shown)) {
            self.send(incoming.endpoint(), from(incoming), Outgoing::new(JobMessageKind::STANDSTILL, answer));
            self.give_up(error);
        }
        Some(())
    }

    pub(crate) fn take_leave(&self, incoming: &mut Incoming<'_>) -> Option<()> {
        let leave: Leave = decode(&self.take_payload(incoming))?;
        let from = from(incoming);
        if self.leaves.hear(&leave) {
            self.send_to_neighbours(incoming.endpoint(), JobMessageKind::LEAVE, &encode(&leave).into(), Some(from));
        }
        self.check_leaves();
        Some(())
    }

    /// This node is about to leave, after the programs that it has begun.
    pub(crate) fn tell_of_leaving(&self, endpoint: &Arc<Endpoint>) {
        let leave = Leave { node: self.rank, programs: self.running.begun(), failure: self.failure.get().cloned() };
        if self.leaves.hear(&leave) {
            self.send_to_neighbours(endpoint, JobMessageKind::LEAVE, &encode(&leave).into(), None);
        }
        self.check_leaves();
    }

    /// Ends the job if a node has left before a program that has begun here.
    pub(crate) fn check_leaves(&self) {
        if let Some(error) = self.leaves.check(self.rank, self.running.begun())
            && self.realm.breakdown().is_none()
        {
            self.give_up(error);
        }
    }

    /// The program has ended, here or elsewhere: tells the neighbours in the tree except `from`, or ends the job.
    pub(crate) fn follow(&self, endpoint: &Arc<Endpoint>, consequence: Consequence, from: Option<Rank>) {
        match consequence {
            Consequence::Nothing => {}
            Consequence::Differ(one, other) => self.differ(&one, &other),
            Consequence::PassOn(end) => {
                self.send_to_neighbours(endpoint, JobMessageKind::END, &encode(&end).into(), from);
            }
        }
    }

    /// Sends to the neighbours in the tree, except this one.
    fn send_to_neighbours(
        &self,
        endpoint: &Arc<Endpoint>,
        kind: JobMessageKind,
        payload: &Bytes,
        except: Option<Rank>,
    ) {
        let neighbours = parent(self.rank).into_iter().chain(children(self.rank, self.nodes));
        for to in neighbours.filter(|to| Some(*to) != except) {
            self.send(endpoint, to, Outgoing::new(kind, payload.clone()));
        }
    }

    /// Ends the job if the program has gone beyond its end on another node.
    pub(crate) fn check_progress(&self) {
        if let Some((end, here)) = self.ends.check() {
            self.differ(&end, &here);
        }
    }

    fn differ(&self, one: &End, other: &End) {
        self.give_up(difference(one, other, |operation| self.last.name(operation)));
    }

    /// This node's part in a collective. Nothing, if no message arrives any more.
    pub(crate) fn contribute(
        &self,
        endpoint: &Arc<Endpoint>,
        name: CollectiveName,
        mine: Bytes,
        combine: Combine,
        done: Done,
    ) {
        let step = self.collectives.contribute(name, (mine.clone(), combine, done), || self.is_closed());
        let Some(step) = step else { return };
        for other in contribution_goes_to(self.rank, self.nodes) {
            self.send_about(endpoint, JobMessageKind::CONTRIBUTION, name, other, mine.clone());
        }
        self.advance(endpoint, name, step);
    }

    fn advance(&self, endpoint: &Arc<Endpoint>, name: CollectiveName, step: CollectiveStep) {
        match step {
            CollectiveStep::Wait => {}
            CollectiveStep::Up(parent, bytes) => {
                self.send_about(endpoint, JobMessageKind::CONTRIBUTION, name, parent, bytes)
            }
            CollectiveStep::Finish(outcome, done) => {
                self.collectives.remove(&name);
                self.finish(endpoint, name, outcome, done);
            }
        }
    }

    fn finish(&self, endpoint: &Arc<Endpoint>, name: CollectiveName, outcome: Bytes, done: Done) {
        for child in outcome_goes_to(self.rank, self.nodes) {
            self.send_about(endpoint, JobMessageKind::OUTCOME, name, child, outcome.clone());
        }
        // It may run functions of the program.
        if let Err(fault) = fault::catch(|| done(outcome)) {
            self.realm.break_down("taking in what all nodes have computed", &fault);
        }
    }

    fn send_about(
        &self,
        endpoint: &Arc<Endpoint>,
        kind: JobMessageKind,
        name: CollectiveName,
        to: Rank,
        payload: Bytes,
    ) {
        // No thread waits for comparisons.
        let urgency = if name.part == COMPARISON { Urgency::Whenever } else { Urgency::Now };
        self.send(endpoint, to, Outgoing { kind, header: encode_head(&name), payload, urgency });
    }
}

fn from(incoming: &Incoming<'_>) -> Rank {
    usize::from(incoming.from().0)
}
