//! The dispatch of a context's launches: into the session under way, a new one, or the stream.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, ThreadId};

use maniple_analysis::repeats::CandidateId;
use maniple_realm::Event;
use maniple_realm::locks::{Mutex, MutexGuard};
use maniple_region::LogicalRegion;

use super::automatic::Automatic;
use super::session::{Check, Session};
use super::strict::StrictTraces;
use super::trace::{TraceBook, TraceId};
use super::whole::Whole;
use crate::context::{Context, ContextPart, ContextState};
use crate::launch::Launching;
use crate::operation::lifecycle::{Mappable, Operation};
use crate::results::Results;
use crate::support::error::Error;

/// The state of a context's traces.
#[derive(Default)]
pub(crate) struct Tracing {
    pub(super) book: TraceBook,
    session: Option<(TraceId, Arc<Mutex<Session>>)>,
    pub(super) automatic: Automatic,
    /// The session under way has taken the first part of the latest whole.
    whole_is_traced: bool,
    pub(crate) strict: StrictTraces,
    /// The thread that is within a trace which it has named, where several launch.
    within: Option<ThreadId>,
}

/// The operation that stands for a session in the stream.
struct SessionOperation {
    session: Arc<Mutex<Session>>,
    earlier: Vec<Event>,
}

impl Mappable for SessionOperation {
    fn name(&self) -> &str {
        "trace"
    }

    fn map(self: Arc<Self>, operation: &Arc<Operation>) {
        self.session.lock().begin(operation, &self.earlier);
    }
}

impl Context {
    /// Marks launches that repeat: they are analysed and mapped the first time or two, and replayed from then on, at a
    /// fraction of the cost (Lee et al., *Dynamic Tracing*, SC'18). `name` tells this stretch of the program from other
    /// ones of the same task.
    ///
    /// ```
    /// use maniple::prelude::*;
    ///
    /// #[derive(Fields)]
    /// struct Cell {
    ///     value: f64,
    /// }
    ///
    /// #[task(leaf)]
    /// fn double(#[writes(value)] cells: Piece<Cell>) {
    ///     cells.points().for_each(|point| cells.value[point] *= 2.0);
    /// }
    ///
    /// let runtime = Runtime::builder().workers(2).build()?;
    /// let sum = runtime.run(async |cx: &Context| {
    ///     let cells = cx.region::<Cell>(4)?;
    ///     let pieces = cells.partition(2).equal()?;
    ///     cx.fill(&cells, Cell::value, 1.0)?;
    ///     for _ in 0..10 {
    ///         cx.trace("step", |cx| {
    ///             cx.index_launch(2, double(&pieces));
    ///         });
    ///     }
    ///     Ok(cx.map_read(&cells, Cell::value).await?.to_vec().iter().sum::<f64>())
    /// })?;
    /// assert_eq!(sum, 4096.0);
    /// # Ok::<(), maniple::Error>(())
    /// ```
    ///
    /// Results are those of the program without the call, whatever is launched. Launches of the same tasks on the same
    /// data are replayed with the mapper's answers of the recorded run; arguments and futures may differ. So are
    /// [fills](Self::fill) with the same value, if that is zero or a number, and [invalidations](Self::invalidate).
    /// Launches and fills that differ from those recorded are analysed as usual, which
    /// [`Statistics::replays_given_up`](crate::Statistics::replays_given_up) counts. What is not replayed: tasks that
    /// launch tasks; other fills, inline mappings and fences, which end a replay; and whatever is launched where a task
    /// holds data mapped. A `trace` within another belongs to the outer one. [`strict_trace`](Self::strict_trace) makes
    /// an error of launches that differ.
    ///
    /// A stretch between the `trace` calls of a loop costs: the runs of a trace follow one another without a look at
    /// the state of the data only if nothing is launched in between.
    pub fn trace<R>(&self, name: &'static str, body: impl FnOnce(&Self) -> R) -> R {
        self.state.begin_trace(name);
        let end = EndOfTrace(&self.state);
        let result = body(self);
        drop(end);
        result
    }
}

/// Ends a run of a trace, even if the body panics.
struct EndOfTrace<'a>(&'a Arc<ContextState>);

impl Drop for EndOfTrace<'_> {
    fn drop(&mut self) {
        self.0.end_trace();
    }
}

impl ContextState {
    fn begin_trace(self: &Arc<Self>, name: &'static str) {
        let mut tracing = self.tracing();
        tracing.book.depth += 1;
        self.is_in_trace.store(true, Ordering::Relaxed);
        if tracing.book.depth > 1 {
            return;
        }
        tracing.within = self.is_shared.then(|| thread::current().id());
        let id = TraceId::Named(name);
        match &tracing.session {
            Some((current, session)) if *current == id && session.lock().is_between_runs() => {}
            _ => {
                tracing.interrupt(self);
                tracing.start(self, id, None);
            }
        }
    }

