//! Operators and functions: one table of what is known of each, for all who write, check, run or transform expressions.
//!
//! | in reading order | |
//! | --- | --- |
//! | [`Properties`], [`Domain`], [`Special`] | what is known: name, arity, types, identity, annihilator, which zeros make a zero |
//! | [`UnaryOperator`], [`BinaryOperator`], [`Intrinsic`] | the table |
//! | [`Reduction`] | operators in which many values are combined |
//!
//! What each gives is in [`arithmetic`](crate::arithmetic).

mod properties;
mod reduction;
mod table;
#[cfg(test)]
mod tests;

pub use properties::{Domain, Properties, Special};
pub use reduction::Reduction;
pub use table::{BinaryOperator, Intrinsic, UnaryOperator};
