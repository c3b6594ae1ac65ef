//! The requirements of a launch, and the memory that they are kept in.

use std::cell::RefCell;
use std::ops::Deref;

use maniple_region::Requirement;

/// The requirements of a launch, in the order in which they were added.
///
/// The list's memory is left to the next launch of this thread: a loop that launches the same tasks over and over allocates none.
#[derive(Debug)]
pub(crate) struct Requirements(Vec<Requirement>);

/// So many lists are kept for later by a thread.
const MOST_SPARE: usize = 16;

thread_local! {
    static SPARE: RefCell<Vec<Vec<Requirement>>> = const { RefCell::new(Vec::new()) };
}

impl Requirements {
    pub(crate) fn new() -> Self {
        Self(SPARE.try_with(|spare| spare.borrow_mut().pop()).ok().flatten().unwrap_or_default())
    }

    pub(crate) fn push(&mut self, requirement: Requirement) {
        self.0.push(requirement);
    }
}

impl Clone for Requirements {
    fn clone(&self) -> Self {
        let mut copy = Self::new();
        copy.0.extend_from_slice(&self.0);
        copy
    }
}

impl Deref for Requirements {
    type Target = [Requirement];

    fn deref(&self) -> &[Requirement] {
        &self.0
    }
}

impl Drop for Requirements {
    fn drop(&mut self) {
        let mut list = std::mem::take(&mut self.0);
        if list.capacity() == 0 {
            return;
        }
        list.clear();
        // The thread may be ending, and have no place for it.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < MOST_SPARE {
                spare.push(list);
            }
        });
    }
}
