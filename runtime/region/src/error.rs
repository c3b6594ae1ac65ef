//! Errors in the use of names and shapes.

use maniple_space::{AnyPoint, AnyRect};

use crate::FieldId;

/// An error in the use of index spaces, field spaces, partitions or regions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegionError {
    /// A field space is full.
    #[error(
        "cannot add field `{field}`: the field space already has its most, {limit} fields; free one, or create the space with a higher limit"
    )]
    TooManyFields {
        /// The field that was to be added.
        field: String,
        /// The space's limit.
        limit: usize,
    },
    /// A field does not exist (any more).
    #[error("field #{} does not exist: it was never allocated in this field space, or has been freed", field.0)]
    NoSuchField {
        /// The field asked for.
        field: FieldId,
    },
    /// Something was used after it was destroyed.
    #[error("{what} has been destroyed; use it before, or destroy it later")]
    Destroyed {
        /// The destroyed object that was used.
        what: String,
    },
    /// Something was used after the run of the top-level task in which it was made.
    #[error("{what} ended with the `Runtime::run` that made it; use it there, or make a new one in this run")]
    Ended {
        /// The object that was used after its run.
        what: String,
    },
    /// Something of one runtime was used in another.
    #[error("{what} belongs to another runtime; make it, and use it, in one")]
    OtherRuntime {
        /// The object of another runtime that was used.
        what: String,
    },
    /// A region was named over an index space that is no part of its own.
    #[error("{space} is not part of {tree}; name the region by its own index space, or a piece of a partition of that")]
    NotInTree {
        /// The space.
        space: String,
        /// The region tree.
        tree: String,
    },
    /// A piece of a partition was to be destroyed by itself.
    #[error("a piece lives as long as its partition: destroy {partition} instead")]
    PieceDestroyed {
        /// The partition.
        partition: String,
    },
    /// A launch over a set of points has fewer than this number.
    #[error("a launch over {points} points has none with the number {point}")]
    NoSuchPoint {
        /// The number.
        point: AnyPoint,
        /// How many points there are.
        points: usize,
    },
    /// The function of a projection panicked.
    #[error("the projection of {bound}, asked for the data of point {point}, {panic}")]
    ProjectionPanicked {
        /// The region or partition that it starts from.
        bound: String,
        /// The point.
        point: AnyPoint,
        /// The message of the panic, and its place.
        panic: String,
        /// The stack, if `RUST_BACKTRACE` asked for it.
        backtrace: Option<String>,
    },
    /// More rows were asked for than an index space of one dimension can have.
    #[error("a region cannot have {rows} rows: the most are {}", i64::MAX)]
    TooManyRows {
        /// The rows asked for.
        rows: usize,
    },
    /// A partition does not have as many pieces as colors.
    #[error("a partition by {colors} colors needs as many pieces, found {pieces}")]
    ColorCount {
        /// Number of colors.
        colors: u64,
        /// Number of pieces.
        pieces: usize,
    },
    /// A piece has points that its parent lacks.
    #[error("the piece of color {color} has points outside {parent}; intersect it with the parent first")]
    PieceOutsideParent {
        /// The piece's color.
        color: AnyPoint,
        /// The space to be split.
        parent: String,
    },
    /// A color that a partition does not have.
    #[error("{partition} has no color {color}: its colors are {colors}")]
    NoSuchColor {
        /// The partition.
        partition: String,
        /// Its colors.
        colors: AnyRect,
        /// The color asked for.
        color: AnyPoint,
    },
    /// A projection is for points or colors of other dimensions, or leads to a color whose coordinates have no place in
    /// 64 bits.
    #[error(
        "a linear projection of points of {dimensions} dimension(s) gives no color of {partition}, which has the colors {colors}, for point {point}; use one from \
         the points of the launch to these colors"
    )]
    ProjectionDoesNotFit {
        /// The partition.
        partition: String,
        /// Its colors.
        colors: AnyRect,
        /// The point of the launch.
        point: AnyPoint,
        /// How many dimensions the points have that it is for.
        dimensions: usize,
    },
    /// A partition of another space was used on a region.
    #[error("{partition} splits {parent}, not {space}; partition the region's own index space")]
    OtherParent {
        /// The partition.
        partition: String,
        /// The index space or the region that the partition splits.
        parent: String,
        /// The region that the partition was used on.
        space: String,
    },
    /// A projection left its upper bound.
    #[error(
        "the projection gave point {point} the data {found}, which is not below the requirement's upper bound, {bound}"
    )]
    ProjectionOutOfBounds {
        /// The upper bound.
        bound: String,
        /// The point of the launch.
        point: AnyPoint,
        /// The data that the projection gave.
        found: String,
    },
    /// A projection over colors was used on a region.
    #[error(
        "a projection picks a piece of a partition, but the requirement names {region}; name a partition, or use a custom projection"
    )]
    NothingToProject {
        /// The region.
        region: String,
    },
}
