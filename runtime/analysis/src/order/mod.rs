//! Which operations must be mapped before a new one, from the region trees alone: the logical analysis (Bauer 2014,
//! section 5.1).
//!
//! A launch is analysed once, whatever the number of its points: a requirement on a partition uses the partition's
//! node. The walk goes from the root of the region tree to the requirement's node. At each node it compares the
//! requirement with the uses recorded there, and visits open children that may share points with the rest of the path.
//!
//! Each node keeps two epochs of uses, so that many readers of one write do not depend on each other (section 5.1.3).
//! Bauer *closes* a sub-tree that conflicts with the new use; here, the new operation *takes it over* instead. The
//! operation depends on all operations recorded in the sub-tree, these are forgotten, and the new one is recorded at
//! the fork as if it wrote the fork's whole region. This order is less precise, but it is only the order of mapping:
//! the analysis of validity finds which points of which tasks wait for each other.

mod epoch;
mod queue;
mod tree;

use std::sync::Arc;

use maniple_region::{Privilege, Requirement, TreeId};
use rustc_hash::FxHashMap;

pub use queue::InOrderQueue;
use tree::TreeState;

/// An operation, as the analysis needs to know it.
pub trait OrderedOperation {
    /// Whether nothing needs to wait for the operation to be mapped any more: it may be forgotten.
    fn is_mapped(&self) -> bool;
    /// Whether both are one operation.
    fn is_same(&self, other: &Self) -> bool;
}

impl<T: OrderedOperation> OrderedOperation for Arc<T> {
    fn is_mapped(&self) -> bool {
        T::is_mapped(self)
    }

    fn is_same(&self, other: &Self) -> bool {
        T::is_same(self, other)
    }
}

/// In which order operations are mapped that contribute to the same data by one operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contributions {
    /// In any: what they do commutes.
    Commute,
    /// In program order: one that is mapped may hold an instance that the other needs, and wait for what the other
    /// does.
    InOrder,
}

impl Contributions {
    /// Whether a new use must be mapped after an earlier one.
    #[inline]
    fn conflict(self, earlier: Privilege, new: Privilege) -> bool {
        earlier.interferes_with(new) || (self == Self::InOrder && earlier.is_same_reduction(new))
    }
}

/// The operations of one task that later operations may have to be mapped after, for each region tree.
pub struct ProgramOrder<O> {
    trees: FxHashMap<TreeId, TreeState<O>>,
}

impl<O> Default for ProgramOrder<O> {
    fn default() -> Self {
        Self { trees: FxHashMap::default() }
    }
}

impl<O: OrderedOperation + Clone> ProgramOrder<O> {
    /// Records that `operation` has this requirement, and calls `depend` for every earlier operation that must be
    /// mapped first; for some more than once, never for `operation` itself. Returns how many nodes of the region tree
    /// were visited, which is what the analysis costs.
    pub fn register(
        &mut self,
        operation: &O,
        requirement: &Requirement,
        contributions: Contributions,
        depend: &mut impl FnMut(&O),
    ) -> u64 {
        let tree = requirement.target.tree().id();
        match self.trees.get_mut(&tree) {
            Some(known) => known.register(operation, requirement, contributions, depend),
            None => self.trees.entry(tree).or_default().register(operation, requirement, contributions, depend),
        }
    }

    /// Forgets the uses of a region tree that no later operation will use.
    pub fn forget(&mut self, tree: TreeId) {
        self.trees.remove(&tree);
    }

    /// Forgets all uses: later operations are ordered after these by a fence.
    pub fn clear(&mut self) {
        self.trees.clear();
    }

    /// The number of nodes with uses.
    #[cfg(test)]
    fn nodes(&self) -> usize {
        self.trees.values().map(TreeState::nodes).sum()
    }
}

#[cfg(test)]
mod tests;
