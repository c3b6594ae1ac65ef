//! The object that a forked task is, and references to it.
//!
//! A cell is one allocation: a head that is alike for all tasks, and behind it the part that knows the types
//! ([`ForkBody`]). A [`Fork`] is a counted reference. It is one pointer, so that queues and wakers are as small as can
//! be, and the count is in the word that also tells the end: most tasks are counted twice, by their launch and by their
//! end, where `Arc`s would be counted five times.

use std::alloc::Layout;
use std::any::Any;
use std::cell::UnsafeCell;
use std::fmt;
use std::mem::ManuallyDrop;
use std::panic::Location;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Poll, Waker};

use maniple_realm::locks::Mutex;
use maniple_realm::profile::{OperationId, Record, Tag};
use maniple_realm::{Job, JobHead, JobTable, fault};
use maniple_region::Provenance;

use super::body::{ForkBody, ForkCall, Free, FreeResult, Typed};
use super::parent::Parent;
use super::schedule::Schedule;
use super::sources::Sources;
use super::spare;
use super::watchers::Watchers;
use super::word::{ForkOutcome, Word};
use crate::context::ContextState;
use crate::core::RuntimeCore;
use crate::results::{self, Results, StandIn};
use crate::support::drop_caught;
use crate::support::error::{Error, Result};
use crate::task::TaskDefinition;
use crate::task::arguments::{Arguments, Own};

/// A reference to a forked task: about to be launched, in flight, or ended.
pub(crate) struct Fork(NonNull<Head>);

// SAFETY: all of a cell may be used by any thread. What is not made for several at a time is touched by the thread that
// has the right to run the task; bodies, their futures, arguments and values may be sent, and arguments and values
// shared, as `Free` demands.
unsafe impl Send for Fork {}
// SAFETY: as above.
unsafe impl Sync for Fork {}

/// The part of a forked task that is alike for all types.
#[repr(C)]
pub(crate) struct Head {
    /// First: a job is known by it.
    job: JobHead,
    pub(super) word: Word,
    /// The part that knows the types: behind the head, in the same cell.
    body: NonNull<dyn Twin>,
    progress: UnsafeCell<Progress>,
    definition: &'static Arc<TaskDefinition>,
    /// There from the launch on.
    core: Option<Arc<RuntimeCore>>,
    recorded: (OperationId, Tag),
    /// The place where it was launched, from the launch on.
    launched: Option<&'static Location<'static>>,
    /// Most tasks are awaited by a body that runs them itself, and have none.
    watchers: Mutex<Option<Box<Watchers>>>,
    pub(super) schedule: Schedule,
    /// The kind of values that the arguments own.
    own: Own,
}

/// How far a task is.
#[derive(Default)]
pub(super) struct Progress {
    pub(super) phase: Phase,
    /// The task that launched it, and as which launch of its program; from the launch to the end.
    pub(super) parent: Option<(Parent, u64)>,
    /// The context that it launches from; from its beginning to its end.
    pub(super) context: Option<Arc<ContextState>>,
    /// The results that it was given and that may not be there yet. They are forgotten once all are there, so that a
    /// chain of tasks is not kept by its end.
    pub(super) sources: Sources,
}

/// The phase of a task.
#[derive(Default)]
pub(super) enum Phase {
    /// It has not begun.
    #[default]
    Waiting,
    /// Its body runs.
    Running,
    /// Its body has ended like this, and something that it launched has not.
    Draining(Result<(), Box<Error>>),
}

/// A body of which there can be another one.
trait Twin: ForkBody {
    /// A task that is about to be launched with the same arguments. Before the beginning.
    fn twin(
        &self,
        table: &'static JobTable,
        definition: &'static Arc<TaskDefinition>,
        own: Own,
        sources: Sources,
    ) -> Fork;
}

