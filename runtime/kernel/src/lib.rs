//! Leaf kernels: what computes with the elements of arrays, once it is known where they are.
//!
//! A kernel is written in a small language of loops, checked, and run: by an interpreter, which is the reference, or as
//! C that is compiled at run time and kept on disk. Compilers of array programs, such as that of tensor algebra, are
//! its users. Nothing here knows of regions, tasks or tensors: elements are given as views of memory, and threads as a
//! team.
//!
//! | in reading order | |
//! | --- | --- |
//! | [`element`] | the numbers that arrays hold |
//! | [`operators`] | the table of operators and functions, with their algebra |
//! | [`arithmetic`] | what they give |
//! | [`loops`] | the loop IR, its rules, and its printers for C and CUDA C |
//! | [`execution`] | runs kernels: the interpreter, the C compiler, the cache on disk, teams of threads |
//!
//! ```
//! use maniple_kernel::element::ElementType::F64;
//! use maniple_kernel::element::Scalar;
//! use maniple_kernel::execution::{Argument, View, interpret};
//! use maniple_kernel::loops::{Access, Buffer, Kernel, Parameter, Statement, Variable, check};
//!
//! // x(i) = 2 * x(i)
//! let (x, i) = (Buffer::new("x", F64, 1, Access::Update), Variable::index("i"));
//! let double = Statement::store(&x, [i.value()], x.load([i.value()]) * Scalar::F64(2.0));
//! let body = Statement::for_each(&i, x.low(0), x.high(0), double);
//! let kernel = check(&Kernel { name: "double".into(), parameters: vec![Parameter::Buffer(x)], body })?;
//! let mut elements = [1.0, 2.5];
//! interpret(&kernel, &mut [Argument::View(View::dense_mut(&mut elements, &[2])?)], true)?;
//! assert_eq!(elements, [2.0, 5.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// What is in `clippy.toml`: the outside world enters through `realm` alone.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod arithmetic;
pub mod execution;
pub mod loops;
pub mod operators;

pub use maniple_element::{self as element, with_element, with_scalar};
