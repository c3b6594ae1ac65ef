//! NumPy's `.npz` files: zip archives of `.npy` files, and the sparse arrays that SciPy (`scipy.sparse.save_npz`) and
//! PyData's `sparse` (`sparse.save_npz`) keep in them.
//!
//! An [`Archive`] gives any of its [arrays](Array) by name. [`Sparse::read`] makes a sparse array of those that belong
//! to one: it is checked whole, so that [`Sparse::for_each`] and callers need not doubt an index. [`Sparse::write`] and
//! [`write_arrays`] write what NumPy, SciPy and `sparse` read.
//!
//! | in reading order | |
//! | --- | --- |
//! | `array` | arrays of elements of a type that the file says |
//! | `target` | where an archive is written |
//! | `archive` | files in a zip archive |
//! | `sparse` | sparse arrays, checked |
//! | `form` | which arrays of a file are which part of a sparse array |
//! | `unpack` | archives without compression, made of others |

mod archive;
mod array;
mod form;
mod sparse;
mod target;
mod unpack;

pub use self::archive::{Archive, Compression, write_arrays};
pub(crate) use self::archive::{Member, named};
pub use self::array::{Array, ArrayValues};
pub(crate) use self::form::{ArchiveLayout, integers, malformed};
pub(crate) use self::sparse::{
    Form, Lengths, apart, apart_from_each_other, ascending, check_ends, coordinates_of, within,
};
pub use self::sparse::{Sparse, Structure};
pub use self::unpack::unpack;
