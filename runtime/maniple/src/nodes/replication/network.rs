//! The network as migration uses it: messages of migration are sent and received as others are.

use std::sync::{Arc, OnceLock};

use maniple_cluster::{Failure, Job, JobBuilder, JobMessageKind, Layer, Messenger, Outgoing, Received, decode, encode};
use maniple_realm::machine::NodeId;
use maniple_realm::net::Transport;
use maniple_realm::{Fault, Realm};

use super::failure::SentErrors;
use crate::migration::{Migration, MigrationMessage, Network};
use crate::support::error::Error;

/// A kind of messages for each of migration's.
fn kind(message: MigrationMessage) -> JobMessageKind {
    JobMessageKind::new(match message {
        MigrationMessage::Steal => 0,
        MigrationMessage::Packet => 1,
        MigrationMessage::Results => 2,
        MigrationMessage::Letter => 3,
        MigrationMessage::Heard => 4,
    })
}

/// The connection of a node's [`Migration`].
struct Connection {
    node: NodeId,
    errors: Arc<SentErrors>,
    realm: Realm,
    /// Set once the node has joined. Nothing is sent before.
    messenger: Arc<OnceLock<Messenger>>,
}

impl Network for Connection {
    fn send(&self, to: NodeId, message: MigrationMessage, header: &[u8], payload: Vec<u8>) {
        if let Some(messenger) = self.messenger.get() {
            messenger.send(usize::from(to.0), Outgoing::new(kind(message), payload).with_encoded_header(header));
        }
    }

    fn encode_error(&self, error: &Error) -> Vec<u8> {
        encode(&self.errors.tell(error, usize::from(self.node.0)))
    }

    fn decode_error(&self, bytes: &[u8]) -> Option<Error> {
        Some(self.errors.hear(decode(bytes)?))
    }

    fn realm(&self) -> &Realm {
        &self.realm
    }
}

/// Migration as a layer above a job.
struct MigrationLayer {
    migration: Arc<Migration>,
    errors: Arc<SentErrors>,
}

impl Layer for MigrationLayer {
    fn open(&self) -> usize {
        self.migration.in_flight()
    }

    fn close(&self, why: Option<&Arc<Fault>>) {
        let over = || Error::launch("a task on another node", "it will not come back, as this node has left the job");
        self.migration.close(&why.map_or_else(over, |why| Error::of_fault(why, "", None)));
    }

    fn recall(&self, failure: &Failure) -> Option<Fault> {
        self.errors.recall(failure).map(Fault::new)
    }
}

/// Joins a job with the messages of migration, and those that `register` adds.
pub(super) fn join(
    transport: Arc<dyn Transport>,
    realm: &Realm,
    errors: &Arc<SentErrors>,
    register: impl FnOnce(JobBuilder) -> JobBuilder,
) -> (Job, Arc<Migration>) {
    let (node, nodes, messenger) = (transport.rank(), transport.nodes(), Arc::new(OnceLock::new()));
    let connection =
        Connection { node, errors: Arc::clone(errors), realm: realm.visitor(), messenger: Arc::clone(&messenger) };
    let migration = Migration::new(node, nodes, Box::new(connection));
    let layer = MigrationLayer { migration: Arc::clone(&migration), errors: Arc::clone(errors) };
    let receive = |message| {
        let migration = Arc::clone(&migration);
        move |mut received: Received<'_, '_>| {
            let payload = received.take_payload();
            migration.receive(NodeId(received.from() as u16), message, received.encoded_header(), payload)
        }
    };
    let builder = JobBuilder::new(transport, realm)
        .layer(Arc::new(layer))
        .on(kind(MigrationMessage::Steal), "steal request", receive(MigrationMessage::Steal))
        .on(kind(MigrationMessage::Packet), "migrated tasks", receive(MigrationMessage::Packet))
        .on(kind(MigrationMessage::Results), "results of migrated tasks", receive(MigrationMessage::Results))
        .on(kind(MigrationMessage::Letter), "a message between mappers", receive(MigrationMessage::Letter))
        .on(kind(MigrationMessage::Heard), "what mappers have heard", receive(MigrationMessage::Heard));
    let job = register(builder).join();
    let _ = messenger.set(job.messenger());
    (job, migration)
}
