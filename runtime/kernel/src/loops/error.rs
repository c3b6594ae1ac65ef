//! Errors of ill-formed kernels.

use std::sync::Arc;

use super::{Intrinsic, Type};
use crate::element::ElementType;

/// A kernel breaks a rule of the loop IR.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("kernel `{kernel}`, at `{place}`: {rule}")]
pub struct IllFormed {
    /// The kernel's name.
    pub kernel: String,
    /// The first line of the statement, or the parameter, that breaks it.
    pub place: String,
    /// The rule.
    pub rule: Rule,
}

/// A rule that a kernel breaks, with what was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rule {
    /// Names are identifiers.
    #[error("`{0}` is no name: names are made of ASCII letters, digits and `_`, and don't start with a digit")]
    Name(Arc<str>),
    /// Names are bound once on a path.
    #[error("`{0}` is bound already: take another name for one of the two")]
    BoundTwice(Arc<str>),
    /// Variables and buffers are bound before they are used.
    #[error("`{0}` is not bound here: make it a parameter, or bind it before")]
    Unbound(Arc<str>),
    /// A variable or buffer is used as it was bound.
    #[error("`{0}` is used with a type, rank or access that it was not bound with")]
    Differs(Arc<str>),
    /// Types agree.
    #[error("expected {expected}, found {found}: insert a cast")]
    Type {
        /// The type that is needed at this place.
        expected: Type,
        /// The type that was found.
        found: Type,
    },
    /// Operators are for some types only.
    #[error("`{operator}` is not defined for {found}")]
    Undefined {
        /// The operator.
        operator: &'static str,
        /// The type of its operands.
        found: Type,
    },
    /// Complex numbers are cast to complex numbers only, and truth values not at all.
    #[error("{from} cannot be cast to {to}")]
    Cast {
        /// The operand's type.
        from: Type,
        /// The wanted type.
        to: ElementType,
    },
    /// An access has an index for each dimension.
    #[error("`{buffer}` has {rank} dimensions, and {found} indices or bounds are given")]
    Rank {
        /// The buffer.
        buffer: Arc<str>,
        /// How many dimensions it has.
        rank: usize,
        /// How many were given.
        found: usize,
    },
    /// A dimension is one of the buffer's.
    #[error("`{buffer}` has {rank} dimensions and so no dimension {dimension}")]
    Dimension {
        /// The buffer.
        buffer: Arc<str>,
        /// How many dimensions it has.
        rank: usize,
        /// The dimension that was asked for.
        dimension: usize,
    },
    /// Functions get their number of arguments.
    #[error("`{}` takes {} arguments, and {found} are given", function.name(), function.arguments())]
    Arguments {
        /// The function.
        function: Intrinsic,
        /// How many were given.
        found: usize,
    },
    /// Functions that are operators are written as such.
    #[error("`{0}` is an operator: write it with `Expression::call`, which makes it one, or `Expression::binary`")]
    Operator(Intrinsic),
    /// Buffers that are read are not stored into.
    #[error("`{0}` is stored into but declared as read only: declare it `Access::Update`")]
    ReadOnly(Arc<str>),
    /// Only mutable variables are set.
    #[error("`{0}` is set but not mutable: bind it with `Statement::bind_mutable`")]
    Immutable(Arc<str>),
    /// Iterations of a parallel loop only reduce into what is bound outside.
    #[error(
        "`{0}` is bound outside of a parallel loop, which sets it other than by one reduction, or also reads it: reduce into it with one \
         operator, or run the loop serially"
    )]
    Carried(Arc<str>),
    /// `Break` and `Continue` are in loops.
    #[error("there is no loop to break or to continue")]
    NoLoop,
    /// Parallel loops run to their end.
    #[error("a parallel loop cannot be broken: its iterations have no order. Run it serially, or guard its body")]
    BreaksParallel,
    /// Bodies are repeated at least once.
    #[error("a loop cannot be unrolled 0 times; 1 leaves it to the compiler")]
    Unroll,
    /// Atomic stores reduce.
    #[error("an atomic store needs a reduction that is no user's own, and of complex numbers a sum")]
    Atomic,
    /// Warps and threads are of a block.
    #[error("a loop over {0} belongs into a loop over blocks, and not into one of its own kind")]
    Gpu(&'static str),
    /// Kernels have a reasonable size.
    #[error("statements and expressions are nested more than {0} deep")]
    Depth(usize),
}
