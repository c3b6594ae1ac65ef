//! Finding strings that repeat without overlap, and cover much of a stream of tokens.
//!
//! Yadav 2026, section 5.3.2, algorithm 2: neighbours in the suffix array tell of repeats; the longest are chosen
//! first, wherever nothing has been chosen yet. Three things are ours. A repeat that is a power of a shorter string is
//! reduced to that string, since traces are replayed back to back. Of the rotations of a loop's body, which all repeat
//! in the loop, one is reported. Finally occurrences are chosen anew for what is left, so that those which are told of
//! are disjoint.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::periods::{least_period, least_rotation, run_around};
use super::suffix_array::SuffixArray;

/// A string that repeats in a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Repeat {
    pub tokens: Vec<u64>,
    /// How often it was found, at least 2: none overlaps another, nor one of another repeat.
    pub occurrences: usize,
    /// The most of these that follow each other without a gap. With more than 1, it is the body of a loop, and
    /// rotations of it would do as well.
    pub in_succession: usize,
    /// Whether its first token is where the loop begins, as far as can be told: not if the stream begins within the
    /// loop.
    pub anchored: bool,
}

/// Repeats of at least `shortest` tokens, the longest first, and of equal ones the one seen first. A power of a string
/// of fewer tokens is reported as the smallest power of it that has `shortest`.
///
/// O(n log n) steps, save for the second choice of occurrences, which has O(n sqrt n) in the worst case and O(n) for
/// streams seen in practice.
///
/// # Panics
/// If there are 2^32 - 1 tokens or more.
pub(super) fn find_repeats(tokens: &[u64], shortest: usize) -> Vec<Repeat> {
    let (text, letters) = letters(tokens);
    let array = SuffixArray::new(&text, letters);
    let chosen = choose(pieces(&array, shortest.max(1)), text.len());
    let mut patterns = patterns(&text, &chosen, shortest.max(1));
    patterns.sort_unstable_by_key(|pattern| (Reverse(pattern.range.len()), pattern.range.start));
    occurrences(&array, tokens, &patterns)
}

/// The tokens as small integers, numbered in the order in which they first appear, and how many differ.
fn letters(tokens: &[u64]) -> (Vec<u32>, usize) {
    let mut numbers = FxHashMap::default();
    let text = tokens.iter().map(|&token| {
        let fresh = numbers.len() as u32;
        *numbers.entry(token).or_insert(fresh)
    });
    (text.collect(), numbers.len())
}

/// A piece of the text that occurs elsewhere too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Piece {
    length: Reverse<u32>,
    /// Tells pieces of one length apart, and orders them as the strings they are: the first place of the suffix array
    /// that begins with it.
    string: u32,
    start: u32,
}

impl Piece {
    fn range(self) -> Range<usize> {
        self.start as usize..(self.start + self.length.0) as usize
    }
}

/// Pieces that neighbours in the suffix array have in common, two of each, which don't overlap; sorted as they are to
/// be chosen.
fn pieces(array: &SuffixArray, shortest: usize) -> Vec<Piece> {
    let mut pieces = Vec::new();
    // Where common prefixes of at least this length go back to without a shorter one in between, shortest first.
    let mut since: Vec<(u32, u32)> = Vec::new();
    for (rank, &common) in array.common.iter().enumerate() {
        let mut from = rank as u32;
        while let Some(&(_, earlier)) = since.last().filter(|&&(shared, _)| shared >= common) {
            from = earlier;
            since.pop();
        }
        since.push((common, from));
        let (one, other) = (array.starts[rank], array.starts[rank + 1]);
        let (first, second) = (one.min(other), one.max(other));
        let distance = second - first;
        // If they overlap, the stretch has a period of their distance: its whole periods make two halves.
        let (length, second) = if common <= distance {
            (common, second)
        } else {
            let half = (common + distance) / 2;
            let whole = half - half % distance;
            (whole, first + whole)
        };
        if length as usize >= shortest {
            let string = since[since.partition_point(|&(shared, _)| shared < length)].1;
            pieces.extend([first, second].map(|start| Piece { length: Reverse(length), string, start }));
        }
    }
    pieces.sort_unstable();
    pieces
}

