//! Logical analysis: which operations must be mapped before a new one, from the region tree alone (Bauer 2014, section 5.1).
//!
//! One launch is analysed once, whatever the number of its points: a requirement on a partition is a user of the partition's node. The
//! walk goes from the root of the region tree to the requirement's node. At each node it compares with the users recorded there, and looks
//! into open children that may share points with where it is going.
//!
//! Each node keeps two epochs of users, so that many readers of one write do not depend on each other (section 5.1.3). Where Bauer *closes* a
//! sub-tree that conflicts with the new use, we let the new operation *take it over*: it depends on everybody in there, they are
//! forgotten, and it is recorded at the fork as if it wrote the fork's whole region. That is less precise, but only about the order of mapping:
//! which points of which tasks wait for each other is found by the physical analysis.

mod epoch;
mod node;

pub(crate) use node::LogicalTree;

/// What the analysis must know of an operation.
pub(crate) trait LogicalUser: Clone {
    /// Nothing needs to wait for it any more.
    fn has_mapped(&self) -> bool;
    /// Whether both are one operation.
    fn is_same(&self, other: &Self) -> bool;
}

#[cfg(test)]
mod tests;
