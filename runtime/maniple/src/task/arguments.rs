//! The arguments of a launch, and the memory that they are kept in.
//!
//! A loop launches the same tasks with arguments of the same types over and over. Those of plain types, which own
//! nothing, leave their memory to the next launch of this thread; and so do futures of plain types, which go as soon as
//! the launch has ended.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::sync::Arc;

use crate::support::drop_caught::drop_caught;

/// The arguments of a launch, shared by its points.
#[derive(Clone)]
pub(crate) struct Arguments {
    /// None if they are `()`.
    values: Option<Arc<dyn ArgumentPlace>>,
    own: Own,
}

/// The kind of values that arguments own, which decides when they have to be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Own {
    /// Nothing. Dropping them does nothing, so it does not matter when that happens.
    Nothing,
    /// Futures of values that own nothing: the program does not see them dropped, but they keep memory.
    Futures,
    /// Something that may have a destructor of the program's.
    Values,
}

impl Own {
    /// The kind of values that a type owns which is no future.
    pub(crate) fn of<T>() -> Self {
        if std::mem::needs_drop::<T>() { Self::Values } else { Self::Nothing }
    }
}

/// Memory for values of one type: an `Option` of them.
trait ArgumentPlace: Any + Send + Sync {
    fn values(&self) -> Option<&dyn Any>;

    fn clear(&mut self);
}

impl<A: Any + Send + Sync> ArgumentPlace for Option<A> {
    fn values(&self) -> Option<&dyn Any> {
        self.as_ref().map(|values| values as &dyn Any)
    }

    fn clear(&mut self) {
        *self = None;
    }
}

/// So much memory is kept for later by a thread.
const MOST_SPARE: usize = 64;

thread_local! {
    static SPARE: RefCell<Vec<Arc<dyn ArgumentPlace>>> = const { RefCell::new(Vec::new()) };
}

impl Arguments {
    /// Of a launch that has none.
    pub(crate) fn none() -> Self {
        Self { values: None, own: Own::Nothing }
    }

    /// Arguments of which the caller knows what they own.
    pub(crate) fn known<A: Any + Send + Sync>(values: A, own: Own) -> Self {
        if TypeId::of::<A>() == TypeId::of::<()>() {
            return Self::none();
        }
        if own != Own::Values
            && let Some(mut spare) = take_spare(TypeId::of::<Option<A>>())
            && let Some(place) = place_of(&mut spare)
        {
            *place = Some(values);
            return Self { values: Some(spare), own };
        }
        Self { values: Some(Arc::new(Some(values))), own }
    }

    pub(crate) fn get<A: 'static>(&self) -> Option<&A> {
        self.as_any()?.downcast_ref()
    }

    /// The arguments as any; none if they are gone.
    pub(crate) fn as_any(&self) -> Option<&dyn Any> {
        match &self.values {
            Some(values) => values.values(),
            None => Some(&() as &dyn Any),
        }
    }

    /// The arguments, to change them, if nothing else refers to them.
    pub(crate) fn get_mut<A: 'static>(&mut self) -> Option<&mut A> {
        place_of(self.values.as_mut()?)?.as_mut()
    }

    /// The launch has ended: futures go, if nothing else refers to them.
    #[inline]
    pub(crate) fn let_futures_go(&mut self) {
        if self.own == Own::Futures
            && let Some(place) = self.values.as_mut().and_then(Arc::get_mut)
        {
            place.clear();
        }
    }

    /// Makes them others, of a type that only the runtime knows, in the same place if nothing else refers to these any
    /// more.
    pub(crate) fn renew<A: Any + Send + Sync>(&mut self, values: A) {
        match self.get_mut() {
            Some(place) => *place = values,
            None => std::mem::replace(self, Self::known(values, Own::Values)).recycle(),
        }
    }

    /// The address of the values, for a hint.
    pub(crate) fn address(&self) -> *const u8 {
        self.values.as_ref().map_or(std::ptr::null(), |values| Arc::as_ptr(values).cast())
    }

    /// Leaves the memory to a later launch, if nothing else refers to the values any more.
    pub(crate) fn recycle(mut self) {
        if self.own == Own::Values {
            return;
        }
        self.let_futures_go();
        if let Some(mut values) = self.values.take()
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
        if self.own != Own::Nothing {
            drop_caught("an argument", "", self.values.take());
        }
    }
}

/// Memory for values of this type, if it is that and nothing else refers to it.
fn place_of<A: 'static>(values: &mut Arc<dyn ArgumentPlace>) -> Option<&mut Option<A>> {
    (Arc::get_mut(values)? as &mut dyn Any).downcast_mut()
}

/// Memory for such an `Option`.
fn take_spare(ty: TypeId) -> Option<Arc<dyn ArgumentPlace>> {
    let taken = SPARE.try_with(|spare| {
        let mut spare = spare.borrow_mut();
        let found = spare.iter().rposition(|values| (**values).type_id() == ty)?;
        Some(spare.swap_remove(found))
    });
    taken.ok().flatten()
}
