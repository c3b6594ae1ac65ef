//! Sets of fields as bit masks.

use std::fmt;

use smallvec::SmallVec;

use crate::FieldId;

/// A set of fields of one field space: bit `i` stands for field `i`.
///
/// Up to 128 fields live inside the value; larger ids spill to the heap. All operations take time proportional to the number of
/// words (64 fields each) in use.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct FieldMask {
    // Invariant: no trailing zero word, so that equal sets are equal vectors.
    words: SmallVec<[u64; 2]>,
}

impl FieldMask {
    /// The empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
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
        let (word, bit) = (field.0 as usize / 64, field.0 % 64);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << bit;
    }

    /// Removes a field.
    pub fn remove(&mut self, field: FieldId) {
        let (word, bit) = (field.0 as usize / 64, field.0 % 64);
        if let Some(word) = self.words.get_mut(word) {
            *word &= !(1 << bit);
        }
        self.trim();
    }

    /// Whether the field is in the set.
    #[must_use]
    pub fn contains(&self, field: FieldId) -> bool {
        let (word, bit) = (field.0 as usize / 64, field.0 % 64);
        self.words.get(word).is_some_and(|word| word >> bit & 1 == 1)
    }

    /// Whether no field is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The number of fields in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether the two sets share a field.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// Whether every field of `self` is in `other`.
    #[must_use]
    pub fn is_subset_of(&self, other: &Self) -> bool {
        let beyond = self.words.len() > other.words.len();
        !beyond && self.words.iter().zip(&other.words).all(|(a, b)| a & !b == 0)
    }

    /// The fields in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let words = self.words.iter().zip(&other.words).map(|(a, b)| a & b);
        Self::from_words(words.collect())
    }

    /// The fields in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let (long, short) = if self.words.len() >= other.words.len() { (self, other) } else { (other, self) };
        let mut words = long.words.clone();
        words.iter_mut().zip(&short.words).for_each(|(a, b)| *a |= b);
        Self { words }
    }

    /// The fields of `self` that are not in `other`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut words = self.words.clone();
        words.iter_mut().zip(&other.words).for_each(|(a, b)| *a &= !b);
        Self::from_words(words)
    }

    /// The fields in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = FieldId> + '_ {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            let bits = std::iter::successors((word != 0).then_some(word), |word| {
                let rest = word & (word - 1);
                (rest != 0).then_some(rest)
            });
            bits.map(move |word| FieldId(index as u32 * 64 + word.trailing_zeros()))
        })
    }

    fn from_words(words: SmallVec<[u64; 2]>) -> Self {
        let mut mask = Self { words };
        mask.trim();
        mask
    }

    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
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
