//! `.tcs` files: sparse tensors in binary, level by level, with arrays as they are in memory (Shinde 2019, *SuperTaco:
//! Taco Tensor Algebra Kernels on Distributed Systems Using Legion*, section 4.3). The book describes the format byte
//! by byte, in the chapter on `.tcs` files.
//!
//! [`Tensor`] is a whole tensor, read and checked at once. Larger ones stay in their file: a [`TcsHeader`] says where
//! arrays are, [`check`] looks at all of them with little memory, and [`load`] goes through parts of them. [`survey`]
//! and [`write()`] make a file of sorted entries, in two passes and little memory; [`sort()`] sorts them first.
//!
//! ```
//! use maniple_files::tcs::{Arrays, Level, TcsLevelKind, Tensor, Width};
//!
//! // The matrix [[0, 2.5], [0, 0], [4, 0]] by rows.
//! let levels = vec![Level::new(TcsLevelKind::Dense, 0, 3), Level::new(TcsLevelKind::Sparse, 1, 2)];
//! let rows = Arrays { pos: vec![0, 1, 1, 2], idx: vec![1, 0] };
//! let tensor = Tensor { levels, arrays: vec![Arrays::default(), rows], values: vec![2.5, 4.0] };
//! let mut file = Vec::new();
//! tensor.write(Width::Eight, &mut file)?;
//! assert_eq!((file.len(), &file[..4]), (80 + 2 * 120 + 32 + 16 + 16, &b"TCS1"[..]));
//! assert_eq!(Tensor::<f64>::read(&file)?, tensor);
//! file[370] ^= 1;
//! let error = Tensor::<f64>::read(&file).unwrap_err();
//! assert!(error.to_string().starts_with("byte 368: val is damaged"), "{error}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | in reading order | |
//! | --- | --- |
//! | `layout` | levels, and the lengths of arrays |
//! | `source` | bytes that are read at any place |
//! | `header` | the header |
//! | `window` | arrays, read in parts |
//! | `check` | what must hold of arrays |
//! | `summed` | checksums of parts of arrays |
//! | `tensor` | a whole tensor in memory |
//! | `entries` | entries one after the other: of text, of memory |
//! | `count`, `fill` | sorted entries, counted and appended to arrays |
//! | `plan`, `ordered` | how entries become a file, and which cannot |
//! | `convert` | entries to a file |
//! | `tournament`, `sort` | sorting without much memory |
//! | `text` | files of text to a file |
//! | [`load`] | a file to blocks |
//! | [`store`] | blocks to a file |

mod check;
mod convert;
mod count;
mod entries;
mod fill;
mod header;
mod layout;
pub mod load;
mod ordered;
mod plan;
mod sort;
mod source;
pub mod store;
mod summed;
mod tensor;
mod text;
mod tournament;
mod window;

pub use check::check;
pub use convert::{Sections, Survey, survey, write};
pub use count::Counts;
pub use entries::{EntryStream, Listed, Matrix};
pub use fill::{Filler, Sink};
pub use header::{MAGIC, Section, TcsHeader};
pub use layout::{Lengths, Level, MOST_LEVELS, Split, TcsLevelKind, TcsPart, Width, nodes, parts};
pub use plan::{ConvertError, Duplicates, EntryProblem, Extent, StoragePlan};
pub use sort::{Merge, Sorted, sort};
pub use source::Source;
pub use summed::Summed;
pub use tensor::{Arrays, Tensor};
pub use text::{TextFile, TextPlan};
pub use tournament::Tournament;
