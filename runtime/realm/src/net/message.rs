//! Active messages: what a node sends.

use std::fmt;

use bytes::Bytes;
use smallvec::SmallVec;

/// Names a handler; all nodes give a handler the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HandlerId(pub u16);

impl fmt::Display for HandlerId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}

/// A message that a node sends: the handler, a header that is copied, a payload that is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub(crate) handler: HandlerId,
    pub(crate) header: SmallVec<[u8; 40]>,
    pub(crate) payload: Bytes,
}

impl Message {
    /// An empty message.
    #[must_use]
    pub fn new(handler: HandlerId) -> Self {
        Self { handler, header: SmallVec::new(), payload: Bytes::new() }
    }

    /// With this header, of at most [`MAX_HEADER`](super::MAX_HEADER) bytes.
    #[must_use]
    pub fn header(mut self, header: &[u8]) -> Self {
        self.header = SmallVec::from_slice(header);
        self
    }

    /// With this payload, of any length up to [`Options::max_message`](super::Options::max_message).
    #[must_use]
    pub fn payload(mut self, payload: impl Into<Bytes>) -> Self {
        self.payload = payload.into();
        self
    }
}
