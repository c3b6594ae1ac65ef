//! Data from outside: memory and files of the program's as the place of a region's values; and rows that tasks have
//! made.

pub(crate) mod attach;
pub(crate) mod output;
