//! Sets of points in one to four dimensions, their algebra, and dependent partitioning.
//!
//! This crate is the geometry under regions and instances: which points there are, which pieces
//! they form, which pieces overlap. It knows no events, no data and no threads; every function is
//! pure. Coordinates are `i64`, bounds are inclusive, and order is row-major everywhere: the last
//! dimension runs fastest.
//!
//! In reading order:
//!
//! - [`Point`] and [`Rect`]: a point, and a dense box of points (`point.rs`, `rect.rs`);
//! - [`IndexSpace`]: any set of points, kept as disjoint rectangles in canonical form
//!   (`space.rs`). The form and the sweeps that compute with it are in `bands.rs`; [`Rows`] and
//!   [`Points`] visit a space in order; [`Membership`] tests for points in hot loops;
//! - [`partition`]: pieces of a space by size, by color, and through fields of pointers, and
//!   what is true of them;
//! - [`OverlapIndex`], [`DynamicBoxTree`], [`overlapping_pairs`]: what overlaps what (`overlap/`);
//! - [`AnyPoint`], [`AnyRect`], [`AnySpace`]: the same things when the number of dimensions is
//!   known only at run time (`dynamic.rs`, `dynamic_lists.rs`).
//!
//! A graph of wires between nodes, cut into two pieces, and the nodes that each piece needs from
//! the other:
//!
//! ```
//! use maniple_space::partition::{self, SliceField};
//! use maniple_space::{IndexSpace, Point, Rect};
//!
//! // Eight nodes in a ring; wire `i` leads from node `i` to node `i + 1`.
//! let nodes = IndexSpace::from(Rect::from(0..8));
//! let wires = nodes.clone();
//! let ends: Vec<Point<1>> = (0..8).map(|i| Point([(i + 1) % 8])).collect();
//! let end_of_wire = SliceField::new(wires.bounds(), &ends);
//!
//! let owned = partition::equal(&nodes, 2)?;
//! let wires_of_piece = owned.clone();
//! let reached = partition::image(&wires_of_piece, &end_of_wire, &nodes);
//! let ghosts = partition::pairwise_difference(&reached, &owned)?;
//!
//! assert_eq!(ghosts[0], IndexSpace::from(Rect::from(4..5)));
//! assert_eq!(ghosts[1], IndexSpace::from(Rect::from(0..1)));
//! assert!(partition::is_disjoint(&owned) && partition::is_complete(&owned, &nodes));
//! # Ok::<(), partition::PartitionError>(())
//! ```

// What is in `clippy.toml`: the outside world enters through `realm` alone.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod bands;
mod bitmap;
mod covering;
mod dynamic;
mod dynamic_lists;
mod finder;
mod membership;
mod overlap;
pub mod partition;
mod point;
mod point_set;
mod rect;
mod rows;
mod space;

pub use dynamic::{AnyPoint, AnyRect, AnySpace, DimensionMismatch, MAX_DIMENSIONS};
pub use membership::Membership;
pub use overlap::{BoxHandle, DynamicBoxTree, OverlapIndex, OverlapLists, first_overlapping_pair, overlapping_pairs};
pub use point::Point;
pub use point_set::PointSet;
pub use rect::{Rect, RectPoints};
pub use rows::{Points, Rows};
pub use space::IndexSpace;
