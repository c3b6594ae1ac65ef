//! # Maniple: programs that look sequential, and run in parallel
//!
//! A program is a tree of *tasks* over *logical regions*: rows (an index space) crossed with columns (fields). Regions
//! can be partitioned in many ways at once. Tasks say which fields of which regions they read, write or reduce; from
//! that the runtime finds what can run side by side, moves data and synchronises. The result is always that of running
//! the tasks one after another. Where they run and where data lives is up to a *mapper*, which can be replaced and
//! can't change a result.
//!
//! ```
//! use maniple::prelude::*;
//!
//! #[derive(Fields)]
//! struct Cell {
//!     value: f64,
//! }
//!
//! #[task(leaf)]
//! fn square(#[point] piece: Point<1>, #[writes(value)] cells: Piece<Cell>) -> f64 {
//!     let mut sum = 0.0;
//!     for point in cells.points() {
//!         cells.value[point] = (point[0] * point[0]) as f64;
//!         sum += cells.value[point];
//!     }
//!     assert!(piece[0] < 4);
//!     sum
//! }
//!
//! let runtime = Runtime::builder().workers(2).build()?;
//! let total = runtime.run(async |cx: &Context| {
//!     let cells = cx.region::<Cell>(10)?;
//!     let pieces = cx.colors(4);
//!     let split = cells.partition(pieces).equal()?;
//!     cx.index_launch(pieces, square(&split)).reduce(Sum).await
//! })?;
//! assert_eq!(total, 285.0);
//! # Ok::<(), maniple::Error>(())
//! ```
//!
//! # The map of the house
//!
//! Names for users: [`Runtime`], [`Context`], [`Region`], [`Partition`], [`task`](macro@task), [`Future`], [`access`];
//! beneath the macros, [`TaskLauncher`] and [`task::TaskDefinition`]. How one launch flows through the files:
//!
//! 1. `launch/`: requirements are checked against the parent's privileges and against each other; `context/` gives the
//!    launch its place in program order;
//! 2. `maniple_analysis::order`: which earlier operations must be mapped first, one walk of the region tree a launch;
//!    `operation/`: waiting for them;
//! 3. `mapping/`: the mapper picks processor, variant, instances; `execution/` drives it, point by point;
//! 4. `maniple_analysis::validity`: which instances hold current data, what must be copied, what must be waited for;
//!    `instances/` makes them and carries that out;
//! 5. `execution/point.rs`: the body runs on a worker of `maniple-realm`; the launch's futures resolve, and the
//!    operation retires.
//!
//! Launches that repeat take the short way of `trace/`, and single launches of tasks without regions the short way of
//! `fork/`. With `migration/` and `nodes/`, tasks run on another node.

// What is in `clippy.toml`: the outside world enters through `realm` alone.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod bulk;
mod context;
mod core;
mod data;
mod execution;
mod external;
mod fork;
mod future;
mod instances;
mod launch;
mod mapping;
mod migration;
mod nodes;
mod operation;
mod partitions;
mod program;
mod results;
mod support;
mod trace;

pub mod task;

pub use bulk::local_field::LocalField;
pub use bulk::scratch::Scratch;
pub use context::Context;
pub use context::mapped::{ReadMapping, WriteMapping};
pub use data::access;
pub use data::region_field::RegionField;
pub use data::regions::{Domain, IntoTarget, Partition, Partitioner, Projected, Region};
pub use external::attach::{
    Attached, AttachedFile, AttachedFilePieces, AttachedPieces, Detached, DetachedPieces, File,
};
pub use external::output::{Output, Row};
pub use future::{Argument, Awaited, Future, FutureMap};
pub use launch::{Launch, TaskLauncher};
pub use partitions::dependent::{Color, Relation};
#[doc(hidden)]
pub use program::generated;
pub use program::generated::IntoArgument;
pub use program::prelude;
pub use program::runtime::{Runtime, RuntimeBuilder};
pub use program::session::{Interrupt, Session};
pub use support::error::{AttachmentError, Error, FileError, Launched, Result};
pub use support::statistics::{MemoryStatistics, PeerStatistics, Statistics};

/// The crate of the trait that makes a struct a field's value: [`Zeroable`](bytemuck::Zeroable), also in the prelude.
///
/// Derive it with `#[derive(Clone, Copy, Zeroable)] #[bytemuck(crate = "maniple::bytemuck")]`, or let your own crate
/// depend on `bytemuck`.
pub use bytemuck;
pub use maniple_macros::{Fields, task};
pub use maniple_mapper as mapper;
pub use maniple_realm::layout::{Arrangement, DimensionOrder, LayoutConstraint};
#[doc(hidden)]
pub use maniple_realm::locks;
pub use maniple_realm::machine::{self, Machine, MemoryId, ProcessorId, ProcessorKind};
pub use maniple_realm::net::{self, environment};
pub use maniple_realm::profile;
pub use maniple_realm::simulation;
pub use maniple_realm::threads;
pub use maniple_realm::topology::{self, Topology};
pub use maniple_record as record;
pub use maniple_region::{
    Affine, Coherence, Complex, Complex32, Complex64, CustomProjection, Field, FieldDescriptor, FieldId, FieldMask,
    FieldNamed, FieldSpace, FieldType, FieldValue, Fields, IndexSpaceNode, LogicalPartition, LogicalRegion,
    NamedFields, OperatorId, Partitioning, Privilege, Projection, Provenance, Ptr, ReductionOperator, RegionError,
    Requirement, Target, TreeId, UpperBound, operators, register_reduction,
};
pub use maniple_space as space;
pub use maniple_space::{AnyPoint, AnyRect, AnySpace, IndexSpace, Point, PointSet, Rect};
