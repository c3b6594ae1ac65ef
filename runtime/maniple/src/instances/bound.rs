//! Requirements with the states of their data.

use std::sync::Arc;

use maniple_region::{FieldMask, Requirement};
use smallvec::SmallVec;

use super::state::RegionState;

/// A requirement with the physical states of its fields: one, unless the parent holds its fields separately.
#[derive(Clone)]
pub(crate) struct Bound {
    pub(crate) requirement: Requirement,
    pub(crate) parts: SmallVec<[(FieldMask, Arc<RegionState>); 1]>,
}
