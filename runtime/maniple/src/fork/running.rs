//! How a forked task runs: as a job, from its launch to its end.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker, ready};

use maniple_realm::{Job, JobHead, JobTable, WorkerContext, fault};

use super::body::{ForkBody, ForkCall};
use super::cell::{Fork, Head, Phase, Progress};
use super::waking::{cannot_go_on, drop_waker, wake_and_drop};
use super::word::{ForkOutcome, Last};
use crate::context::{ContextState, keep_spare};
use crate::results::{Origin, Results};
use crate::support::error::{Error, Result};

/// Forked tasks as jobs. A job is a reference, and the right to run the task.
pub(super) static JOB: JobTable = JobTable {
    run,
    drop: |head| {
        // SAFETY: the job's reference is given up, and with it the right to run the task.
        abandon(unsafe { Fork::from_raw(head.cast()) });
    },
    recorded: |head| {
        // SAFETY: the job has a reference.
        ManuallyDrop::new(unsafe { Fork::from_raw(head.cast()) }).head().recorded()
    },
};

/// Runs a task as far as it can go now.
unsafe fn run(head: NonNull<JobHead>, worker: &WorkerContext<'_>) {
    // SAFETY: the job's reference is this call's now.
    let fork = unsafe { Fork::from_raw(head.cast()) };
    fork.head().schedule.run();
    // SAFETY: it is forgotten, so that the reference stays `fork`'s, which lives longer.
    let waker = ManuallyDrop::new(unsafe { Waker::from_raw(raw_waker(head.cast())) });
    // SAFETY: the job's right to run the task is this call's.
    let (inside, progress, body) = unsafe { fork.inside() };
    match advance(inside, progress, body, worker, &waker) {
        Poll::Ready(result) => worker.settle(|| end(fork, result, By::Worker(worker))),
        Poll::Pending if cannot_go_on(&fork.head().schedule, &fork.head().word) => abandon(fork),
        Poll::Pending if fork.head().schedule.suspend() => {}
        Poll::Pending => queue(fork),
    }
}

/// Goes on as far as can be.
fn advance(
    head: &Head,
    progress: &mut Progress,
    body: &mut dyn ForkBody,
    worker: &WorkerContext<'_>,
    waker: &Waker,
) -> Poll<Result<(), Box<Error>>> {
    let mut context = Context::from_waker(waker);
    let polled = match &progress.phase {
        Phase::Waiting => {
            if !progress.sources.is_empty()
                && let Some(error) = ready!(progress.sources.poll(waker))
            {
                return Poll::Ready(Err(Box::new(error)));
            }
            let (parent, launch) = progress.parent.as_ref().expect("a task that runs was launched");
            let make =
                || ContextState::forked(parent, *launch, Origin::Declared(&**head.definition()), worker.processor());
            progress.context = body.launches().then(make);
            progress.phase = Phase::Running;
            // SAFETY: the body is dropped with its end, and the context after it.
            let call = unsafe { ForkCall::new(progress.context.as_ref(), None) };
            fault::catch(|| {
                body.begin(call);
                body.poll(&mut context)
            })
        }
        Phase::Running => fault::catch(|| body.poll(&mut context)),
        Phase::Draining(_) => return drain(progress, waker),
    };
    let result = match polled {
        Ok(polled) => {
            ready!(polled).map_err(|error| Box::new(error.of_task(head.name(), None, head.launched().as_ref())))
        }
        Err(fault) => Err(Box::new(Error::of_fault_in(&fault, head.name(), None, head.launched().as_ref()))),
    };
    if result.is_err() {
        clear(body);
    }
    let Some(context) = &progress.context else { return Poll::Ready(result) };
    if context.is_over() {
        return Poll::Ready(result);
    }
    progress.phase = Phase::Draining(context.close(result.map_err(|error| *error)).map_err(Box::new));
    context.give_up_if_mapped();
    drain(progress, waker)
}

/// Waits for what the task has launched.
fn drain(progress: &mut Progress, waker: &Waker) -> Poll<Result<(), Box<Error>>> {
    let context = progress.context.as_ref().expect("a task that has launched has a context");
    ready!(context.poll_drained(waker));
    match std::mem::take(&mut progress.phase) {
        Phase::Draining(result) => Poll::Ready(context.conclude(result.map_err(|error| *error)).map_err(Box::new)),
        _ => unreachable!("only a task whose body has ended is drained"),
    }
}

/// Drops what is left of a body. If that panics, the body has failed for another reason already.
fn clear(body: &mut dyn ForkBody) {
    let _ = fault::catch(|| body.clear());
}

/// The runner of a task that has ended.
#[derive(Clone, Copy)]
pub(super) enum By<'a> {
    Worker(&'a WorkerContext<'a>),
    OtherNode,
    /// No worker has run its body to the end.
    Runtime,
}

