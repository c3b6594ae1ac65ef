//! How tensors are stored: kinds of levels, formats that are made of them, and sparse tensors in memory.
//!
//! Nothing here knows of index notation, regions or launches: entries become levels, and levels of one format those of
//! another, by a team of threads. What moves entries is compiled here, once for each size of elements, whatever crate
//! packs them.
//!
//! | in reading order | |
//! | --- | --- |
//! | [`level`] | kinds of levels, of which formats are made |
//! | [`mod@format`] | how a tensor is stored |
//! | [`parallel`] | work divided among threads |
//! | [`identical`](identical()) | elements that cannot be told apart |
//! | [`tensors`] | sparse tensors in memory |
//!
//! ```
//! use maniple_storage::tensors::{Duplicates, EntryList, pack};
//!
//! let mut entries = EntryList::new(2);
//! entries.push(&[1, 2], 5.0);
//! entries.push(&[0, 1], 2.0);
//! let rows = pack(&"csr".parse()?, &[2, 3], 0.0, entries, Duplicates::Sum)?;
//! assert_eq!(rows.tensor.values(), [2.0, 5.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// What is in `clippy.toml`: the outside world enters through `realm` alone.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod errors;
pub mod format;
mod identical;
pub mod level;
pub mod parallel;
pub mod tensors;

pub use identical::identical;
use maniple_kernel::{element, execution as kernel, with_element};
