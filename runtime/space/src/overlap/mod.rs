//! Finding which rectangles and which spaces overlap.
//!
//! [`OverlapIndex`] is built once over many rectangles; [`DynamicBoxTree`] changes one box at a
//! time; [`overlapping_pairs`] joins two lists of spaces.

mod dynamic_tree;
mod index;
mod pairs;

pub use dynamic_tree::{BoxHandle, DynamicBoxTree};
pub use index::OverlapIndex;
pub(crate) use pairs::{LastSeen, index_of_spaces};
pub use pairs::{OverlapLists, first_overlapping_pair, overlapping_pairs};