/// Marks what is taken of a text, by stretches that never grow. Both ends of a stretch being free, so is all between.
struct Taken(Vec<bool>);

impl Taken {
    fn new(length: usize) -> Self {
        Self(vec![false; length])
    }

    fn take(&mut self, range: Range<usize>) -> bool {
        let free = !self.0[range.start] && !self.0[range.end - 1];
        if free {
            self.0[range].fill(true);
        }
        free
    }
}

/// The pieces that overlap none before them.
fn choose(mut pieces: Vec<Piece>, length: usize) -> Vec<Piece> {
    let mut taken = Taken::new(length);
    pieces.retain(|piece| taken.take(piece.range()));
    pieces
}

/// A string to report, as a stretch of the text.
struct Pattern {
    range: Range<usize>,
    anchored: bool,
}

/// The distinct strings behind the chosen pieces: of a power its root, or the power of it that is long enough. If it
/// repeats in a run, it stands for all its rotations, and is taken from the beginning of the first such run; if that is
/// cut off by the beginning of the text, of the next. So it is with a piece of a run that ends within the root: where
/// one loop runs twice for different times, there are such pieces of all lengths.
fn patterns(text: &[u32], chosen: &[Piece], shortest: usize) -> Vec<Pattern> {
    let long_enough = |period: usize| period * shortest.div_ceil(period);
    let mut patterns = Vec::new();
    let mut alone = FxHashSet::default();
    let mut runs = Runs::default();
    let mut last: Option<(Piece, usize)> = None;
    for &piece in chosen {
        let range = piece.range();
        let period = match last {
            Some((other, period)) if (other.length, other.string) == (piece.length, piece.string) => period,
            _ => least_period(&text[range.clone()]),
        };
        last = Some((piece, period));
        let run = runs.of(text, range.start, period);
        if run.len() >= 2 * long_enough(period) {
            runs.record(text, run, period);
        } else if alone.insert((piece.length, piece.string)) {
            // Of a power its root is enough.
            let root = if range.len().is_multiple_of(period) { period } else { range.len() };
            patterns.push(Pattern { range: range.start..range.start + long_enough(root), anchored: true });
        }
    }
    patterns.extend(runs.first.into_iter().map(|(body, start)| {
        let range = start..start + long_enough(body.len());
        Pattern { range, anchored: start > 0 }
    }));
    patterns
}

/// Stretches that go on with one period, at least twice its length.
#[derive(Default)]
struct Runs {
    /// For each string that is the least of its rotations: the start of the first stretch that repeats one of these
    /// rotations. A stretch at the beginning of the text counts as the last.
    first: FxHashMap<Box<[u32]>, usize>,
    /// The end of each stretch, by its period and its start, so that each stretch is gone through only once.
    ends: BTreeMap<(usize, usize), usize>,
}

impl Runs {
    /// The stretch with this period around `start`.
    fn of(&self, text: &[u32], start: usize, period: usize) -> Range<usize> {
        let before = self.ends.range((period, 0)..=(period, start)).next_back();
        match before {
            Some((&(_, from), &end)) if start + period <= end => from..end,
            _ => run_around(text, start, period),
        }
    }

    fn record(&mut self, text: &[u32], run: Range<usize>, period: usize) {
        if self.ends.insert((period, run.start), run.end).is_some() {
            return;
        }
        let body = &text[run.start..run.start + period];
        let first = self.first.entry(least_rotation(body).copied().collect()).or_insert(run.start);
        if run.start.wrapping_sub(1) < first.wrapping_sub(1) {
            *first = run.start;
        }
    }
}

