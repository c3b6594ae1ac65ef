//! A forked task: one object from its launch to the last look at its value.

use std::any::Any;
use std::cell::UnsafeCell;
use std::fmt;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker, ready};

use maniple_realm::profile::{OperationId, Record, Tag};
use maniple_realm::{Job, WorkerContext, fault};
use maniple_space::AnyPoint;

use super::ending::{Ending, Outcome};
use super::schedule::Schedule;
use crate::context::{Context, ContextState};
use crate::error::{Error, Result};
use crate::future::{Origin, Results, Source, Sources};
use crate::launch::TaskLauncher;
use crate::runtime::RuntimeCore;
use crate::task::TaskDefinition;
use crate::task::arguments::Arguments;

/// A task without regions, about to be launched, in flight, or ended.
pub(crate) trait Fork: Job {
    fn head(&self) -> &Head;

    /// The value, if the task has ended well.
    fn value(&self) -> Option<&dyn Any>;

    /// What it was given that may not be there yet. Before the launch.
    fn sources(&mut self) -> &[Source];

    /// Notes that and where the task is launched.
    fn launch(&mut self, launched: Launched);

    /// The same launch, to be launched in another way. Of one that has not been launched.
    fn take_launcher(&mut self) -> TaskLauncher;

    /// Another one of the same. Of one that has not been launched.
    fn duplicate(&self) -> Arc<dyn Fork>;
}

/// What is known of a forked task whatever its types.
pub(crate) struct Head {
    pub(super) definition: &'static Arc<TaskDefinition>,
    pub(super) tag: u64,
    /// Whether no argument owns anything.
    is_plain: bool,
    /// There from the launch on.
    core: Option<Arc<RuntimeCore>>,
    pub(super) recorded: (OperationId, Tag),
    schedule: Schedule,
    pub(super) ending: Ending,
}

/// How a task was launched.
pub(crate) struct Launched {
    pub(crate) parent: Arc<ContextState>,
    /// The number of the launch in its parent's program.
    pub(crate) number: u64,
    /// What a profile calls it.
    pub(crate) recorded: (OperationId, Tag),
}

/// What the body of a task without regions is given besides its arguments.
pub struct ForkCall {
    context: Context,
}

impl ForkCall {
    /// The context to launch in.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The point: that of a single launch.
    #[must_use]
    pub fn point(&self) -> AnyPoint {
        maniple_space::Point::<1>::from(0).into()
    }
}

/// A task with arguments `A`, of which `B` makes the future `F` of a `V`.
pub(super) struct Forked<A, B, F, V> {
    head: Head,
    body: B,
    /// Touched only by whoever has the right to run the task ([`Schedule`]); before the launch, by its owner.
    course: UnsafeCell<Course<A, F, V>>,
    /// Written before the end, and read after it ([`Ending`]).
    value: UnsafeCell<Option<V>>,
}

// SAFETY: `course` is touched by one thread at a time, and so may belong to any; except that before the launch several may look at the arguments,
// which are `Sync`. Threads that look at the value share it.
unsafe impl<A: Send + Sync, B: Sync, F: Send, V: Send + Sync> Sync for Forked<A, B, F, V> {}

/// How far a task is.
struct Course<A, F, V> {
    /// Who launched it, and as which launch; from the launch to the end.
    parent: Option<(Arc<ContextState>, u64)>,
    /// What it launches from; from its beginning to its end.
    context: Option<Arc<ContextState>>,
    /// What it was given that may not be there yet. Forgotten when it is, so that a chain of tasks is not kept by its end.
    sources: Vec<Source>,
    stage: Stage<A, F, V>,
}

#[allow(clippy::large_enum_variant)] // all are in one place, one after the other
enum Stage<A, F, V> {
    /// It has not begun.
    Waiting(A),
    /// Its body runs.
    Running(F),
    /// Its body has ended like this, and something that it launched has not.
    Draining(Result<V>),
    Over,
}

