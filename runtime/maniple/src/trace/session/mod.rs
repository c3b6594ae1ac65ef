//! Sessions: a stretch of a context's stream in which traces are recorded and replayed.
//!
//! To the stream a session is one operation, a fence: it begins when everything before has ended, and what comes after
//! waits for its end. Inside, it is a state machine. Whenever nothing is in flight it *decides*: if a template fits the
//! state of the data, runs are replayed; otherwise one run is recorded, or just passed on to the analysis, in a stream
//! of its own. Then it waits until all of that has ended, and decides anew.
//!
//! Launches that arrive while nothing is decided yet wait in line. The launching task never waits.

mod concluding;
mod expected_fill;

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use maniple_realm::locks::Mutex;
use maniple_realm::{After, Class, Event, Spawn};
use maniple_record::LaunchNumber;
use maniple_region::TreeId;
use smallvec::SmallVec;

use super::replay::{Happened, Replay, Wake};
use super::replaying::Replaying;
use super::session_record::SessionRecord;
use super::staged::{Staged, StagedFill};
use super::trace::{First, Trace};
use super::whole::Whole;
use super::why::Why;
use crate::context::{ContextState, Promised, Stream, Zeroing};
use crate::core::Abandon;
use crate::execution::TaskState;
use crate::launch::recording::{Recording, RecordingProblem};
use crate::launch::{LaunchPart, Launching, TaskLaunch};
use crate::operation::lifecycle::Operation;
use crate::results::{Origin, Results};

/// A session in progress.
pub(crate) struct Session {
    this: Weak<Mutex<Session>>,
    context: Arc<ContextState>,
    trace: Arc<Mutex<Trace>>,
    /// The operation that stands for the session in the stream.
    operation: Option<Arc<Operation>>,
    /// The number of its launch, while a record is kept.
    recorded: Option<LaunchNumber>,
    /// The record of the session, from when it begins.
    record: Option<SessionRecord>,
    /// Whether runs have a length of their own, known from before: those of traces that were found.
    run_length: Option<usize>,
    phase: Phase,
    /// The arrivals that are still to be looked at.
    line: VecDeque<Arrival>,
    /// How many launches the run has that arrives: of a whole, the last of its parts counts.
    arrived: usize,
    is_closed: bool,
    /// The stream of the operations that are analysed in the session.
    inner: Stream,
    next_sequence: u64,
}

/// An arrival at the session, in program order.
enum Arrival {
    Launch(Box<Staged>),
    Fill(Box<StagedFill>),
    /// Fields that took the ids of freed ones start as zero.
    Zero(Box<Zeroing>),
    EndOfRun,
}

enum Phase {
    /// Operations from before the session are in flight, or what the last phase has issued.
    Waiting(Option<Ended>),
    /// Nothing is in flight: the next launch decides.
    Idle,
    Recording(Arc<Recording>, Option<Arc<Operation>>),
    /// The rest of a run is analysed, and no more.
    Passing,
    Replaying(Replaying),
}

/// The work that is to be done when nothing is in flight any more.
enum Ended {
    /// Launches with these ends were analysed, and maybe recorded.
    Analysed(SmallVec<[Event; 8]>, Option<Arc<Recording>>),
    Replaying(Replaying),
}

/// The check of a launch or fill that arrives: how it is known to belong here.
#[derive(Clone, Copy)]
pub(crate) enum Check {
    /// It is the program's word that it belongs here.
    None,
    /// It must have this token to be the one that comes next.
    Token(u64),
    /// It is the one that the replay expects.
    Done,
}

/// Wakes a session, on a worker.
#[derive(Clone)]
struct SessionWaker(Weak<Mutex<Session>>, Arc<ContextState>);

impl Wake for SessionWaker {
    fn wake(&self, what: Happened) {
        let session = self.0.clone();
        let spawn = Spawn { class: Class::Runtime, ..Spawn::ANYWHERE };
        self.1.core.spawn_own("the session of a trace", spawn, move || {
            if let Some(session) = session.upgrade() {
                session.lock().wake(what);
            }
        });
    }
}

