//! What migration needs of the network: its messages are sent and received as others are.

use std::sync::{Arc, OnceLock, Weak};

use maniple_realm::Realm;
use maniple_realm::machine::NodeId;
use maniple_realm::net::{Endpoint, Incoming};

use super::node::{Letter, MIGRATED, PACKET, Post, STEAL, decode, encode};
use crate::error::Error;
use crate::migration::{Message, Migration, Network};

/// The connection of a node's [`Migration`].
pub(super) struct Connection {
    pub(super) post: Arc<Post>,
    /// The endpoint, from its start on. It knows the handlers, and these the migration.
    pub(super) endpoint: Arc<OnceLock<Weak<Endpoint>>>,
}

impl Network for Connection {
    fn send(&self, to: NodeId, message: Message, header: &[u8], payload: Vec<u8>) {
        let handler = match message {
            Message::Steal => STEAL,
            Message::Packet => PACKET,
            Message::Results => MIGRATED,
        };
        if let Some(endpoint) = self.endpoint.get().and_then(Weak::upgrade) {
            self.post.send(&endpoint, usize::from(to.0), Letter::new(handler, payload).with_encoded_header(header));
        }
    }

    fn encode_error(&self, error: &Error) -> Vec<u8> {
        encode(&self.post.told.tell(error, self.post.rank))
    }

    fn decode_error(&self, bytes: &[u8]) -> Option<Error> {
        Some(self.post.told.hear(decode(bytes)?))
    }

    fn realm(&self) -> &Realm {
        self.post.realm()
    }
}

/// Handles a message of migration.
pub(super) fn receive(
    migration: &Arc<Migration>,
    message: Message,
) -> impl Fn(&Arc<Post>, &mut Incoming<'_>) -> Option<()> + Send + Sync + 'static {
    let migration = Arc::clone(migration);
    move |post, incoming| {
        let payload = post.take_payload(incoming);
        migration.receive(incoming.from(), message, (incoming.header(), payload))
    }
}
