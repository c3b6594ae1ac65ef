//! Running a future on a thread of the caller's own.

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use maniple_realm::Fault;
use maniple_realm::profile::{Kind, Tag};
use maniple_realm::worker::Signal;

use crate::core::RuntimeCore;
use crate::support::error::{Error, Result};

/// A thread that polls, and whether it was woken since it last did.
struct Poller {
    signal: Signal,
    is_woken: AtomicBool,
}

/// Wakes a poller. When the last waker has been dropped it unparks the poller, too, which would else sleep for ever.
struct Unpark(Arc<Poller>);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.is_woken.store(true, Ordering::Release);
        self.0.signal.give();
    }
}

impl Drop for Unpark {
    fn drop(&mut self) {
        self.0.signal.give();
    }
}

/// Polls a top-level task to its end, until no waker is left, until the machine breaks down, or until the time is over,
/// if there is a limit with what comes of it then. The thread sleeps while it is pending, or does a worker's work if
/// there is no limit. To the profiler it is an operation of this name. Other threads may
/// [share](RuntimeCore::while_top_level_waits) the task.
pub(crate) fn block_on<T>(
    core: &RuntimeCore,
    name: &str,
    is_shared: bool,
    future: impl Future<Output = Result<T>>,
    limit: Option<(Duration, T)>,
) -> Result<T> {
    let (limit, late) = limit.unzip();
    let mut result = None;
    {
        let future = pin!(async { result = Some(future.await) });
        poll_to_end(core, name, is_shared, future, limit)?;
    }
    result.unwrap_or_else(|| Ok(late.expect("a task has no end before its limit alone")))
}

/// Polls as [`block_on`] does, whatever the result of the future, which is not finished if the time is over.
fn poll_to_end(
    core: &RuntimeCore,
    name: &str,
    is_shared: bool,
    mut future: Pin<&mut dyn Future<Output = ()>>,
    limit: Option<Duration>,
) -> Result<()> {
    core.check_whole()?;
    let end = |limit: Duration| core.now_ns().saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
    let limit = limit.map(end);
    let profiler = core.profiler();
    let poller = Arc::new(Poller { signal: core.realm().signal(), is_woken: AtomicBool::new(false) });
    let broken = |fault: &Fault| Error::of_fault(fault, name, None);
    let breakdown = Waker::from(Arc::new(Unpark(Arc::clone(&poller))));
    let _watch = core.realm().watch_for_breakdown(&breakdown).map_err(|fault| broken(&fault))?;
    let recorded = profiler
        .map(|profiler| (profiler, profiler.new_operations(1), Tag::of(profiler.label(Kind::Task, name, None))));
    let mut handed_out = Weak::new();
    loop {
        poller.is_woken.store(false, Ordering::Relaxed);
        let unpark = handed_out.upgrade().unwrap_or_else(|| Arc::new(Unpark(Arc::clone(&poller))));
        handed_out = Arc::downgrade(&unpark);
        let waker = Waker::from(unpark);
        let activity = recorded.map(|(profiler, operation, tag)| profiler.activity(operation, tag));
        let poll = future.as_mut().poll(&mut Context::from_waker(&waker));
        if let Some(activity) = &activity {
            activity.end();
        }
        match poll {
            Poll::Ready(()) => return Ok(()),
            // What it waits for may never come.
            Poll::Pending if let Some(fault) = core.realm().breakdown() => return Err(broken(fault)),
            Poll::Pending => drop(waker),
        }
        if handed_out.strong_count() == 0 {
            // Wakers wake first, and then go.
            fence(Ordering::Acquire);
            if !poller.is_woken.load(Ordering::Relaxed) {
                return Err(Error::Stranded { task: name.to_owned(), point: None, launched: None });
            }
            continue;
        }
        // A signal between poll and wait makes the wait return at once.
        let wait = || match &limit {
            None => {
                core.realm().wait_for(&poller.signal);
                true
            }
            Some(end) => {
                let left = Duration::from_nanos(end.saturating_sub(core.now_ns()));
                core.realm().wait_for_at_most(&poller.signal, left)
            }
        };
        let is_given = core.while_top_level_waits(is_shared, || match profiler {
            None => wait(),
            Some(profiler) => profiler.while_waiting(wait),
        });
        if limit.is_some() && !is_given {
            return Ok(());
        }
    }
}
