//! Entries that were read from a file.

use maniple_tensor::element::{ElementType, Scalar};
use maniple_tensor::notation::cast;
use maniple_tensor::storage::DynamicEntries;

/// The contents of a file: the entries of a tensor.
#[derive(Debug)]
pub struct Contents {
    /// The extent of each dimension.
    pub dimensions: Vec<i64>,
    /// The value of all elements that are not stored.
    pub fill: Scalar,
    /// The stored entries.
    pub entries: DynamicEntries,
}

impl Contents {
    /// The same in another type, which elements are cast to.
    #[must_use]
    pub(super) fn cast(self, element: ElementType) -> Self {
        let entries = self.entries.cast(element, &|number| Some(cast(number, element)));
        let entries = entries.expect("numbers of all types are cast to all types");
        Self { fill: cast(self.fill, element), entries, ..self }
    }
}
