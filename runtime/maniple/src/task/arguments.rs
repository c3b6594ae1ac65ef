//! The arguments of a launch, and the memory that they are kept in.
//!
//! A loop launches the same tasks with arguments of the same types over and over. Those of plain types, which own nothing, leave their memory to
//! the next launch of this thread.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::sync::Arc;

use maniple_realm::prefetch_for_writing;

use crate::let_go::let_go;

/// The arguments of a launch, shared by its points.
#[derive(Clone)]
pub(crate) struct Arguments {
    /// None if they are `()`.
    values: Option<Arc<dyn Any + Send + Sync>>,
    /// Dropping the values does nothing, so it matters to nobody when that happens.
    is_plain: bool,
}

/// So much memory is kept for later by a thread.
const MOST_SPARE: usize = 64;

thread_local! {
    static SPARE: RefCell<Vec<Arc<dyn Any + Send + Sync>>> = const { RefCell::new(Vec::new()) };
}

impl Arguments {
    /// Of a launch that has none.
    pub(crate) fn none() -> Self {
        Self { values: None, is_plain: true }
    }

    /// Arguments of which the caller knows whether dropping them does anything.
    pub(crate) fn known<A: Any + Send + Sync>(values: A, is_plain: bool) -> Self {
        if is_plain
            && let Some(mut spare) = take_spare(TypeId::of::<A>())
            && let Some(place) = Arc::get_mut(&mut spare).and_then(|place| place.downcast_mut::<A>())
        {
            *place = values;
            return Self { values: Some(spare), is_plain };
        }
        Self { values: Some(Arc::new(values)), is_plain }
    }

    pub(crate) fn get<A: 'static>(&self) -> Option<&A> {
        match &self.values {
            Some(values) => (**values).downcast_ref(),
            None => (&() as &dyn Any).downcast_ref(),
        }
    }

    /// For who changes them, if nobody else looks at them.
    pub(crate) fn get_mut<A: 'static>(&mut self) -> Option<&mut A> {
        self.values.as_mut().and_then(Arc::get_mut)?.downcast_mut()
    }

    /// Makes them others, of a type that nobody but the runtime knows, in the same place if nobody looks at these any more.
    pub(crate) fn renew<A: Any + Send + Sync>(&mut self, values: A) {
        match self.get_mut() {
            Some(place) => *place = values,
            None => std::mem::replace(self, Self::known(values, false)).recycle(),
        }
    }

    /// They are about to be replaced.
    pub(crate) fn prefetch(&self) {
        prefetch_for_writing(self.address());
    }

    /// Where the values are, for a hint.
    pub(crate) fn address(&self) -> *const u8 {
        self.values.as_ref().map_or(std::ptr::null(), |values| Arc::as_ptr(values).cast())
    }

    /// Leaves the memory to a later launch, if nobody looks at the values any more.
    pub(crate) fn recycle(mut self) {
        if self.is_plain
            && let Some(mut values) = self.values.take()
            && Arc::get_mut(&mut values).is_some()
        {
            // The thread may be ending, and have no place for it.
            let _ = SPARE.try_with(|spare| {
                let mut spare = spare.borrow_mut();
                if spare.len() < MOST_SPARE {
                    spare.push(values);
                }
            });
        }
    }
}

impl Drop for Arguments {
    #[inline]
    fn drop(&mut self) {
        if !self.is_plain {
            let_go("an argument", "", self.values.take());
        }
    }
}

fn take_spare(ty: TypeId) -> Option<Arc<dyn Any + Send + Sync>> {
    let taken = SPARE.try_with(|spare| {
        let mut spare = spare.borrow_mut();
        let found = spare.iter().rposition(|values| (**values).type_id() == ty)?;
        Some(spare.swap_remove(found))
    });
    taken.ok().flatten()
}
