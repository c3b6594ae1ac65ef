//! Sparse tensors in memory: levels with their components, an element for each position of the last level, and a fill
//! value for all that is not stored.
//!
//! ```
//! use maniple_storage::tensors::{Duplicates, EntryList, pack};
//!
//! let mut entries = EntryList::new(2);
//! for (row, column, value) in [(2, 0, 5.0), (0, 3, 1.0), (0, 1, 2.0), (0, 3, 1.5)] {
//!     entries.push(&[row, column], value);
//! }
//! let packed = pack(&"csr".parse()?, &[3, 4], 0.0, entries, Duplicates::Sum)?;
//! assert_eq!((packed.tensor.values(), packed.duplicates), (&[2.0, 2.5, 5.0][..], 1));
//! let columns = packed.tensor.convert(&"csc".parse()?)?;
//! assert_eq!((columns.values(), columns.get(&[0, 3])), (&[5.0, 2.0, 2.5][..], 2.5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | in reading order | |
//! | --- | --- |
//! | `entries` | coordinates with elements, in any order |
//! | `value` | what is asked of elements |
//! | `statistics` | how entries are spread: [`Statistics`] |
//! | `tensor` | [`SparseTensor`] |
//! | `counted` | how those of a tensor are, counted |
//! | `sort`, `radix`, `pack` | entries to levels |
//! | `segments` | what kernels wrote below each parent, to levels |
//! | `rows`, `transpose`, `direct` | compressed rows to compressed columns, blocks, diagonals, slots |
//! | `convert` | formats to formats |
//! | `draw` | pictures: [`DynamicTensor::draw`] |
//! | `dynamic`, `dynamic_entries` | tensors and entries whose element type is known at run time: [`DynamicTensor`] |

mod convert;
mod counted;
mod direct;
mod draw;
mod dynamic;
mod dynamic_entries;
mod entries;
mod error;
mod pack;
mod radix;
mod rows;
mod segments;
mod sort;
mod statistics;
mod tensor;
mod transpose;
mod value;

pub use draw::{Parts, escape, hue};
pub use dynamic::DynamicTensor;
pub use dynamic_entries::{DynamicEntries, Packed, pack, pack_by};
pub use entries::EntryList;
pub use error::StorageError;
pub use pack::Packer;
pub use segments::{Coordinates, Number, Segments};
pub use sort::Duplicates;
pub use statistics::{DiagonalStatistics, LevelStatistics, ModeStatistics, Statistics};
pub use tensor::SparseTensor;