impl Session {
    pub(crate) fn new(
        context: &Arc<ContextState>,
        trace: Arc<Mutex<Trace>>,
        run_length: Option<usize>,
    ) -> Arc<Mutex<Self>> {
        Arc::new_cyclic(|this| {
            Mutex::new(Self {
                this: this.clone(),
                context: Arc::clone(context),
                trace,
                operation: None,
                recorded: None,
                record: None,
                run_length,
                phase: Phase::Waiting(None),
                line: VecDeque::new(),
                arrived: 0,
                is_closed: false,
                inner: Stream::default(),
                next_sequence: 0,
            })
        })
    }

    /// Numbers the launches of the session: they come after this operation in program order, which stands for the
    /// session.
    pub(crate) fn number_from(&mut self, operation: &Operation) {
        (self.next_sequence, self.recorded) = (operation.sequence, operation.recorded);
    }

    /// Everything before the session has been mapped: waits until it has ended.
    pub(crate) fn begin(&mut self, operation: &Arc<Operation>, earlier: &[Event]) {
        self.operation = Some(Arc::clone(operation));
        self.context.core.register_session(self.this.clone());
        self.record = SessionRecord::begin(&self.context, operation, earlier);
        let wake = self.waker();
        self.context.core.realm().when(After::follows(earlier), move |_| wake.wake(Happened::End));
    }

    /// Takes in the launch that comes next in program order, if it is the one to come next.
    pub(crate) fn take(&mut self, launching: &mut Launching<'_>, check: Check) -> Option<Arc<Results>> {
        if self.is_closed {
            return None;
        }
        let is_expected = match &mut self.phase {
            Phase::Replaying(replaying) if self.line.is_empty() => match check {
                Check::Done => true,
                Check::None | Check::Token(_) => replaying.expects(launching, &self.context),
            },
            _ => false,
        };
        if let (Check::Token(token), false) = (check, is_expected)
            && launching.unit_token() != token
        {
            return None;
        }
        self.arrived += usize::from(launching.part.is_none_or(LaunchPart::is_last));
        let ends_run = self.run_length == Some(self.arrived) && launching.part.is_none_or(LaunchPart::is_last);
        let results = match &mut self.phase {
            Phase::Replaying(replaying) if is_expected && replaying.can_issue() => replaying.issue(launching),
            _ => self.line_up(launching),
        };
        if ends_run {
            self.end_run();
        }
        Some(results)
    }

    /// Whether a replay expects a launch of the program and all that comes with it, and all of it may go straight into
    /// that.
    pub(crate) fn expects_whole(&self, whole: &Whole<'_>) -> bool {
        let Phase::Replaying(replaying) = &self.phase else { return false };
        !self.is_closed
            && self.line.is_empty()
            && replaying.expects_whole(whole, &self.context)
            && replaying.can_issue()
    }

    /// Takes in all of a launch of the program, which was found to be [expected](Self::expects_whole).
    pub(crate) fn take_whole(&mut self, whole: &mut Whole<'_>) -> Option<Arc<Results>> {
        let Phase::Replaying(replaying) = &mut self.phase else { return None };
        self.context.operations_begin(whole.parts());
        self.context.core.store.counters.replayed_at_once.add(1);
        self.arrived += 1;
        let results = replaying.issue_whole(whole);
        if self.run_length == Some(self.arrived) {
            self.end_run();
        }
        Some(results)
    }

