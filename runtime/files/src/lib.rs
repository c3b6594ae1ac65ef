//! File formats of dense and sparse arrays, as plain readers and writers. They know neither regions nor tensors:
//! readers take anything that is `Read` or `BufRead` and writers anything that is `Write`; elements are plain numbers.
//!
//! | module | what it is for |
//! | --- | --- |
//! | [`matrix_market`] | Matrix Market: matrices as text, dense or by coordinates |
//! | [`npy`] | NumPy's `.npy`: dense arrays in binary |
//! | [`npz`] | NumPy's `.npz`: several arrays, or a sparse array of SciPy or `sparse`, in binary |
//! | [`tcs`] | `.tcs`: sparse tensors in binary, level by level |
//! | [`tns`] | FROSTT's `.tns`: sparse tensors as text |
//! | `dense` | [`Dense`] arrays: shape, [`Order`] and elements |
//! | `number` | elements in bytes and in text: [`Number`] |
//! | `parallel` | [`Parallel`]: the threads that the caller has |
//! | `entry_text`, `array_text`, `entry_arrays` | [`EntryText`], [`ArrayText`] and [`EntryArrays`]: files that are read in parts |
//! | `lines` | [`Entries`], a line each, read by several threads |
//! | `entry_lines` | [`EntryLines`], and [`write_parts`]: entries written by several threads |
//! | `in_order` | texts that threads make, written in order |
//! | [`output`] | files that are written whole or not at all |
//! | `text` | lines of text, of which nothing is taken for granted |
//! | `error` | [`ReadError`]: the line or byte, and the [`Problem`] there |
//!
//! Sparse formats are read entry by entry. Memory is taken for what a file has, never for what its header announces.
//! Files come from anywhere: whatever is in them, readers give an error and do not panic.
//!
//! ```
//! use maniple_files::matrix_market::{MatrixLayout, Reader};
//!
//! let text = "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 4.0\n2 1 one\n";
//! let mut reader = Reader::new(text.as_bytes())?;
//! assert_eq!((reader.header().layout, reader.header().entries), (MatrixLayout::Coordinate, 2));
//! assert_eq!(reader.next_entry::<f64>()?.map(|entry| entry.value), Some(4.0));
//! let error = reader.next_entry::<f64>().unwrap_err();
//! assert_eq!(error.to_string(), "line 4: 'one' is not a number");
//! # Ok::<(), maniple_files::ReadError>(())
//! ```

mod array_text;
mod dense;
mod entry_arrays;
mod entry_lines;
mod entry_text;
mod error;
mod in_order;
mod line_offsets;
mod lines;
pub mod matrix_market;
pub mod npy;
pub mod npz;
mod number;
pub mod output;
mod parallel;
mod section;
pub mod tcs;
mod text;
pub mod tns;

pub use num_complex::Complex;

pub use self::array_text::ArrayText;
pub use self::dense::{Dense, Order};
pub use self::entry_arrays::EntryArrays;
pub use self::entry_lines::{EntryLines, write_parts};
pub use self::entry_text::EntryText;
pub use self::error::{Problem, ReadError};
pub use self::lines::Entries;
pub use self::number::Number;
pub use self::parallel::{InTurn, Parallel};
pub use maniple_element::ElementType;
