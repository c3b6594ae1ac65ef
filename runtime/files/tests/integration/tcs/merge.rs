//! Several sorted sequences as one.

use maniple_files::tcs::Tournament;
use proptest::prelude::*;

/// Plays all sequences against each other, and gives the sequence and the key of each winner.
fn merged(tournament: &mut Tournament, sequences: &[Vec<[u64; 2]>]) -> Vec<(usize, [u64; 2])> {
    let mut next = vec![0; sequences.len()];
    for (sequence, keys) in sequences.iter().enumerate() {
        tournament.set(sequence, keys.first().map(|key| &key[..]));
    }
    let mut found = Vec::new();
    while let Some(winner) = tournament.winner() {
        found.push((winner, tournament.key(winner).try_into().unwrap()));
        next[winner] += 1;
        tournament.set(winner, sequences[winner].get(next[winner]).map(|key| &key[..]));
    }
    found
}

#[test]
fn a_tournament_gives_all_elements_sorted_and_equal_ones_by_their_sequences() {
    let keys = proptest::collection::vec((0..5_u64, 0..3_u64).prop_map(|(one, other)| [one, other]), 0..6);
    proptest!(|(mut sequences in proptest::collection::vec(keys, 0..9))| {
        sequences.iter_mut().for_each(|keys| keys.sort_unstable());
        let mut expected: Vec<(usize, [u64; 2])> =
            sequences.iter().enumerate().flat_map(|(sequence, keys)| keys.iter().map(move |key| (sequence, *key))).collect();
        expected.sort_by_key(|(sequence, key)| (*key, *sequence));
        let mut tournament = Tournament::new(sequences.len(), 2);
        prop_assert_eq!(tournament.winner(), None);
        prop_assert_eq!(&merged(&mut tournament, &sequences), &expected);
        // Once more from the start.
        prop_assert_eq!(&merged(&mut tournament, &sequences), &expected);
    });
}
