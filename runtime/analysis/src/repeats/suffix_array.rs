//! Suffix arrays of strings over small integers, and what neighbours in them share.

/// The suffixes of a text in lexicographic order, and the longest prefixes that neighbours share.
#[derive(Debug)]
pub(super) struct SuffixArray {
    /// The starts of the suffixes, in lexicographic order.
    pub starts: Vec<u32>,
    /// The inverse: the place of each suffix in `starts`.
    pub ranks: Vec<u32>,
    /// For each place but the last: how many letters its suffix and the next begin with in common.
    pub common: Vec<u32>,
}

impl SuffixArray {
    /// Of a text whose letters are below `letters`. Linear time.
    ///
    /// # Panics
    /// If the text has 2^32 - 1 letters or more, or a letter is not below `letters`.
    pub(super) fn new(text: &[u32], letters: usize) -> Self {
        assert!(text.len() < EMPTY as usize, "{} letters are more than a suffix array holds", text.len());
        let starts = sorted_suffixes(text, letters);
        let mut ranks = vec![0; text.len()];
        for (rank, &start) in starts.iter().enumerate() {
            ranks[start as usize] = rank as u32;
        }
        let common = common_prefixes(text, &starts, &ranks);
        Self { starts, ranks, common }
    }

    /// The places of all suffixes that begin with the first `length` letters of the one at `rank`.
    pub(super) fn with_prefix_of(&self, rank: usize, length: usize) -> std::ops::RangeInclusive<usize> {
        let shares = |&common: &u32| common as usize >= length;
        let before = self.common[..rank].iter().rev().take_while(|common| shares(common)).count();
        let after = self.common[rank..].iter().take_while(|common| shares(common)).count();
        rank - before..=rank + after
    }
}

/// A slot that no suffix has been put into.
const EMPTY: u32 = u32::MAX;

/// Induced sorting (SA-IS; Nong, Zhang and Chan 2009): sort the suffixes that start at local minima, by naming the
/// stretches between them and sorting the string of names; the order of all others follows in two sweeps.
fn sorted_suffixes(text: &[u32], letters: usize) -> Vec<u32> {
    let length = text.len();
    if length < 2 {
        return (0..length as u32).collect();
    }
    let sorting = InducedSorting::new(text, letters);
    let minima: Vec<u32> = (1..length as u32).filter(|&start| sorting.is_minimum(start)).collect();
    let mut suffixes = vec![EMPTY; length];
    sorting.induce(&minima, &mut suffixes);
    if minima.is_empty() {
        return suffixes;
    }
    let mut sorted: Vec<u32> = suffixes.iter().copied().filter(|&start| sorting.is_minimum(start)).collect();
    let (names, distinct) = name_stretches(text, &minima, &sorted);
    for (slot, &name) in sorted.iter_mut().zip(&sorted_suffixes(&names, distinct)) {
        *slot = minima[name as usize];
    }
    sorting.induce(&sorted, &mut suffixes);
    suffixes
}

/// Names the stretches from each local minimum to the next by their place among the distinct ones. Returns the string
/// of names in the order of the text, and how many differ.
fn name_stretches(text: &[u32], minima: &[u32], sorted: &[u32]) -> (Vec<u32>, usize) {
    let mut place = vec![EMPTY; text.len()];
    for (index, &start) in minima.iter().enumerate() {
        place[start as usize] = index as u32;
    }
    // With the minimum that ends it; the last one runs into the end of the text, and equals no other.
    let stretch = |start: u32| {
        let next = minima.get(place[start as usize] as usize + 1);
        next.map(|&end| &text[start as usize..=end as usize])
    };
    let mut names = vec![0; minima.len()];
    let mut name = 0;
    for pair in sorted.windows(2) {
        let (left, right) = (stretch(pair[0]), stretch(pair[1]));
        if left.is_none() || left != right {
            name += 1;
        }
        names[place[pair[1] as usize] as usize] = name;
    }
    (names, name as usize + 1)
}

/// The input of the two sweeps. A suffix is *rising* if it is less than the one that starts a letter later. Of suffixes
/// with one first letter, the falling come before the rising.
struct InducedSorting<'a> {
    text: &'a [u32],
    rising: Vec<bool>,
    /// For each letter, where its falling suffixes begin. One entry more, for the end.
    falling_from: Vec<u32>,
    /// For each letter, where its rising suffixes begin.
    rising_from: Vec<u32>,
}