impl<B, C, F> Twin for Typed<B, C, F>
where
    B: Free,
    C: Fn(ForkCall, B::Arguments) -> F + Copy + Send + Sync + 'static,
    F: Future<Output = FreeResult<B::Value>> + Send + 'static,
{
    #[cold]
    fn twin(
        &self,
        table: &'static JobTable,
        definition: &'static Arc<TaskDefinition>,
        own: Own,
        sources: Sources,
    ) -> Fork {
        let arguments = self.waiting().expect("only what has not been launched is duplicated");
        Fork::new::<B, C, F>(table, definition, arguments.clone(), own, sources, *self.call())
    }
}

#[repr(C)]
struct ForkCell<B> {
    head: Head,
    body: B,
}

impl Fork {
    /// A task about to be launched, which jobs of a kind run. What it has to wait for is among the sources.
    #[inline]
    pub(super) fn new<B, C, F>(
        table: &'static JobTable,
        definition: &'static Arc<TaskDefinition>,
        arguments: B::Arguments,
        own: Own,
        sources: Sources,
        call: C,
    ) -> Self
    where
        B: Free,
        C: Fn(ForkCall, B::Arguments) -> F + Copy + Send + Sync + 'static,
        F: Future<Output = FreeResult<B::Value>> + Send + 'static,
    {
        let layout = Layout::new::<ForkCell<Typed<B, C, F>>>();
        let (memory, core) = spare::take_memory(layout);
        let cell = memory.cast::<ForkCell<Typed<B, C, F>>>();
        // SAFETY: the memory is the caller's, and large and aligned enough.
        let body = unsafe { NonNull::new_unchecked(&raw mut (*cell.as_ptr()).body) };
        let head = cell.cast::<Head>().as_ptr();
        // Each part goes to its place at once: all together they are more than the compiler likes to move.
        // SAFETY: as above; nothing is there that would have to be dropped. All parts of the cell are written.
        unsafe {
            body.write(Typed::new(call, arguments));
            (&raw mut (*head).job).write(JobHead::new(table));
            (&raw mut (*head).word).write(Word::new());
            (&raw mut (*head).body).write(body);
            (&raw mut (*head).progress).write(UnsafeCell::new(Progress { sources, ..Progress::default() }));
            (&raw mut (*head).definition).write(definition);
            (&raw mut (*head).core).write(core);
            (&raw mut (*head).recorded).write((OperationId::NONE, Tag::NONE));
            (&raw mut (*head).launched).write(None);
            (&raw mut (*head).watchers).write(Mutex::new(None));
            (&raw mut (*head).schedule).write(Schedule::queued());
            (&raw mut (*head).own).write(own);
        }
        Self(cell.cast())
    }

    #[inline]
    pub(crate) fn head(&self) -> &Head {
        // SAFETY: the cell is there as long as a reference is.
        unsafe { self.0.as_ref() }
    }