    fn end_trace(self: &Arc<Self>) {
        let mut tracing = self.tracing();
        tracing.book.depth -= 1;
        if tracing.book.depth > 0 {
            return;
        }
        self.is_in_trace.store(false, Ordering::Relaxed);
        if let Some((_, session)) = &tracing.session {
            session.lock().end_run();
        }
    }

    /// The state of the task's traces, if there is any. Locked for as long as a launch takes, before the stream.
    fn known_tracing(&self) -> Option<MutexGuard<'_, Tracing>> {
        self.parts.traces.get::<Mutex<Tracing>>().map(Mutex::lock)
    }

    /// As [`known_tracing`](Self::known_tracing), begun if nothing is.
    pub(super) fn tracing(&self) -> MutexGuard<'_, Tracing> {
        self.parts.traces.get_or_init(Arc::<Mutex<Tracing>>::default).lock()
    }

    /// Takes a launch into a session, if it belongs there.
    pub(crate) fn trace_launch(self: &Arc<Self>, launching: &mut Launching<'_>) -> Option<Arc<Results>> {
        if !self.core.is_tracing() {
            if let Some(mut tracing) = self.known_tracing().filter(|tracing| !tracing.is_elsewhere()) {
                tracing.strict.launched(self, launching);
            }
            return None;
        }
        // After a breakdown the stream says why.
        self.throttle().ok()?;
        let mut tracing = self.tracing();
        if tracing.is_elsewhere() {
            tracing.interrupt(self);
            return None;
        }
        tracing.strict.launched(self, launching);
        // Counted before it may end.
        self.operation_begins();
        let taken = match tracing.book.depth {
            0 => tracing.launch_outside(self, launching),
            _ => tracing.launch_inside(launching),
        };
        if taken.is_none() {
            self.operations_retired(1);
        }
        taken
    }

    /// Replays all of a launch of the program, if a replay is under way that expects it. If not, nothing has happened.
    pub(crate) fn replay_whole(self: &Arc<Self>, whole: &mut Whole<'_>) -> Option<Arc<Results>> {
        if !self.core.is_tracing() || whole.parts() > self.window {
            return None;
        }
        // After a breakdown the stream says why.
        self.throttle().ok()?;
        self.tracing().replay_whole(self, whole)
    }
}

impl ContextPart for Mutex<Tracing> {
    fn destroyed(&self, context: &ContextState, region: &LogicalRegion) {
        let (mut tracing, tree) = (self.lock(), region.tree().id());
        tracing.strict.destroyed(tree);
        tracing.strict.forget_tree(tree);
        // To a trace that does not use it, it makes no difference.
        if tracing.session().is_some_and(|(_, session)| session.lock().uses(tree)) {
            tracing.interrupt(context);
        }
        tracing.book.forget_tree(tree);
    }

    fn put_aside(&self, region: &LogicalRegion) {
        let (mut tracing, tree) = (self.lock(), region.tree().id());
        // Within a run it is made anew in each.
        if !tracing.strict.are_running() {
            tracing.strict.forget_tree(tree);
        }
        // Templates hold on to instances.
        if tracing.session().is_none_or(|(_, session)| !session.lock().uses(tree)) {
            tracing.book.forget_tree(tree);
        }
    }

    fn interrupt(&self, context: &ContextState, what: &str) {
        let mut tracing = self.lock();
        if !tracing.is_elsewhere() {
            tracing.strict.interrupt(what);
        }
        tracing.interrupt(context);
    }

    fn end(&self) -> Option<Error> {
        let tracing = std::mem::take(&mut *self.lock());
        tracing.strict.untold()
    }
}

impl Tracing {
    /// Within a trace that the program has named.
    fn launch_inside(&mut self, launching: &mut Launching<'_>) -> Option<Arc<Results>> {
        let (_, session) = self.session.as_ref()?;
        session.lock().take(launching, Check::None)
    }

    /// As [`ContextState::replay_whole`].
    fn replay_whole(&mut self, context: &ContextState, whole: &mut Whole<'_>) -> Option<Arc<Results>> {
        let (id, session) = self.session.as_ref()?;
        let mut session = session.lock();
        if !session.expects_whole(whole) || self.strict.are_running() {
            return None;
        }
        let begins = match (id, self.book.depth) {
            (TraceId::Named(_), 1..) => false,
            (&TraceId::Found(id), 0) => {
                let token = whole.number.token();
                if !self.automatic.expects(id, token) {
                    return None;
                }
                self.automatic.push_expected(id, token, context.core.realm())
            }
            _ => return None,
        };
        let results = session.take_whole(whole);
        drop(session);
        if begins {
            self.forget_candidates();
        }
        results
    }