impl<'a> InducedSorting<'a> {
    fn new(text: &'a [u32], letters: usize) -> Self {
        let mut rising = vec![false; text.len()];
        for start in (0..text.len() - 1).rev() {
            let (this, next) = (text[start], text[start + 1]);
            rising[start] = this < next || this == next && rising[start + 1];
        }
        let mut falling_from = vec![0; letters + 1];
        let mut rising_from = vec![0; letters];
        for (&letter, &rising) in text.iter().zip(&rising) {
            falling_from[letter as usize + 1] += 1;
            rising_from[letter as usize] += u32::from(!rising);
        }
        for letter in 0..letters {
            rising_from[letter] += falling_from[letter];
            falling_from[letter + 1] += falling_from[letter];
        }
        Self { text, rising, falling_from, rising_from }
    }

    /// Whether the suffix rises and the one before it falls.
    fn is_minimum(&self, start: u32) -> bool {
        start > 0 && self.rising[start as usize] && !self.rising[start as usize - 1]
    }

    /// Sorts all suffixes, if `minima` are sorted; all stretches between minima, if they are in any order.
    fn induce(&self, minima: &[u32], suffixes: &mut [u32]) {
        let letter = |start: u32| self.text[start as usize] as usize;
        suffixes.fill(EMPTY);
        let mut next = self.rising_from.clone();
        for &start in minima {
            let slot = &mut next[letter(start)];
            suffixes[*slot as usize] = start;
            *slot += 1;
        }
        let mut next = self.falling_from.clone();
        let mut put_falling = |start: u32, suffixes: &mut [u32]| {
            let slot = &mut next[letter(start)];
            suffixes[*slot as usize] = start;
            *slot += 1;
        };
        put_falling(self.text.len() as u32 - 1, suffixes);
        for rank in 0..suffixes.len() {
            let start = suffixes[rank];
            if start != EMPTY && start > 0 && !self.rising[start as usize - 1] {
                put_falling(start - 1, suffixes);
            }
        }
        let mut end = self.falling_from.clone();
        for rank in (0..suffixes.len()).rev() {
            let start = suffixes[rank];
            if start != EMPTY && start > 0 && self.rising[start as usize - 1] {
                let slot = &mut end[letter(start - 1) + 1];
                *slot -= 1;
                suffixes[*slot as usize] = start - 1;
            }
        }
    }
}

/// Returns the lengths of the prefixes that neighbours share (Kasai and others 2001). The suffixes are visited in the
/// order of their starts: each shares at most one letter less with its neighbour than the one before.
fn common_prefixes(text: &[u32], starts: &[u32], ranks: &[u32]) -> Vec<u32> {
    let mut common = vec![0; text.len().saturating_sub(1)];
    let mut shared = 0;
    for (start, &rank) in ranks.iter().enumerate() {
        let Some(&next) = starts.get(rank as usize + 1) else {
            shared = 0;
            continue;
        };
        let (this, next) = (&text[start + shared..], &text[next as usize + shared..]);
        shared += this.iter().zip(next).take_while(|(this, next)| this == next).count();
        common[rank as usize] = shared as u32;
        shared = shared.saturating_sub(1);
    }
    common
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text() -> impl Strategy<Value = Vec<u32>> {
        (1..6_u32).prop_flat_map(|letters| prop::collection::vec(0..letters, 0..80))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn suffixes_are_sorted_and_neighbours_share_what_is_said(text in text(), power in 1..4_usize) {
            let text = text.repeat(power);
            let array = SuffixArray::new(&text, 6);
            let mut expected: Vec<u32> = (0..text.len() as u32).collect();
            expected.sort_by_key(|&start| &text[start as usize..]);
            prop_assert_eq!(&array.starts, &expected);
            for (rank, pair) in expected.windows(2).enumerate() {
                let (left, right) = (&text[pair[0] as usize..], &text[pair[1] as usize..]);
                let shared = left.iter().zip(right).take_while(|(left, right)| left == right).count();
                prop_assert_eq!(array.common[rank] as usize, shared);
            }
        }
    }
}
