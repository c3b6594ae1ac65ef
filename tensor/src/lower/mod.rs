//! Statements to kernels of the loop IR.
//!
//! A kernel takes a view of each tensor, in the order of [`Statement::tensors`], and, if it is for the inside of some
//! loops, the values of these loops. It uses global coordinates, and no elements outside of the rectangles that
//! [bounds](crate::bounds) give for those values: a view of them is enough.
//!
//! ```
//! use maniple_tensor::concrete::Statement;
//! use maniple_tensor::element::ElementType;
//! use maniple_tensor::lower;
//! use maniple_tensor::notation::{TensorVariable, parse};
//!
//! let tensors = ["A", "B", "C"].map(|name| TensorVariable::new(name, ElementType::F64, [100, 100]));
//! let statement = Statement::new(&parse("A(i,j) = B(i,k) * C(k,j)", &tensors)?).split("i", "io", "ii", 32)?;
//! assert_eq!(
//!     lower::leaf(&statement, &["io".into()]).to_string(),
//!     "kernel A(A: update f64[2], B: read f64[2], C: read f64[2], io: i64)
//!     for ii in 0..min(32, 100 - io * 32)
//!         let i: i64 = io * 32 + ii
//!         for j in 0..100
//!             let mut sum: f64 = 0.0f64
//!             for k in 0..100
//!                 sum += B[i, k] * C[k, j]
//!             A[i, j] += sum
//! "
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | in reading order | |
//! | --- | --- |
//! | `leaf` | kernels, and nodes to statements of the loop IR |
//! | `ranges` | where loops end, so that no block reaches beyond the end of what was split; what is recovered on entering a loop |
//! | `sizes` | extents: numbers, or parameters of kernels for any size |
//! | `jam` | several iterations at once |
//! | `values` | expressions |
//! | `storage` | where elements are, and how far into its levels each access has come |
//! | `support` | of which accesses an element has to be stored for an iteration to have an effect |
//! | `iterate` | loops over what is stored, which merge |
//! | `elsewhere` | reductions of which all values are alike where nothing is stored |
//! | `bits` | loops over what bitmaps have |
//! | `locate` | what is found where its coordinates are known |
//! | `meet` | other ways of merging than step by step, where all of several accesses have to have an element |
//! | `positions` | loops over positions of an operand, and parts of them for threads |
//! | `append`, `list` | results that are appended to, and the workspaces in which their rows are gathered |
//! | `beside` | results that have elements exactly where an operand has some |
//! | `unset` | results whose elements the loops give their first values |
//! | `balance` | loops of threads in parts that have the same work |
//! | `stored` | kernels for tensors in levels, and what they are called with |
//! | `gathered` | which tensors a kernel reads at coordinates that are stored alone |

mod append;
mod background;
mod balance;
mod beside;
mod bits;
mod elsewhere;
mod gathered;
mod iterate;
mod jam;
mod leaf;
mod list;
mod locate;
mod meet;
mod positions;
mod ranges;
mod sizes;
mod storage;
mod stored;
mod support;
mod unset;
mod values;

pub use elsewhere::is_alike_elsewhere;
pub use gathered::{Gathered, LevelOf, gathered};
pub use leaf::{leaf, leaf_of_any_size, whole};
pub use meet::lattice_points;
pub use positions::acts_without;
pub use storage::NumberTypes;
pub(crate) use stored::adds_up;
pub use stored::{Appending, Output, Slot, StoredKernel, stored, stored_leaf};

#[allow(unused_imports)] // For the documentation.
use crate::concrete::Statement;
