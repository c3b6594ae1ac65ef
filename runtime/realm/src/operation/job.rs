//! Jobs: work that is ready when it is queued, and that has no event to wait for.
//!
//! A job has no slot: it is one object of its owner's, which a worker runs when it comes to it. It goes to the deque of
//! the worker that queues it, last in, first out; others steal the oldest. What waits for a job, and how often it is
//! queued, is its owner's affair.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use super::context::WorkerContext;
use crate::profile::{OperationId, Tag};

/// The functions of a job of some kind.
#[derive(Debug)]
pub struct JobTable {
    /// Does it, or as much of it as can be done now. The job is the callee's from then on. Must neither panic nor
    /// block.
    pub run: unsafe fn(NonNull<JobHead>, &WorkerContext<'_>),
    /// Lets go of a job that will not be run.
    pub drop: unsafe fn(NonNull<JobHead>),
    /// Gives the name of the job in a profile. Called only if there is one.
    pub recorded: unsafe fn(NonNull<JobHead>) -> (OperationId, Tag),
}

/// The head that every job begins with.
#[derive(Debug)]
#[repr(transparent)]
pub struct JobHead {
    table: &'static JobTable,
}

impl JobHead {
    /// Of a job of this kind.
    #[must_use]
    pub const fn new(table: &'static JobTable) -> Self {
        Self { table }
    }

    /// The kind of the job.
    #[inline]
    #[must_use]
    pub const fn table(&self) -> &'static JobTable {
        self.table
    }
}

/// A job to be run once: see [`Realm::queue_job`](crate::Realm::queue_job). One pointer wide, whatever it is.
pub struct Job(NonNull<JobHead>);

// SAFETY: the maker of the job vouches that it may be run, or dropped, by any thread.
unsafe impl Send for Job {}

impl Job {
    /// A job from a function, in a box of its own.
    pub fn new(call: impl FnOnce(&WorkerContext<'_>) + Send + 'static) -> Self {
        let boxed = Box::into_raw(Box::new(Boxed { head: JobHead::new(Boxed::table(&call)), call }));
        // SAFETY: the table is that of this type; the box was just leaked for the job alone, and the function may go to
        // any thread.
        unsafe { Self::from_raw(NonNull::new_unchecked(boxed.cast())) }
    }

    /// A job that is an object of the caller's.
    ///
    /// # Safety
    /// The object begins with the head. It lives until the table's `run` or `drop` is called with it, of which one is,
    /// once, by any thread.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(head: NonNull<JobHead>) -> Self {
        Self(head)
    }

    /// The object, if it is of this kind: the caller runs it, or queues it again.
    pub(crate) fn into_raw_of(self, table: &'static JobTable) -> Result<NonNull<JobHead>, Self> {
        if std::ptr::eq(self.table(), table) { Ok(ManuallyDrop::new(self).0) } else { Err(self) }
    }

    /// Whether it is this object.
    pub(crate) fn is(&self, head: *const JobHead) -> bool {
        std::ptr::eq(self.0.as_ptr(), head)
    }

    fn table(&self) -> &'static JobTable {
        // SAFETY: the object lives until it is run or dropped.
        unsafe { self.0.as_ref() }.table
    }

    #[inline]
    pub(crate) fn run(self, context: &WorkerContext<'_>) {
        let job = ManuallyDrop::new(self);
        // SAFETY: it is run once, as it is not dropped.
        unsafe { (job.table().run)(job.0, context) }
    }

    pub(crate) fn recorded(&self) -> (OperationId, Tag) {
        // SAFETY: the object lives until it is run or dropped.
        unsafe { (self.table().recorded)(self.0) }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // SAFETY: it was not run, and is dropped once.
        unsafe { (self.table().drop)(self.0) }
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Job").field(&self.0).finish()
    }
}

/// A job that is a function.
#[repr(C)]
struct Boxed<F> {
    head: JobHead,
    call: F,
}

impl<F: FnOnce(&WorkerContext<'_>) + Send + 'static> Boxed<F> {
    fn table(_: &F) -> &'static JobTable {
        const { &JobTable { run: Self::run, drop: Self::discard, recorded: |_| (OperationId::NONE, Tag::NONE) } }
    }

    unsafe fn run(head: NonNull<JobHead>, context: &WorkerContext<'_>) {
        // SAFETY: `Job::new` leaked a box of this type, which is taken back once.
        let boxed = unsafe { Box::from_raw(head.cast::<Self>().as_ptr()) };
        (boxed.call)(context);
    }

    unsafe fn discard(head: NonNull<JobHead>) {
        // SAFETY: as in `run`.
        drop(unsafe { Box::from_raw(head.cast::<Self>().as_ptr()) });
    }
}
