//! Operators and functions: one table of what is known of each, for all code that writes, checks, runs or transforms
//! expressions.
//!
//! | in reading order | |
//! | --- | --- |
//! | [`Properties`], [`Domain`], [`Special`] | what is known: name, arity, types, identity, annihilator, which zeros make a zero |
//! | [`UnaryOperator`], [`BinaryOperator`], [`Intrinsic`] | the table |
//! | [`Formula`] | what users combine values by |
//! | [`Reduction`], [`Custom`] | operators in which many values are combined |
//!
//! The results of each operator and function are in [`arithmetic`](crate::arithmetic).

mod formula;
mod properties;
mod reduction;
mod table;
#[cfg(test)]
mod tests;

pub use formula::Formula;
pub use properties::{Domain, Properties, Special};
pub use reduction::{Custom, Reduction};
pub use table::{BinaryOperator, Intrinsic, UnaryOperator};
