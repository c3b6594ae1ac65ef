//! A system's BLAS in place of the crate `gemm`: vendors' libraries are faster on some processors.
//!
//! In reading order: [`choice`]: which library, and why; [`cores`]: which processors OpenBLAS knows;
//! [`library`](mod@library): how one is loaded, asked and tried; [`product`]: how it is called; [`error`]: why it may
//! not be used.
//!
//! Libraries are found at run time: nothing links to them. The threads are the runtime's own, so a library is told to
//! have one.

mod choice;
mod cores;
mod error;
mod library;
mod product;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use self::choice::Choice;
use self::library::Blas;

pub use self::error::BlasError;
pub(super) use self::product::multiply;

/// The choice of the library that multiplies in this process.
static SHARED: OnceLock<Choice> = OnceLock::new();

/// The choice of the library that multiplies in this process. Chooses if nothing has been chosen.
fn shared() -> &'static Choice {
    SHARED.get_or_init(Choice::of_environment)
}

/// Chooses what multiplies matrices in this process, in place of the environment variable `MANIPLE_BLAS`. To be called
/// before the first product.
///
/// It is a library's name or path, which is used whatever the processor; `none` for the crate `gemm`; or `auto` for
/// what is chosen by default: the first of OpenBLAS, BLIS and MKL that is installed and has kernels for this processor,
/// else `gemm`. Of OpenBLAS, versions are passed over that take code for older processors than this one, as they do for
/// those that they don't know. Where nothing is found, `auto` logs why, at level warn; the default says nothing.
/// Nothing is timed, so the choice is the same whenever the program runs.
///
/// The library is told to use one thread, in the whole process: a program that uses the same library for something else
/// may want `none`.
///
/// # Errors
///
/// [`BlasError`] if the library cannot be used; then nothing has been chosen, except if it is too late.
pub fn use_library(name: &str) -> Result<(), BlasError> {
    let late = || BlasError::Late { library: name.to_owned(), used: library().to_owned() };
    if SHARED.get().is_some() {
        return Err(late());
    }
    SHARED.set(Choice::of(name)?).map_err(|_| late())
}

/// The library that multiplies matrices of floats and complex numbers in this process, with its version and the core
/// that its kernels are for if it tells them, or `gemm`. Chooses if nothing has been chosen.
pub fn library() -> &'static str {
    shared().blas.as_ref().map_or("gemm", |blas| &blas.name)
}

/// Why it is this [`library`], in words. Chooses if nothing has been chosen.
pub fn library_reason() -> &'static str {
    &shared().reason
}