/// Chooses occurrences for each pattern in turn, and keeps the patterns that have two.
fn occurrences(array: &SuffixArray, tokens: &[u64], patterns: &[Pattern]) -> Vec<Repeat> {
    let mut taken = Taken::new(tokens.len());
    let mut starts = Vec::new();
    let repeats = patterns.iter().filter_map(|Pattern { range, anchored }| {
        let length = range.len();
        let ranks = array.with_prefix_of(array.ranks[range.start] as usize, length);
        starts.clear();
        starts.extend(array.starts[ranks].iter().map(|&start| start as usize));
        starts.sort_unstable();
        let (mut occurrences, mut in_succession, mut streak, mut end) = (0, 0, 0, None);
        for &start in &starts {
            if taken.take(start..start + length) {
                streak = if end == Some(start) { streak + 1 } else { 1 };
                end = Some(start + length);
                occurrences += 1;
                in_succession = in_succession.max(streak);
            }
        }
        let tokens = || tokens[range.clone()].to_vec();
        (occurrences > 1).then(|| Repeat { tokens: tokens(), occurrences, in_succession, anchored: *anchored })
    });
    repeats.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tokens(text: &str) -> Vec<u64> {
        text.bytes().map(u64::from).collect()
    }

    /// Repeats as (text, occurrences, most in succession).
    fn found(text: &str, shortest: usize) -> Vec<(String, usize, usize)> {
        let text_of = |repeat: &Repeat| repeat.tokens.iter().map(|&token| token as u8 as char).collect();
        let repeats = find_repeats(&tokens(text), shortest);
        repeats.iter().map(|repeat| (text_of(repeat), repeat.occurrences, repeat.in_succession)).collect()
    }

    fn repeat(text: &str, occurrences: usize, in_succession: usize) -> (String, usize, usize) {
        (text.to_owned(), occurrences, in_succession)
    }

    #[test]
    fn the_example_of_the_thesis() {
        assert_eq!(found("aabcbcbaa", 2), [repeat("aa", 2, 1), repeat("bc", 2, 2)]);
    }

    #[test]
    fn a_power_is_reported_as_its_root() {
        assert_eq!(found("ababab", 2), [repeat("ab", 3, 3)]);
        assert_eq!(found("abababa", 2), [repeat("ab", 3, 3)]);
        assert_eq!(found("abcabcabcabc", 2), [repeat("abc", 4, 4)]);
    }

    #[test]
    fn a_root_that_is_too_short_is_reported_as_its_smallest_power_that_is_not() {
        assert_eq!(found("abababababababababab", 5), [repeat("ababab", 3, 3)]);
        assert_eq!(found("aaaaaaaaaa", 4), [repeat("aaaa", 2, 2)]);
    }

    #[test]
    fn a_loop_is_reported_from_where_it_begins() {
        assert_eq!(found("xyzabcdabcdabcdabcdabuvw", 2), [repeat("abcd", 4, 4)]);
    }

    #[test]
    fn a_loop_that_the_stream_begins_in_is_reported_from_where_it_begins_again() {
        let repeats = find_repeats(&tokens("cdabcdabcdxabcdabcdaby"), 4);
        assert_eq!(repeats, [Repeat { tokens: tokens("abcd"), occurrences: 4, in_succession: 2, anchored: true }]);
        assert!(!find_repeats(&tokens("cdabcdabcdabcd"), 4)[0].anchored);
    }

    #[test]
    fn a_rotation_that_repeats_outside_the_loop_counts() {
        let repeats = found("abcdabcdabcd12cdab34cdab56", 3);
        assert_eq!(repeats, [repeat("abcd", 3, 3), repeat("cdab", 2, 1)]);
    }

    #[test]
    fn a_loop_with_a_loop_in_it_is_one_repeat() {
        assert_eq!(found("xabababcabababcabababc", 2), [repeat("abababc", 3, 3)]);
    }

    #[test]
    fn a_loop_that_runs_for_different_times_is_one_repeat() {
        let stream = format!("xy{}z{}w{}v", "abc".repeat(30), "abc".repeat(38), "abc".repeat(21));
        assert_eq!(found(&stream, 3), [repeat("abc", 89, 38)]);
        let cut_off = format!("xy{}z{}aw{}abv", "abc".repeat(30), "abc".repeat(38), "abc".repeat(21));
        assert_eq!(found(&cut_off, 3), [repeat("abc", 89, 38)]);
    }

    #[test]
    fn repeats_may_be_apart() {
        assert_eq!(found("abcde1abcde2abcde3", 2), [repeat("abcde", 3, 1)]);
    }

    #[test]
    fn nothing_repeats_in_short_or_diverse_streams() {
        for text in ["", "a", "ab", "abcdefgh"] {
            assert_eq!(found(text, 1), []);
        }
        assert_eq!(found("aa", 1), [repeat("a", 2, 2)]);
    }

    /// The most places where `string` occurs without overlap, in text where it isn't taken.
    fn disjoint(text: &[u64], string: &[u64]) -> usize {
        let (mut count, mut from) = (0, 0);
        while from + string.len() <= text.len() {
            let here = text[from..].starts_with(string);
            count += usize::from(here);
            from += if here { string.len() } else { 1 };
        }
        count
    }

    fn stream() -> impl Strategy<Value = Vec<u64>> {
        let random = (1..6_u64).prop_flat_map(|letters| prop::collection::vec(0..letters, 0..60));
        prop::collection::vec((random, 1..4_usize), 0..4)
            .prop_map(|parts| parts.iter().flat_map(|(part, power)| part.repeat(*power)).collect())
    }

    /// The length of the shortest string that `body` is a power of.
    fn root(body: &[u64]) -> usize {
        let period = least_period(body);
        if body.len().is_multiple_of(period) { period } else { body.len() }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        // Each run of the loop is cut off anywhere, and what comes between is like nothing else. What is left over at
        // the ends may repeat too.
        #[test]
        fn of_runs_of_one_loop_nothing_longer_is_found_than_the_loop(
            period in 1..8_u64, runs in prop::collection::vec(0..60_usize, 1..6), shortest in 1..6_usize,
        ) {
            let mut stream = Vec::new();
            for (number, length) in runs.iter().enumerate() {
                stream.push(1000 + number as u64);
                stream.extend((0..period).cycle().take(length + 4 * shortest.max(period as usize)));
            }
            let repeats = find_repeats(&stream, shortest);
            let length = period as usize * shortest.div_ceil(period as usize);
            prop_assert_eq!(repeats[0].tokens.len(), length);
            prop_assert!(repeats[1..].iter().all(|repeat| repeat.tokens.len() < length), "{repeats:?}");
        }

        #[test]
        fn what_is_reported_occurs_as_often_as_said(stream in stream(), shortest in 1..6_usize) {
            let repeats = find_repeats(&stream, shortest);
            let covered: usize = repeats.iter().map(|repeat| repeat.tokens.len() * repeat.occurrences).sum();
            prop_assert!(covered <= stream.len());
            for repeat in &repeats {
                prop_assert!(repeat.tokens.len() >= shortest);
                prop_assert!(repeat.occurrences >= 2);
                prop_assert!(repeat.occurrences <= disjoint(&stream, &repeat.tokens));
                let succession = repeat.tokens.repeat(repeat.in_succession);
                prop_assert!(disjoint(&stream, &succession) > 0);
            }
        }

        #[test]
        fn no_repeat_is_reported_twice_or_is_a_longer_power_than_needed(stream in stream(), shortest in 1..6_usize) {
            let repeats = find_repeats(&stream, shortest);
            for (index, repeat) in repeats.iter().enumerate() {
                let period = root(&repeat.tokens);
                prop_assert!(period == repeat.tokens.len() || repeat.tokens.len() - period < shortest);
                prop_assert!(repeats[..index].iter().all(|other| other.tokens != repeat.tokens));
            }
        }

        // Neighbours that share p tokens at a distance d < p give repeats of l >= d tokens with l > (p - d) / 2, thus
        // of a third of p.
        #[test]
        fn something_is_reported_if_a_string_three_times_as_long_repeats(stream in stream(), shortest in 1..6_usize) {
            let length = 3 * shortest;
            let repeats = |start: usize| disjoint(&stream[start + length..], &stream[start..start + length]) > 0;
            if stream.len() >= 2 * length && (0..=stream.len() - 2 * length).any(repeats) {
                prop_assert!(!find_repeats(&stream, shortest).is_empty());
            }
        }

        #[test]
        fn a_loop_with_distinct_tokens_is_one_repeat_from_its_first(
            period in 2..20_u64, iterations in 2..20_usize, more in 0..20_u64, before in 0..10_u64, after in 0..10_u64,
        ) {
            let mut stream: Vec<u64> = (100..100 + before).collect();
            let body: Vec<u64> = (0..period).collect();
            stream.extend(body.repeat(iterations));
            stream.extend((0..more % period).chain(200..200 + after));
            let anchored = before > 0;
            let expected = Repeat { tokens: body, occurrences: iterations, in_succession: iterations, anchored };
            prop_assert_eq!(find_repeats(&stream, 2), [expected]);
        }

        #[test]
        fn a_periodic_stream_is_covered_but_for_two_periods(
            body in prop::collection::vec(0..4_u64, 1..20), length in 0..200_usize, shortest in 1..8_usize,
        ) {
            let stream: Vec<u64> = body.iter().copied().cycle().take(length).collect();
            let repeats = find_repeats(&stream, shortest);
            let covered: usize = repeats.iter().map(|repeat| repeat.tokens.len() * repeat.occurrences).sum();
            let period = root(&body);
            prop_assert!(covered + 2 * (period * shortest.div_ceil(period)) >= length, "{repeats:?} in {stream:?}");
        }

        #[test]
        fn names_of_tokens_do_not_matter(stream in stream(), shortest in 1..6_usize) {
            let rename = |tokens: &[u64]| -> Vec<u64> { tokens.iter().map(|token| !(token * 77)).collect() };
            let renamed = find_repeats(&stream, shortest)
                .into_iter()
                .map(|repeat| Repeat { tokens: rename(&repeat.tokens), ..repeat });
            prop_assert_eq!(find_repeats(&rename(&stream), shortest), renamed.collect::<Vec<_>>());
        }
    }

    /// `cargo test --release -p maniple-analysis --lib time_of_mining -- --ignored --nocapture`
    #[test]
    #[ignore = "prints times"]
    fn time_of_mining() {
        type Token = fn(u64) -> u64;
        let random: Token = |index| {
            let mixed = (index + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            (mixed >> 33) % 20
        };
        let kinds: [(&str, Token); 4] = [
            ("loop of 3", |index| index % 3),
            ("loop of 1,000", |index| index % 1000),
            ("all alike", |_| 0),
            ("random, of 20 kinds", random),
        ];
        println!("{:<20}{:>12}{:>12}{:>12}", "stream", "tokens", "us", "ns a token");
        for (kind, token) in kinds {
            for length in [32, 64, 256, 1024, 5_000, 20_000, 100_000] {
                let stream: Vec<u64> = (0..length as u64).map(token).collect();
                let rounds = 200_000 / length;
                let start = std::time::Instant::now();
                for _ in 0..rounds {
                    std::hint::black_box(find_repeats(&stream, 8));
                }
                let nanoseconds = start.elapsed().as_nanos() as f64 / rounds as f64;
                println!("{kind:<20}{length:>12}{:>12.1}{:>12.1}", nanoseconds / 1e3, nanoseconds / length as f64);
            }
        }
    }
}
