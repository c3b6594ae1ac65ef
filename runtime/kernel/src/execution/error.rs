//! Why a kernel cannot be made or called, or fails.

use std::path::PathBuf;

use crate::element::ElementType;
use crate::loops::IllFormed;

/// A kernel cannot be made or called, or failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum KernelError {
    /// The kernel breaks a rule of the loop IR.
    #[error(transparent)]
    IllFormed(#[from] IllFormed),
    /// The wrong number of arguments.
    #[error("kernel `{kernel}` takes {expected} arguments, and {found} are given")]
    Count {
        /// The kernel.
        kernel: String,
        /// How many parameters it has.
        expected: usize,
        /// How many arguments there are.
        found: usize,
    },
    /// An argument does not fit its parameter.
    #[error("kernel `{kernel}` takes {expected} for `{parameter}`, and {found} is given")]
    Argument {
        /// The kernel.
        kernel: String,
        /// The parameter.
        parameter: String,
        /// A description of the arguments that fit.
        expected: String,
        /// A description of the argument that is given.
        found: String,
    },
    /// A division of integers by zero.
    #[error("kernel `{kernel}` divides an integer by zero")]
    DivisionByZero {
        /// The kernel.
        kernel: String,
    },
    /// An access beside its view. Only the interpreter finds it.
    #[error("kernel `{kernel}` accesses `{buffer}` at {indices:?}, outside of {bounds:?}")]
    OutOfBounds {
        /// The kernel.
        kernel: String,
        /// The buffer.
        buffer: String,
        /// The point.
        indices: Vec<i64>,
        /// For each dimension the lowest index and the one after the highest.
        bounds: Vec<(i64, i64)>,
    },
    /// A load of an element that was never stored. Only the interpreter finds it.
    #[error("kernel `{kernel}` loads `{buffer}` at {indices:?} before anything was stored there: allocate it zeroed")]
    Unset {
        /// The kernel.
        kernel: String,
        /// The buffer.
        buffer: String,
        /// The point.
        indices: Vec<i64>,
    },
    /// Two iterations of a parallel loop access one element, and at least one of them changes it. Only the interpreter
    /// finds it, when it is asked to.
    #[error(
        "in kernel `{kernel}`, two iterations of the parallel loop over `{variable}` access `{buffer}` at {indices:?}, and one changes it: \
         run the loop serially, or make both reduce atomically"
    )]
    Race {
        /// The kernel.
        kernel: String,
        /// The loop.
        variable: String,
        /// The buffer.
        buffer: String,
        /// The point.
        indices: Vec<i64>,
    },
    /// A buffer that the kernel wants for itself is too large.
    #[error("kernel `{kernel}` wants a buffer that does not fit into memory")]
    OutOfMemory {
        /// The kernel.
        kernel: String,
    },
    /// The team did not run each chunk of a loop once.
    #[error("the team of kernel `{kernel}` did not run all chunks of a loop")]
    Team {
        /// The kernel.
        kernel: String,
    },
    /// The C compiler refused the kernel or could not be run.
    #[error("`{compiler}` does not compile kernel `{kernel}`: {message}")]
    Compile {
        /// The kernel.
        kernel: String,
        /// The command.
        compiler: String,
        /// The message of the compiler.
        message: String,
    },
    /// The compiled library cannot be loaded.
    #[error("kernel `{kernel}`, compiled to {}, cannot be loaded: {message}", path.display())]
    Load {
        /// The kernel.
        kernel: String,
        /// The file.
        path: PathBuf,
        /// The message of the system.
        message: String,
    },
}

/// A view cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// Bounds and strides of different number.
    #[error("a view needs a stride for each dimension: there are {bounds} dimensions and {strides} strides")]
    Rank {
        /// How many dimensions have bounds.
        bounds: usize,
        /// How many strides there are.
        strides: usize,
    },
    /// The view reaches beyond its slice.
    #[error("a view of elements {lowest} to {highest} of {element} does not fit into a slice of {length}")]
    Outside {
        /// The lowest offset.
        lowest: i128,
        /// The highest offset.
        highest: i128,
        /// The element type.
        element: ElementType,
        /// The slice's length.
        length: usize,
    },
    /// Two points of a view that is to be changed are the same element.
    #[error(
        "a view that is to be changed needs an element for each point; strides {strides:?} over extents {extents:?} share some"
    )]
    Shared {
        /// The strides.
        strides: Vec<i64>,
        /// The extents.
        extents: Vec<i64>,
    },
}
