//! Messages of layers, as their handlers see them, and answers to them.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use maniple_realm::Realm;
use maniple_realm::net::{Endpoint, Incoming};
use serde::de::DeserializeOwned;

use crate::message::Outgoing;
use crate::names::Rank;
use crate::shared::Shared;
use crate::wire::decode;

/// A message that has arrived.
///
/// Its handler runs where the network is polled: it must be short, and must not wait. It may send.
pub struct Received<'a, 'b> {
    shared: &'a Arc<Shared>,
    incoming: &'a mut Incoming<'b>,
}

impl<'a, 'b> Received<'a, 'b> {
    pub(crate) fn new(shared: &'a Arc<Shared>, incoming: &'a mut Incoming<'b>) -> Self {
        Self { shared, incoming }
    }

    /// The node that has sent it.
    #[must_use]
    pub fn from(&self) -> Rank {
        usize::from(self.incoming.from().0)
    }

    /// Its [header](Outgoing::with_header), if it is a `T`.
    #[must_use]
    pub fn header<T: DeserializeOwned>(&self) -> Option<T> {
        decode(self.incoming.header())
    }

    /// Its payload.
    #[must_use]
    pub fn take_payload(&mut self) -> Bytes {
        self.shared.take_payload(self.incoming)
    }

    /// What later answers are sent by.
    #[must_use]
    pub fn messenger(&self) -> Messenger {
        Messenger::new(self.shared, self.incoming.endpoint())
    }
}

/// Sends messages for a layer: a handle that does not keep the job up.
#[derive(Clone)]
pub struct Messenger {
    shared: Arc<Shared>,
    endpoint: Weak<Endpoint>,
}

impl Messenger {
    pub(crate) fn new(shared: &Arc<Shared>, endpoint: &Arc<Endpoint>) -> Self {
        Self { shared: Arc::clone(shared), endpoint: Arc::downgrade(endpoint) }
    }

    /// The number of this node.
    #[must_use]
    pub fn rank(&self) -> Rank {
        self.shared.rank
    }

    /// The number of nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.shared.nodes
    }

    /// The realm of the node, as a [visitor](Realm::visitor).
    #[must_use]
    pub fn realm(&self) -> &Realm {
        &self.shared.realm
    }

    /// Whether nothing arrives any more. A layer that looks at this under a lock which its [`close`](crate::Layer::close) takes either sees it, or what it puts in place is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }

    /// Sends a message, which waits until there is room for it. This does not block. Dropped if the job is over.
    pub fn send(&self, to: Rank, outgoing: Outgoing) {
        if let Some(endpoint) = self.endpoint.upgrade() {
            self.shared.send(&endpoint, to, outgoing);
        }
    }
}
