//! Strict traces: whether each run of a trace launches what its first run did.
//!
//! This is looked at when the program launches, not when something is replayed. So the verdict is there when the run is
//! over, and depends on the program alone: not on timing, on memory, on the state of the data, or on whether anything
//! is replayed at all.

use std::sync::Arc;

use maniple_realm::locks::Mutex;
use maniple_region::{Requirement, TreeId};
use maniple_space::AnyRect;
use rustc_hash::FxHashMap;

use crate::context::{Context, ContextState, NEW_FIELDS};
use crate::launch::{FillSite, Filling, Findings, LaunchSite, Launching};
use crate::operation::lifecycle::MapperNumber;
use crate::support::error::{Error, Result};
use crate::task::TaskDefinition;

/// The state of a context's strict traces.
#[derive(Default)]
pub(crate) struct StrictTraces {
    /// By the names of the traces, what their first runs launched.
    sequences: FxHashMap<&'static str, Arc<[Described]>>,
    /// The runs under way, each within the one before.
    runs: Vec<StrictRun>,
    /// By the names of the traces, what was found wrong when launches were mapped, which may be after their run.
    findings: FxHashMap<&'static str, Arc<Mutex<Findings>>>,
}

impl StrictTraces {
    /// Whether a run is under way.
    pub(super) fn are_running(&self) -> bool {
        !self.runs.is_empty()
    }
}

/// A run of a strict trace.
struct StrictRun {
    trace: &'static str,
    /// The launches and fills of the first run; none if this is the first.
    expected: Option<Arc<[Described]>>,
    /// The launches and fills of this run, if it is the first.
    found: Vec<Described>,
    launches: usize,
    /// The first thing that was wrong.
    problem: Option<Error>,
    findings: Arc<Mutex<Findings>>,
}

/// All of a launch but its arguments, or a fill.
pub(super) enum Described {
    Launch(Launched),
    Fill(Filling),
}

/// All of a launch but its arguments.
#[derive(PartialEq, Eq)]
pub(super) struct Launched {
    definition: SameTask,
    requirements: Vec<Requirement>,
    domain: AnyRect,
    index_launch: bool,
    tag: u64,
    mapper: MapperNumber,
}

/// Tasks are the same if they are the same object.
struct SameTask(Arc<TaskDefinition>);

impl PartialEq for SameTask {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SameTask {}

impl Context {
    /// As [`trace`](Self::trace), but every run has to launch what the first one did: the same tasks with the same
    /// requirements, over the same domains, in the same order. Arguments and futures may differ.
    ///
    /// Replays check that in any case, and fall back to the analysis without a word. A program that counts on being
    /// replayed learns here which launch keeps it from that.
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
    ///     let (halves, quarters) = (cells.partition(2).equal()?, cells.partition(4).equal()?);
    ///     cx.fill(&cells, Cell::value, 1.0)?;
    ///     for _ in 0..9 {
    ///         cx.strict_trace("step", |cx| {
    ///             cx.index_launch(2, double(&halves));
    ///         })?;
    ///     }
    ///     // The tenth step is another one. It is carried out, and refused as a run of this trace.
    ///     let refused = cx.strict_trace("step", |cx| {
    ///         cx.index_launch(4, double(&quarters));
    ///     });
    ///     assert!(matches!(refused, Err(Error::TraceDiffers { trace: "step", launch: 0, .. })));
    ///     Ok(cx.map_read(&cells, Cell::value).await?.to_vec().iter().sum::<f64>())
    /// })?;
    /// assert_eq!(sum, 4096.0);
    /// # Ok::<(), maniple::Error>(())
    /// ```
    ///
    /// The error is about speed and nothing else. All that the body launched is carried out and has the results that it
    /// would have had without traces, so a program may note the error and go on; what the body returned is dropped. The
    /// first run without an error stays the one that later runs are compared with, until a region that it used is
    /// destroyed.
    ///
    /// No error: a run that is analysed because the data is in a state that the trace has not been found in, because
    /// its instances are not made yet, or because memory is short. [`Statistics`](crate::Statistics) tells how many
    /// runs were recorded and replayed. Runs are compared even if
    /// [`RuntimeBuilder::tracing`](crate::RuntimeBuilder::tracing) is off, so that a program has the same errors with
    /// it and without.
    ///
    /// Within another trace, this one is compared by itself; what is replayed is the outer one.
    ///
    /// # Errors
    /// [`Error::TraceDiffers`] if the run has other launches than the first one, fewer, or more.
    /// [`Error::NotReplayable`] if it has something that is never replayed: a fence, a fill with a value that is
    /// neither zero nor a number, an inline mapping, a task all of whose variants launch tasks; or if the launching
    /// task holds data mapped, or launches on data that it has no state of its own for, as an inner task. Or because
    /// the mapper has chosen a variant that launches tasks: as launches are mapped later, that may be told at the end
    /// of a later run; and if there is none, the launching task fails with it.
    pub fn strict_trace<R>(&self, name: &'static str, body: impl FnOnce(&Self) -> R) -> Result<R> {
        let run = RunInProgress::begin(&self.state, name);
        let result = self.trace(name, body);
        run.end().map(|()| result)
    }
}

/// Ends a run even if its body panics.
struct RunInProgress<'a> {
    context: &'a ContextState,
    has_ended: bool,
}

