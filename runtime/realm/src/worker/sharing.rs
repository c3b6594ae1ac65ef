//! Workers and loops: a body that shares the iterations of a loop with workers that have nothing else to do.

use std::mem::transmute;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::locks::Mutex;

use super::chunks::Chunks;
use super::{Local, SEARCH_ROUNDS, WorkerContext, Workers, with_current};
use crate::fault::{self, Caught};
use crate::operation::job::{Job, JobHead, JobTable};
use crate::profile::{OperationId, Profiler, Tag, common};

/// The loop's body.
type Body<'a> = dyn Fn(usize) + Sync + 'a;

/// A loop under way. At any time at most one job invites others to it; the worker that takes that up, and sees that
/// there is more to do, invites the next.
#[repr(C)]
struct Loop {
    head: JobHead,
    /// Borrowed from the owner's caller: alive as long as a chunk has not ended, which is as long as the owner waits.
    body: *const Body<'static>,
    chunks: Chunks,
    /// Of the chunks that panicked the first one, with what it threw. As chunks are taken in their order, all before it
    /// were begun: it is the one at which the loop would have stopped on one thread.
    panic: Mutex<Option<(usize, Caught)>>,
    /// Whose work it is, if there is a profile.
    operation: OperationId,
}

// SAFETY: the body is `Sync`, and all else is by itself.
unsafe impl Send for Loop {}
// SAFETY: as above.
unsafe impl Sync for Loop {}

static INVITATION: JobTable = JobTable { run: Loop::accept, drop: Loop::decline, recorded: Loop::recorded };

impl Workers {
    /// See [`Realm::for_each`](crate::Realm::for_each).
    pub(crate) fn for_each(&self, count: usize, body: &Body<'_>) {
        match self.local() {
            Some(local) if count > 1 && self.presence().processors().len() > 1 => local.share(count, body),
            _ => (0..count).for_each(body),
        }
    }
}

impl Local {
    fn share(&self, count: usize, body: &Body<'_>) {
        // SAFETY: only the lifetime is changed. The body is called by those threads alone that have taken a chunk that
        // has not ended, and this function does not end, by panic neither, before all chunks have: nothing between here
        // and there panics, as chunks are caught.
        let body = unsafe { transmute::<*const Body<'_>, *const Body<'static>>(body) };
        let head = JobHead::new(&INVITATION);
        let operation = self.operations().profiler.as_ref().map_or(OperationId::NONE, Profiler::current);
        let shared = Arc::new(Loop { head, body, chunks: Chunks::new(count), panic: Mutex::default(), operation });
        shared.take_part(self);
        self.await_end_of(&shared.chunks);
        let panic = shared.panic.lock().take();
        if let Some((_, caught)) = panic {
            caught.resume();
        }
    }

    /// Waits for chunks that others run. It runs nothing meanwhile: what it would begin might take long, and might
    /// itself wait for this body.
    fn await_end_of(&self, chunks: &Chunks) {
        for round in 0..SEARCH_ROUNDS {
            if chunks.have_ended() {
                return;
            }
            if self.presence().is_crowded() {
                break;
            }
            for _ in 0..round {
                std::hint::spin_loop();
            }
        }
        self.workers.waiting(|| chunks.wait());
    }

    fn invite(&self, shared: &Arc<Loop>) {
        let head = Arc::into_raw(Arc::clone(shared)).cast_mut().cast::<JobHead>();
        // SAFETY: the loop begins with the head, and this reference to it, which is the job's own, is taken back when
        // the job is run or dropped.
        self.queue.deques.push_job(unsafe { Job::from_raw(NonNull::new_unchecked(head)) });
        self.presence().sleep.announce();
    }

    /// Takes an invitation back, unless it was taken up: a body with many loops would leave as many behind.
    fn take_back_invitation(&self, shared: &Arc<Loop>) {
        let Some(job) = self.queue.deques.pop_job() else { return };
        if !job.is(Arc::as_ptr(shared).cast()) {
            self.queue.deques.push_job(job);
            // A worker may have looked just now and gone to sleep.
            self.presence().sleep.announce();
        }
    }
}

impl Loop {
    /// Runs chunks until there are none left.
    fn take_part(self: &Arc<Self>, local: &Local) {
        let Some(first) = self.chunks.take() else { return };
        let has_more = self.chunks.has_more();
        if has_more {
            local.invite(self);
        }
        let mut taken = Some(first);
        while let Some(chunk) = taken {
            self.run(chunk);
            taken = self.chunks.take();
        }
        if has_more {
            local.take_back_invitation(self);
        }
    }

    /// Runs a chunk that this thread has taken.
    fn run(&self, chunk: usize) {
        // SAFETY: the chunk has not ended, so the owner waits, and the body is there.
        if let Err(caught) = fault::catch_panic(|| unsafe { (*self.body)(chunk) }) {
            let mut panic = self.panic.lock();
            let later = match panic.as_ref() {
                Some((before, _)) if *before < chunk => Some(caught),
                _ => panic.replace((chunk, caught)).map(|(_, later)| later),
            };
            drop(panic);
            if let Some(later) = later {
                later.discard();
            }
            self.chunks.give_up();
        }
        self.chunks.end();
    }

    unsafe fn accept(head: NonNull<JobHead>, _: &WorkerContext<'_>) {
        // SAFETY: the job is this loop's invitation, whose reference is taken back once.
        let shared = unsafe { Arc::from_raw(head.as_ptr().cast::<Self>().cast_const()) };
        with_current(|local| shared.take_part(local));
    }

    unsafe fn decline(head: NonNull<JobHead>) {
        // SAFETY: as in `accept`.
        drop(unsafe { Arc::from_raw(head.as_ptr().cast::<Self>().cast_const()) });
    }

    unsafe fn recorded(head: NonNull<JobHead>) -> (OperationId, Tag) {
        // SAFETY: the job is this loop's invitation, whose reference is still there.
        let shared = unsafe { head.cast::<Self>().as_ref() };
        // A worker that comes too late does nothing for the operation, which may have ended.
        if shared.chunks.has_more() {
            (shared.operation, Tag::of(common::SHARE))
        } else {
            (OperationId::NONE, Tag::NONE)
        }
    }
}
