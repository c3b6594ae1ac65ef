//! Blocks to one file, by many that each write a part of it (Shinde 2019, *SuperTaco*, section 4.6). All functions here
//! are pure.
//!
//! 1. [`equal_cuts`] or [`sampled_cuts`] cut the coordinates of the tensor into pieces;
//!    [`Finder::first_from`](super::load::Finder::first_from) finds where a cut is in a block. Each entry is in one
//!    piece, and pieces follow each other.
//! 2. A piece of all blocks is one sequence by [`Merge`]. [`load::count`](super::load::count) goes through it, and
//!    [`load::merge_all`](super::load::merge_all) makes a plan of what all pieces have counted.
//! 3. [`load::write`](super::load::write) goes through it again and writes sections of all arrays, whose places in the
//!    file are known then; [`load::assemble`](super::load::assemble) joins them.
//!
//! If the arrays are those of the whole tensor, spread over many memories, [`write_numbers`] and a [`Writer`] put parts
//! of them at their places, and [`Summed`](super::Summed) joins checksums.

mod cuts;
mod merge;
mod section;

pub use cuts::{equal_cuts, sampled_cuts};
pub use merge::Merge;
pub use section::{Target, Writer, write_numbers};
