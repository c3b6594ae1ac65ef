//! How often a stream is looked through for repeats, given how much of it is replayed.

use super::sampler::Sampler;

/// The pace of mining. While replays cover a stream there is nothing to be found, and mining rests, twice as long each
/// time; a stretch that is not covered ends the rest. Where that is not so for a whole buffer, small parts are mined
/// less often: whatever may begin to repeat now is found late by a small part of the time that the program has run.
#[derive(Debug)]
pub(super) struct Pace {
    buffer: usize,
    finest: usize,
    coarsest: usize,
    unit: usize,
    schedule: Sampler,
    /// Rests since the last disturbance, and the tokens left of this one.
    rests: u32,
    resting: u64,
    /// Since the first rest, grows with tokens outside of replays, and shrinks with those inside.
    unease: u64,
}

/// One token in so many may lie outside of replays without disturbing rests; in a whole buffer, to begin them.
const SELDOM: u64 = 8;

/// So many in a row disturb them.
const DISTURBANCE: u64 = 16;

impl Pace {
    /// The unit is between `finest` and `coarsest`.
    ///
    /// # Panics
    /// If the buffer is not a power of two of both.
    pub(super) fn new(finest: usize, coarsest: usize, buffer: usize) -> Self {
        let [schedule, _] = [finest, coarsest].map(|unit| Sampler::new(unit, buffer));
        Self { buffer, finest, coarsest, unit: finest, schedule, rests: 0, resting: 0, unease: 0 }
    }

    /// Whether nothing is being mined.
    pub(super) fn is_at_rest(&self) -> bool {
        self.resting > 0
    }

    /// The stream goes on by a token, within a replay or not. Returns how many of the latest are to be mined now.
    pub(super) fn step(&mut self, covered: bool) -> Option<usize> {
        if self.rests > 0 {
            self.unease = if covered { self.unease.saturating_sub(1) } else { self.unease + SELDOM };
            if self.unease >= SELDOM * DISTURBANCE {
                (self.rests, self.resting) = (0, 0);
                self.restart(self.finest);
            }
        }
        if self.resting > 0 {
            self.resting -= 1;
            if self.resting == 0 {
                self.restart(self.coarsest);
            }
            return None;
        }
        self.schedule.step()
    }

    /// The latest `count` tokens were in a replay that was given up.
    pub(super) fn uncover(&mut self, count: usize) {
        self.unease += count as u64 * SELDOM;
    }

    /// The whole buffer has had its turn; so many tokens in it lay outside of replays.
    pub(super) fn buffer_passed(&mut self, uncovered: usize) {
        self.unease = 0;
        if uncovered as u64 * SELDOM <= self.buffer as u64 {
            self.resting = (self.buffer as u64) << self.rests.min(32);
            self.rests += 1;
        } else {
            self.rests = 0;
            self.restart((self.unit * 4).min(self.coarsest));
        }
    }

    fn restart(&mut self, unit: usize) {
        self.unit = unit;
        self.schedule = Sampler::new(unit, self.buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUFFER: usize = 1024;

    /// The next slices, of a stream that is covered where `covered` says so: after how many tokens each, and how large.
    fn slices(pace: &mut Pace, mut covered: impl FnMut(usize) -> bool) -> impl Iterator<Item = (usize, usize)> {
        (1..).filter_map(move |step| Some((step, pace.step(covered(step))?)))
    }

    /// A pace whose whole buffer was covered.
    fn at_rest() -> Pace {
        let mut pace = Pace::new(16, 256, BUFFER);
        assert!(slices(&mut pace, |_| true).any(|(step, size)| step == BUFFER && size == BUFFER));
        pace.buffer_passed(0);
        pace
    }

    #[test]
    fn rests_double_while_replays_cover_the_stream() {
        let mut pace = at_rest();
        for rest in [1, 2, 4, 8].map(|buffers| buffers * BUFFER) {
            let next: Vec<_> = slices(&mut pace, |_| true).take(4).collect();
            assert_eq!(next, [(rest + 256, 256), (rest + 512, 512), (rest + 768, 256), (rest + BUFFER, BUFFER)]);
            pace.buffer_passed(0);
        }
    }

    #[test]
    fn what_is_not_covered_ends_the_rest() {
        assert_eq!(slices(&mut at_rest(), |_| false).next(), Some((31, 16)));
        let (step, size) = slices(&mut at_rest(), |step| step % 2 == 0).next().unwrap();
        assert!(step < 64 && size == 16, "{step} {size}");
        let mut pace = at_rest();
        pace.uncover(15);
        assert_eq!(slices(&mut pace, |_| false).next(), Some((16, 16)));
    }

    #[test]
    fn what_is_not_covered_makes_slices_small_again_between_rests() {
        let mut pace = at_rest();
        assert_eq!(slices(&mut pace, |_| true).next(), Some((BUFFER + 256, 256)));
        assert_eq!(slices(&mut pace, |_| false).next(), Some((31, 16)));
    }

    #[test]
    fn a_token_now_and_then_does_not() {
        assert_eq!(slices(&mut at_rest(), |step| step % 10 > 0).next(), Some((BUFFER + 256, 256)));
    }

    #[test]
    fn the_unit_grows_while_much_is_not_covered() {
        let mut pace = Pace::new(16, 256, BUFFER);
        for unit in [16, 64, 256, 256] {
            assert_eq!(slices(&mut pace, |_| true).next(), Some((unit, unit)));
            assert!(slices(&mut pace, |_| true).any(|(_, size)| size == BUFFER));
            pace.buffer_passed(BUFFER / 4);
        }
    }
}
