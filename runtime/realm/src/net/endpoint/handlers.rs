//! The handlers of messages that arrive, and the message as a handler sees it.

use std::sync::Arc;

use bytes::Bytes;

use super::Endpoint;
use crate::machine::NodeId;
use crate::net::error::{Loss, NetError};
use crate::net::message::{HandlerId, Message};

/// A message that has arrived, as its handler sees it.
pub struct Incoming<'a> {
    pub(crate) endpoint: &'a Arc<Endpoint>,
    pub(crate) from: NodeId,
    pub(crate) header: &'a [u8],
    pub(crate) payload: Bytes,
}

impl Incoming<'_> {
    /// The node that sent it.
    #[must_use]
    pub fn from(&self) -> NodeId {
        self.from
    }

    /// Its header.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        self.header
    }

    /// Its payload.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Its payload, to be kept without a copy. It may be a part of a larger buffer, which then stays too.
    #[must_use]
    pub fn take_payload(&mut self) -> Bytes {
        std::mem::take(&mut self.payload)
    }

    /// The node's endpoint.
    #[must_use]
    pub fn endpoint(&self) -> &Arc<Endpoint> {
        self.endpoint
    }

    /// Answers. Unlike [`Endpoint::send`], this is never refused for want of room: a handler that waits for room would
    /// stop the credit that makes it.
    ///
    /// # Errors
    ///
    /// If the message is too long, or the node was lost.
    pub fn reply(&self, message: Message) -> Result<(), NetError> {
        self.send(self.from, message)
    }

    /// Sends a message to any node; as [`reply`](Self::reply).
    ///
    /// # Errors
    ///
    /// If the message is too long, there is no such node, or it was lost.
    pub fn send(&self, to: NodeId, message: Message) -> Result<(), NetError> {
        self.endpoint.send_from_handler(to, message)
    }
}

type Handle = Box<dyn Fn(&mut Incoming<'_>) + Send + Sync>;
type OnLoss = Box<dyn Fn(NodeId, &Loss) + Send + Sync>;

/// The handlers of messages that arrive at a node. All nodes of a job have the same handlers.
///
/// Handlers run on the thread that moves the transport on, one message of a node after the other, in the order in which
/// they were sent. So a handler must be short and **must not wait**: not for a lock that is held for long, for a
/// message, for room. It may send, trigger events, spawn operations; work that takes long belongs into an operation. A
/// handler that panics ends the node's part in the job.
#[derive(Default)]
pub struct Handlers {
    table: Vec<Option<Handle>>,
    on_loss: Option<OnLoss>,
}

impl Handlers {
    /// No handlers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With a handler.
    ///
    /// # Panics
    ///
    /// If there is one of this name already.
    #[must_use]
    pub fn on(mut self, id: HandlerId, handle: impl Fn(&mut Incoming<'_>) + Send + Sync + 'static) -> Self {
        let index = usize::from(id.0);
        if self.table.len() <= index {
            self.table.resize_with(index + 1, || None);
        }
        let before = self.table[index].replace(Box::new(handle));
        assert!(before.is_none(), "handler {id} is given twice: give each its own number");
        self
    }

    /// With this to be called once for each node that is lost, and for this node if a handler panics. As short as a
    /// handler.
    #[must_use]
    pub fn on_loss(mut self, call: impl Fn(NodeId, &Loss) + Send + Sync + 'static) -> Self {
        self.on_loss = Some(Box::new(call));
        self
    }

    pub(crate) fn find(&self, id: HandlerId) -> Option<&(dyn Fn(&mut Incoming<'_>) + Send + Sync)> {
        self.table.get(usize::from(id.0))?.as_deref()
    }

    pub(crate) fn tell_loss(&self, node: NodeId, loss: &Loss) {
        if let Some(call) = &self.on_loss {
            call(node, loss);
        }
    }

    pub(crate) fn share(self) -> Arc<Self> {
        Arc::new(self)
    }
}
