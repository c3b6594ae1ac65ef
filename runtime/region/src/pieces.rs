//! The pieces of a partition, here or elsewhere.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use maniple_space::AnySpace;

use crate::Shape;

/// The points of a partition's pieces.
pub(crate) enum PartitionPieces {
    Here(Arc<[Shape]>),
    Elsewhere {
        source: Arc<dyn PieceSource>,
        /// The pieces that are known here.
        some: Box<[OnceLock<Shape>]>,
        /// All, once one was asked for that was not known.
        all: OnceLock<Box<[Shape]>>,
    },
}

/// The source of the pieces of a partition that is not known here as a whole.
pub trait PieceSource: Any + Send + Sync {
    /// The points of all pieces, in the order of their numbers: subsets of the parent. Asked once. It may take a while,
    /// and must not be asked by a thread that holds what other threads need to answer.
    fn pieces(&self) -> Vec<AnySpace>;

    /// Whether no two pieces share a point, if that is known without the pieces.
    fn is_disjoint(&self) -> Option<bool>;
}
