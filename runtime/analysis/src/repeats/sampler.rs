//! Which stretches of a stream are looked through for repeats, and when.
//!
//! Yadav 2026, section 5.3.4: of a large buffer of recent tokens, small parts are analysed often and large ones seldom,
//! so that short loops are found soon and long ones at all. At the ith unit of tokens that is the latest 2^v units, v
//! being how often 2 divides i.

/// Tells when to analyse how many of the latest tokens.
#[derive(Debug)]
pub(super) struct Sampler {
    buffer: usize,
    unit: usize,
    /// Tokens since the schedule began.
    elapsed: usize,
}

impl Sampler {
    /// Has `buffer` tokens analysed at most: a power of two of units, after which the schedule begins anew.
    ///
    /// # Panics
    /// If it is not.
    pub(super) fn new(unit: usize, buffer: usize) -> Self {
        let units = buffer.checked_div(unit).unwrap_or(0);
        let fits = units.is_power_of_two() && units * unit == buffer;
        assert!(fits, "a buffer of {buffer} tokens is to be a power of two of units of {unit}");
        Self { buffer, unit, elapsed: 0 }
    }

    /// The stream goes on by a token. Returns how many of the latest are to be analysed now.
    pub(super) fn step(&mut self) -> Option<usize> {
        self.elapsed += 1;
        if !self.elapsed.is_multiple_of(self.unit) {
            return None;
        }
        let units = self.elapsed / self.unit;
        let size = self.unit << units.trailing_zeros();
        if size == self.buffer {
            self.elapsed = 0;
        }
        Some(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (tokens seen, tokens to analyse) for each analysis of a stream of `length`.
    fn analyses(unit: usize, buffer: usize, length: usize) -> Vec<(usize, usize)> {
        let mut sampler = Sampler::new(unit, buffer);
        (1..=length).filter_map(|seen| Some((seen, sampler.step()?))).collect()
    }

    #[test]
    fn sizes_follow_the_ruler() {
        let sizes =
            |unit, buffer, length| -> Vec<usize> { analyses(unit, buffer, length).iter().map(|a| a.1).collect() };
        assert_eq!(sizes(1, 8, 8), [1, 2, 1, 4, 1, 2, 1, 8]);
        assert_eq!(sizes(250, 1000, 1000), [250, 500, 250, 1000]);
    }

    #[test]
    fn after_the_whole_buffer_the_schedule_begins_anew() {
        let all = analyses(2, 8, 16);
        assert_eq!(all, [(2, 2), (4, 4), (6, 2), (8, 8), (10, 2), (12, 4), (14, 2), (16, 8)]);
    }

    #[test]
    fn a_trace_across_the_middle_shows_only_in_the_whole_buffer() {
        let (first, second) = (2..=4, 5..=7);
        let shows = |&(seen, size): &(usize, usize)| seen - size < *first.start() && *second.end() <= seen;
        let showing: Vec<_> = analyses(1, 8, 8).into_iter().filter(shows).collect();
        assert_eq!(showing, [(8, 8)]);
    }

    #[test]
    fn two_iterations_of_a_loop_are_in_one_slice_before_the_sixth_has_ended() {
        for (begin, period) in (0..64).flat_map(|begin| (1..=32).map(move |period| (begin, period))) {
            let shows = |&(seen, size): &(usize, usize)| size.min(seen.saturating_sub(begin)) >= 2 * period;
            let first = analyses(1, 64, 512).into_iter().find(shows);
            assert!(first.is_some_and(|(seen, _)| seen < begin + 6 * period), "{begin} {period} {first:?}");
        }
    }

    #[test]
    fn each_scale_adds_half_of_the_buffer_to_what_is_analysed() {
        for scales in 0..12 {
            let buffer = 16 << scales;
            let analysed: usize = analyses(16, buffer, buffer).iter().map(|analysis| analysis.1).sum();
            assert_eq!(analysed, buffer * (scales + 2) / 2);
        }
    }
}