impl<'a> RunInProgress<'a> {
    fn begin(context: &'a ContextState, trace: &'static str) -> Self {
        let holds_data = context.mappings_in_use() > 0;
        let traces = &mut context.tracing().strict;
        traces.begin(trace);
        if holds_data {
            traces.interrupt("a mapping that the launching task holds");
        }
        Self { context, has_ended: false }
    }

    fn end(mut self) -> Result<()> {
        self.has_ended = true;
        self.context.tracing().strict.end()
    }
}

impl Drop for RunInProgress<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.context.tracing().strict.abandon();
        }
    }
}

impl StrictTraces {
    fn begin(&mut self, trace: &'static str) {
        let expected = self.sequences.get(trace).cloned();
        let none = || Arc::new(Mutex::new(Findings { trace, problem: None, are_told: false }));
        let findings = Arc::clone(self.findings.entry(trace).or_insert_with(none));
        self.runs.push(StrictRun { trace, expected, found: Vec::new(), launches: 0, problem: None, findings });
    }

    /// The innermost run is over.
    fn end(&mut self) -> Result<()> {
        let Some(mut run) = self.runs.pop() else { return Ok(()) };
        run.end();
        let mut findings = run.findings.lock();
        if let Some(problem) = run.problem.take().or_else(|| findings.problem.take()) {
            findings.are_told = true;
            return Err(problem);
        }
        drop(findings);
        if run.expected.is_none() {
            self.sequences.insert(run.trace, run.found.into());
        }
        Ok(())
    }

    /// The innermost run ends in a panic: nothing is learnt from it.
    fn abandon(&mut self) {
        self.runs.pop();
    }

    /// A launch has come.
    #[inline]
    pub(super) fn launched(&mut self, context: &ContextState, launching: &mut Launching<'_>) {
        for run in &mut self.runs {
            launching.launcher.strict.is_in((Arc::clone(&run.findings), run.launches));
            run.launched(context, launching);
        }
    }

    /// A fill has come. How new fields begin is the runtime's business: in a first run none may have had the id before.
    pub(super) fn filled(&mut self, context: &ContextState, filling: &Filling) {
        if filling.name == NEW_FIELDS {
            return;
        }
        self.runs.iter_mut().for_each(|run| run.filled(context, filling));
    }

    /// Something that mapping has found wrong with a trace of which the program has heard nothing. All has been mapped.
    pub(crate) fn untold(&self) -> Option<Error> {
        let untold = |findings: &Arc<Mutex<Findings>>| {
            let findings = findings.lock();
            findings.problem.clone().filter(|_| !findings.are_told)
        };
        self.findings.values().find_map(untold)
    }

    /// Something has come that is no launch and ends every replay.
    pub(super) fn interrupt(&mut self, what: &str) {
        self.runs.iter_mut().for_each(|run| run.cannot_replay(what));
    }