    /// Puts a launch in line. It is checked now, as what comes later in the program must not disturb it; one that is
    /// refused fails, and that is all.
    fn line_up(&mut self, launching: &mut Launching<'_>) -> Arc<Results> {
        let context = Arc::clone(&self.context);
        let realm = context.core.realm();
        let mut renewed = Vec::new();
        let site = context.site(launching, &mut |zero| renewed.push(zero));
        launching.launcher.wait_by_event(realm);
        let (origin, domain) =
            (Origin::of(launching.launcher.definition()), launching.share.unwrap_or(launching.domain));
        // Also if the launch is refused: the next one will not be told.
        renewed.into_iter().for_each(|zero| self.arrive(Arrival::Zero(Box::new(context.zeroing(zero)))));
        match site {
            Ok(site) => {
                let launch = TaskLaunch::new(launching, site, context.place_of_launch());
                let (completion, sources) = (realm.user_event(), launch.sources.clone());
                let results = Results::new(realm, origin, domain, completion.event(), sources);
                results.recorded_by(context.core.store.recorder.as_ref());
                let record = |parent| launch.site.recorded(parent, launch.launched.as_ref());
                let recorded = context.core.store.record_launch(context.recorded, completion.event(), record);
                let staged = Staged { launch, results: Arc::clone(&results), completion, recorded };
                self.arrive(Arrival::Launch(Box::new(staged)));
                results
            }
            Err(error) => {
                // It has not taken any results: a reader that sees it fail has not seen how they ended.
                let error = error.launched_at(launching.launcher.provenance());
                let results = Results::failed(realm, origin, domain, &error);
                context.watch(&results);
                context.operations_retired(1);
                results
            }
        }
    }

    /// The token of a launch, if it is the one that a replay expects.
    pub(crate) fn token_of_expected(&mut self, launching: &Launching<'_>) -> Option<u64> {
        let Phase::Replaying(replaying) = &mut self.phase else { return None };
        let is_expected = self.line.is_empty() && replaying.expects(launching, &self.context);
        is_expected.then(|| replaying.replay.template.stages[replaying.stage].site.token)
    }

    /// The program has come to the end of a run.
    pub(crate) fn end_run(&mut self) {
        self.arrived = 0;
        self.arrive(Arrival::EndOfRun);
    }

    /// Whether something of a region tree stands in line, or is recorded or replayed.
    pub(crate) fn uses(&self, tree: TreeId) -> bool {
        let in_line = self.line.iter().any(|arrival| match arrival {
            Arrival::Launch(staged) => staged.launch.site.uses(tree),
            Arrival::Fill(staged) => staged.site.uses(tree),
            Arrival::Zero(_) | Arrival::EndOfRun => false,
        });
        let is_under_way = match &self.phase {
            Phase::Recording(recording, _) | Phase::Waiting(Some(Ended::Analysed(_, Some(recording)))) => {
                recording.uses(tree)
            }
            Phase::Replaying(replaying) | Phase::Waiting(Some(Ended::Replaying(replaying))) => {
                replaying.replay.template.uses(tree)
            }
            Phase::Waiting(_) | Phase::Idle | Phase::Passing => false,
        };
        in_line || is_under_way || self.trace.lock().uses(tree)
    }

    /// Whether the next launch is the first one of a run.
    pub(crate) fn is_between_runs(&self) -> bool {
        self.arrived == 0
    }

