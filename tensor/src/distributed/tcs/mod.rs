//! Tensors in `.tcs` files, read and written by the tasks of all nodes: each its own ranges of bytes (Shinde,
//! *SuperTaco*, MIT 2019, sections 4.4 and 4.6).
//!
//! A file has the arrays of levels one after the other, as regions have them. So a piece of a tensor is a range of each
//! array, in the file and in the regions, and a task that reads or writes a piece needs no more than that. To load,
//! pieces are found that have equally many bytes (by a search with a guess, a task for each), then a task for each
//! piece reads it, checks it, and puts it in place. To store, a task for each piece writes it at its place in a file
//! beside the one that is asked for, which takes its name when all is there. Checksums are those of pieces, joined.
//!
//! Blocks are not made of the pieces: which parts of the regions a kernel is given is said by the plan, and the runtime
//! brings them.
//!
//! | in reading order | |
//! | --- | --- |
//! | `file` | a file that all nodes have open |
//! | `arrays` | the arrays of a tensor in regions, in pieces |
//! | `load`, `store` | files to tensors, and back |

mod arrays;
mod file;
mod load;
mod store;

pub use arrays::Writers;
pub(super) use file::Counted;
pub use file::TcsFile;
pub use load::Loaded;
pub use store::{WrittenTensor, is_stored_as_npy};
