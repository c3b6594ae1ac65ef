//! Statements to kernels of the loop IR.

pub mod product;
