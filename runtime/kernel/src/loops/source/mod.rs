//! The loop IR as source: C for the system's compiler, CUDA C for NVRTC.

mod analysis;
mod c;
mod contraction;
mod cuda;
mod expression;
mod streams;

pub use c::{ENTRY, Strides, print_c};
pub use contraction::contracts_in_sums_alone;
pub use cuda::{CudaError, print_cuda};

/// Which language is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    /// C with the extensions of GCC and Clang.
    C,
    /// CUDA C.
    Cuda,
}
