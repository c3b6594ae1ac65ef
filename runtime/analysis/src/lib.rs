//! # The analyses, as state machines
//!
//! The analyses that a runtime makes of a program's launches, as functions from a state and an operation to the next
//! state and the work that is due. Nothing here knows of threads, locks, messages or mappers: operations, instances and
//! events are opaque values of the caller's, so each analysis runs alone and is tested against a simple model.
//!
//! In reading order:
//!
//! - [`order`]: which operations must be mapped before a new one, from the region trees alone;
//! - [`validity`]: which instances hold current data, what must be copied, filled or applied before an operation, and
//!   after what;
//! - [`distribution`]: which node uses what, and what nodes must send each other before a launch;
//! - [`repeats`]: where a stream of launches repeats itself, and which trace to replay next.
//!
//! # Example
//!
//! A task writes the left half of a region, another the right half, and a third reads all of it. Mapping the third must
//! wait for both; the second need not wait for the first.
//!
//! ```
//! use maniple_analysis::order::{self, Contributions, ProgramOrder};
//! use maniple_region::{FieldMask, FieldType, Forest, Privilege, Requirement, Target};
//! use maniple_space::{AnyRect, AnySpace, Rect};
//!
//! #[derive(Clone, PartialEq)]
//! struct Task(&'static str);
//!
//! impl order::OrderedOperation for Task {
//!     fn is_mapped(&self) -> bool {
//!         false
//!     }
//!
//!     fn is_same(&self, other: &Self) -> bool {
//!         self == other
//!     }
//! }
//!
//! let interval = |range| AnySpace::from(Rect::<1>::from(range));
//! let forest = Forest::new();
//! let (rows, fields) = (forest.index_space(&interval(0..10)), forest.field_space(1));
//! let charge = FieldMask::of(fields.allocate("charge", FieldType::of::<f32>())?);
//! let region = forest.region(&rows, &fields)?;
//! let halves = forest.partition(&rows, AnyRect::from(Rect::<1>::from(0..2)), &[interval(0..5), interval(5..10)])?;
//! let halves = region.partition(&halves)?;
//!
//! let mut order = ProgramOrder::default();
//! let mut before = |task, target: Target, privilege| {
//!     let mut before = Vec::new();
//!     let requirement = Requirement::new(target, charge.clone(), privilege);
//!     order.register(&Task(task), &requirement, Contributions::Commute, &mut |earlier| before.push(earlier.0));
//!     before.sort_unstable();
//!     before
//! };
//! assert!(before("left", halves.piece(0.into())?.into(), Privilege::ReadWrite).is_empty());
//! assert!(before("right", halves.piece(1.into())?.into(), Privilege::ReadWrite).is_empty());
//! assert_eq!(before("sum", region.into(), Privilege::Read), ["left", "right"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod distribution;
pub mod order;
pub mod repeats;
pub mod validity;
