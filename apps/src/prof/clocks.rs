//! Clocks of several processes made to agree: no message comes before it was sent.
//!
//! Times of a profile begin at a time of one clock of its machine, and go on by another one. So the times of several
//! machines, or, after long, also those of one machine, may be apart. Only the order of sending and receiving is known
//! for sure: messages one way tell how early the clock of a process may be, and messages the other way how late. The
//! correction that is added to its times lies in between, as a straight line (Duda et al., "Estimating global time in
//! distributed systems", ICDCS 1987).

use rustc_hash::FxHashMap;

/// A message by the clocks of its sender and its receiver, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Exchanged {
    /// The process that sent it, and when.
    pub sent: (usize, f64),
    /// The process that received it, and when.
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

/// The correction of the times of a process, in nanoseconds: it is added to them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Correction {
    /// To time 0.
    pub offset: f64,
    /// The more, the later.
    pub rate: f64,
}

impl Correction {
    /// The correction of one time.
    #[must_use]
    pub fn at(self, time: f64) -> f64 {
        self.offset + self.rate * time
    }
}

/// By how much clocks of computers run fast or slow, at most.
const LARGEST_RATE: f64 = 1e-3;

/// Corrections for so many processes, as small as can be: the first process has none, nor has a process that exchanged
/// nothing.
#[must_use]
pub fn corrections(processes: usize, messages: &[Exchanged]) -> Vec<Correction> {
    let mut between: FxHashMap<(usize, usize), Vec<Exchanged>> = FxHashMap::default();
    for &message in messages {
        let (a, b) = (message.sent.0, message.received.0);
        between.entry((a.min(b), a.max(b))).or_default().push(message);
    }
    let with = |process: usize, others: &[usize]| {
        let pairs = others.iter().filter_map(|&other| between.get(&(process.min(other), process.max(other))));
        pairs.map(Vec::as_slice).collect::<Vec<_>>()
    };
    let mut corrections = vec![Correction::default(); processes];
    let mut open: Vec<usize> = (1..processes).collect();
    let mut fixed = vec![0];
    // Next comes the process that has exchanged most messages with those that are done.
    while let Some(place) = (0..open.len())
        .max_by_key(|&place| with(open[place], &fixed).iter().map(|messages| messages.len()).sum::<usize>())
    {
        let process = open.swap_remove(place);
        let mut bounds = Bounds::default();
        with(process, &fixed).concat().iter().for_each(|message| bounds.add(process, message, &corrections));
        corrections[process] = bounds.least();
        fixed.push(process);
    }
    // A process that was corrected early was corrected without its messages with those that come later.
    relax(&mut corrections, messages);
    corrections
}

/// So often all messages are looked at again, as long as some come too early.
const ROUNDS: usize = 300;

/// The slack, in nanoseconds: it is added to the time by which a message comes too early, so that the relaxation ends.
const SLACK: f64 = 100.0;

/// Changes the corrections of both ends of each message that comes too early by as little as puts that right, again and
/// again (the relaxation method for linear inequalities: Agmon 1954, Motzkin and Schoenberg 1954). It ends if there are
/// corrections with which none does.
fn relax(corrections: &mut [Correction], messages: &[Exchanged]) {
    let last = messages.iter().map(|message| message.sent.1.max(message.received.1)).fold(1.0, f64::max);
    for _ in 0..ROUNDS {
        let mut is_done = true;
        for message in messages {
            let took = message.took(corrections);
            if took >= 0.0 {
                continue;
            }
            is_done = false;
            // The first process has no correction. Rates count for what they come to in the end, as offsets do.
            let weight = |(process, time): (usize, f64)| if process == 0 { 0.0 } else { 1.0 + (time / last).powi(2) };
            let step = (SLACK - took) / (weight(message.received) + weight(message.sent));
            for ((process, time), by) in [(message.received, step), (message.sent, -step)] {
                if process > 0 {
                    let Correction { offset, rate } = &mut corrections[process];
                    *offset += by;
                    *rate = (*rate + by * time / (last * last)).clamp(-LARGEST_RATE, LARGEST_RATE);
                }
            }
        }
        if is_done {
            break;
        }
    }
}

/// The bounds of the correction of a clock: times of that clock, and the least or the most that is added to them.
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

    /// Returns the least and the largest offset for a rate. If the first is larger, there is none.
    fn offsets(&self, rate: f64) -> (f64, f64) {
        let offset = |&(time, bound): &(f64, f64)| bound - rate * time;
        let least = self.least.iter().map(offset).fold(f64::NEG_INFINITY, f64::max);
        (least, self.most.iter().map(offset).fold(f64::INFINITY, f64::min))
    }

    /// None, if that is possible; else an offset alone, if that is.
    fn least(&self) -> Correction {
        let (least, most) = self.offsets(0.0);
        if least <= 0.0 && 0.0 <= most {
            Correction::default()
        } else if least <= most {
            self.with_rate(0.0)
        } else {
            // There are messages both ways.
            self.with_rate(self.best_rate())
        }
    }

    /// The offset in the middle of what is possible, or at its end that is near.
    fn with_rate(&self, rate: f64) -> Correction {
        let offset = match self.offsets(rate) {
            (least, most) if least.is_finite() && most.is_finite() => f64::midpoint(least, most),
            (least, _) if least.is_finite() => least.max(0.0),
            (_, most) => most.min(0.0),
        };
        Correction { offset, rate }
    }

    /// The rate that leaves most room for the offset. The room is a concave function of the rate, so its maximum is
    /// found by thirds.
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
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// Messages, at any times that steady clocks show, never seem to have come before they were sent.
        #[test]
        fn steady_clocks_come_to_agree(
            clocks in prop::collection::vec((-1e6..1e6f64, -3e-5..3e-5f64), 1..4),
            sent in prop::collection::vec((0..4usize, 1..4usize, 0..10_000_000_000u64, 1_000..100_000u64), 200..400),
        ) {
            let processes = clocks.len() + 1;
            let shown = |process: usize, time: f64| match process.checked_sub(1) {
                None => time,
                Some(clock) => time * (1.0 + clocks[clock].1) + clocks[clock].0,
            };
            let messages = sent.iter().map(|&(from, step, time, took)| {
                let (from, time, arrived) = (from % processes, time as f64, (time + took) as f64);
                let to = (from + 1 + step % (processes - 1)) % processes;
                message((from, shown(from, time)), (to, shown(to, arrived)))
            });
            let messages: Vec<Exchanged> = messages.collect();
            let corrections = corrections(processes, &messages);
            for message in &messages {
                prop_assert!(message.took(&corrections) > -10.0, "{message:?} {corrections:?}");
            }
        }
    }
}
