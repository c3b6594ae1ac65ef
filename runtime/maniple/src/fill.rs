//! Values that fill a region without being stored.

use maniple_realm::transfer;

/// The value of every point of a field, stored nowhere: instances get it when somebody looks.
#[derive(Clone, Debug)]
pub(crate) enum FillValue {
    /// All bytes zero: the value of every field that was never written.
    Zero,
    /// This value.
    Value(transfer::FillValue),
}

impl FillValue {
    /// What to write, to a field of so many bytes.
    pub(crate) fn bytes(&self, size: usize) -> transfer::FillValue {
        match self {
            Self::Zero => transfer::FillValue::from_bytes(&vec![0; size]),
            Self::Value(value) => value.clone(),
        }
    }
}
