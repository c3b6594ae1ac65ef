//! The data that each run of a graph has for itself, found by the slot that the run uses.

use super::compile::NODES_IN_A_LINE;

/// So many things for each slot.
pub(super) struct PerRun<T> {
    all: Box<[T]>,
    each: usize,
    mask: u64,
}

impl<T> PerRun<T> {
    /// For so many slots, so many each.
    pub(super) fn new(slots: u64, each: usize, make: impl FnMut() -> T) -> Self {
        let mut make = make;
        Self { all: (0..slots as usize * each).map(|_| make()).collect(), each, mask: slots - 1 }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &T> {
        self.all.iter()
    }

    #[inline]
    pub(super) fn at(&self, run: u64, index: usize) -> &T {
        debug_assert!(index < self.each);
        &self.all[(run & self.mask) as usize * self.each + index]
    }
}

/// A word for each node. Those of different lanes are in different cache lines.
pub(super) struct Words<W>(PerRun<Line<W>>);

/// Two cache lines, as some processors fetch the second with the first.
#[repr(align(128))]
struct Line<W>([W; NODES_IN_A_LINE]);

impl<W: Default> Words<W> {
    pub(super) fn new(slots: u64, nodes: usize) -> Self {
        Self(PerRun::new(slots, nodes.div_ceil(NODES_IN_A_LINE), || Line(std::array::from_fn(|_| W::default()))))
    }

    #[inline]
    pub(super) fn at(&self, run: u64, place: usize) -> &W {
        &self.0.at(run, place / NODES_IN_A_LINE).0[place % NODES_IN_A_LINE]
    }
}
