//! The values that the points of a launch have returned.

use std::any::Any;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use maniple_realm::fault;

use crate::data::value::Value;
use crate::support::drop_caught;
use crate::support::error::{Error, Result};

use super::once::Once;

/// Results of points. One that is `()` is not kept: it is there when the launch has ended well. So most launches need
/// no room for any, and it is made for the first one: a launch costs the same however many points it has.
#[derive(Default)]
pub(crate) struct PointResults {
    places: OnceLock<Box<[Once<Result<Value>>]>>,
    /// Some of them have been put in place.
    are_any: AtomicBool,
}

impl PointResults {
    /// Keeps what one of so many points has returned, unless it is `()`. Whether it does.
    #[inline]
    pub(crate) fn set_good(&self, points: impl FnOnce() -> usize, index: usize, value: Value) -> bool {
        // Points that end on several cores would all write to the same lines.
        let is_kept = !value.is::<()>();
        if is_kept {
            self.keep(points(), index, Ok(value));
        }
        is_kept
    }

    /// Keeps the result of one of so many points, unless it is `()`.
    pub(crate) fn set(&self, points: usize, index: usize, value: Result<Value>) {
        match value {
            Ok(value) => {
                self.set_good(|| points, index, value);
            }
            Err(error) => self.keep(points, index, Err(error)),
        }
    }

    fn keep(&self, points: usize, index: usize, value: Result<Value>) {
        if !self.are_any.load(Ordering::Relaxed) {
            self.are_any.store(true, Ordering::Relaxed);
        }
        let places = self.places.get_or_init(|| (0..points).map(|_| Once::new()).collect());
        let first = places[index].set(value);
        debug_assert!(first, "a point has one result");
    }

    /// The result of a point, if it is there and not `()`.
    pub(crate) fn get(&self, index: usize) -> Option<Result<&dyn Any, &Error>> {
        let value = self.places.get()?.get(index)?.get()?;
        Some(value.as_ref().map(Value::as_any))
    }

    /// The failures of points that have failed, in their order.
    pub(crate) fn errors(&self) -> impl Iterator<Item = &Error> {
        let places = self.places.get().map_or(&[][..], |places| places);
        places.iter().filter_map(|value| value.get().and_then(|value| value.as_ref().err()))
    }

    /// Drops what the points of a task have returned. The destructor of one that panics is logged, and the others go
    /// all the same.
    #[inline(always)]
    pub(crate) fn drop_caught(&mut self, task: &str) {
        if *self.are_any.get_mut() {
            self.let_all_go(task);
        }
    }

    fn let_all_go(&mut self, task: &str) {
        *self.are_any.get_mut() = false;
        let mut values = self.places.get_mut().into_iter().flatten();
        while let Err(fault) = fault::catch(|| values.by_ref().for_each(|value| drop(value.take()))) {
            drop_caught::tell("a result", task, &fault);
        }
    }
}
