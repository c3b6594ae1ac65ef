//! The numbers that arrays, files and tensors hold, by one table: a type of elements is a row of it.
//!
//! | | |
//! | --- | --- |
//! | [`ElementType`] | a type as a value, with its size, names and kind, and NumPy's rules of promotion |
//! | [`Scalar`] | an element of any type |
//! | [`Element`] | the Rust types that are elements |
//! | [`with_element!`] | code for the Rust type of an [`ElementType`] |

mod promotion;
mod table;

pub use num_complex::Complex;
#[doc(hidden)]
pub use table::rust;
pub use table::{Element, ElementType, Scalar};
