//! Values that fill a region without being stored.

use std::sync::Arc;

use maniple_realm::{Event, transfer};
use maniple_record::{OperationNumber, Value};

/// The value of every point of a field, stored nowhere: instances get it when an operation uses it.
#[derive(Clone, Debug)]
pub(crate) enum FillValue {
    /// All bytes zero: the value of every field that was never written. Then it is not on record.
    Zero(Option<OperationNumber>),
    /// This value.
    Value(Arc<transfer::FillValue>, Option<OperationNumber>),
    /// None: the operation that was to write could not be mapped. The event is poisoned with the reason.
    Lost(Event),
}

impl FillValue {
    /// What to write, to a field of so many bytes.
    pub(crate) fn bytes(&self, size: usize) -> transfer::FillValue {
        match self {
            Self::Zero(_) | Self::Lost(_) => transfer::FillValue::from_bytes(&vec![0; size]),
            Self::Value(value, _) => (**value).clone(),
        }
    }

    /// What must not have failed for there to be a value.
    pub(crate) fn origin(&self) -> Option<Event> {
        match self {
            Self::Zero(_) | Self::Value(..) => None,
            Self::Lost(reason) => Some(*reason),
        }
    }

    /// The same value, whose giving has this number in the record.
    pub(crate) fn recorded_as(&self, number: Option<OperationNumber>) -> Self {
        match self {
            Self::Zero(_) => Self::Zero(number),
            Self::Value(value, _) => Self::Value(value.clone(), number),
            Self::Lost(reason) => Self::Lost(*reason),
        }
    }

    /// Which value it is, for the record.
    pub(crate) fn recorded(&self) -> Value {
        match self {
            Self::Zero(number) | Self::Value(_, number) => number.map_or(Value::Initial, Value::Of),
            Self::Lost(_) => Value::Lost,
        }
    }
}
