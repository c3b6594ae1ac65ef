//! What programs need: `use maniple::prelude::*;`.

pub use crate::operators::{And, Max, Min, Or, Product, Sum, Xor};
pub use crate::{
    Context, Domain, Error, Fields, FutureMap, IndexSpace, IntoTarget, Launch, Partition, Point, Ptr, Rect, Region,
    Result, Runtime, TaskLauncher, task,
};
