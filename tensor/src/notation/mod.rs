//! Index notation: what to compute.
//!
//! `A(i,j) = B(i,k) * C(k,j)` names tensors and index variables. A variable that is on the right alone is summed over,
//! term by term: `a(i) = D(i,j) + b(i)` sums `D` over `j` and adds `b(i)` once. A variable that is on the left alone
//! broadcasts. Assignments are written in text ([`parse`]) or with Rust's operators ([`TensorVariable::at`]); either
//! way they are checked, and [`evaluate`] says what they mean.
//!
//! ```
//! use maniple_tensor::element::ElementType;
//! use maniple_tensor::notation::{TensorVariable, parse};
//!
//! let tensors = ["A", "B", "C"].map(|name| TensorVariable::new(name, ElementType::F64, [8, 8]));
//! let product = parse("A(i,j) = B(i,k) * C(k,j)", &tensors)?;
//! assert_eq!(product.to_string(), "A(i,j) = reduce(+, k, B(i,k) * C(k,j))");
//!
//! let mistake = parse("A(i,j) = B(i,k) * D(k,j)", &tensors).unwrap_err();
//! assert_eq!(
//!     mistake.to_string(),
//!     "no tensor is called D; there are A, B, C\n  A(i,j) = B(i,k) * D(k,j)\n                    ^"
//! );
//! # Ok::<(), maniple_tensor::notation::NotationError>(())
//! ```
//!
//! | in reading order | |
//! | --- | --- |
//! | `variable` | tensors, index variables, parts of dimensions, and places in a text |
//! | `expression` | expressions and accesses; `operators` writes them in Rust, `print` as text |
//! | `assignment` | a checked assignment; `check` has the rules, `types` those of element types, `sums` makes sums explicit, `masks` says where values are computed |
//! | `lexer`, `parser` | text; `made` gives tensors extents that a text makes by the way |
//! | `presence` | which operands have an entry, and what products leave out |
//! | `arithmetic`, `array`, `evaluate` | what an assignment means: every kernel must equal it |

mod arithmetic;
mod array;
mod assignment;
mod check;
mod error;
mod evaluate;
mod expression;
mod lexer;
mod made;
mod masks;
mod operators;
mod parser;
mod presence;
mod print;
mod sums;
mod types;
mod variable;

pub use arithmetic::{DivisionByZero, Value, binary, call, cast, is_fill, is_nan, is_zero, negate, reduce};
pub use array::DenseArray;
pub use assignment::Assignment;
pub use error::{NotationError, NotationErrorKind};
pub use evaluate::{EvaluateError, evaluate};
pub(crate) use evaluate::{ExpressionValues, Point, evaluate_expression};
pub(crate) use expression::element_of;
pub use expression::{Access, Expression, Literal, Test};
pub use maniple_kernel::arithmetic::CustomError;
pub use maniple_kernel::operators::{BinaryOperator, Custom, Formula, Intrinsic, Reduction, Special};
pub use parser::{parse, parse_all, parse_all_with_extents, parse_expression, parse_with_extents, sketch_all};
pub use presence::{
    Backgrounds, DivisorError, Presence, Term, TermResult, annihilator, background, has_entries, is_inexact, is_padded,
    keeps_all,
};
pub use variable::{IndexVariable, Span, TensorVariable, TextPlace, Window};

pub(crate) use presence::{is_among, is_divisor};
pub(crate) use types::typed;
pub(crate) use variable::is_name;
