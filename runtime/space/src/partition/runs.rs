//! Numbers in any order, with repetitions, to runs of consecutive numbers.

use crate::bitmap::RunJoiner;

/// Finds the runs in a list of numbers, one list after another; keeps its buffers in between.
#[derive(Default)]
pub(crate) struct RunFinder {
    marks: Marks,
    /// The other half of a radix sort.
    scratch: Vec<u64>,
}

impl RunFinder {
    /// A bitmap may have this many words for each number, as clear words cost next to nothing...
    const WORDS_PER_NUMBER: u64 = 16;
    /// ... and always this many, which stay in the cache.
    const SMALL_BITMAP: u64 = 1 << 12;

    /// A bitmap for about so many numbers below a bound, unless a list of them takes less memory.
    pub(crate) fn marks(&mut self, bound: u64, numbers: u64) -> Option<&mut Marks> {
        let words = bound.div_ceil(64);
        if words > numbers.max(Self::SMALL_BITMAP) {
            return None;
        }
        self.marks.make_room(words as usize);
        Some(&mut self.marks)
    }

    /// Calls `visit(first, last)` for each longest run of consecutive numbers, ascending. May
    /// reorder the numbers.
    ///
    /// Numbers that lie close are marked in a bitmap, others are sorted.
    pub(crate) fn for_each_run(&mut self, numbers: &mut Vec<u64>, mut visit: impl FnMut(u64, u64)) {
        let Some(&first) = numbers.first() else { return };
        let (mut min, mut max, mut last, mut is_sorted) = (first, first, first, true);
        for &number in &*numbers {
            is_sorted &= last <= number;
            last = number;
            min = min.min(number);
            max = max.max(number);
        }
        if is_sorted {
            return runs_of_sorted(numbers, visit);
        }
        let base = min / 64 * 64;
        let words = (max - base) / 64 + 1;
        let affordable = (numbers.len() as u64).saturating_mul(Self::WORDS_PER_NUMBER);
        if words <= affordable.max(Self::SMALL_BITMAP) {
            self.marks.make_room(words as usize);
            numbers.iter().for_each(|number| self.marks.set(number - base));
            self.marks.take_runs(words * 64, |first, last| visit(base + first, base + last));
        } else {
            sort(numbers, &mut self.scratch, min, max);
            runs_of_sorted(numbers, visit);
        }
    }
}

/// Calls `visit(first, last)` for each longest run of consecutive numbers of an ascending list,
/// which may repeat numbers.
fn runs_of_sorted(numbers: &[u64], mut visit: impl FnMut(u64, u64)) {
    let Some((&first, rest)) = numbers.split_first() else { return };
    let (mut first, mut last) = (first, first);
    for &number in rest {
        if number - last > 1 {
            visit(first, last);
            first = number;
        }
        last = number;
    }
    visit(first, last);
}

/// A bitmap with a summary, so that sparse marks are found without a look at every word.
#[derive(Default)]
pub(crate) struct Marks {
    /// All clear between uses.
    words: Vec<u64>,
    /// A bit for each word that has marks.
    summary: Vec<u64>,
}

impl Marks {
    /// Makes the first words usable.
    fn make_room(&mut self, words: usize) {
        if self.words.len() < words {
            // All are clear. New ones are pages that the system makes when they are first written to.
            self.words = vec![0; words];
            self.summary = vec![0; words.div_ceil(64)];
        }
    }

    /// Marks a number, for which there is room.
    #[inline]
    pub(crate) fn set(&mut self, number: u64) {
        let word = (number / 64) as usize;
        self.words[word] |= 1 << (number % 64);
        self.summary[word / 64] |= 1 << (word % 64);
    }

    /// Visits the runs of marks, which are all below a bound, and clears them.
    pub(crate) fn take_runs(&mut self, bound: u64, mut visit: impl FnMut(u64, u64)) {
        let mut joiner = RunJoiner::default();
        let groups = bound.div_ceil(64 * 64) as usize;
        for (group, summary) in self.summary[..groups].iter_mut().enumerate() {
            while *summary != 0 {
                let word = group * 64 + summary.trailing_zeros() as usize;
                *summary &= *summary - 1;
                let bits = std::mem::take(&mut self.words[word]);
                joiner.push(word as u64, bits, &mut visit);
            }
        }
        joiner.finish(visit);
    }
}

/// The bits of a digit of the radix sort: the counters of a pass stay in the first-level cache.
const DIGIT_BITS: u32 = 11;
/// The most passes that are still faster than a comparison sort.
const MOST_PASSES: u32 = 5;
/// The lengths for which that holds: enough numbers to pay for the counters, few enough to stay
/// in the cache.
const RADIX_LENGTHS: std::ops::Range<usize> = 1 << 11..1 << 20;

/// Sorts numbers between `min` and `max`: digit by digit from the lowest, if those are few.
fn sort(numbers: &mut Vec<u64>, scratch: &mut Vec<u64>, min: u64, max: u64) {
    let bits = u64::BITS - (max - min).leading_zeros();
    let passes = bits.div_ceil(DIGIT_BITS);
    if passes > MOST_PASSES || !RADIX_LENGTHS.contains(&numbers.len()) {
        return numbers.sort_unstable();
    }
    scratch.clear();
    scratch.resize(numbers.len(), 0);
    for pass in 0..passes {
        let digit = |number: u64| ((number - min) >> (pass * DIGIT_BITS)) as usize & ((1 << DIGIT_BITS) - 1);
        let mut next = [0u32; 1 << DIGIT_BITS];
        for &number in &*numbers {
            next[digit(number)] += 1;
        }
        let mut start = 0;
        for count in &mut next {
            start += std::mem::replace(count, start);
        }
        for &number in &*numbers {
            let slot = &mut next[digit(number)];
            scratch[*slot as usize] = number;
            *slot += 1;
        }
        std::mem::swap(numbers, scratch);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_are_those_of_the_set_however_it_is_spread(
            lists in vec(vec(prop_oneof![0u64..500, (0u64..100).prop_map(|i| i << 20)], 0..50), 1..4),
            far in any::<bool>(),
            copies in prop_oneof![Just(1usize), Just(200)],
        ) {
            let mut finder = RunFinder::default();
            for list in lists {
                let mut numbers: Vec<u64> = list.repeat(copies);
                if far {
                    numbers.push(u64::MAX);
                }
                let expected: BTreeSet<u64> = numbers.iter().copied().collect();
                let mut runs = Vec::new();
                finder.for_each_run(&mut numbers, |first, last| runs.push((first, last)));
                prop_assert!(runs.is_sorted_by(|a, b| a.1 + 1 < b.0));
                let found: BTreeSet<u64> = runs.iter().flat_map(|&(a, b)| a..=b).collect();
                prop_assert_eq!(found, expected);
            }
        }

        #[test]
        fn a_long_list_is_sorted_by_digits(
            mut numbers in vec(any::<u64>(), 2048..4096), shift in 0u32..40, base in 0u64..1 << 30,
        ) {
            numbers.iter_mut().for_each(|number| *number = base + (*number >> 24 >> shift));
            let mut expected = numbers.clone();
            expected.sort();
            let (min, max) = (expected[0], expected[expected.len() - 1]);
            sort(&mut numbers, &mut Vec::new(), min, max);
            prop_assert_eq!(numbers, expected);
        }
    }
}
