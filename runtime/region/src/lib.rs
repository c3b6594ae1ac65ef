//! # Names and shapes
//!
//! The data model of the Maniple runtime, without anything that runs: a *logical region* is an index space (rows)
//! crossed with a field space (columns); *partitions* name parts of it, in as many ways at once as a program likes; a
//! *requirement* says what an operation wants to do with which fields of which part. In reading order:
//!
//! - [`field`], [`mask`]: columns and sets of them;
//! - [`tree`], [`forest`]: index spaces, partitions, and where they are made; [`shape`]: their points, compared and
//!   combined quickly;
//! - [`deletion`]: for which operations a name is destroyed; `renewal`: names that are used again;
//! - [`region`]: logical regions and logical partitions;
//! - [`privilege`], [`operators`]: what may be done with data, and in which order; ways of reducing;
//! - [`requirement`]: data, fields, privilege, and for index launches the projection from points to data;
//! - [`affine`]: projections that are plain data;
//! - [`provenance`]: where in a program something was launched;
//! - [`mod@pointer`]: fields and points that carry Rust types.
//!
//! ```
//! use maniple_region::{FieldType, Forest};
//! use maniple_space::{AnyRect, AnySpace, IndexSpace, Rect};
//!
//! let forest = Forest::new();
//! let rows = forest.index_space(&AnySpace::from(IndexSpace::from(Rect::<1>::from(0..10))));
//! let columns = forest.field_space(16);
//! let charge = columns.allocate("charge", FieldType::of::<f32>())?;
//! let nodes = forest.region(&rows, &columns)?;
//!
//! let halves: Vec<AnySpace> = [0..5, 5..10].map(|half| IndexSpace::from(Rect::<1>::from(half)).into()).into();
//! let split = forest.partition(&rows, AnyRect::from(Rect::<1>::from(0..2)), &halves)?;
//! assert!(split.is_disjoint() && split.is_complete());
//! let upper = nodes.partition(&split)?.piece(1.into())?;
//! assert!(upper.is_within(&nodes));
//! assert_eq!(columns.name_of(charge), "charge");
//! # Ok::<(), maniple_region::RegionError>(())
//! ```

// What is in `clippy.toml`: the outside world enters through `realm` alone.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod affine;
pub mod deletion;
pub mod endings;
pub mod error;
pub mod field;
pub mod forest;
pub mod mask;
pub mod operators;
mod pieces;
pub mod pointer;
pub mod privilege;
pub mod provenance;
pub mod region;
mod renewal;
pub mod requirement;
pub mod shape;
pub mod tree;

pub use affine::Affine;
pub use deletion::{Deletions, Tombstone};
pub use endings::endings;
pub use error::RegionError;
pub use field::{DEFAULT_MAX_FIELDS, FieldDescriptor, FieldId, FieldSpace, FieldType, FieldValue};
pub use forest::Forest;
pub use mask::FieldMask;
pub use num_complex::{Complex, Complex32, Complex64};
pub use operators::{OperatorId, ReductionOperator, register_reduction};
pub use pieces::PieceSource;
pub use pointer::{Checked, Field, FieldNamed, Fields, NamedFields, Ptr};
pub use privilege::{Coherence, Privilege};
pub use provenance::Provenance;
pub use region::{LogicalPartition, LogicalRegion, RegionTree, TreeId};
pub use requirement::{CustomProjection, Projection, Requirement, Target, UpperBound};
pub use shape::{Shape, ShapeTable};
#[doc(hidden)]
pub use tree::KeptPartitions;
pub use tree::{IndexSpaceNode, NodeId, Partitioning};