impl<A, B, F, V> Forked<A, B, F, V>
where
    A: Clone + Send + Sync + 'static,
    B: Fn(ForkCall, A) -> F + Copy + Send + Sync + 'static,
    F: Future<Output = Result<V>> + Send + 'static,
    V: Send + Sync + 'static,
{
    /// A task about to be launched. What it has to wait for is among the sources.
    pub(super) fn new(
        definition: &'static Arc<TaskDefinition>,
        (arguments, is_plain): (A, bool),
        (tag, sources): (u64, Vec<Source>),
        body: B,
    ) -> Self {
        let head = Head {
            definition,
            tag,
            is_plain,
            core: None,
            recorded: (OperationId::NONE, Tag::NONE),
            schedule: Schedule::queued(),
            ending: Ending::default(),
        };
        let course = Course { parent: None, context: None, sources, stage: Stage::Waiting(arguments) };
        Self { head, body, course: UnsafeCell::new(course), value: UnsafeCell::new(None) }
    }

    /// Goes on as far as can be.
    fn advance(&self, course: &mut Course<A, F, V>, worker: &WorkerContext<'_>, waker: &Waker) -> Poll<Result<V>> {
        loop {
            match &mut course.stage {
                Stage::Waiting(_) => {
                    let failure = ready!(poll_sources(&course.sources, waker));
                    let Stage::Waiting(arguments) = std::mem::replace(&mut course.stage, Stage::Over) else {
                        unreachable!("it was waiting just now")
                    };
                    if let Some(error) = failure {
                        return Poll::Ready(Err(error));
                    }
                    course.sources.clear();
                    course.stage = self.begin(&mut course.context, (&course.parent, worker), arguments);
                }
                Stage::Running(body) => {
                    // SAFETY: the body stays in its place until it is dropped there.
                    let body = unsafe { Pin::new_unchecked(body) };
                    let polled = fault::catch(|| body.poll(&mut std::task::Context::from_waker(waker)));
                    let value = match polled {
                        Ok(polled) => ready!(polled),
                        Err(fault) => Err(Error::of_fault(&fault, self.head.name(), None)),
                    };
                    // Dropping the body is its own affair.
                    let dropped = fault::catch(|| course.stage = Stage::Over);
                    let value = value.and_then(|value| match dropped {
                        Ok(()) => Ok(value),
                        Err(fault) => Err(Error::of_fault(&fault, self.head.name(), None)),
                    });
                    let value = value.map_err(|error| error.of_task(self.head.name(), None));
                    let context = course.context.as_ref().expect("a body that runs has a context");
                    course.stage = Stage::Draining(context.close(value));
                }
                Stage::Draining(_) => {
                    let context = course.context.as_ref().expect("a body that has run has a context");
                    ready!(context.poll_drained(waker));
                    let Stage::Draining(value) = std::mem::replace(&mut course.stage, Stage::Over) else {
                        unreachable!("it was draining just now")
                    };
                    return Poll::Ready(context.conclude(value));
                }
                Stage::Over => unreachable!("a task that is over is not run"),
            }
        }
    }

    /// Makes a context, and the body.
    fn begin(
        &self,
        context: &mut Option<Arc<ContextState>>,
        (parent, worker): (&Option<(Arc<ContextState>, u64)>, &WorkerContext<'_>),
        arguments: A,
    ) -> Stage<A, F, V> {
        let (parent, _) = parent.as_ref().expect("a task that runs was launched");
        let name = Origin::Declared(self.head.definition);
        let depth = parent.depth + 1;
        let state =
            context.insert(ContextState::new(&parent.core, (name, None, None), worker.processor(), depth, Vec::new()));
        let call = ForkCall { context: Context { state: Arc::clone(state) } };
        match fault::catch(|| (self.body)(call, arguments)) {
            Ok(body) => Stage::Running(body),
            Err(fault) => Stage::Draining(state.close(Err(Error::of_fault(&fault, self.head.name(), None)))),
        }
    }

    /// The task has ended: tells everybody.
    fn end(self: &Arc<Self>, course: &mut Course<A, F, V>, result: Result<V>, worker: &WorkerContext<'_>) {
        self.head.schedule.end();
        let (parent, number) = course.parent.take().expect("a task that runs was launched");
        if let Some(context) = course.context.take() {
            parent.adopt(context.take_created());
        }
        let core = self.head.core();
        core.forks.ended(worker.worker());
        core.task_ended();
        match result {
            Ok(value) => {
                // SAFETY: it is written once, here, and nobody reads it before the end.
                unsafe { *self.value.get() = Some(value) };
                worker.settle(|| {
                    if let Some(results) = self.head.ending.end(Outcome::Good) {
                        results.end_as(Arc::clone(self) as Arc<dyn Fork>);
                    }
                    parent.fork_ended();
                });
            }
            Err(error) => {
                let results = self.head.fail(&error, std::mem::take(&mut course.sources));
                parent.watch_launch(number, &results);
                worker.settle(|| {
                    self.head.ending.end(Outcome::Failed);
                    results.end(Some(&error));
                    parent.fork_ended();
                });
            }
        }
    }

    fn queue(self: Arc<Self>) {
        let core = Arc::clone(self.head.core());
        core.realm().queue_job(self);
    }
}

impl<A, B, F, V> Job for Forked<A, B, F, V>
where
    A: Clone + Send + Sync + 'static,
    B: Fn(ForkCall, A) -> F + Copy + Send + Sync + 'static,
    F: Future<Output = Result<V>> + Send + 'static,
    V: Send + Sync + 'static,
{
    fn run(self: Arc<Self>, worker: &WorkerContext<'_>) {
        self.head.schedule.run();
        // SAFETY: the queue that the task was taken from had the right to run it, and gave that to this call.
        let course = unsafe { &mut *self.course.get() };
        // SAFETY: it is not dropped, so that the count stays right, and is gone before `self` is.
        let waker = ManuallyDrop::new(Waker::from(unsafe { Arc::from_raw(Arc::as_ptr(&self)) }));
        match self.advance(course, worker, &waker) {
            Poll::Ready(result) => self.end(course, result, worker),
            Poll::Pending if self.head.schedule.suspend() => {}
            Poll::Pending => self.queue(),
        }
    }

    fn recorded(&self) -> (OperationId, Tag) {
        self.head.recorded
    }
}

impl<A, B, F, V> Wake for Forked<A, B, F, V>
where
    A: Clone + Send + Sync + 'static,
    B: Fn(ForkCall, A) -> F + Copy + Send + Sync + 'static,
    F: Future<Output = Result<V>> + Send + 'static,
    V: Send + Sync + 'static,
{
    fn wake(self: Arc<Self>) {
        if self.head.schedule.wake() {
            self.queue();
        }
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.head.schedule.wake() {
            Arc::clone(self).queue();
        }
    }
}

impl<A, B, F, V> Fork for Forked<A, B, F, V>
where
    A: Clone + Send + Sync + 'static,
    B: Fn(ForkCall, A) -> F + Copy + Send + Sync + 'static,
    F: Future<Output = Result<V>> + Send + 'static,
    V: Send + Sync + 'static,
{
    fn head(&self) -> &Head {
        &self.head
    }

    fn value(&self) -> Option<&dyn Any> {
        // SAFETY: it is not written any more once the task has ended.
        let value = || unsafe { &*self.value.get() }.as_ref();
        if self.head.ending.outcome() == Some(Outcome::Good) { value().map(|value| value as &dyn Any) } else { None }
    }

    fn sources(&mut self) -> &[Source] {
        &self.course.get_mut().sources
    }

    fn launch(&mut self, Launched { parent, number, recorded }: Launched) {
        self.head.core = Some(Arc::clone(&parent.core));
        self.head.recorded = recorded;
        self.course.get_mut().parent = Some((parent, number));
    }

    fn take_launcher(&mut self) -> TaskLauncher {
        let Stage::Waiting(arguments) = std::mem::replace(&mut self.course.get_mut().stage, Stage::Over) else {
            unreachable!("the launcher is taken once, before the launch")
        };
        let Head { definition, tag, is_plain, .. } = &self.head;
        let sources = self.course.get_mut().sources.iter().map(Source::results).collect();
        TaskLauncher::of_free(definition, (Arguments::known(arguments, *is_plain), sources), *tag)
    }

    fn duplicate(&self) -> Arc<dyn Fork> {
        // SAFETY: the task has not been launched, so nobody runs it.
        let Course { sources, stage: Stage::Waiting(arguments), .. } = (unsafe { &*self.course.get() }) else {
            unreachable!("only what has not been launched is duplicated")
        };
        let Head { definition, tag, is_plain, .. } = &self.head;
        Arc::new(Self::new(definition, (arguments.clone(), *is_plain), (*tag, sources.clone()), self.body))
    }
}

impl Head {
    pub(crate) fn name(&self) -> &str {
        self.definition.name()
    }

    /// The runtime of a task that has been launched.
    pub(crate) fn core(&self) -> &Arc<RuntimeCore> {
        self.core.as_ref().expect("the task has been launched")
    }

    /// How the task ended, if it has.
    #[inline]
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        self.ending.outcome()
    }

    /// How the task ended; if it has not, the waker will be woken.
    pub(crate) fn poll(&self, waker: &Waker) -> Poll<Outcome> {
        self.ending.poll(waker)
    }

    /// [`poll`](Self::poll), for somebody who can't go on before: the profile shows whom he waited for.
    #[inline]
    pub(crate) fn poll_by_body(&self, waker: &Waker) -> Poll<Outcome> {
        if let Some(outcome) = self.outcome() {
            return Poll::Ready(outcome);
        }
        if let Some(profiler) = self.core().profiler() {
            let (operation, time) = (profiler.current(), profiler.now_ns());
            profiler.record(Record::Awaited { operation, event: self.recorded.0, time });
        }
        self.poll(waker)
    }

    /// The results of a task that was given these and has failed.
    fn fail(&self, error: &Error, sources: Vec<Source>) -> Arc<Results> {
        let sources: Sources = sources.iter().map(Source::results).collect();
        let results = self.ending.results(|| Results::of_fork(self.core(), self.definition));
        results.fail_fork(error, sources);
        results
    }
}

/// Waits for what a task was given; then tells which failure of that is also the task's.
fn poll_sources(sources: &[Source], waker: &Waker) -> Poll<Option<Error>> {
    for source in sources {
        ready!(source.poll_ended(waker));
    }
    Poll::Ready(sources.iter().find_map(Source::error))
}

impl fmt::Debug for dyn Fork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fork of {}", self.head().name())
    }
}

/// The results of a forked task, for those who know launches by them.
pub(crate) fn results_of(fork: &Arc<dyn Fork>) -> Arc<Results> {
    let head = fork.head();
    let results = head.ending.results(|| Results::of_fork(head.core(), head.definition));
    if head.ending.outcome() == Some(Outcome::Good) {
        results.end_as(Arc::clone(fork));
    }
    results
}
