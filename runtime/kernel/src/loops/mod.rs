//! The loop IR: the small typed language in which leaf kernels are written.
//!
//! A [`Kernel`] takes views of tensors and scalars, and is made of loops over 64-bit indices, lets, stores and
//! arithmetic. It is checked by [`verify`], runs in the interpreter, and prints as C and as CUDA C; all three mean the
//! same.
//!
//! Buffers are *views*: an address, a rectangle (for each dimension its lowest index and the one after its highest) and
//! strides in elements. They are indexed by global coordinates, so that one kernel serves every piece of a distributed
//! tensor.
//!
//! # Meaning
//!
//! - Integers wrap. Dividing an integer by zero ends the kernel with an error; the smallest integer divided by -1 is
//!   itself.
//! - `min` and `max` of floats are IEEE 754-2019 `minimum` and `maximum`: NaN if either argument is, and -0 is less
//!   than +0.
//! - A cast from a float to an integer saturates, and makes 0 of NaN. Complex numbers are cast to complex numbers only.
//! - `and`, `or` and `select` evaluate no more than they need.
//! - In sums, terms may be contracted (`sum + a * b` rounded once), in C where nothing else can be contracted; a GPU
//!   may do it everywhere. Floats are summed in the order of the loops, except over a [`Vector`](LoopKind::Vector),
//!   [`Threads`](LoopKind::Threads), [`Chunks`](LoopKind::Chunks), [`Block`](LoopKind::Block), [`Warp`](LoopKind::Warp)
//!   or [`Thread`](LoopKind::Thread) loop, which may add in any order.
//! - The iterations of those loops are independent: none reads or writes what another one writes, save that several may
//!   reduce into one element or scalar with the same operator. The interpreter can check it.
//!
//! # Example
//!
//! ```
//! use maniple_kernel::element::ElementType::F64;
//! use maniple_kernel::loops::*;
//!
//! // y(i) += alpha * x(i), for all i of y
//! let x = Buffer::new("x", F64, 1, Access::Read);
//! let y = Buffer::new("y", F64, 1, Access::Update);
//! let alpha = Variable::new("alpha", F64);
//! let i = Variable::index("i");
//! let body = Statement::store(&y, [i.value()], alpha.value() * x.load([i.value()])).reduce(Reduction::Sum);
//! let kernel = Kernel {
//!     name: "axpy".into(),
//!     parameters: vec![Parameter::Scalar(alpha), Parameter::Buffer(x), Parameter::Buffer(y.clone())],
//!     body: Statement::for_each(&i, y.low(0), y.high(0), body).with_kind(LoopKind::Vector),
//! };
//! assert_eq!(
//!     kernel.to_string(),
//!     "kernel axpy(alpha: f64, x: read f64[1], y: update f64[1])\n\
//!      \x20   vector for i in low(y, 0)..high(y, 0)\n\
//!      \x20       y[i] += alpha * x[i]\n"
//! );
//! ```
//!
//! | in reading order | |
//! | --- | --- |
//! | [`Expression`], [`Variable`], [`Buffer`] | values |
//! | [`Statement`], [`LoopKind`] | what is done |
//! | [`Kernel`], [`Parameter`] | a whole kernel |
//! | [`FreshNames`] | fresh names, for code that makes kernels |
//! | [`verify`], [`IllFormed`] | the rules |
//! | [`check`], [`Checked`] | a kernel made ready for the back ends |
//! | [`print_c`], [`print_cuda`] | a kernel as source |

mod error;
mod expression;
mod kernel;

mod print;
mod promote;
mod source;
mod statement;
#[cfg(test)]
mod tests;
mod verify;

pub use crate::operators::{BinaryOperator, Intrinsic, Reduction, UnaryOperator};
pub use error::{IllFormed, Rule};
pub use expression::{Access, Buffer, Expression, Type, Variable};
pub use kernel::{FreshNames, Kernel, Parameter};
pub use promote::{Checked, check};
pub(crate) use source::contracts_in_sums_alone;
pub use source::{CudaError, ENTRY, Strides, print_c, print_cuda};
pub use statement::{LoopKind, Scope, Statement};
pub use verify::verify;
