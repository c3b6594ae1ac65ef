//! Periods and rotations of strings.

/// The least distance at which the letters of `string` are the same: 3 for `abcabc` and `abca`, 4 for `abcd`. Linear
/// time.
///
/// From the longest border, as in Knuth, Morris and Pratt (1977).
pub(super) fn least_period<T: PartialEq>(string: &[T]) -> usize {
    let mut borders = vec![0; string.len()];
    let mut border: usize = 0;
    for end in 1..string.len() {
        while border > 0 && string[border] != string[end] {
            border = borders[border - 1];
        }
        border += usize::from(string[border] == string[end]);
        borders[end] = border;
    }
    string.len() - border
}

/// The stretch around `string[start..start + period]`, as far as it goes on with that period.
pub(super) fn run_around<T: PartialEq>(string: &[T], start: usize, period: usize) -> std::ops::Range<usize> {
    let (here, later) = (string, &string[period..]);
    let before = here[..start].iter().zip(&later[..start]).rev().take_while(|(here, later)| here == later).count();
    let after = here[start..].iter().zip(&later[start..]).take_while(|(here, later)| here == later).count();
    start - before..start + after + period
}

/// The letters of `string` from the start of its least rotation on: equal for two strings if one is a rotation of the
/// other. Linear time.
///
/// Two candidates race; the one that loses at the `matched`th letter can't be beaten only by one of the `matched` after
/// it (Shiloach 1981).
pub(super) fn least_rotation<T: Ord>(string: &[T]) -> impl Iterator<Item = &T> {
    let length = string.len();
    let (mut left, mut right, mut matched) = (0, 1, 0);
    while left < length && right < length && matched < length {
        match string[(left + matched) % length].cmp(&string[(right + matched) % length]) {
            std::cmp::Ordering::Equal => matched += 1,
            std::cmp::Ordering::Greater => (left, matched) = (left + matched + 1, 0),
            std::cmp::Ordering::Less => (right, matched) = (right + matched + 1, 0),
        }
        if left == right {
            right += 1;
        }
    }
    let (end, start) = string.split_at(left.min(right).min(length));
    start.iter().chain(end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rotation(string: &[u8], by: usize) -> Vec<u8> {
        [&string[by..], &string[..by]].concat()
    }

    #[test]
    fn the_period_of_a_power_is_the_length_of_its_root() {
        assert_eq!(least_period(b"abcabcabc"), 3);
        assert_eq!(least_period(b"aaaa"), 1);
        assert_eq!(least_period(b"abcabca"), 3);
        assert_eq!(least_period(b"abca"), 3);
        assert_eq!(least_period(b"abcd"), 4);
        assert_eq!(least_period::<u8>(b""), 0);
    }

    #[test]
    fn a_run_goes_on_to_both_sides() {
        assert_eq!(run_around(b"xcabcabcaby", 5, 3), 1..10);
        assert_eq!(run_around(b"abc", 0, 3), 0..3);
    }

    proptest! {
        #[test]
        fn the_least_rotation_is_the_least(string in prop::collection::vec(0..3_u8, 1..12)) {
            let least: Vec<u8> = least_rotation(&string).copied().collect();
            prop_assert_eq!(Some(least), (0..string.len()).map(|by| rotation(&string, by)).min());
        }

        #[test]
        fn letters_are_the_same_at_no_lesser_distance(string in prop::collection::vec(0..2_u8, 1..12), power in 1..4_usize) {
            let string = string.repeat(power);
            let is_period = |period: &usize| string.iter().zip(&string[*period..]).all(|(one, next)| one == next);
            prop_assert_eq!(Some(least_period(&string)), (1..=string.len()).find(is_period));
        }
    }
}
