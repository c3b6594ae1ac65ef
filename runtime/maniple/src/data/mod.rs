//! Data as tasks see it: handles of regions and partitions, accessors of fields, and the values that tasks return.

pub mod access;
pub(crate) mod region_field;
pub(crate) mod regions;
pub(crate) mod value;
