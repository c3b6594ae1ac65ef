//! Parts of a context: the state of a task that modules above contexts keep there.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use maniple_region::{FieldMask, LogicalRegion, TreeId};

use super::ContextState;
use crate::support::error::Error;

/// A part of a task's state that a module above keeps: launches that repeat, traces, the program that several nodes
/// run. A context knows of a part only what it has to tell the part.
pub(crate) trait ContextPart: Any + Send + Sync {
    /// The task has made a region.
    fn made(&self, _region: &LogicalRegion) {}

    /// The task has destroyed a region.
    fn destroyed(&self, _context: &ContextState, _region: &LogicalRegion) {}

    /// The task has destroyed a region, and has given up its data. The next one with the same rows and fields takes
    /// over its name.
    fn put_aside(&self, _region: &LogicalRegion) {}

    /// The data of a region that was [put aside](Self::put_aside) was given up, in the order in which operations are
    /// mapped, and no replay uses it.
    fn gave_up(&self, _tree: TreeId) {}

    /// Fields of a region become zero: their ids were those of freed ones.
    fn zeroed(&self, _region: &LogicalRegion, _fields: &FieldMask) {}

    /// No program can name these region trees any more.
    fn forget_trees(&self, _trees: &[TreeId]) {}

    /// Regions are kept by what is remembered of launches: forgets that, if it can be found out again.
    fn release_regions(&self) {}

    /// Something that is no launch enters the stream, or the task ends.
    fn interrupt(&self, _context: &ContextState, _what: &str) {}

    /// The task has ended: drops what refers to operations. Returns a failure that the task was not told of.
    fn end(&self) -> Option<Error> {
        None
    }
}

/// A place for one [`ContextPart`], whose type the room that fills it knows.
#[derive(Default)]
pub(crate) struct PartSlot(OnceLock<Arc<dyn ContextPart>>);

impl PartSlot {
    /// With a part from the beginning.
    pub(crate) fn of(part: Arc<dyn ContextPart>) -> Self {
        Self(OnceLock::from(part))
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.get().is_none()
    }

    /// The part, if it is there and of this type.
    #[inline]
    pub(crate) fn get<T: ContextPart>(&self) -> Option<&T> {
        let part: &dyn Any = &**self.0.get()?;
        part.downcast_ref()
    }

    /// The part, made if it is not there.
    ///
    /// # Panics
    /// If the place is another type's.
    #[inline]
    pub(crate) fn get_or_init<T: ContextPart>(&self, make: impl FnOnce() -> Arc<T>) -> &T {
        let part: &dyn Any = &**self.0.get_or_init(|| make());
        part.downcast_ref().expect("each slot is for parts of one type")
    }
}

/// The parts of a context, by the rooms that fill them.
#[derive(Default)]
pub(crate) struct ContextParts {
    pub(crate) traces: PartSlot,
    /// The program that several nodes run, if this is the context of its top-level task.
    pub(crate) program: PartSlot,
    pub(crate) sites: PartSlot,
    /// The memory that the task has attached.
    pub(crate) attachments: PartSlot,
}

impl ContextParts {
    /// Whether no module keeps anything.
    #[inline]
    pub(super) fn are_empty(&self) -> bool {
        self.slots().into_iter().all(PartSlot::is_empty)
    }

    fn slots(&self) -> [&PartSlot; 4] {
        [&self.traces, &self.program, &self.sites, &self.attachments]
    }

    /// The parts that there are.
    pub(super) fn iter(&self) -> impl Iterator<Item = &dyn ContextPart> {
        self.slots().into_iter().filter_map(|slot| slot.0.get()).map(|part| &**part)
    }
}
