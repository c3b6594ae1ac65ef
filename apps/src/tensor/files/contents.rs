//! Entries that were read from a file.

use maniple_tensor::element::{ElementType, Scalar};
use maniple_tensor::notation::cast;
use maniple_tensor::storage::DynamicEntries;

/// What is in a file.
#[derive(Debug)]
pub struct Contents {
    /// The extent of each dimension.
    pub dimensions: Vec<i64>,
    /// The value of what is not stored.
    pub fill: Scalar,
    /// What is stored.
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
