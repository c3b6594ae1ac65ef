//! Messages of layers, as their handlers see them, and answers to them.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use maniple_realm::net::{Endpoint, Incoming};
use serde::de::DeserializeOwned;

use crate::message::Outgoing;
use crate::names::Rank;
use crate::shared::SharedJob;
use crate::wire::decode;

/// A message that has arrived.
///
/// Its handler runs where the network is polled: it must be short, and must not wait. It may send.
pub struct Received<'a, 'b> {
    shared: &'a Arc<SharedJob>,
    incoming: &'a mut Incoming<'b>,
}

impl<'a, 'b> Received<'a, 'b> {
    pub(crate) fn new(shared: &'a Arc<SharedJob>, incoming: &'a mut Incoming<'b>) -> Self {
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

    /// Its header, [encoded](crate::encode).
    #[must_use]
    pub fn encoded_header(&self) -> &[u8] {
        self.incoming.header()
    }

    /// Its payload.
    #[must_use]
    pub fn take_payload(&mut self) -> Bytes {
        self.shared.take_payload(self.incoming)
    }

    /// Returns a handle by which later answers are sent.
    #[must_use]
    pub fn messenger(&self) -> Messenger {
        Messenger::new(self.shared, self.incoming.endpoint())
    }
}

/// Sends messages for a layer: a handle that does not keep the job up, which keeps the layer.
#[derive(Clone)]
pub struct Messenger {
    shared: Weak<SharedJob>,
    endpoint: Weak<Endpoint>,
}

impl Messenger {
    pub(crate) fn new(shared: &Arc<SharedJob>, endpoint: &Arc<Endpoint>) -> Self {
        Self { shared: Arc::downgrade(shared), endpoint: Arc::downgrade(endpoint) }
    }

    /// Sends a message, which waits until there is room for it. This does not block. Dropped if the job is over.
    pub fn send(&self, to: Rank, outgoing: Outgoing) {
        if let (Some(shared), Some(endpoint)) = (self.shared.upgrade(), self.endpoint.upgrade()) {
            shared.send(&endpoint, to, outgoing);
        }
    }
}
