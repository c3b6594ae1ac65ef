//! Tasks: named functions with requirements, in one or more variants.
//!
//! - [`definition`]: a task and its variants; [`generator`]: variants that are made while the program
//!   runs; [`registry`]: tasks that `#[task]` made known at link time;
//! - [`call`]: what a body sees of the call; [`workers`]: the workers that help with its loops; `digest`: what nodes
//!   compare of what they pass; [`migratable`]: how tasks go to other nodes.

pub(crate) mod arguments;
pub(crate) mod body;
pub mod call;
pub(crate) mod compared;
pub mod definition;
pub(crate) mod digest;
pub mod generator;
pub mod migratable;
pub(crate) mod number;
pub mod registry;
pub(crate) mod taken;
pub mod workers;

pub use crate::data::value::{Codec, Value};
pub use body::{Body, BoxFuture, LeafBody};
pub use call::{ContextCall, LeafCall};
pub(crate) use definition::OnFailure;
pub use definition::{TaskDefinition, TaskOptions};
pub use generator::{GeneratedVariant, VariantRequest, WantedData};
pub use registry::declared;
pub use workers::Workers;
