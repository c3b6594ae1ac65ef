//! Plans run on the runtime: tensors as regions, launches as index launches, with the data that they fetch brought where they run.
//!
//! A [`Tensor`] is a region, which can be [placed](Tensor::place). A [`Computation`] is a plan with its tensors, and [`compute`] runs one: for each combination of the
//! values of its sequences, one index launch over all points of its launches, whose requirements name for each point the rectangle that it fetches. A sequence
//! inside of a launch becomes a loop around it, which is the same for the points do not depend on each other; launches are deferred, so the data of later steps travels
//! while earlier ones compute. A [`TensorMapper`] keeps tiles where they are.
//!
//! Rectangles that occur are found once: each tensor gets one partition with a piece for each different one, and a launch says by a table which piece a point has. Steps
//! with equal tables share everything but their numbers.

mod computation;
mod elements;
mod error;
mod fetch;
mod held;
mod home;
mod launched;
mod leaf;
mod mapper;
mod modes;
mod operators;
mod place;
mod rows;
mod tensor;

pub use computation::{Computation, compute};
pub use error::DistributedError;
pub use launched::Launched;
pub use mapper::TensorMapper;
pub use tensor::Tensor;
