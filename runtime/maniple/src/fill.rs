//! Values that fill a region without being stored.

use std::sync::Arc;

use maniple_realm::{Event, transfer};

/// The value of every point of a field, stored nowhere: instances get it when somebody looks.
#[derive(Clone, Debug)]
pub(crate) enum FillValue {
    /// All bytes zero: the value of every field that was never written.
    Zero,
    /// This value.
    Value(Arc<transfer::FillValue>),
    /// None: the operation that was to write could not be mapped. The event is poisoned with the reason.
    Lost(Event),
}

impl FillValue {
    /// What to write, to a field of so many bytes.
    pub(crate) fn bytes(&self, size: usize) -> transfer::FillValue {
        match self {
            Self::Zero | Self::Lost(_) => transfer::FillValue::from_bytes(&vec![0; size]),
            Self::Value(value) => (**value).clone(),
        }
    }

    /// What must not have failed for there to be a value.
    pub(crate) fn origin(&self) -> Option<Event> {
        match self {
            Self::Zero | Self::Value(_) => None,
            Self::Lost(reason) => Some(*reason),
        }
    }
}
