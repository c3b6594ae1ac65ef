//! Accessors: what a task body reads and writes fields through.
//!
//! An accessor reaches just the points of its region and does just what its privilege allows, whatever the layout of
//! the instance. Indexing by a point checks that the region has it, and panics if not; inner loops that want plain
//! slices take [spans](Read::span).
//!
//! `column` is the one place that touches memory; [`Read`], [`Write`] and [`Reduce`] are its safe faces.

mod column;
mod piece;
mod read;
mod reduce;
mod rows;
mod span;
mod strided;
mod write;

pub use piece::PieceInfo;
pub use read::Read;
pub use reduce::Reduce;
pub use span::{Span, SpanMut};
pub use strided::Strided;
pub use write::Write;

pub(crate) use column::{Column, ColumnPlace};
pub(crate) use rows::{ErasedValues, Rows, RowsMut};
