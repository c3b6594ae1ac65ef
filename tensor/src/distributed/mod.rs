//! Plans run on the runtime: tensors as regions, launches as index launches, with the data that they fetch brought where they run.
//!
//! A [`Tensor`] is a region. [`compute`] runs a plan: for each combination of the values of its sequences, one index launch over all points of its launches, whose requirements
//! name for each point the rectangle that it fetches. A sequence inside of a launch becomes a loop around it, which is the same for the points do not depend on each
//! other; launches are deferred, so the data of later steps travels while earlier ones compute.
//!
//! Rectangles that occur are found once: each tensor gets one partition with a piece for each different one, and a launch says by a table which piece a point has. Steps
//! with equal tables share everything but their numbers.

mod error;
mod operators;
mod run;
mod tensor;

pub use error::DistributedError;
pub use run::compute;
pub use tensor::Tensor;
