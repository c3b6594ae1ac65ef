//! Cuts of the coordinates of a tensor into pieces.

use std::ops::Range;

/// The cuts between `pieces` equal parts of all places with coordinates in these ranges, in their order (Shinde 2019,
/// section 4.6.1): the last coordinate varies fastest.
#[must_use]
pub fn equal_cuts(ranges: &[Range<u64>], pieces: u64) -> Vec<Vec<u64>> {
    let cut = |piece: u64| {
        // The digits of `piece / pieces` in the mixed radix of extents: what is left of a digit goes to the next one.
        let mut rest = u128::from(piece);
        let digit = |range: &Range<u64>| {
            let product = rest * u128::from(range.end.saturating_sub(range.start));
            rest = product % u128::from(pieces);
            range.start + (product / u128::from(pieces)) as u64
        };
        ranges.iter().map(digit).collect()
    };
    (1..pieces).map(cut).collect()
}

/// The cuts between `pieces` parts with as many of these entries each, give or take one. Entries are samples of several
/// lists, each of which stands for the same number of entries.
#[must_use]
pub fn sampled_cuts(mut samples: Vec<Vec<u64>>, pieces: u64) -> Vec<Vec<u64>> {
    samples.sort_unstable();
    let place = |piece: u64| (samples.len() as u128 * u128::from(piece) / u128::from(pieces)) as usize;
    (1..pieces).filter_map(|piece| samples.get(place(piece)).cloned()).collect()
}
