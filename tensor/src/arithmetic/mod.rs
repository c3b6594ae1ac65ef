//! The arithmetic that the definition and the interpreter share, and that compiled kernels agree with.
//!
//! `order`: the lesser and the greater of two numbers; `division`: quotients of complex numbers; `functions`: functions of real and
//! complex numbers.

mod division;
mod functions;
mod order;

pub(crate) use division::divide;
pub(crate) use functions::Functions;
pub(crate) use order::Ordered;
