//! Regions and partitions, made and destroyed.

pub(crate) mod creation;
pub(crate) mod dependent;
pub(crate) mod destruction;
pub(crate) mod set_operations;
