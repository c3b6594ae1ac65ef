//! Plans: what is launched where, what each point and step fetches, and the kernel that then runs.
//!
//! [`Plan::new`] takes a scheduled statement apart, from the outside to the inside: distributed loops become
//! [`Launch`]es, serial loops around communication become [`Sequence`]s, and what is below the last of them is the
//! [`Leaf`]. A plan is plain data, and knows nothing of the runtime. To run one:
//!
//! 1. If [`Plan::initial`] has a value, fill the result with it.
//! 2. A [`Launch`] is one index launch over the points from zero to before `extents`; the value of `variables[d]` at a
//!    point is its coordinate `d`. A [`Sequence`] is a loop. Either may be inside of the other.
//! 3. Both list their [`Use`]s: each tensor that is used inside, with a [`Privilege`]. Which part is used at a point or
//!    step is [`Plan::rectangle`], a function of the values of all variables from the outermost step to this one
//!    ([`Launch::fixed`]). A use that is *fetched* is to be brought into a memory near the processor at the start of
//!    this point or step; the others are named because something inside fetches a part of them, and a task that
//!    launches others has to hold their privileges. (It needs no instance of them.) A tensor that is only read may be
//!    fetched at several levels: an inner part is a part of the outer one, which is near already
//!    ([`Plan::outer_fetches`]).
//! 4. The [`Leaf`]'s kernel takes a view of each tensor ([`Leaf::tensors`], in this order), and as `i64` the values of
//!    [`Leaf::fixed`] and the extents of [`Leaf::sizes`]. The view of a tensor may be any instance that covers the
//!    rectangle that was fetched last on the way to the leaf; what no step fetches, the kernel wants whole. It stays
//!    within that rectangle, and within its parts.
//!
//! Every tensor is fetched at the innermost launch or inside of it, so a leaf in a task finds all its data among the
//! task's own. A block of a fused loop uses less than its rectangle: the rest of a row, whole rows, and the beginning
//! of another ([`RectangleOf::parts`](crate::bounds::RectangleOf::parts)). These parts of results with
//! [`Privilege::ReadWrite`] or [`Privilege::Write`] are disjoint between the points of a launch. Where points would
//! combine values into the same elements, or their parts would overlap, the privilege is [`Privilege::Reduce`]: the
//! kernel then combines with whatever is in its view, so instances for reduction, which begin as identities, are right,
//! and so are ordinary ones.
//!
//! Rectangles depend on nothing but the values, so equal values have equal rectangles: they can be made once and kept,
//! and most launches have few different ones (the tiles of a tensor). [`run_sequentially`](Plan::run_sequentially) does
//! all of the above on one processor, with a copy for each fetch, and shows how the parts fit together.
//!
//! ```
//! use maniple_tensor::concrete::Statement;
//! use maniple_tensor::element::ElementType;
//! use maniple_tensor::notation::{TensorVariable, parse};
//! use maniple_tensor::plan::Plan;
//!
//! let tensors = ["A", "B", "C"].map(|name| TensorVariable::new(name, ElementType::F64, [100, 100]));
//! let statement = Statement::new(&parse("A(i,j) = B(i,k) * C(k,j)", &tensors)?)
//!     .distribute(["i", "j"], ["io", "jo"], ["ii", "ji"], &[2, 2])?
//!     .split("k", "ko", "ki", 10)?
//!     .reorder(["ko", "ii", "ji", "ki"])?
//!     .communicate(["A"], "jo")?
//!     .communicate(["B", "C"], "ko")?;
//! let plan = Plan::new(&statement)?;
//! assert_eq!(
//!     plan.to_string(),
//!     "fill A with 0.0
//! launch (io, jo) over 2 x 2
//!   fetch A, read and written
//!   use B, read
//!   use C, read
//!   for ko in 0..10
//!     use A, read and written
//!     fetch B, read
//!     fetch C, read
//!     kernel A(A, B, C, io, jo, ko)
//! "
//! );
//! // At point (1, 0) and step 3, B is
//! let fixed = ["io", "jo", "ko"].map(Into::into);
//! assert_eq!(plan.rectangle("B", &fixed, &[1, 0, 3]).to_string(), "[50..100, 30..40]");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | in reading order | |
//! | --- | --- |
//! | `space` | what is stored of a tensor |
//! | `step` | what a plan consists of |
//! | `build` | statements to plans |
//! | `privilege` | what tasks may do with a tensor |
//! | `order` | when leaves run |
//! | `substitute` | leaves by a library's function |
//! | `share` | equal parts of what an operand stores |
//! | `graph` | the plans of a program as one: partitions, and launches over their pieces |
//! | `print` | plans as text |
//! | `piece`, `sequential` | a plan, or a graph, run on one processor, each leaf on copies of what was fetched |

mod build;
mod graph;
mod order;
mod piece;
mod print;
mod privilege;
mod sequential;
mod share;
mod space;
mod step;
mod substitute;

pub use build::PlanError;
pub(crate) use graph::rows_of;
pub use graph::{Fetch, Graph, GraphOperation, Launching, Partition, Pieces};
pub use order::PlanOrder;
pub use piece::Piece;
pub use sequential::{Fetched, RunError, RunLeaf};
pub use share::Shares;
pub use space::Space;
pub use step::{Launch, Leaf, Plan, Privilege, Sequence, Step, Use};
