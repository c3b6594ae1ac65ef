//! Running a future on a thread of the caller's own.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use maniple_realm::Fault;
use maniple_realm::profile::{Kind, Tag};

use crate::error::{Error, Result};
use crate::runtime::RuntimeCore;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls a top-level task to its end, or until the machine breaks down; the thread sleeps while it is pending. To the profiler it is an operation
/// of this name.
pub(crate) fn block_on<T>(core: &RuntimeCore, name: &str, future: impl Future<Output = Result<T>>) -> Result<T> {
    let profiler = core.profiler();
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    let broken = |fault: &Fault| Error::of_fault(fault, name, None);
    let _watch = core.realm().watch_for_breakdown(&waker).map_err(|fault| broken(&fault))?;
    let recorded = profiler
        .map(|profiler| (profiler, profiler.new_operations(1), Tag::of(profiler.label(Kind::Task, name, None))));
    loop {
        let activity = recorded.map(|(profiler, operation, tag)| profiler.activity(operation, tag));
        let poll = future.as_mut().poll(&mut context);
        if let Some(activity) = &activity {
            activity.end();
        }
        match poll {
            Poll::Ready(value) => return value,
            // What it waits for may never come.
            Poll::Pending if let Some(fault) = core.realm().breakdown() => return Err(broken(fault)),
            // An unpark between poll and park makes the park return at once.
            Poll::Pending => core.while_top_level_waits(|| match profiler {
                None => std::thread::park(),
                Some(profiler) => profiler.while_waiting(std::thread::park),
            }),
        }
    }
}