    /// The parts that only the holder of the right to run the task may touch; before the launch, only its owner.
    ///
    /// # Safety
    /// The caller is that holder or owner, and lets go of the parts before it passes on the right.
    #[inline]
    #[allow(clippy::mut_from_ref)] // that is what the right is for
    pub(super) unsafe fn inside(&self) -> (&Head, &mut Progress, &mut (dyn ForkBody + 'static)) {
        let head = self.head();
        // SAFETY: the caller has the right, which nothing else has, and the body is in the cell.
        unsafe { (head, &mut *head.progress.get(), &mut *head.body.as_ptr()) }
    }

    /// The parts that the owner may look at and change before the launch.
    #[inline]
    fn described(&mut self) -> (&mut Head, &mut (dyn ForkBody + 'static)) {
        debug_assert!(self.head().word.is_only() && self.head().outcome().is_none());
        // SAFETY: nothing else knows a task before its launch.
        unsafe {
            let head = self.0.as_mut();
            let body = head.body.as_ptr();
            (head, &mut *body)
        }
    }

    #[inline]
    pub(super) fn sources(&mut self) -> &Sources {
        &self.described().0.progress.get_mut().sources
    }

    /// Notes that the task is launched, as this launch of its parent's; gives the job that runs it.
    #[inline]
    pub(super) fn launch(
        &mut self,
        parent: (Parent, u64),
        core: &Arc<RuntimeCore>,
        recorded: (OperationId, Tag),
        launched: &'static Location<'static>,
    ) -> Job {
        let (head, _) = self.described();
        // The memory may have been used by another runtime's task.
        if !head.core.as_ref().is_some_and(|known| Arc::ptr_eq(known, core)) {
            head.core = Some(Arc::clone(core));
        }
        head.recorded = recorded;
        head.launched = Some(launched);
        head.progress.get_mut().parent = Some(parent);
        head.word.add_first();
        // SAFETY: the reference just added is the job's.
        unsafe { Job::from_raw(self.0.cast()) }
    }

    /// The parts of the task, to be launched in another way.
    pub(crate) fn into_parts(mut self) -> (&'static Arc<TaskDefinition>, Arguments, results::Sources) {
        let (head, body) = self.described();
        let sources = head.progress.get_mut().sources.inputs();
        (head.definition, body.take_arguments(head.own), sources)
    }

    /// Another one of the same, before the launch.
    pub(crate) fn duplicate(&self) -> Self {
        let head = self.head();
        // SAFETY: the task has not been launched: it may be looked at by several, and is not changed.
        let (sources, body) = unsafe { (&(*head.progress.get()).sources, head.body.as_ref()) };
        body.twin(head.job.table(), head.definition, head.own, sources.clone())
    }

    /// The value, if the task has ended well.
    #[inline]
    pub(crate) fn value(&self) -> Option<&dyn Any> {
        let head = self.head();
        // SAFETY: the task has ended, so its body is only looked at.
        if head.outcome() == Some(ForkOutcome::Good) { unsafe { head.body.as_ref() }.value() } else { None }
    }

    /// The results of the task, for code that knows launches by their results.
    pub(crate) fn results(&self) -> Arc<Results> {
        let head = self.head();
        let results = head.standing_for();
        if head.outcome() == Some(ForkOutcome::Good) {
            results.end_as(self.clone());
        }
        results
    }

    /// A reference as the machine layer and wakers have it.
    pub(super) fn into_raw(self) -> NonNull<Head> {
        ManuallyDrop::new(self).0
    }

    /// The same, with the reference staying here.
    pub(super) fn as_raw(&self) -> NonNull<Head> {
        self.0
    }

    /// # Safety
    /// From [`into_raw`](Self::into_raw), or a job's; each once.
    pub(super) unsafe fn from_raw(head: NonNull<Head>) -> Self {
        Self(head)
    }

    /// Frees the cell. Panics if the destructor of what is in it does, when all else is done.
    ///
    /// # Safety
    /// It was the last reference.
    pub(super) unsafe fn free(self) {
        let cell = ManuallyDrop::new(self).0;
        // SAFETY: no reference to the cell is left.
        unsafe {
            let body = (*cell.as_ptr()).body;
            let _head = FreeHead(cell, Layout::for_value(body.as_ref()));
            body.drop_in_place();
        }
    }
}

/// A cell whose body is being dropped, with the body's layout: the rest goes after that, also if it panics.
struct FreeHead(NonNull<Head>, Layout);

impl Drop for FreeHead {
    #[inline]
    fn drop(&mut self) {
        let (cell, body) = (self.0, self.1);
        let (layout, _) = Layout::new::<Head>().extend(body).expect("it was allocated so");
        // SAFETY: it is only made of a cell to which no reference is left, whose body is gone.
        unsafe {
            let core = (*cell.as_ptr()).core.take();
            cell.drop_in_place();
            spare::keep_memory(cell.cast(), layout.pad_to_align(), core);
        }
    }
}

impl StandIn for Fork {
    fn value(&self) -> Option<&dyn Any> {
        self.value()
    }
}

impl Clone for Fork {
    #[inline]
    fn clone(&self) -> Self {
        self.head().word.add();
        Self(self.0)
    }
}

impl Drop for Fork {
    #[inline]
    fn drop(&mut self) {
        if self.head().word.remove() {
            let last = Self(self.0);
            if last.head().outcome().is_none() && last.head().is_launched() {
                // No waker is left.
                give_up(last);
            } else {
                let definition = last.head().definition();
                // SAFETY: it is the last reference.
                if let Err(fault) = fault::catch(|| unsafe { last.free() }) {
                    drop_caught::tell("a result or an argument", definition.name(), &fault);
                }
            }
        }
    }
}

/// Drops the last reference to a task that was launched and has not ended: as a job, whose kind knows what comes then.
#[cold]
#[inline(never)]
fn give_up(last: Fork) {
    // SAFETY: the reference becomes that of the job, which has the right to run the task.
    drop(unsafe { Job::from_raw(last.into_raw().cast()) });
}

impl fmt::Debug for Fork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fork of {}", self.head().name())
    }
}