    /// Takes in a launch outside of the traces that the program has named.
    fn launch_outside(&mut self, context: &Arc<ContextState>, launching: &mut Launching<'_>) -> Option<Arc<Results>> {
        if let Some((TraceId::Named(_), _)) = &self.session {
            self.close();
        }
        if !may_be_found(context) {
            return None;
        }
        if launching.part.is_some_and(|part| part.begins().is_none()) {
            // Where the first part is.
            let (_, session) = self.session.as_ref().filter(|_| self.whole_is_traced)?;
            return session.lock().take(launching, Check::None);
        }
        let taken = self.launch_unit(context, launching);
        self.whole_is_traced = taken.is_some();
        taken
    }

    /// Of a launch that is none of the later parts of a whole.
    fn launch_unit(&mut self, context: &Arc<ContextState>, launching: &mut Launching<'_>) -> Option<Arc<Results>> {
        let realm = context.core.realm();
        if let (Some((_, session)), Some(expected)) = (&self.session, self.automatic.expected()) {
            // Wholes may begin with the same part, and go on with others.
            let may_be_expected = launching.part.is_none() || launching.unit_token() == expected;
            let take = || session.lock().take(launching, Check::Token(expected));
            if let Some(results) = may_be_expected.then(take).flatten() {
                self.automatic.push(expected, realm);
                return Some(results);
            }
            self.automatic.abandon();
            self.close();
        }
        self.launch_between_runs(context, launching)
    }

    /// No run is under way: maybe one begins.
    fn launch_between_runs(
        &mut self,
        context: &Arc<ContextState>,
        launching: &mut Launching<'_>,
    ) -> Option<Arc<Results>> {
        let realm = context.core.realm();
        // Nearly always the same trace begins anew, and its first launch is known by comparing.
        let session = self.session.as_ref().filter(|_| launching.part.is_none());
        let known = session.and_then(|(_, session)| session.lock().token_of_expected(launching));
        let (token, check) = match known {
            Some(token) => (token, Check::Done),
            None => {
                let token = launching.unit_token();
                (token, Check::Token(token))
            }
        };
        let begun = self.automatic.begin(token);
        self.forget_candidates();
        let mut results = None;
        if let Some((id, length)) = begun {
            self.go_to(context, id, length);
            results = self.session.as_ref().and_then(|(_, session)| session.lock().take(launching, check));
            if results.is_none() {
                self.automatic.abandon();
            }
        }
        if results.is_none() {
            self.close();
        }
        self.automatic.push(token, realm);
        results
    }

    /// The session under way becomes that of a trace that was found, if it can.
    pub(super) fn go_to(&mut self, context: &Arc<ContextState>, id: CandidateId, length: usize) {
        if !matches!(&self.session, Some((TraceId::Found(current), _)) if *current == id) {
            self.close();
            self.start(context, TraceId::Found(id), Some(length));
        }
    }

    /// Whether another thread is within a trace that it has named: what this one launches is no part of that.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.book.depth > 0 && self.within.is_some_and(|thread| thread != thread::current().id())
    }

    /// The session under way, if there is one.
    pub(super) fn session(&self) -> Option<(TraceId, Arc<Mutex<Session>>)> {
        self.session.clone()
    }

    /// Begins a session, unless there is something that it could not go with.
    fn start(&mut self, context: &Arc<ContextState>, id: TraceId, run_length: Option<usize>) {
        if !context.core.is_tracing() {
            return;
        }
        let (trace, is_new) = self.book.get(id);
        if is_new {
            context.core.store.register_cache(Arc::downgrade(&trace) as _);
        }
        let session = Session::new(context, trace, run_length);
        let completion = context.core.realm().user_event();
        let operation = context.submit_session(completion, |earlier| {
            Arc::new(SessionOperation { session: Arc::clone(&session), earlier })
        });
        if let Some(operation) = operation {
            session.lock().number_from(&operation);
            self.session = Some((id, session));
        }
    }

    /// Ends the session under way, if there is one.
    pub(super) fn close(&mut self) {
        if let Some((_, session)) = self.session.take() {
            session.lock().close();
        }
    }

    pub(super) fn interrupt(&mut self, context: &ContextState) {
        self.close();
        if may_be_found(context) {
            self.automatic.interrupt(context.core.realm());
            self.forget_candidates();
        }
    }

    pub(super) fn forget_candidates(&mut self) {
        for id in self.automatic.take_forgotten() {
            self.book.forget(TraceId::Found(id));
        }
    }
}

/// Whether repeats are looked for. Where several threads launch, one's fill or mapping may come between what another is
/// about to repeat.
pub(super) fn may_be_found(context: &ContextState) -> bool {
    context.core.is_tracing_automatically() && !context.is_shared
}