    /// No more launches come. From now on it counts that the session has not ended.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
        self.context.core.store.record_end_of_trace(self.context.recorded, self.recorded);
        self.context.operation_begins();
        match &self.phase {
            Phase::Waiting(_) => {}
            Phase::Idle => self.finish(),
            Phase::Recording(..) | Phase::Passing | Phase::Replaying(_) if self.line.is_empty() => {
                self.settle(&Why::EndOfTrace)
            }
            Phase::Recording(..) | Phase::Passing | Phase::Replaying(_) => {}
        }
    }

    fn waker(&self) -> SessionWaker {
        SessionWaker(self.this.clone(), Arc::clone(&self.context))
    }

    fn arrive(&mut self, arrival: Arrival) {
        self.line.push_back(arrival);
        if !matches!(self.phase, Phase::Waiting(_)) {
            // Even behind others: what the first of them waits for may be there by now, and the sooner the line is
            // gone, the better.
            self.go_on();
        }
    }

    /// Goes on after an event. A slot may be told of late: a launch that came later may have taken it, and another may
    /// have ended the replay, whose end the session waits for then.
    fn wake(&mut self, what: Happened) {
        if let Phase::Waiting(ended) = &mut self.phase {
            if what == Happened::Slot {
                return;
            }
            let ended = ended.take();
            self.phase = Phase::Idle;
            match ended {
                None => {}
                Some(Ended::Analysed(ends, recording)) => {
                    self.record.iter_mut().for_each(|record| record.analysis_ended(&ends));
                    recording.iter().for_each(|recording| self.conclude_recording(recording));
                }
                Some(Ended::Replaying(replaying)) => self.conclude_replay(&replaying),
            }
        }
        self.go_on();
    }

    /// Looks at what stands in line, as far as that is possible now.
    fn go_on(&mut self) {
        loop {
            let Some(arrival) = self.line.pop_front() else {
                if self.is_closed {
                    match self.phase {
                        Phase::Idle => self.finish(),
                        Phase::Waiting(_) => {}
                        _ => self.settle(&Why::EndOfTrace),
                    }
                }
                return;
            };
            match arrival {
                Arrival::Launch(staged) => {
                    if let Some(later) = self.launch(staged) {
                        self.line.push_front(Arrival::Launch(later));
                        return;
                    }
                }
                Arrival::Fill(staged) => {
                    if let Some(later) = self.fill(staged) {
                        self.line.push_front(Arrival::Fill(later));
                        return;
                    }
                }
                Arrival::Zero(zeroing) => {
                    if let Some(later) = self.zero(zeroing) {
                        self.line.push_front(Arrival::Zero(later));
                        return;
                    }
                }
                Arrival::EndOfRun => self.run_ended(),
            }
            if matches!(self.phase, Phase::Waiting(_)) {
                return;
            }
        }
    }

    /// Takes the launch that is first in line. Gives it back if it has to wait.
    fn launch(&mut self, staged: Box<Staged>) -> Option<Box<Staged>> {
        if let Phase::Idle = self.phase {
            self.decide(First::Launch(&staged.launch.site));
        }
        match &mut self.phase {
            // The decision waits.
            Phase::Waiting(_) | Phase::Idle => Some(staged),
            Phase::Recording(..) | Phase::Passing => {
                self.analyse(*staged);
                None
            }
            Phase::Replaying(replaying) => {
                if !replaying.expects_staged(&staged) || replaying.has_to_end() {
                    self.settle(&Why::Other(&staged.launch.site));
                    return Some(staged);
                }
                if !replaying.has_slot() {
                    return Some(staged);
                }
                replaying.issue_staged(*staged);
                None
            }
        }
    }

    /// The run that was looked at is complete.
    fn run_ended(&mut self) {
        match &self.phase {
            Phase::Replaying(Replaying { at: 0, replay, .. }) if replay.template.is_idempotent => {
                self.context.core.store.counters.replays.add(1);
            }
            Phase::Replaying(Replaying { at: 0, .. }) => {
                self.context.core.store.counters.replays.add(1);
                self.settle(&Why::EndOfRun);
            }
            Phase::Waiting(_) | Phase::Idle => {}
            Phase::Recording(..) | Phase::Passing | Phase::Replaying(_) => self.settle(&Why::EndOfRun),
        }
    }

    /// Nothing is in flight: chooses what is done with the next run, or the rest of one, which begins with this.
    fn decide(&mut self, first: First<'_>) {
        let realm = self.context.core.realm();
        let mut trace = self.trace.lock();
        let found = match trace.take_up(first, realm) {
            Ok(found) => found,
            Err(event) => {
                drop(trace);
                let wake = self.waker();
                self.phase = Phase::Waiting(None);
                realm.when(After::follows(&[event]), move |_| wake.wake(Happened::End));
                return;
            }
        };
        if let Some(template) = found {
            drop(trace);
            let fence = self.record.as_ref().map(SessionRecord::fence);
            let (replay, runs) = Replay::start(&self.context, &template, fence, Box::new(self.waker()));
            self.context.set_window(replay.window());
            self.phase = Phase::Replaying(Replaying { replay, runs, run: 0, at: 0, stage: 0 });
        } else if trace.wants_recording() {
            drop(trace);
            self.context.core.store.recordings.begin();
            self.phase = Phase::Recording(Arc::new(Recording::new()), None);
        } else {
            drop(trace);
            self.phase = Phase::Passing;
        }
    }

    /// Sends a launch through the analysis.
    fn analyse(&mut self, staged: Staged) {
        let Staged { launch, results, completion, recorded } = staged;
        let (context, site) = (Arc::clone(&self.context), Arc::clone(&launch.site));
        let producers = Results::producers(&launch.sources);
        let promised = Promised { completion, recorded };
        self.record_analysed(recorded);
        let taped = match &self.phase {
            Phase::Recording(recording, _) => {
                if site.bounds.iter().any(|bound| context.is_borrowed(bound)) {
                    recording.fail(RecordingProblem::Borrowed);
                }
                Some((Arc::clone(recording), recording.add_stage(&site)))
            }
            _ => None,
        };
        self.next_sequence += 1;
        self.inner.set_sequence(self.next_sequence);
        let operation = context.submit_to(&mut self.inner, &site.bounds, &producers, promised, |_, submission| {
            TaskState::new(&context, launch, submission, &results, taped)
        });
        results.produced_by(&operation);
        context.watch(&results);
        self.release(&operation);
    }

    /// An operation of the inner stream may be mapped.
    fn release(&mut self, operation: &Arc<Operation>) {
        if let Phase::Recording(_, previous) = &mut self.phase
            && let Some(previous) = previous.replace(Arc::clone(operation))
        {
            // Launches are mapped one after the other, so that the recording is in program order.
            operation.map_after(&previous);
        }
        operation.release();
    }

    fn record_analysed(&mut self, launch: Option<LaunchNumber>) {
        if let (Some(record), Some(launch)) = (&mut self.record, launch) {
            record.analysed(launch);
        }
    }

    /// Fields that took the ids of freed ones start as zero, which no template does. Gives them back if they have to
    /// wait.
    fn zero(&mut self, zeroing: Box<Zeroing>) -> Option<Box<Zeroing>> {
        match &self.phase {
            Phase::Waiting(_) => return Some(zeroing),
            Phase::Replaying(_) => {
                self.settle(&Why::Renewed);
                return Some(zeroing);
            }
            Phase::Idle => self.phase = Phase::Passing,
            Phase::Recording(recording, _) => recording.fail(RecordingProblem::NotMapped),
            Phase::Passing => {}
        }
        self.next_sequence += 1;
        self.inner.set_sequence(self.next_sequence);
        self.context.operation_begins();
        self.record_analysed(zeroing.recorded());
        let operation = self.context.zero_in(&mut self.inner, *zeroing);
        operation.release();
        None
    }

    /// The machine has broken down, and nothing wakes the session any more: gives what it holds, to be dropped. The
    /// operation among it knows the session.
    fn take_held(&mut self) -> impl Sized + use<> {
        let phase = std::mem::replace(&mut self.phase, Phase::Idle);
        (self.operation.take(), phase, std::mem::take(&mut self.line), std::mem::take(&mut self.inner))
    }

    /// All is done: what comes after the session may begin.
    fn finish(&mut self) {
        if let Some(operation) = self.operation.take() {
            if let Some(record) = self.record.take() {
                record.end(operation.completion.event());
            }
            operation.mark_mapped();
            operation.retire(Ok(()));
        }
    }
}

impl Abandon for Mutex<Session> {
    fn abandon(&self) {
        let held = self.lock().take_held();
        drop(held);
    }
}
