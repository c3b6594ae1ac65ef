//! Sets of fields as bit masks.

use std::fmt;
use std::hash::{Hash, Hasher};

use crate::FieldId;

/// A set of fields of one field space: bit `i` stands for field `i`.
///
/// Sets of the first 64 fields are one word; higher fields spill to the heap. All operations take time proportional to
/// the number of words in use.
#[derive(Clone, Eq, Default)]
pub struct FieldMask {
    low: u64,
    // Words 1, 2, ...; no trailing zero word, so that equal sets are equal values.
    high: Vec<u64>,
}

impl PartialEq for FieldMask {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        // Nearly always both are one word.
        self.low == other.low
            && self.high.len() == other.high.len()
            && (self.high.is_empty() || self.high == other.high)
    }
}

impl Hash for FieldMask {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.low.hash(state);
        if !self.high.is_empty() {
            self.high.hash(state);
        }
    }
}

impl FieldMask {
    /// The empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { low: 0, high: Vec::new() }
    }

    /// The set of one field.
    #[must_use]
    pub fn of(field: FieldId) -> Self {
        let mut mask = Self::new();
        mask.insert(field);
        mask
    }

    /// Adds a field.
    pub fn insert(&mut self, field: FieldId) {
        let (word, bit) = (field.0 as usize / 64, 1 << (field.0 % 64));
        match word.checked_sub(1) {
            None => self.low |= bit,
            Some(word) => {
                if word >= self.high.len() {
                    self.high.resize(word + 1, 0);
                }
                self.high[word] |= bit;
            }
        }
    }

    /// Removes a field.
    pub fn remove(&mut self, field: FieldId) {
        *self = self.difference(&Self::of(field));
    }

    /// Whether the field is in the set.
    #[must_use]
    pub fn contains(&self, field: FieldId) -> bool {
        let (word, bit) = (field.0 as usize / 64, field.0 % 64);
        self.word(word) >> bit & 1 == 1
    }

    /// Whether no field is in the set.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.low == 0 && self.high.is_empty()
    }

    /// The number of fields in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.low.count_ones() as usize + self.high.iter().map(|word| word.count_ones() as usize).sum::<usize>()
    }

    /// Whether the two sets share a field.
    #[inline]
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.low & other.low != 0 || self.high.iter().zip(&other.high).any(|(a, b)| a & b != 0)
    }

    /// Whether every field of `self` is in `other`.
    #[inline]
    #[must_use]
    pub fn is_subset_of(&self, other: &Self) -> bool {
        let within = |(index, word): (usize, &u64)| word & !other.word(index + 1) == 0;
        self.low & !other.low == 0 && self.high.iter().enumerate().all(within)
    }

    /// The fields in both sets.
    #[inline]
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let low = self.low & other.low;
        if self.high.is_empty() || other.high.is_empty() {
            return Self { low, high: Vec::new() };
        }
        Self::trimmed(low, self.high.iter().zip(&other.high).map(|(a, b)| a & b).collect())
    }

    /// The fields in either set.
    #[inline]
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let low = self.low | other.low;
        if self.high.is_empty() && other.high.is_empty() {
            return Self { low, high: Vec::new() };
        }
        let words = self.high.len().max(other.high.len());
        Self { low, high: (1..=words).map(|index| self.word(index) | other.word(index)).collect() }
    }

    /// The fields of `self` that are not in `other`.
    #[inline]
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let low = self.low & !other.low;
        if self.high.is_empty() {
            return Self { low, high: Vec::new() };
        }
        Self::trimmed(low, (1..=self.high.len()).map(|index| self.word(index) & !other.word(index)).collect())
    }

    /// The fields in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = FieldId> + '_ {
        self.words().enumerate().flat_map(|(index, word)| {
            let bits = std::iter::successors((word != 0).then_some(word), |word| {
                let rest = word & (word - 1);
                (rest != 0).then_some(rest)
            });
            bits.map(move |word| FieldId(index as u32 * 64 + word.trailing_zeros()))
        })
    }

    #[inline]
    fn word(&self, index: usize) -> u64 {
        match index.checked_sub(1) {
            None => self.low,
            Some(high) => self.high.get(high).copied().unwrap_or(0),
        }
    }

    fn words(&self) -> impl Iterator<Item = u64> + '_ {
        std::iter::once(self.low).chain(self.high.iter().copied())
    }

    fn trimmed(low: u64, mut high: Vec<u64>) -> Self {
        while high.last() == Some(&0) {
            high.pop();
        }
        Self { low, high }
    }
}

impl FromIterator<FieldId> for FieldMask {
    fn from_iter<I: IntoIterator<Item = FieldId>>(fields: I) -> Self {
        let mut mask = Self::new();
        fields.into_iter().for_each(|field| mask.insert(field));
        mask
    }
}

impl fmt::Debug for FieldMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|field| field.0)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    type Model = BTreeSet<u32>;

    fn mask(model: &Model) -> FieldMask {
        model.iter().map(|&field| FieldId(field)).collect()
    }

    fn model(mask: &FieldMask) -> Model {
        mask.iter().map(|field| field.0).collect()
    }

    fn sets() -> impl Strategy<Value = Model> {
        prop::collection::btree_set(0..300_u32, 0..12)
    }

    proptest! {
        #[test]
        fn masks_agree_with_sets_of_numbers(a in sets(), b in sets(), probe in 0..300_u32) {
            let (x, y) = (mask(&a), mask(&b));
            prop_assert_eq!(model(&x), a.clone());
            prop_assert_eq!(model(&x.union(&y)), &a | &b);
            prop_assert_eq!(model(&x.intersection(&y)), &a & &b);
            prop_assert_eq!(model(&x.difference(&y)), &a - &b);
            prop_assert_eq!(x.overlaps(&y), !a.is_disjoint(&b));
            prop_assert_eq!(x.is_subset_of(&y), a.is_subset(&b));
            prop_assert_eq!(x.contains(FieldId(probe)), a.contains(&probe));
            prop_assert_eq!(x.len(), a.len());
            prop_assert_eq!(x.is_empty(), a.is_empty());
            prop_assert_eq!(x == y, a == b);
        }

        #[test]
        fn removing_a_field_leaves_the_others(a in sets(), probe in 0..300_u32) {
            let mut x = mask(&a);
            x.remove(FieldId(probe));
            let mut expected = a;
            expected.remove(&probe);
            prop_assert_eq!(x, mask(&expected));
        }
    }
}
