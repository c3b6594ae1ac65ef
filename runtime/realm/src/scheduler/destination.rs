//! The destination of a ready operation, as a slot stores it.

/// A [`Target`](crate::Target) in the 32 bits that a slot has for it, with processors replaced by their workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    Any,
    Near(usize),
    On(usize),
    Group(usize),
}

const KIND_SHIFT: u32 = 30;

impl Destination {
    #[inline]
    pub(crate) fn encode(self) -> u32 {
        let (kind, index) = match self {
            Self::Any => (0, 0),
            Self::Near(worker) => (1, worker),
            Self::On(worker) => (2, worker),
            Self::Group(group) => (3, group),
        };
        (kind << KIND_SHIFT) | index as u32
    }

    #[inline]
    pub(crate) fn decode(bits: u32) -> Self {
        let index = (bits & ((1 << KIND_SHIFT) - 1)) as usize;
        match bits >> KIND_SHIFT {
            0 => Self::Any,
            1 => Self::Near(index),
            2 => Self::On(index),
            _ => Self::Group(index),
        }
    }
}
