//! Dependent partitioning: from an index space, and from data, to lists of subspaces.
//!
//! Each function is pure and returns a vector of pieces; the position of a piece is its color. A
//! color space of several dimensions is linearised row-major. Pieces may overlap or leave points
//! out: whether they do is computed by [`is_disjoint`] and [`is_complete`], never assumed.
//!
//! The operators are those of Treichler, Bauer, Sharma, Slaughter and Aiken, *Dependent
//! Partitioning* (OOPSLA 2016):
//!
//! - from sizes: [`equal`], [`weighted`], [`blocks`], [`tiles`], [`restriction`] (`shape.rs`);
//! - from colors: [`by_coloring`], [`by_field`] (`color.rs`);
//! - through a field of pointers or ranges: [`image`], [`image_rects`] (`image.rs`), [`preimage`],
//!   [`preimage_rects`] (`preimage.rs`), reading fields by [`FieldRead`] (`field.rs`);
//!   each also for dimensions that are known only at run time ([`dynamic`]);
//! - from other partitions: [`pairwise_union`], [`pairwise_intersection`],
//!   [`pairwise_difference`], [`intersect_each`], [`cross_product`] (`algebra.rs`).

mod algebra;
mod collect;
mod color;
pub mod dynamic;
mod error;
mod field;
mod image;
mod preimage;
mod runs;
mod shape;

pub use algebra::{
    cross_product, intersect_each, is_complete, is_disjoint, pairwise_difference, pairwise_intersection, pairwise_union,
};
pub use color::{ColorSet, by_coloring, by_field};
pub use error::{PartitionError, checked_pieces};
pub use field::{FieldRead, SliceField};
pub use image::{image, image_rects};
pub use preimage::{preimage, preimage_rects};
pub use shape::{around, blocks, equal, restriction, tiles, weighted};
