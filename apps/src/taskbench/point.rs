//! The values that every task reads and writes, and the check that finds wrong ones.

use std::ops::Deref;

use maniple::prelude::*;

use super::graph::{Interval, STAMP_BYTES};

/// Which task wrote a value. A task's output is its own stamp, again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Zeroable)]
#[bytemuck(crate = "maniple::bytemuck")]
pub struct Stamp {
    /// The task's step.
    pub step: i64,
    /// The task's point.
    pub point: i64,
}

const _: () = assert!(size_of::<Stamp>() == STAMP_BYTES as usize);

/// How many stamps an output of so many bytes is. What is left over is filled up.
#[must_use]
pub fn stamps(output_bytes: i64) -> i64 {
    (output_bytes + STAMP_BYTES - 1) / STAMP_BYTES
}

/// A task did not find what it should have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// A value that another task wrote.
    #[error(
        "task graph {graph}, step {step}, point {point}: input {input} should come from step {0} of point {1}, but value {position} of it comes from \
         step {2} of point {3}",
        .expected.step, .expected.point, .found.step, .found.point
    )]
    Input {
        /// The graph's number, from 1 on.
        graph: i64,
        /// The task's step.
        step: i64,
        /// The task's point.
        point: i64,
        /// Which of the task's inputs, from 0 on.
        input: usize,
        /// Which value of the input, from 0 on.
        position: usize,
        /// The stamp of the task that should have written the value.
        expected: Stamp,
        /// The stamp that was found.
        found: Stamp,
    },
    /// A scratch that was overwritten.
    #[error(
        "task graph {graph}, step {step}, point {point}: the scratch does not begin with the number that was put there"
    )]
    Scratch {
        /// The graph's number, from 1 on.
        graph: i64,
        /// The task's step.
        step: i64,
        /// The task's point.
        point: i64,
    },
}

/// One task of one graph, among the others.
#[derive(Clone, Copy, Debug)]
pub struct TaskPlace {
    /// The graph's index, from 0 on.
    pub graph: i64,
    /// The step.
    pub step: i64,
    /// The point.
    pub point: i64,
}

impl TaskPlace {
    /// Checks all values of all inputs: those points among `sources` that the step before has, which is `window`.
    /// `read` gives the values of some points, `stamps` of each.
    ///
    /// # Errors
    /// [`Wrong::Input`] for the first value that is wrong.
    #[inline]
    pub fn check_inputs<V: Deref<Target = [Stamp]>>(
        self,
        sources: &[Interval],
        window: Interval,
        stamps: usize,
        read: impl Fn(Interval) -> V,
    ) -> Result<(), Wrong> {
        let mut input = 0;
        for interval in sources.iter().map(|interval| interval.intersection(window)).filter(|points| !points.is_empty())
        {
            let values = read(interval);
            let mut expected = Stamp { step: self.step - 1, point: interval.first };
            for output in values.chunks_exact(stamps) {
                if let Some(position) = output.iter().position(|&found| found != expected) {
                    return Err(self.wrong(input, position, expected, output[position]));
                }
                expected.point += 1;
                input += 1;
            }
        }
        Ok(())
    }

    #[cold]
    fn wrong(self, input: usize, position: usize, expected: Stamp, found: Stamp) -> Wrong {
        let Self { graph, step, point } = self;
        Wrong::Input { graph: graph + 1, step, point, input, position, expected, found }
    }

    /// The stamp that the task writes.
    #[inline]
    #[must_use]
    pub fn stamp(self) -> Stamp {
        Stamp { step: self.step, point: self.point }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: TaskPlace = TaskPlace { graph: 1, step: 5, point: 2 };
    const SOURCES: [Interval; 2] = [Interval { first: 1, last: 3 }, Interval { first: 6, last: 6 }];
    const ALL: Interval = Interval { first: 0, last: 7 };

    /// The outputs of step 4, two stamps for each of eight points.
    fn outputs() -> Vec<Stamp> {
        (0..16).map(|index| Stamp { step: 4, point: index / 2 }).collect()
    }

    fn check(outputs: &[Stamp], window: Interval) -> Result<(), Wrong> {
        let read = |points: Interval| &outputs[2 * points.first as usize..2 * (points.last as usize + 1)];
        TASK.check_inputs(&SOURCES, window, 2, read)
    }

    #[test]
    fn inputs_of_the_step_before_are_right() {
        assert_eq!(check(&outputs(), ALL), Ok(()));
    }

    #[test]
    fn every_value_of_every_input_is_checked() {
        let inputs = [(1, 0), (2, 1), (3, 2), (6, 3)];
        for (source, input) in inputs {
            for position in 0..2 {
                for found in [Stamp { step: 3, point: source }, Stamp { step: 4, point: source + 1 }] {
                    let mut outputs = outputs();
                    outputs[2 * source as usize + position] = found;
                    let expected = Stamp { step: 4, point: source };
                    let wrong = Wrong::Input { graph: 2, step: 5, point: 2, input, position, expected, found };
                    assert_eq!(check(&outputs, ALL), Err(wrong));
                }
            }
        }
    }

    #[test]
    fn points_that_are_no_inputs_are_not_looked_at() {
        let mut outputs = outputs();
        for other in [0, 4, 5, 7] {
            outputs[2 * other].step = 9;
        }
        assert_eq!(check(&outputs, ALL), Ok(()));
        outputs[2].step = 9;
        outputs[12].step = 9;
        assert_eq!(check(&outputs, Interval { first: 2, last: 5 }), Ok(()), "the step before has no points 1 and 6");
        assert_eq!(check(&[], Interval::EMPTY), Ok(()), "the first step has no inputs");
    }

    #[test]
    fn a_wrong_input_is_described() {
        let mut outputs = outputs();
        outputs[13] = Stamp { step: 3, point: 0 };
        let message = check(&outputs, ALL).expect_err("it is wrong").to_string();
        assert_eq!(
            message,
            "task graph 2, step 5, point 2: input 3 should come from step 4 of point 6, but value 1 of it comes from step 3 of point 0"
        );
    }

    #[test]
    fn outputs_are_filled_up_to_whole_stamps() {
        assert_eq!([16, 17, 32, 33].map(stamps), [1, 2, 2, 3]);
    }
}