    /// A region is destroyed, which ends every replay that uses it.
    pub(super) fn destroyed(&mut self, tree: TreeId) {
        for run in &mut self.runs {
            let steps = run.expected.as_deref().unwrap_or(&run.found);
            if steps.iter().any(|step| step.uses(tree)) {
                run.cannot_replay("the destruction of a region");
            }
        }
    }

    /// A region was destroyed: traces that used it may come to use another one.
    pub(super) fn forget_tree(&mut self, tree: TreeId) {
        self.sequences.retain(|_, steps| !steps.iter().any(|step| step.uses(tree)));
    }
}

impl StrictRun {
    fn launched(&mut self, context: &ContextState, launching: &Launching<'_>) {
        match &self.expected {
            None => {
                self.check_replayable(context, launching);
                self.found.push(Described::of(launching));
            }
            Some(expected) => match expected.get(self.launches) {
                Some(Described::Launch(expected)) if expected.is(launching) => {}
                _ if self.problem.is_some() => {}
                Some(expected) => {
                    let (expected, found) = differences(expected, &Described::of(launching));
                    self.differs(expected, found);
                }
                None => {
                    let found = format!("task `{}`", launching.launcher.definition().name());
                    self.differs(format!("the end of the run after {} launch(es)", self.launches), found);
                }
            },
        }
        self.launches += 1;
    }

    fn filled(&mut self, context: &ContextState, filling: &Filling) {
        if !filling.is_comparable() {
            self.cannot_replay(&format!("a {}, with a value that is neither zero nor a number", filling.shown()));
        } else if self.expected.is_none() && context.borrows(&filling.requirement) {
            let launcher = context.name();
            self.cannot_replay(&format!("a {}, of which `{launcher}` has no instance of its own", filling.shown()));
        }
        match &self.expected {
            None => self.found.push(Described::Fill(filling.clone())),
            Some(expected) => match expected.get(self.launches) {
                Some(Described::Fill(expected)) if expected.is_same(filling) => {}
                _ if self.problem.is_some() => {}
                Some(expected) => {
                    let (expected, found) = differences(expected, &Described::Fill(filling.clone()));
                    self.differs(expected, found);
                }
                None => {
                    self.differs(format!("the end of the run after {} launch(es)", self.launches), filling.shown());
                }
            },
        }
        self.launches += 1;
    }

    /// Checks, at the end of a run, that nothing of the first run is missing.
    fn end(&mut self) {
        let missing = self.expected.as_ref().and_then(|expected| expected.get(self.launches));
        if let (Some(missing), None) = (missing, &self.problem) {
            let expected = missing.shown();
            self.differs(expected, format!("the end of the run after {} launch(es)", self.launches));
        }
    }

    fn differs(&mut self, expected: String, found: String) {
        let (trace, launch) = (self.trace, self.launches);
        self.problem = Some(Error::TraceDiffers { trace, launch, expected, found });
    }

    /// Notes what no replay can have, whatever mappers say. Later runs have the same launches.
    fn check_replayable(&mut self, context: &ContextState, launching: &Launching<'_>) {
        let definition = launching.launcher.definition();
        if !definition.variants().iter().any(|variant| variant.is_leaf) && definition.generator_of().is_none() {
            self.cannot_replay(&format!("task `{}`, which launches tasks", definition.name()));
        }
        let borrowed = launching.launcher.requirements().iter().find(|requirement| context.borrows(requirement));
        if let Some(borrowed) = borrowed {
            let (name, target) = (definition.name(), &borrowed.target);
            self.cannot_replay(&format!(
                "task `{name}` on {target}, of which `{}` has no instance of its own",
                context.name()
            ));
        }
    }

    fn cannot_replay(&mut self, what: &str) {
        let (trace, launches) = (self.trace, self.launches);
        self.problem.get_or_insert_with(|| Error::NotReplayable { trace, launches, found: what.to_owned() });
    }
}

impl Described {
    fn of(launching: &Launching<'_>) -> Self {
        Self::Launch(Launched::of(launching))
    }

    pub(super) fn of_site(site: &LaunchSite) -> Self {
        Self::Launch(Launched::of_site(site))
    }

    pub(super) fn of_fill(site: &FillSite) -> Self {
        Self::Fill(site.filling())
    }

