//! Privileges of tasks on fields, and the coherence of a use with other uses.

use std::fmt;

use crate::OperatorId;

/// The privilege of a task on the fields of a requirement (Bauer 2014, section 4.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Privilege {
    /// Look at values.
    Read,
    /// Look at values and change them.
    ReadWrite,
    /// Write every value without looking at the old ones: nothing is moved to where the task runs.
    Discard,
    /// Fold contributions into values with one operator, without looking at them.
    Reduce(OperatorId),
}

impl Privilege {
    /// Whether two uses of the same data must happen in program order: all do, but two reads, or two reductions with
    /// one operator.
    #[must_use]
    pub fn interferes_with(self, other: Self) -> bool {
        !matches!((self, other), (Self::Read, Self::Read)) && !self.is_same_reduction(other)
    }

    /// Whether both are reductions with the same operator.
    #[must_use]
    pub fn is_same_reduction(self, other: Self) -> bool {
        matches!((self, other), (Self::Reduce(a), Self::Reduce(b)) if a == b)
    }

    /// Whether the data may be different afterwards.
    #[must_use]
    pub fn changes_data(self) -> bool {
        self != Self::Read
    }

    /// Whether the old values can be seen.
    #[must_use]
    pub fn sees_data(self) -> bool {
        matches!(self, Self::Read | Self::ReadWrite)
    }

    /// Whether the values may be replaced, which makes every other copy of them stale.
    #[must_use]
    pub fn writes(self) -> bool {
        matches!(self, Self::ReadWrite | Self::Discard)
    }

    /// Whether a task that holds `self` may launch a child that asks for `other`. Read-write and discard allow
    /// everything; a read allows a read, a reduction one with the same operator (Bauer 2014, section 4.2).
    #[must_use]
    pub fn covers(self, other: Self) -> bool {
        self.writes() || self == other
    }
}

impl fmt::Display for Privilege {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read => f.write_str("reads"),
            Self::ReadWrite => f.write_str("writes"),
            Self::Discard => f.write_str("discards"),
            Self::Reduce(operator) => write!(f, "reduces({operator})"),
        }
    }
}

/// How uses of the same data by sibling tasks relate in time (Bauer 2014, chapter 9).
///
/// Only the exclusive mode exists yet; relaxed modes will join it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Coherence {
    /// Interfering uses take effect in program order.
    #[default]
    Exclusive,
}

#[cfg(test)]
mod tests {
    use super::Privilege::*;
    use crate::{
        OperatorId,
        operators::{Max, Sum},
    };

    fn operators() -> (OperatorId, OperatorId) {
        (OperatorId::of::<Sum>(), OperatorId::of::<Max>())
    }

    #[test]
    fn only_reads_and_reductions_with_one_operator_do_not_interfere() {
        let (sum, max) = operators();
        let all = [Read, ReadWrite, Discard, Reduce(sum), Reduce(max)];
        for a in all {
            for b in all {
                let compatible = (a, b) == (Read, Read) || (a == b && matches!(a, Reduce(_)));
                assert_eq!(a.interferes_with(b), !compatible, "{a} and {b}");
            }
        }
    }

    #[test]
    fn read_write_covers_everything_and_the_others_cover_themselves() {
        let (sum, max) = operators();
        for other in [Read, ReadWrite, Discard, Reduce(sum)] {
            assert!(ReadWrite.covers(other));
            assert_eq!(Read.covers(other), other == Read);
            assert_eq!(Reduce(sum).covers(other), other == Reduce(sum));
        }
        assert!(!Reduce(sum).covers(Reduce(max)));
    }
}
