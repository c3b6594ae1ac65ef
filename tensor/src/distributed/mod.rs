//! Plans run on the runtime: tensors as regions, launches as index launches, with the data that they fetch brought
//! where they run.
//!
//! A [`Tensor`] is a region, which can be [placed](Tensor::place). A [`Computation`] is a plan with its tensors, and
//! [`compute`] runs one: for each combination of the values of its sequences, one index launch over all points of its
//! launches, whose requirements name for each point the rectangle that it fetches. A sequence inside of a launch
//! becomes a loop around it, which is the same for the points do not depend on each other; launches are deferred, so
//! the data of later steps travels while earlier ones compute. A [`TensorMapper`] keeps tiles where they are.
//!
//! Each tensor gets one partition, with a piece for each different part that points are given; which one a point has at
//! a step follows from the relations between the loops ([`Colors`](crate::bounds::Colors)). Steps that fetch the same
//! share everything but their numbers.
//!
//! A tensor in levels is too large for one node, perhaps: then tasks [load](Tensor::load) it from a [`TcsFile`], each a
//! piece, and [store](Tensor::store) results to one; or they [read](Tensor::read_entries) the entries of an
//! [`EntryFile`], each a range of bytes, or [make](Tensor::generated) those of a generator, each some rows.
//!
//! How tensors are cut, packed, assembled and rehearsed is told in `README.md` beside this file.
//!
//! Data that the plan fetches at a launch around others, or at a step around a launch, is brought to the first point
//! that it is for, by a launch before. The other points run near it, and find their parts there. Written data stays
//! where it was written until others need it, which is the same in the end.

mod aside;
mod assemble;
mod balanced;
mod batches;
mod blocks;
mod computation;
mod convert;
mod cuts;
mod divisors;
mod dynamic;
mod elements;
mod entries;
mod entry_file;
mod error;
mod fetch;
mod fields;
mod generated;
mod held;
mod home;
mod kept;
mod launched;
mod leaf;
mod level_pieces;
mod levels;
mod lists;
mod mapper;
mod modes;
mod named;
mod numbers;
mod operators;
mod packing;
mod pending;
mod place;
mod placed_levels;
mod read_entries;
mod rehearsal;
mod rows;
mod scattered;
mod shares;
mod snapshot;
mod tcs;
mod tensor;
mod text;

pub(crate) use aside::alone;
pub use assemble::{assemble, assemble_in_steps};
pub use computation::{Computation, compute};
pub use entry_file::EntryFile;
pub use error::DistributedError;
pub use launched::Launched;
pub use level_pieces::LevelPieces;
pub use lists::{is_made_by_tasks, is_packed_by_tasks};
pub use mapper::TensorMapper;
pub use numbers::{as_element, element_that_is};
pub use pending::Pending;
pub use placed_levels::check_placement;
pub use rehearsal::Rehearsal;
pub use tcs::{Loaded, TcsFile, Writers, WrittenTensor, is_stored_as_npy};
pub use tensor::Tensor;
pub use text::TextForm;
