//! Concrete statements: in which loops an assignment is computed.
//!
//! A [`Statement`] is a tree of loops ([`StatementNode`]) and [`Relation`]s between their variables. [`Statement::new`]
//! makes one for an assignment: loops over the left side's variables in their order, then over those that are reduced
//! over, and a scalar for each sum that is not the whole right side. [Schedules](crate::schedule) then change loops and
//! add relations, from which the coordinates that accesses use are recovered. Printed, a statement shows both.
//!
//! ```
//! use maniple_tensor::concrete::Statement;
//! use maniple_tensor::element::ElementType;
//! use maniple_tensor::notation::{TensorVariable, parse};
//!
//! let tensors = ["A", "B", "C"].map(|name| TensorVariable::new(name, ElementType::F64, [100, 100]));
//! let statement = Statement::new(&parse("A(i,j) = B(i,k) * C(k,j)", &tensors)?);
//! let tiled = statement.split("i", "io", "ii", 32)?.reorder(["io", "j", "ii"])?;
//! assert_eq!(
//!     tiled.to_string(),
//!     "A(i,j) = 0
//! for io in 0..4
//!   for j in 0..100
//!     for ii in 0..32
//!       for k in 0..100
//!         A(i,j) += B(i,k) * C(k,j)
//! such that
//!   i = io * 32 + ii < 100
//! "
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | in reading order | |
//! | --- | --- |
//! | `node` | loops, assignments, and workspaces |
//! | `relation` | how variables are made of others |
//! | `statement` | both together; what variables range over and descend from |
//! | `concretise` | assignments to statements |
//! | `print` | statements as text |
//! | `evaluate` | what a statement means: loops run as they stand, and coordinates are recovered at each assignment |

mod concretise;
mod evaluate;
mod node;
mod print;
mod relation;
mod statement;

pub(crate) use concretise::with_lengths;
pub use evaluate::evaluate;
pub(crate) use node::Site;
pub use node::{Execution, Loop, Merge, StatementNode, Substitution, Unit};
pub use relation::{Positions, Relation};
pub use statement::Statement;
