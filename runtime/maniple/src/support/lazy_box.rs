//! Values that are made when they are first needed.

use std::ops::Deref;
use std::sync::OnceLock;

/// A value in a box of its own, made at the first use: most tasks that are forked never need it.
#[derive(Debug)]
pub(crate) struct LazyBox<T>(OnceLock<Box<T>>);

impl<T> LazyBox<T> {
    /// The value, if it has been needed.
    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.get().map(|value| &**value)
    }
}

impl<T> Default for LazyBox<T> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<T: Default> Deref for LazyBox<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.get_or_init(Box::default)
    }
}