/// The task has ended: tells its watchers and its parent, and gives up the reference.
pub(super) fn end(fork: Fork, result: Result<(), Box<Error>>, by: By<'_>) {
    // SAFETY: the thread that ends a task has the right to run it, which ends here.
    let (head, progress, body) = unsafe { fork.inside() };
    head.schedule.end();
    let (parent, number) = progress.parent.take().expect("a task that runs was launched");
    if let Some(context) = progress.context.take() {
        retire(context, &parent, matches!(by, By::Worker(_)));
    }
    let core = head.core();
    match by {
        By::Worker(worker) => core.forks.ended(worker.worker()),
        By::Runtime => core.store.counters.tasks.add(1),
        // It counts where it ran.
        By::OtherNode => {}
    }
    core.task_ended();
    match result {
        Ok(()) => {
            let definition = head.definition();
            if let Err(fault) = fault::catch(|| end_well(fork)) {
                parent.watch_launch(number, &Results::of_lost_value(parent.core.realm(), &**definition, &fault));
            }
        }
        Err(error) => {
            clear(body);
            let results = head.standing_for();
            results.fail_fork(&error, std::mem::take(&mut progress.sources).inputs());
            parent.watch_launch(number, &results);
            let last = head.word.end(ForkOutcome::Failed);
            debug_assert_eq!(last, Last::Tell, "the results watch");
            head.tell(ForkOutcome::Failed);
            results.end(Some(&error));
            drop(fork);
        }
    }
    parent.count_off();
}

/// Tells all watchers. If no reference to the task is left its value is dropped, whose destructor may panic.
#[inline]
fn end_well(fork: Fork) {
    match fork.head().word.end(ForkOutcome::Good) {
        Last::Nothing => std::mem::forget(fork),
        // SAFETY: so it was the last reference.
        Last::Free => unsafe { fork.free() },
        Last::Tell => {
            if let Some(results) = fork.head().tell(ForkOutcome::Good) {
                results.end_as(fork);
            }
        }
    }
}

/// A task does not need its context any more. What it has made is its parent's.
fn retire(context: Arc<ContextState>, parent: &ContextState, by_worker: bool) {
    match context.is_over() {
        true if by_worker => keep_spare(context),
        true => {}
        false => {
            context.hand_up_deletions(parent);
            parent.adopt(context.take_created());
        }
    }
}

/// The task's last waker was dropped, or the machine ends: so it has failed. It ends as others do, after what it has
/// launched. The caller has the right to run it.
#[cold]
pub(super) fn abandon(fork: Fork) {
    fork.head().schedule.run();
    // SAFETY: the caller passes on the right to run the task.
    let (head, progress, body) = unsafe { fork.inside() };
    clear(body);
    let (task, launched) = (head.name().to_owned(), head.launched().map(Box::new));
    let error = Box::new(Error::Stranded { task, point: None, launched });
    match (&progress.phase, &progress.context) {
        (Phase::Draining(_), _) => {}
        (_, Some(context)) => progress.phase = Phase::Draining(context.close(Err(*error)).map_err(Box::new)),
        (_, None) => return end(fork, Err(error), By::Runtime),
    }
    // SAFETY: as in `run`.
    let waker = ManuallyDrop::new(unsafe { Waker::from_raw(raw_waker(fork.as_raw())) });
    match drain(progress, &waker) {
        Poll::Ready(result) => end(fork, result, By::Runtime),
        Poll::Pending if fork.head().schedule.suspend() => {}
        Poll::Pending => queue(fork),
    }
}

/// Queues a task with this worker.
#[inline]
pub(super) fn queue(fork: Fork) {
    let core = Arc::clone(fork.head().core());
    // SAFETY: the reference is the job's, and so is the right to run the task, which the caller has.
    core.realm().queue_job(unsafe { Job::from_raw(fork.into_raw().cast()) });
}

fn raw_waker(head: NonNull<Head>) -> RawWaker {
    RawWaker::new(head.as_ptr().cast(), &WAKER)
}

/// Wakers of forked tasks: references that are counted as wakers too. But the one that a task is run with, of which
/// these are clones, is lent.
static WAKER: RawWakerVTable = RawWakerVTable::new(
    |data| {
        let fork = ManuallyDrop::new(waking(data));
        fork.head().word.add_waker();
        raw_waker(fork.as_raw())
    },
    |data| {
        let fork = waking(data);
        if wake_and_drop(&fork.head().schedule, &fork.head().word) {
            queue(fork);
        }
    },
    |data| {
        let fork = ManuallyDrop::new(waking(data));
        if fork.head().schedule.wake() {
            queue((*fork).clone());
        }
    },
    |data| {
        let fork = waking(data);
        if drop_waker(&fork.head().schedule, &fork.head().word) {
            queue(fork);
        }
    },
);

/// The task that a waker wakes, with the waker's reference.
fn waking(data: *const ()) -> Fork {
    // SAFETY: wakers are made from cells by `raw_waker`.
    unsafe { Fork::from_raw(NonNull::new_unchecked(data.cast_mut().cast())) }
}
