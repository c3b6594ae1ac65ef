//! The arithmetic that the definition and the interpreter share, and that compiled kernels agree with.
//!
//! `order`: the lesser and the greater of two numbers; `division`: quotients of complex numbers; `functions`: functions of real and
//! complex numbers.

mod division;
mod functions;
mod order;

pub use division::divide;
pub use functions::Functions;
pub use order::Ordered;
