//! Parts of dimensions, and shifts: `B(i(2,8))`, `B(i(0,8,2))`, `B(i+1)`.

use super::variable::IndexVariable;

/// Coordinates of a dimension that follow from those of an index variable: `start + step * variable`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Window {
    /// The variable.
    pub of: IndexVariable,
    /// The coordinate where the variable is 0. Of a shift it may be negative.
    pub start: i64,
    /// How far coordinates of neighbours are apart: at least 1.
    pub step: i64,
    /// Where a part of the dimension ends; none for a shift, which goes beyond the dimension at one end. There, elements are what the tensor is filled with.
    pub end: Option<i64>,
}

impl Window {
    /// How many values the variable has; none for a shift, which does not say.
    pub fn extent(&self) -> Option<i64> {
        // Rounded up: the last step may be cut.
        self.end.map(|end| (end.saturating_sub(self.start).max(0) as u64).div_ceil(self.step.max(1) as u64) as i64)
    }

    /// The coordinate for a value of the variable.
    pub fn coordinate(&self, value: i64) -> i64 {
        self.start + self.step * value
    }

    /// The value of the variable with this coordinate, if there is one.
    pub fn value(&self, coordinate: i64) -> Option<i64> {
        let distance = coordinate - self.start;
        (distance >= 0 && distance % self.step == 0 || self.end.is_none())
            .then(|| distance / self.step)
            .filter(|value| *value >= 0 && self.extent().is_none_or(|extent| *value < extent))
    }

    /// As it is written: `i(2,8)`, `i+1`.
    pub(super) fn name(&self) -> String {
        let Self { of, start, step, end } = self;
        match end {
            None => format!("{of}{start:+}"),
            Some(end) if *step == 1 => format!("{of}({start},{end})"),
            Some(end) => format!("{of}({start},{end},{step})"),
        }
    }
}
