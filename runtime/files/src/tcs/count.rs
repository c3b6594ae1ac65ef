//! The first pass over sorted entries: how large a tensor of them is.

/// The first level at which two entries differ; none if they are at the same place.
pub(super) fn first_difference(one: &[u64], other: &[u64]) -> Option<usize> {
    one.iter().zip(other).position(|(one, other)| one != other)
}

/// Counts of sorted entries, whose coordinates are in the order of levels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How many nodes each level has, as if all were sparse.
    pub nodes: Vec<u64>,
    /// The least coordinate of each level.
    pub least: Vec<u64>,
    /// The greatest coordinate of each level.
    pub greatest: Vec<u64>,
    /// The first entry.
    pub first: Vec<u64>,
    /// The last entry; empty if there is none.
    pub last: Vec<u64>,
}

impl Counts {
    /// Whether there was no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.last.is_empty()
    }

    /// Counts an entry that comes after those before.
    pub fn add(&mut self, at: &[u64]) {
        if self.is_empty() {
            *self = Self {
                nodes: vec![1; at.len()],
                least: at.to_vec(),
                greatest: at.to_vec(),
                first: at.to_vec(),
                last: at.to_vec(),
            };
            return;
        }
        let difference = first_difference(&self.last, at).unwrap_or(at.len());
        self.nodes[difference..].iter_mut().for_each(|count| *count += 1);
        self.least.iter_mut().zip(at).for_each(|(least, at)| *least = (*least).min(*at));
        self.greatest.iter_mut().zip(at).for_each(|(greatest, at)| *greatest = (*greatest).max(*at));
        self.last.copy_from_slice(at);
    }

    /// Counts the entries of another part, which come after those before: nodes that both have are counted once.
    pub fn append(&mut self, next: &Self) {
        if next.is_empty() {
            return;
        }
        if self.is_empty() {
            return self.clone_from(next);
        }
        let difference = first_difference(&self.last, &next.first).unwrap_or(next.first.len());
        for (level, (count, more)) in self.nodes.iter_mut().zip(&next.nodes).enumerate() {
            *count += more - u64::from(level < difference);
        }
        self.least.iter_mut().zip(&next.least).for_each(|(least, next)| *least = (*least).min(*next));
        self.greatest.iter_mut().zip(&next.greatest).for_each(|(greatest, next)| *greatest = (*greatest).max(*next));
        self.last.clone_from(&next.last);
    }
}
