//! Entries of tensors: coordinates with their elements, in any order.

/// Coordinates with their elements, in any order and any number of times.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryList<T> {
    /// For each dimension, the coordinates of all entries.
    pub(crate) coordinates: Vec<Vec<i64>>,
    pub(crate) values: Vec<T>,
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

    /// All entries.
    pub fn iter(&self) -> impl Iterator<Item = (Vec<i64>, T)> {
        self.values.iter().enumerate().map(|(entry, &value)| (self.coordinates(entry), value))
    }
}