    fn uses(&self, tree: TreeId) -> bool {
        let requirements = match self {
            Self::Launch(launch) => &launch.requirements[..],
            Self::Fill(filling) => std::slice::from_ref(&filling.requirement),
        };
        requirements.iter().any(|one| one.target.tree().id() == tree)
    }

    /// The launch or fill in words, for messages.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Launch(launch) => format!("task `{}`", launch.name()),
            Self::Fill(filling) => filling.shown(),
        }
    }
}

impl Launched {
    fn of(launching: &Launching<'_>) -> Self {
        let Launching { launcher, domain, index_launch, .. } = launching;
        Self {
            definition: SameTask(Arc::clone(launcher.definition())),
            requirements: launcher.requirements().to_vec(),
            domain: *domain,
            index_launch: *index_launch,
            tag: launcher.tag_number(),
            mapper: launcher.mapper_number(),
        }
    }

    fn of_site(site: &LaunchSite) -> Self {
        Self {
            definition: SameTask(Arc::clone(&site.definition)),
            requirements: site.bounds.iter().map(|bound| bound.requirement.clone()).collect(),
            domain: site.domain,
            index_launch: site.index_launch,
            tag: site.tag,
            mapper: site.mapper,
        }
    }

    #[inline]
    fn is(&self, launching: &Launching<'_>) -> bool {
        let Launching { launcher, domain, index_launch, .. } = launching;
        Arc::ptr_eq(&self.definition.0, launcher.definition())
            && *self.requirements == **launcher.requirements()
            && (self.domain, self.index_launch) == (*domain, *index_launch)
            && (self.tag, self.mapper) == (launcher.tag_number(), launcher.mapper_number())
    }

    fn name(&self) -> &str {
        self.definition.0.name()
    }

    fn requirement(&self, number: usize) -> String {
        match self.requirements.get(number) {
            None => format!("task `{}` with {number} requirement(s)", self.name()),
            Some(one) => {
                let (name, fields) = (self.name(), one.field_names());
                format!(
                    "task `{name}` whose requirement {number} {} field(s) {fields} of {}",
                    one.privilege, one.target
                )
            }
        }
    }
}

/// The expected and the found launch or fill in words, by the first property in which the two differ.
pub(super) fn differences(expected: &Described, found: &Described) -> (String, String) {
    match (expected, found) {
        (Described::Launch(expected), Described::Launch(found)) => differences_of_launches(expected, found),
        (Described::Fill(one), Described::Fill(other)) if one.shown() == other.shown() => {
            (one.shown(), format!("{}, but with another value", other.shown()))
        }
        _ => (expected.shown(), found.shown()),
    }
}

fn differences_of_launches(expected: &Launched, found: &Launched) -> (String, String) {
    let tell = |tell: &dyn Fn(&Launched) -> String| (tell(expected), tell(found));
    let at_odds = |number: &usize| expected.requirements.get(*number) != found.requirements.get(*number);
    let requirements = expected.requirements.len().max(found.requirements.len());
    let (was, is) = if expected.definition != found.definition {
        tell(&|launch| format!("task `{}`", launch.name()))
    } else if expected.index_launch != found.index_launch {
        let kind = |launch: &Launched| if launch.index_launch { "an index launch" } else { "a single launch" };
        tell(&|launch| format!("{} of task `{}`", kind(launch), launch.name()))
    } else if expected.domain != found.domain {
        tell(&|launch| format!("task `{}` over {}", launch.name(), launch.domain))
    } else if let Some(number) = (0..requirements).find(at_odds) {
        tell(&|launch| launch.requirement(number))
    } else if expected.mapper != found.mapper {
        tell(&|launch| match launch.mapper {
            MapperNumber::USUAL => format!("task `{}` for the mapper without a name", launch.name()),
            MapperNumber(number) => format!("task `{}` for mapper {number} of those with names", launch.name()),
        })
    } else {
        tell(&|launch| format!("task `{}` with tag {}", launch.name(), launch.tag))
    };
    // Two tasks may have one name, and two projections no name at all.
    if was == is { (was, format!("{is}, but another one or by another projection")) } else { (was, is) }
}
