//! Memory that a worker keeps for the next fork's cell.
//!
//! Each holds on to the runtime, so that using it again counts no references: with all workers counting in one place,
//! that would cost more than the rest of a launch. Only workers of that runtime keep any, and they let go of it before
//! they sleep.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::core::RuntimeCore;

/// Cells differ in size by this.
const STEP: usize = 64;

/// Larger ones are not kept.
const SIZES: usize = 16;

/// So many of a size are kept.
const MOST: usize = 64;

/// The memory that a thread keeps.
struct Spare {
    memory: [List; SIZES],
}

/// Memory of one size.
struct List {
    first: Cell<Option<NonNull<Kept>>>,
    length: Cell<usize>,
}

/// The content of memory that is kept: a link of its list, and the runtime.
struct Kept {
    next: Option<NonNull<Kept>>,
    core: Arc<RuntimeCore>,
}

thread_local! {
    static SPARE: Spare = const {
        Spare {
            memory: [const { List { first: Cell::new(None), length: Cell::new(0) } }; SIZES],
        }
    };
}

impl List {
    #[inline]
    fn push(&self, memory: NonNull<u8>, core: Arc<RuntimeCore>) {
        let kept = memory.cast::<Kept>();
        // SAFETY: the memory is unused, and the least size has room.
        unsafe { kept.write(Kept { next: self.first.get(), core }) };
        self.first.set(Some(kept));
        self.length.set(self.length.get() + 1);
    }

    #[inline]
    fn pop(&self) -> Option<(NonNull<u8>, Arc<RuntimeCore>)> {
        let first = self.first.get()?;
        // SAFETY: `push` wrote it, and it is read once.
        let Kept { next, core } = unsafe { first.read() };
        self.first.set(next);
        self.length.set(self.length.get() - 1);
        Some((first.cast(), core))
    }
}

impl Spare {
    fn forget(&self) {
        for (size, list) in self.memory.iter().enumerate() {
            while let Some((memory, core)) = list.pop() {
                drop(core);
                // SAFETY: it was allocated so, and is unused.
                unsafe { dealloc(memory.as_ptr(), layout_of(size)) };
            }
        }
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        self.forget();
    }
}

/// The size, in steps, of cells with this layout, if they are kept.
#[inline]
fn size_of_kept(layout: Layout) -> Option<usize> {
    let size = layout.size().div_ceil(STEP);
    (layout.align() <= STEP && size < SIZES).then_some(size)
}

fn layout_of(size: usize) -> Layout {
    const { assert!(size_of::<Kept>() <= STEP && align_of::<Kept>() <= STEP) }
    Layout::from_size_align(size * STEP, STEP).expect("a few lines are a layout")
}

/// Memory for a cell, maybe with the runtime that it was last used by.
#[inline]
pub(super) fn take_memory(layout: Layout) -> (NonNull<u8>, Option<Arc<RuntimeCore>>) {
    let Some(size) = size_of_kept(layout) else { return (allocate(layout), None) };
    match SPARE.try_with(|spare| spare.memory[size].pop()).ok().flatten() {
        Some((memory, core)) => (memory, Some(core)),
        None => (allocate(layout_of(size)), None),
    }
}

#[cold]
fn allocate(layout: Layout) -> NonNull<u8> {
    // SAFETY: a cell has a size.
    NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Keeps the memory of a cell, or frees it.
///
/// # Safety
/// It is from [`take_memory`] with this layout, and unused.
#[inline]
pub(super) unsafe fn keep_memory(memory: NonNull<u8>, layout: Layout, core: Option<Arc<RuntimeCore>>) {
    let (size, mut core) = (size_of_kept(layout), core);
    if let Some(size) = size
        && core.as_ref().is_some_and(is_its_worker)
    {
        let keep = |spare: &Spare| {
            let list = &spare.memory[size];
            let core = core.take_if(|_| list.length.get() < MOST);
            core.map(|core| list.push(memory, core)).is_some()
        };
        if SPARE.try_with(keep).unwrap_or(false) {
            return;
        }
    }
    drop(core);
    // SAFETY: as the caller says.
    unsafe { dealloc(memory.as_ptr(), size.map_or(layout, layout_of)) };
}

#[inline]
fn is_its_worker(core: &Arc<RuntimeCore>) -> bool {
    core.realm().current_worker().is_some()
}

/// Lets go of everything.
pub(crate) fn forget() {
    let _ = SPARE.try_with(Spare::forget);
}
