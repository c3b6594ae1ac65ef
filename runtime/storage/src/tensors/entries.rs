//! Entries of tensors: coordinates with their elements, in any order.

use super::error::StorageError;
use crate::level::room;

/// Coordinates with their elements, in any order and any number of times.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryList<T> {
    /// For each dimension, the coordinates of all entries.
    pub coordinates: Vec<Vec<i64>>,
    /// The elements.
    pub values: Vec<T>,
}

impl<T: Copy> EntryList<T> {
    /// No entries yet of a tensor of `rank` dimensions.
    pub fn new(rank: usize) -> Self {
        Self { coordinates: vec![Vec::new(); rank], values: Vec::new() }
    }

    /// Adds an entry.
    ///
    /// # Panics
    ///
    /// If there is not a coordinate for each dimension.
    pub fn push(&mut self, coordinates: &[i64], value: T) {
        assert_eq!(coordinates.len(), self.coordinates.len(), "a coordinate for each dimension");
        self.coordinates.iter_mut().zip(coordinates).for_each(|(all, one)| all.push(*one));
        self.values.push(value);
    }

    /// The same coordinates with other elements.
    pub fn map<U>(self, change: impl Fn(T) -> U) -> EntryList<U> {
        EntryList { coordinates: self.coordinates, values: self.values.into_iter().map(change).collect() }
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.coordinates.len()
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The coordinates of one entry.
    ///
    /// # Panics
    ///
    /// If there are not as many entries.
    pub fn coordinates(&self, entry: usize) -> Vec<i64> {
        self.coordinates.iter().map(|all| all[entry]).collect()
    }

    /// The coordinates of all entries in one dimension.
    ///
    /// # Panics
    ///
    /// If there are not as many dimensions.
    pub fn along(&self, dimension: usize) -> &[i64] {
        &self.coordinates[dimension]
    }

    /// All entries.
    pub fn iter(&self) -> impl Iterator<Item = (Vec<i64>, T)> {
        self.values.iter().enumerate().map(|(entry, &value)| (self.coordinates(entry), value))
    }

    /// Entries whose coordinates of each dimension are one vector, as long as that of the elements.
    ///
    /// # Panics
    ///
    /// If they have different lengths.
    pub fn of(coordinates: Vec<Vec<i64>>, values: Vec<T>) -> Self {
        assert!(coordinates.iter().all(|all| all.len() == values.len()), "a coordinate for each element");
        Self { coordinates, values }
    }

    /// For each dimension, the coordinates of all entries, and their elements.
    pub fn into_parts(self) -> (Vec<Vec<i64>>, Vec<T>) {
        (self.coordinates, self.values)
    }

    /// The entries of all lists, one after the other.
    ///
    /// # Errors
    ///
    /// [`StorageError::Memory`].
    pub fn concatenated(rank: usize, lists: Vec<Self>) -> Result<Self, StorageError> {
        let mut all = Self::new(rank);
        let count = lists.iter().map(Self::len).sum();
        let memory = |_| StorageError::Memory(count as u128 * size_of::<i64>() as u128);
        all.coordinates.iter_mut().try_for_each(|all| room(count).map(|room| *all = room)).map_err(memory)?;
        all.values = room(count).map_err(memory)?;
        for list in lists {
            all.coordinates.iter_mut().zip(&list.coordinates).for_each(|(all, part)| all.extend_from_slice(part));
            all.values.extend_from_slice(&list.values);
        }
        Ok(all)
    }
}
