//! The requirements of a launch, and the memory that they are kept in.

use std::cell::RefCell;
use std::ops::Deref;
use std::sync::Arc;

use maniple_region::Requirement;

/// The requirements of a launch, in the order in which they were added.
///
/// Copies share one list until they are added to. The list's memory is left to the next launch of this thread: a loop
/// that launches the same tasks over and over allocates none.
#[derive(Clone, Debug)]
pub(crate) struct Requirements(Option<Arc<Vec<Requirement>>>);

/// So many lists are kept for later by a thread.
const MOST_SPARE: usize = 16;

thread_local! {
    static SPARE: RefCell<Vec<Arc<Vec<Requirement>>>> = const { RefCell::new(Vec::new()) };
}

impl Requirements {
    pub(crate) fn new() -> Self {
        Self(None)
    }

    pub(crate) fn push(&mut self, requirement: Requirement) {
        let list = self.0.get_or_insert_with(spare);
        if let Some(list) = Arc::get_mut(list) {
            return list.push(requirement);
        }
        let mut own = spare();
        if let Some(place) = Arc::get_mut(&mut own) {
            place.extend_from_slice(list);
            place.push(requirement);
        }
        *list = own;
    }

    /// Whether these are copies of one another, and so the same for sure.
    #[inline]
    pub(crate) fn is_copy_of(&self, other: &Self) -> bool {
        self.0.as_ref().map(Arc::as_ptr) == other.0.as_ref().map(Arc::as_ptr)
    }
}

/// An empty list to which there is no other reference.
fn spare() -> Arc<Vec<Requirement>> {
    SPARE.try_with(|spare| spare.borrow_mut().pop()).ok().flatten().unwrap_or_default()
}

impl Deref for Requirements {
    type Target = [Requirement];

    fn deref(&self) -> &[Requirement] {
        self.0.as_ref().map_or(&[], |list| list)
    }
}

impl Drop for Requirements {
    fn drop(&mut self) {
        let Some(mut shared) = self.0.take() else { return };
        let Some(list) = Arc::get_mut(&mut shared) else { return };
        list.clear();
        // The thread may be ending, and have no place for it.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < MOST_SPARE {
                spare.push(shared);
            }
        });
    }
}
