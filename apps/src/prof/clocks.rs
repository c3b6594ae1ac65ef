//! Clocks of several processes made to agree: no message comes before it was sent.
//!
//! Times of a profile begin where another clock of its machine said so, and go on by one of its own. So those of several machines, or, after long, also those of one,
//! may be apart. What is known for sure is the order of sending and receiving: messages one way tell how early the clock of a process may be, and those
//! the other way how late. In between, as a straight line (Duda et al., "Estimating global time in distributed systems", ICDCS 1987), lies what is added to its times.

use rustc_hash::FxHashMap;

/// A message by the clocks of those who sent and received it, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Exchanged {
    /// Who sent it, and when.
    pub sent: (usize, f64),
    /// Who received it, and when.
    pub received: (usize, f64),
}

impl Exchanged {
    /// How long it took by clocks that are corrected like this: less than nothing, if they are wrong.
    #[must_use]
    pub fn took(&self, corrections: &[Correction]) -> f64 {
        let at = |(process, time): (usize, f64)| time + corrections[process].at(time);
        at(self.received) - at(self.sent)
    }
}

/// What is to be added to the times of a process, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Correction {
    /// To time 0.
    pub offset: f64,
    /// The more, the later.
    pub rate: f64,
}

impl Correction {
    /// What is to be added to a time.
    #[must_use]
    pub fn at(self, time: f64) -> f64 {
        self.offset + self.rate * time
    }
}

/// By how much clocks of computers run fast or slow, at most.
const LARGEST_RATE: f64 = 1e-3;

/// Corrections for so many processes, as small as can be: the first has none, nor has whoever exchanged nothing.
#[must_use]
pub fn corrections(processes: usize, messages: &[Exchanged]) -> Vec<Correction> {
    let mut between: FxHashMap<(usize, usize), Vec<Exchanged>> = FxHashMap::default();
    for &message in messages {
        let (a, b) = (message.sent.0, message.received.0);
        between.entry((a.min(b), a.max(b))).or_default().push(message);
    }
    let mut corrections = vec![Correction::default(); processes];
    let mut open: Vec<usize> = (1..processes).collect();
    let mut fixed = vec![0];
    let with = |process: usize, fixed: &[usize]| {
        let pairs = fixed.iter().filter_map(|&other| between.get(&(process.min(other), process.max(other))));
        pairs.map(Vec::as_slice).collect::<Vec<_>>()
    };
    // Next comes who has exchanged most with those that are done.
    while let Some(place) = (0..open.len())
        .max_by_key(|&place| with(open[place], &fixed).iter().map(|messages| messages.len()).sum::<usize>())
    {
        let process = open.swap_remove(place);
        let mut bounds = Bounds::default();
        for message in with(process, &fixed).concat() {
            bounds.add(process, &message, &corrections);
        }
        corrections[process] = bounds.correction();
        fixed.push(process);
    }
    corrections
}

/// What the correction of a clock must lie between: times of that clock, and what is added to them at least or at most.
#[derive(Default)]
struct Bounds {
    least: Vec<(f64, f64)>,
    most: Vec<(f64, f64)>,
}

impl Bounds {
    fn add(&mut self, process: usize, message: &Exchanged, corrections: &[Correction]) {
        let corrected = |(other, time): (usize, f64)| time + corrections[other].at(time);
        if message.received.0 == process {
            self.least.push((message.received.1, corrected(message.sent) - message.received.1));
        } else {
            self.most.push((message.sent.1, corrected(message.received) - message.sent.1));
        }
    }

    /// What the offset lies between, for a rate. If the first is larger, there is none.
    fn offsets(&self, rate: f64) -> (f64, f64) {
        let offset = |&(time, bound): &(f64, f64)| bound - rate * time;
        let least = self.least.iter().map(offset).fold(f64::NEG_INFINITY, f64::max);
        (least, self.most.iter().map(offset).fold(f64::INFINITY, f64::min))
    }

    fn correction(&self) -> Correction {
        let (least, most) = self.offsets(0.0);
        if least <= 0.0 && 0.0 <= most {
            return Correction::default();
        }
        if least.is_infinite() || most.is_infinite() {
            return Correction { offset: if least.is_finite() { least } else { most }, rate: 0.0 };
        }
        let rate = if least <= most { 0.0 } else { self.best_rate() };
        let (least, most) = self.offsets(rate);
        Correction { offset: f64::midpoint(least, most), rate }
    }

    /// The rate that leaves most room for the offset. The room is a concave function of the rate, so its maximum is found by thirds.
    fn best_rate(&self) -> f64 {
        let room = |rate: f64| {
            let (least, most) = self.offsets(rate);
            most - least
        };
        let (mut low, mut high) = (-LARGEST_RATE, LARGEST_RATE);
        // To a billionth of a billionth.
        for _ in 0..80 {
            let third = (high - low) / 3.0;
            if room(low + third) < room(high - third) { low += third } else { high -= third }
        }
        f64::midpoint(low, high)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(sent: (usize, f64), received: (usize, f64)) -> Exchanged {
        Exchanged { sent, received }
    }

    #[test]
    fn clocks_that_agree_are_left_alone() {
        let messages = [message((0, 10.0), (1, 11.0)), message((1, 20.0), (0, 25.0))];
        assert_eq!(corrections(3, &messages), [Correction::default(); 3]);
    }

    #[test]
    fn a_clock_is_put_in_the_middle_of_what_messages_both_ways_allow() {
        // By its own clock, process 1 received 100 too early: what took 10 each way.
        let messages = [message((0, 1000.0), (1, 910.0)), message((1, 1900.0), (0, 2010.0))];
        let [none, put_forward] = corrections(2, &messages)[..] else { panic!("two processes") };
        assert_eq!((none, put_forward), (Correction::default(), Correction { offset: 100.0, rate: 0.0 }));
    }

    #[test]
    fn messages_one_way_move_a_clock_no_further_than_they_must() {
        let late = corrections(2, &[message((0, 1000.0), (1, 910.0))]);
        let early = corrections(2, &[message((1, 1000.0), (0, 910.0))]);
        assert_eq!([late[1].offset, early[1].offset], [90.0, -90.0]);
    }

    #[test]
    fn a_process_that_knows_the_first_only_through_others_is_corrected_through_them() {
        let through = [message((0, 0.0), (2, -50.0)), message((2, 0.0), (1, -50.0))];
        assert_eq!(corrections(3, &through).iter().map(|found| found.offset).collect::<Vec<_>>(), [0.0, 100.0, 50.0]);
    }

    proptest! {
        /// Whatever two steady clocks show, no message seems to have come before it was sent.
        #[test]
        fn steady_clocks_come_to_agree(
            offset in -1e9..1e9f64,
            rate in -1e-4..1e-4f64,
            sent in prop::collection::vec((0..2usize, 0..10_000_000_000u64, 1_000..100_000u64), 1..60),
        ) {
            let shown = |process: usize, time: f64| match process {
                0 => time,
                _ => time * (1.0 + rate) + offset,
            };
            let messages: Vec<Exchanged> = sent.iter().map(|&(from, time, took)| {
                let (to, time, arrived) = (1 - from, time as f64, (time + took) as f64);
                message((from, shown(from, time)), (to, shown(to, arrived)))
            }).collect();
            let corrections = corrections(2, &messages);
            for message in &messages {
                prop_assert!(message.took(&corrections) > -1.0, "{message:?} {corrections:?}");
            }
        }
    }
}
