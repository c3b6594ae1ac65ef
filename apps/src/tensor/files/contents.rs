//! Entries that were read from a file.

use maniple_tensor::storage::EntryList;

/// What is in a file.
#[derive(Clone, Debug)]
pub struct Contents<T> {
    /// The extent of each dimension.
    pub dimensions: Vec<i64>,
    /// The value of what is not stored.
    pub fill: T,
    /// What is stored.
    pub entries: EntryList<T>,
}
