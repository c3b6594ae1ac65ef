//! The spaces of the stored data of a tensor.

use crate::lower::Slot;
use crate::notation::TensorVariable;

/// The indices of what is stored of a tensor. Levels are counted from the outermost, 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    /// The coordinates of a dense tensor.
    Elements,
    /// The positions of the level above a compressed one, and one more: what is below a position begins at its offset,
    /// and ends at the next one. Of one with slots, the positions above alone.
    Offsets(usize),
    /// The words with the bits of a level, each of 64 positions.
    Words(usize),
    /// The positions of a level, at which its coordinates are; of the last level, the elements too.
    Positions(usize),
}

impl Space {
    /// The space that a kernel's parameter views, if it is one of `tensor`.
    pub fn of(slot: &Slot, tensor: &TensorVariable) -> Option<Self> {
        let (name, space) = match slot {
            Slot::Elements(name) => (name, Self::Elements),
            Slot::Positions(name, level) => (name, Self::Offsets(*level)),
            Slot::Bits(name, level) => (name, Self::Words(*level)),
            Slot::Coordinates(name, level) => (name, Self::Positions(*level)),
            Slot::Values(name) => (name, Self::Positions(tensor.format().levels().len().saturating_sub(1))),
            _ => return None,
        };
        (name == tensor.name()).then_some(space)
    }
}
