//! Results of operators and functions, for each type of element: the arithmetic of the interpreter and of definitions,
//! with which compiled kernels agree.
//!
//! `operate`: operators on elements of any type; `custom`: users' own reductions; `order`: the lesser and the greater
//! of two numbers; `division`: quotients of complex numbers; `functions`: functions of real and complex numbers.

mod custom;
mod division;
mod functions;
mod operate;
mod order;

pub use custom::CustomError;
pub use division::divide;
pub use functions::Functions;
pub use operate::{DivisionByZero, Value, binary, call, cast, is_fill, is_nan, is_zero, negate, reduce};
pub use order::Ordered;
