//! Messages of kinds, as they leave.

use bytes::Bytes;
use maniple_realm::net::HandlerId;
use serde::Serialize;

use crate::wire::{Head, encode_head};

/// A kind of messages. The layers above a job number theirs from 0; no two layers may use one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JobMessageKind(u16);

/// The first kinds are the job's own.
const OWN: u16 = 8;

impl JobMessageKind {
    /// Brings a parcel.
    pub(crate) const PARCEL: Self = Self(0);
    /// Brings a contribution to a collective.
    pub(crate) const CONTRIBUTION: Self = Self(1);
    /// Brings the outcome of a collective, from the node above.
    pub(crate) const OUTCOME: Self = Self(2);
    /// Says that the program has ended on a node.
    pub(crate) const END: Self = Self(3);
    /// Brings a fragment of the payload of the next message of another kind.
    pub(crate) const FRAGMENT: Self = Self(4);
    /// Shows what a program has done that has come no further for a while.
    pub(crate) const STANDSTILL: Self = Self(5);
    /// Says that a node leaves the job.
    pub(crate) const LEAVE: Self = Self(6);

    /// The kind of a layer that has this number.
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self(OWN + number)
    }

    pub(crate) fn handler(self) -> HandlerId {
        HandlerId(self.0)
    }
}

/// When a message is to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    Now,
    /// With another message, or after a heartbeat or two.
    Whenever,
}

/// A message that is about to be sent, however long it is.
#[derive(Debug)]
pub struct Outgoing {
    pub(crate) kind: JobMessageKind,
    pub(crate) header: Head,
    pub(crate) payload: Bytes,
    pub(crate) urgency: Urgency,
}

impl Outgoing {
    /// A message without a header.
    #[must_use]
    pub fn new(kind: JobMessageKind, payload: impl Into<Bytes>) -> Self {
        Self { kind, header: Head::new(), payload: payload.into(), urgency: Urgency::Now }
    }

    /// The same with a header: see [`Received::header`](crate::Received::header). It should be short, as it is copied.
    #[must_use]
    pub fn with_header(self, header: &impl Serialize) -> Self {
        Self { header: encode_head(header), ..self }
    }

    /// The same with a header that is [encoded](crate::encode) already.
    #[must_use]
    pub fn with_encoded_header(self, header: &[u8]) -> Self {
        Self { header: Head::from_slice(header), ..self }
    }
}
