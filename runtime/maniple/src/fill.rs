//! Values that fill a region without being stored.

use std::sync::Arc;

use maniple_realm::transfer;
use maniple_record::{OperationNumber, Value};

/// The value of every point of a field, stored nowhere: instances get it when an operation uses it.
#[derive(Clone, Debug)]
pub(crate) enum FillValue {
    /// All bytes zero: the value of every field that was never written. Then it is not on record.
    Zero(Option<OperationNumber>),
    /// This value.
    Value(Arc<transfer::FillValue>, Option<OperationNumber>),
}

impl Default for FillValue {
    fn default() -> Self {
        Self::Zero(None)
    }
}

impl FillValue {
    /// What to write, to a field of so many bytes.
    pub(crate) fn bytes(&self, size: usize) -> transfer::FillValue {
        match self {
            Self::Zero(_) => transfer::FillValue::from_bytes(&vec![0; size]),
            Self::Value(value, _) => (**value).clone(),
        }
    }

    /// The same value, whose giving has this number in the record.
    pub(crate) fn recorded_as(&self, number: Option<OperationNumber>) -> Self {
        match self {
            Self::Zero(_) => Self::Zero(number),
            Self::Value(value, _) => Self::Value(value.clone(), number),
        }
    }

    /// Which value it is, for the record.
    pub(crate) fn recorded(&self) -> Value {
        let (Self::Zero(number) | Self::Value(_, number)) = self;
        number.map_or(Value::Initial, Value::Of)
    }
}
