//! Futures: handles to results of tasks that are still to come. [`Future`] is that of one result, [`FutureMap`] that of
//! all points of a launch.

mod argument;
mod map;
mod single;

pub use argument::Argument;
pub use map::FutureMap;
pub use single::{Awaited, Future};
