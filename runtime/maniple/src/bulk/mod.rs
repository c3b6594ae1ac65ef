//! Operations on whole regions: inline mappings, copies, fills, fences, scratch regions and local fields.

mod filling;
pub(crate) mod inline;
pub(crate) mod local_field;
mod operations;
pub(crate) mod scratch;