impl Head {
    pub(crate) fn name(&self) -> &str {
        self.definition.name()
    }

    pub(crate) fn definition(&self) -> &'static Arc<TaskDefinition> {
        self.definition
    }

    fn is_launched(&self) -> bool {
        // SAFETY: the caller has the only reference.
        unsafe { &*self.progress.get() }.parent.is_some()
    }

    /// The runtime of a task that has been launched.
    #[inline]
    pub(crate) fn core(&self) -> &Arc<RuntimeCore> {
        self.core.as_ref().expect("the task has been launched")
    }

    pub(super) fn recorded(&self) -> (OperationId, Tag) {
        self.recorded
    }

    /// The place where the task was launched.
    pub(super) fn launched(&self) -> Option<Provenance> {
        self.launched.map(Provenance::at)
    }

    /// How the task ended, if it has.
    #[inline]
    pub(crate) fn outcome(&self) -> Option<ForkOutcome> {
        self.word.outcome()
    }

    /// How the task ended; if it has not, the waker will be woken.
    pub(crate) fn poll(&self, waker: &Waker) -> Poll<ForkOutcome> {
        if let Some(outcome) = self.outcome() {
            return Poll::Ready(outcome);
        }
        let mut list = self.watchers.lock();
        let watchers = list.get_or_insert_default();
        watchers.add(waker);
        self.word.watch();
        // It may have ended before the thread that ends it could see that it is watched.
        let Some(outcome) = self.outcome() else { return Poll::Pending };
        // Nothing else may tell. A waker that stayed could keep the task that it wakes, and that this one.
        let wakers = watchers.take_wakers();
        drop(list);
        wakers.into_iter().for_each(Waker::wake);
        Poll::Ready(outcome)
    }

    /// [`poll`](Self::poll), for a body that can't go on before. A worker runs what it has queued itself meanwhile, on
    /// top of the body: most likely the task.
    #[inline]
    pub(crate) fn poll_by_body(&self, waker: &Waker) -> Poll<ForkOutcome> {
        if let Some(outcome) = self.outcome() {
            return Poll::Ready(outcome);
        }
        let core = self.core();
        if let Some(profiler) = core.profiler() {
            let (operation, time) = (profiler.current(), profiler.now_ns());
            profiler.record(Record::Awaited { operation, event: self.recorded.0, time });
        }
        core.realm().help_with_own_jobs(|| self.outcome().is_some());
        self.poll(waker)
    }

    /// The results that stand for the task, made if there are none yet. Of one that has ended well they are the
    /// caller's alone.
    pub(super) fn standing_for(&self) -> Arc<Results> {
        let mut watchers = self.watchers.lock();
        let watchers = watchers.get_or_insert_default();
        let make = || Results::of_fork(self.core().realm(), &**self.definition);
        let results = Arc::clone(watchers.results.get_or_insert_with(make));
        self.word.watch();
        if self.outcome() == Some(ForkOutcome::Good) {
            watchers.results = None;
        }
        results
    }

    /// The task has ended, and is watched: wakes the waiters, and gives the results that stand for one that ended well.
    pub(super) fn tell(&self, outcome: ForkOutcome) -> Option<Arc<Results>> {
        let mut list = self.watchers.lock();
        let watchers = list.as_mut()?;
        let wakers = watchers.take_wakers();
        let results = watchers.results.take_if(|_| outcome == ForkOutcome::Good);
        drop(list);
        wakers.into_iter().for_each(Waker::wake);
        results
    }
}
