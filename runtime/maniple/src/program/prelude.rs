//! Names that programs need: `use maniple::prelude::*;`.
//!
//! [`Future`](crate::Future) is not among it, since it would hide the trait of that name.

pub use crate::operators::{And, ArgMax, ArgMin, Located, Max, Min, Or, Product, Sum, Xor};
pub use crate::{
    AnyPoint, Context, Domain, Error, Field, Fields, FutureMap, IndexSpace, IntoTarget, Launch, Output, Partition,
    Point, Ptr, Rect, ReductionOperator, Region, Result, Runtime, TaskLauncher, task,
};
pub use bytemuck::Zeroable;
