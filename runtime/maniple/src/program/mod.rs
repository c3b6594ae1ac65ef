//! The functions and types that programs and the code of `#[task]` use.

#[doc(hidden)]
pub mod generated;
mod launching;
pub mod prelude;
pub(crate) mod runtime;
pub(crate) mod session;
pub(crate) mod top_level;
