//! Tensors in files, whatever their kind is: Matrix Market (`.mtx`), FROSTT (`.tns`), NumPy (`.npy`), SciPy and
//! pydata/sparse (`.npz`), and levels in binary (`.tcs`).
//!
//! [`TensorFile`] is a file as its name, or its first bytes, tell what is in it. [Opened](TensorFile::open), its header
//! is read once, and the file stays open: as [parts](FileInParts) that tasks of all nodes read, or as entries that are
//! read where it was opened.
//!
//! ```
//! use maniple_tensor::files::TensorFile;
//! use maniple_tensor::element::ElementType;
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("a.mtx");
//! std::fs::write(&path, "%%MatrixMarket matrix coordinate real general\n3 4 2\n1 2 0.5\n3 4 1.5\n")?;
//! let file = TensorFile::of(&path)?.open(false)?;
//! assert_eq!((file.dimensions(), file.element()), (vec![3, 4], ElementType::F64));
//! let contents = file.read(ElementType::F64)?;
//! assert_eq!(contents.entries.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod archive;
mod contents;
mod early;
mod error;
mod in_parts;
mod kind;
mod named;
mod opened;
mod processors;
mod spooled;
mod stored;
mod tcs;
mod tensors;
mod written;

pub use self::contents::Contents;
pub use self::error::{FileError, InputError};
pub use self::in_parts::FileInParts;
pub use self::named::TensorFile;
pub use self::opened::Opened;
pub use self::processors::{Processors, processors};
pub use self::tensors::Readable;
pub use self::written::{Converted, in_full, of_order};
