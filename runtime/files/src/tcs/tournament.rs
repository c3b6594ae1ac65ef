//! Several sorted sequences as one: a tournament tree (Knuth, *The Art of Computer Programming*, volume 3, section
//! 5.4.1).

/// The sequences that play, by the key of the next element of each: the least one wins, and of equal ones that of the
/// first sequence.
#[derive(Clone, Debug)]
pub struct Tournament {
    /// How many numbers a key has.
    rank: usize,
    /// The key of each sequence, one after the other.
    keys: Vec<u64>,
    /// Whether a sequence still has an element.
    is_left: Vec<bool>,
    /// The winner of each game: game 1 is the last one, games `2g` and `2g+1` come before game `g`, and sequences take
    /// part where the tree ends.
    winners: Vec<usize>,
}

impl Tournament {
    /// Sequences with keys of `rank` numbers, all without an element so far.
    #[must_use]
    pub fn new(sequences: usize, rank: usize) -> Self {
        let leaves = sequences.next_power_of_two();
        let mut tournament = Self {
            rank,
            keys: vec![0; sequences * rank],
            is_left: vec![false; sequences],
            winners: vec![0; 2 * leaves],
        };
        (0..leaves).for_each(|leaf| tournament.winners[leaves + leaf] = leaf.min(sequences.saturating_sub(1)));
        (1..leaves).rev().for_each(|game| tournament.play(game));
        tournament
    }

    /// The sequence with the least key; none if no sequence has an element.
    #[must_use]
    pub fn winner(&self) -> Option<usize> {
        let winner = *self.winners.get(1)?;
        self.is_left.get(winner).copied().unwrap_or(false).then_some(winner)
    }

    /// The key of the next element of a sequence.
    #[must_use]
    pub fn key(&self, sequence: usize) -> &[u64] {
        &self.keys[sequence * self.rank..(sequence + 1) * self.rank]
    }

    /// Says what the next element of a sequence is now; none if it has no more. Plays the games of this sequence again.
    pub fn set(&mut self, sequence: usize, key: Option<&[u64]>) {
        self.is_left[sequence] = key.is_some();
        if let Some(key) = key {
            self.keys[sequence * self.rank..(sequence + 1) * self.rank].copy_from_slice(key);
        }
        let mut game = (self.winners.len() / 2 + sequence) / 2;
        while game > 0 {
            self.play(game);
            game /= 2;
        }
    }

    fn play(&mut self, game: usize) {
        let (one, other) = (self.winners[2 * game], self.winners[2 * game + 1]);
        let is_other = match (self.is_left[one], self.is_left[other]) {
            (true, true) => self.key(other) < self.key(one),
            (is_one_left, is_other_left) => is_other_left && !is_one_left,
        };
        self.winners[game] = if is_other { other } else { one };
    }
}
