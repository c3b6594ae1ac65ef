//! Joining a job.

use std::sync::Arc;

use maniple_realm::Realm;
use maniple_realm::machine::NodeId;
use maniple_realm::net::{Endpoint, Handlers, Incoming, Loss, Options, Transport};

use crate::job::Job;
use crate::layer::Layer;
use crate::message::JobMessageKind;
use crate::profile::MessageProfile;
use crate::received::Received;
use crate::shared::SharedJob;

/// Longer payloads travel in fragments, which takes longer: no message may have more.
const LONGEST: usize = 1 << 30;

/// The names of the job's own messages in a profile, except for fragments, which belong to the message that follows.
const OWN: [(JobMessageKind, &str); 6] = [
    (JobMessageKind::PARCEL, "parcel"),
    (JobMessageKind::CONTRIBUTION, "contribution"),
    (JobMessageKind::OUTCOME, "outcome"),
    (JobMessageKind::END, "end"),
    (JobMessageKind::STANDSTILL, "standstill"),
    (JobMessageKind::LEAVE, "leave"),
];

/// Handles messages of one kind: none if a message makes no sense.
type Handle = Box<dyn Fn(Received<'_, '_>) -> Option<()> + Send + Sync>;

/// A node that is about to join a job: layers give it their kinds of messages first, the same on all nodes.
pub struct JobBuilder {
    transport: Arc<dyn Transport>,
    realm: Realm,
    kinds: Vec<(JobMessageKind, &'static str, Handle)>,
    layers: Vec<Arc<dyn Layer>>,
    longest: usize,
}

impl JobBuilder {
    /// A node of the job that a transport connects. When a node of it is lost, the realm gives up.
    #[must_use]
    pub fn new(transport: Arc<dyn Transport>, realm: &Realm) -> Self {
        Self { transport, realm: realm.clone(), kinds: Vec::new(), layers: Vec::new(), longest: LONGEST }
    }

    /// With a kind of messages, its name in profiles, and its handler, which gives none if a message makes no sense:
    /// that ends this node's part in the job.
    #[must_use]
    pub fn on(
        mut self,
        kind: JobMessageKind,
        name: &'static str,
        handle: impl Fn(Received<'_, '_>) -> Option<()> + Send + Sync + 'static,
    ) -> Self {
        self.kinds.push((kind, name, Box::new(handle)));
        self
    }

    /// With a layer that is told of the end.
    #[must_use]
    pub fn layer(mut self, layer: Arc<dyn Layer>) -> Self {
        self.layers.push(layer);
        self
    }

    /// With fragments of at most so many bytes; for tests.
    #[must_use]
    pub fn longest_message(mut self, bytes: usize) -> Self {
        self.longest = bytes;
        self
    }

    /// Joins the job: from now on messages are handled.
    ///
    /// # Panics
    /// If two layers use one kind.
    #[must_use]
    pub fn join(self) -> Job {
        let Self { transport, realm, kinds, layers, longest } = self;
        let (rank, nodes) = (usize::from(transport.rank().0), transport.nodes());
        let names = OWN.into_iter().chain(kinds.iter().map(|(kind, name, _)| (*kind, *name)));
        let names: Vec<_> = names.collect();
        let profile = realm.profiler().map(|profiler| MessageProfile::new(profiler, nodes, &names));
        let shared = SharedJob::new(rank, nodes, &realm, layers, profile, longest);
        let fragments = Arc::clone(&shared);
        let lost = Arc::clone(&shared);
        let mut handlers = Handlers::new()
            .on(
                JobMessageKind::PARCEL.handler(),
                handler(&shared, JobMessageKind::PARCEL, |shared, incoming| shared.take_parcel(incoming)),
            )
            .on(
                JobMessageKind::CONTRIBUTION.handler(),
                handler(&shared, JobMessageKind::CONTRIBUTION, |shared, incoming| shared.take_contribution(incoming)),
            )
            .on(
                JobMessageKind::OUTCOME.handler(),
                handler(&shared, JobMessageKind::OUTCOME, |shared, incoming| shared.take_outcome(incoming)),
            )
            .on(
                JobMessageKind::END.handler(),
                handler(&shared, JobMessageKind::END, |shared, incoming| shared.take_end(incoming)),
            )
            .on(
                JobMessageKind::STANDSTILL.handler(),
                handler(&shared, JobMessageKind::STANDSTILL, |shared, incoming| shared.take_standstill(incoming)),
            )
            .on(
                JobMessageKind::LEAVE.handler(),
                handler(&shared, JobMessageKind::LEAVE, |shared, incoming| shared.take_leave(incoming)),
            )
            .on(JobMessageKind::FRAGMENT.handler(), move |incoming| {
                understood(fragments.take_fragment(incoming), incoming)
            })
            .on_loss(move |node: NodeId, loss: &Loss| lost.lose(usize::from(node.0), loss));
        for (kind, _, handle) in kinds {
            let handle =
                move |shared: &Arc<SharedJob>, incoming: &mut Incoming<'_>| handle(Received::new(shared, incoming));
            handlers = handlers.on(kind.handler(), handler(&shared, kind, handle));
        }
        let endpoint = Endpoint::start(transport, handlers, Options::default());
        if let Some(polled) = endpoint.polled() {
            realm.poll(polled);
        }
        shared.begin_to_look(&endpoint);
        Job::new(endpoint, shared)
    }
}

/// A handler that records messages in the profile, if one is kept.
fn handler(
    shared: &Arc<SharedJob>,
    kind: JobMessageKind,
    handle: impl Fn(&Arc<SharedJob>, &mut Incoming<'_>) -> Option<()> + Send + Sync + 'static,
) -> impl Fn(&mut Incoming<'_>) + Send + Sync + 'static {
    let shared = Arc::clone(shared);
    move |incoming: &mut Incoming<'_>| {
        let handled = match &shared.profile {
            None => handle(&shared, incoming),
            Some(profile) => {
                let activity = profile.receive(incoming.from(), kind);
                let handled = handle(&shared, incoming);
                activity.end();
                handled
            }
        };
        understood(handled, incoming);
    }
}

/// A panic of a handler ends this node's part in the job, and the others are told.
fn understood(handled: Option<()>, incoming: &Incoming<'_>) {
    assert!(handled.is_some(), "a message from {} makes no sense", incoming.from());
}
