//! Tensor algebra on Maniple: what to compute, how tensors are stored, where they are, and how to compute, as four
//! separate statements.
//!
//! A statement in *index notation* (`A(i,j) = B(i,k) * C(k,j)`) says what. *Formats* say how a tensor is stored,
//! *placements* where its parts lie on a grid of processors, and a *schedule* how the loops run: split, reordered,
//! distributed, with communication at chosen loops. Schedules, formats and placements change speed and memory, never an
//! answer (Yadav, Aiken, Kjolstad, *DISTAL: the distributed tensor algebra compiler*, PLDI 2022).
//!
//! | in reading order | |
//! | --- | --- |
//! | [`level`] | kinds of levels, of which formats are made |
//! | [`mod@format`] | how a tensor is stored |
//! | [`machine`] | grids of processors, and grids of grids |
//! | [`placement`] | where a tensor's parts lie on a machine, and pictures of it |
//! | [`notation`] | what to compute: assignments in index notation |
//! | [`storage`] | sparse tensors in memory |
//! | [`sparse`] | kernels for sparse tensors |
//! | [`generate`] | tensors made from a seed |
//! | [`oracle`] | what an assignment of sparse tensors means; results compared with their definitions |
//! | [`concrete`] | in which loops it is computed |
//! | [`schedule`] | commands that change the loops |
//! | [`algorithms`] | published algorithms, as schedules |
//! | [`bounds`], [`rectangle`] | which parts of tensors some iterations use |
//! | [`lower`] | loops to kernels |
//! | [`plan`] | what is launched where, and what each point and step fetches |
//! | [`traffic`] | which data a plan moves, and pictures of it |
//! | [`cost`] | what a plan costs, and plans explained |
//! | [`program`] | several assignments; sums and products of several tensors divided into some |
//! | [`choose`] | schedules where the user gives none |
//! | [`substitute`] | leaf kernels by a library of matrix products |
//! | [`distributed`] | plans on the runtime: tensors as regions, launches as index launches |
//! | [`files`] | tensors in files of all kinds, read and written |
//! | [`compute`] | the front door: statements by their text, on tensors of the runtime |
//!
//! Kernels are written in the language of `maniple-kernel`, and run by it: [`element`], [`loops`] and [`kernel`] are
//! its. [`level`], [`mod@format`] and [`storage`] are those of `maniple-storage`.

// What is in `clippy.toml`: the outside world enters through `realm` alone.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod algorithms;
pub mod bounds;
pub mod choose;
pub mod compute;
pub mod concrete;
pub mod cost;
pub mod distributed;
mod errors;
pub mod files;
pub mod generate;
pub mod lower;
pub mod machine;
pub mod notation;
pub mod oracle;
pub mod placement;
pub mod plan;
pub mod program;
pub mod rectangle;
pub mod schedule;
pub mod sparse;
pub mod substitute;
pub mod traffic;

/// Names for programs that compute with tensors, with the [prelude of the runtime](maniple::prelude).
pub mod prelude {
    pub use maniple::prelude::*;

    pub use crate::compute::{Compute, ComputeError, TensorContext};
    pub use crate::distributed::{EntryFile, Tensor, TensorMapper};
    pub use crate::element::ElementType::{self, *};
    pub use crate::files::TensorFile;
    pub use crate::format::Format;
    pub use crate::generate::Generator;
    pub use crate::notation::TensorVariable;
}

pub use maniple_kernel::{element, execution as kernel, loops, with_element, with_scalar};
pub use maniple_storage::{format, level, tensors as storage};
