//! Kernels for sparse tensors: assignments whose loops visit what is stored.
//!
//! An assignment and the formats of its tensors become one kernel of the loop IR (Kjolstad et al., *The tensor algebra
//! compiler*, OOPSLA 2017; Chou et al., OOPSLA 2018). Where several operands have a variable, its loop merges what they
//! store: products meet, sums unite, by the algebra of the operators.
//!
//! | in reading order | |
//! | --- | --- |
//! | `order` | which variable is the outermost |
//! | `arrange` | the loops of a statement, and which operands have to be converted for them |
//! | `blocks` | dense rows that are summed in registers |
//! | `reshape` | operands in blocks, as tensors of more dimensions |
//! | `entries` | products with what is stored entry by entry |
//! | `data` | what kernels are given of tensors in memory |
//! | `run` | kernels run on tensors in memory, and what is kept from one run to the next |
//! | `compute` | assignments that can be computed |
//! | `stored_blocks` | operands that are better stored by blocks |
//! | `explain` | how that is done, as text |
//!
//! ```
//! use maniple_tensor::element::ElementType::F64;
//! use maniple_tensor::notation::{TensorVariable, parse};
//! use maniple_tensor::sparse::Computation;
//! use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, pack};
//!
//! let csr = "csr".parse()?;
//! let (a, x) = (TensorVariable::new("A", F64, [2, 3]).stored("csr".parse()?), TensorVariable::new("x", F64, [3]));
//! let multiply = parse("y(i) = A(i,j) * x(j)", &[a, x, TensorVariable::new("y", F64, [2])])?;
//! let mut entries = EntryList::new(2);
//! entries.push(&[0, 2], 2.0);
//! entries.push(&[1, 0], 3.0);
//! let a = pack(&csr, &[2, 3], 0.0, entries, Duplicates::Sum)?.tensor;
//! let x = SparseTensor::from_elements(&[3], 0.0, vec![1.0, 10.0, 100.0])?;
//! let y = Computation::new(&multiply)?.run(&[("A", &a), ("x", &x)])?;
//! assert_eq!(y.values(), [200.0, 3.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arrange;
mod blocks;
mod calls;
mod compute;
mod data;
mod entries;
mod error;
mod explain;
mod order;
mod reshape;
mod run;
mod stored_blocks;

pub use compute::Computation;
pub use error::SparseError;
pub use stored_blocks::stored_by_blocks;
