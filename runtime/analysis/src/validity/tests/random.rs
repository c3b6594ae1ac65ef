//! Choices that follow from a seed.

use std::cell::Cell;

/// Numbers by SplitMix64 (Steele, Lea and Flood 2014).
#[derive(Clone, Debug)]
pub(super) struct Random(Cell<u64>);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(Cell::new(seed))
    }

    pub(super) fn next(&self) -> u64 {
        self.0.set(self.0.get().wrapping_add(0x9E37_79B9_7F4A_7C15));
        let z = self.0.get();
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// True once in so many times.
    pub(super) fn once_in(&self, times: u64) -> bool {
        self.next().is_multiple_of(times)
    }

    pub(super) fn pick<'a, T>(&self, choices: &'a [T]) -> Option<&'a T> {
        choices.get(self.next() as usize % choices.len().max(1))
    }
}
