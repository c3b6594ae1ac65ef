//! The loop IR as source: C for the system's compiler, CUDA C for NVRTC.

mod c;
mod expression;

pub use c::{ENTRY, print_c};

/// Which language is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    /// C with the extensions of GCC and Clang.
    C,
    /// CUDA C.
    Cuda,
}
