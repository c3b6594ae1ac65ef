//! Launchers: a task with its requirements and arguments, ready to be launched.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

use maniple_cluster::ParcelFuture;
use maniple_realm::Realm;
use maniple_region::Requirement;
use maniple_space::{AnyRect, Rect};

use super::requirements::Requirements;
use super::site::{LaunchSite, Launching};
use crate::context::{Context, ContextState};
use crate::error::{Error, Result};
use crate::fork::Fork;
use crate::future::{Future, FutureMap};
use crate::profiling;
use crate::regions::Domain;
use crate::results::{Input, Origin, Results, Sources};
use crate::task::arguments::{Arguments, Own};
use crate::task::digest::Digest;
use crate::task::{Argument, OnFailure, TaskDefinition};
use crate::task_operation::{TaskLaunch, TaskOperation};
use crate::trace::{Part, StrictLaunch};

/// A task about to be launched: what it is, what it wants of which data, and what it is given.
///
/// Requirements are numbered in the order in which they are added; the body finds its data by these numbers. A program that launches the same over and
/// over may keep a launcher and launch copies of it: they share the requirements, and are known again at a glance.
pub struct TaskLauncher {
    definition: Arc<TaskDefinition>,
    requirements: Requirements,
    arguments: Arguments,
    sources: Sources,
    /// What other nodes send for it. Without an event, unless one is needed: see [`Self::wait_by_event`].
    parcels: Option<Arc<ParcelFuture>>,
    tag: u64,
    /// In a box, as launchers are moved about.
    error: Option<Box<Error>>,
    /// What strict traces want to hear of this launch.
    pub(crate) strict: StrictLaunch,
}

impl Clone for TaskLauncher {
    fn clone(&self) -> Self {
        Self {
            definition: Arc::clone(&self.definition),
            requirements: self.requirements.clone(),
            arguments: self.arguments.clone(),
            // Even to copy nothing takes its time.
            sources: if self.sources.is_empty() { Sources::new() } else { self.sources.clone() },
            parcels: self.parcels.clone(),
            tag: self.tag,
            error: self.error.clone(),
            strict: StrictLaunch::default(),
        }
    }
}

impl TaskLauncher {
    /// A launcher without requirements and arguments.
    #[must_use]
    pub fn new(definition: &Arc<TaskDefinition>) -> Self {
        Self {
            definition: Arc::clone(definition),
            requirements: Requirements::new(),
            arguments: Arguments::none(),
            sources: Sources::new(),
            parcels: None,
            tag: 0,
            error: None,
            strict: StrictLaunch::default(),
        }
    }

    /// Adds a requirement.
    #[must_use]
    pub fn requirement(mut self, requirement: Requirement) -> Self {
        self.add_requirement(requirement);
        self
    }

    /// Sets the arguments: any value, which all points share. Futures inside it are waited for only if [`TaskLauncher::after`] names
    /// them.
    #[must_use]
    pub fn arguments<A: Any + Send + Sync>(mut self, arguments: A) -> Self {
        self.set_arguments(arguments, Own::of::<A>());
        self
    }

    /// Has the task wait for a future that its arguments hold.
    #[must_use]
    pub fn after<T: Clone + Send + Sync + 'static>(mut self, argument: &Argument<T>) -> Self {
        self.wait_for(argument);
        self
    }

    /// A number for the mapper.
    #[must_use]
    pub fn tag(mut self, tag: u64) -> Self {
        self.tag = tag;
        self
    }

    /// Remembers an error found while the launcher was put together: the launch will fail with it.
    #[must_use]
    pub fn fail(mut self, error: impl Into<Error>) -> Self {
        self.error.get_or_insert(Box::new(error.into()));
        self
    }

    /// Says what the task returns.
    pub fn typed<T>(self) -> Launch<T> {
        Launch { described: Described::Launcher(self), marker: PhantomData }
    }

    /// The launcher of a task without regions.
    pub(crate) fn of_free(definition: &Arc<TaskDefinition>, arguments: Arguments, sources: Sources) -> Self {
        let mut launcher = Self { sources, ..Self::new(definition) };
        std::mem::replace(&mut launcher.arguments, arguments).recycle();
        launcher
    }

    pub(crate) fn definition(&self) -> &Arc<TaskDefinition> {
        &self.definition
    }

    pub(crate) fn requirements(&self) -> &Requirements {
        &self.requirements
    }

    pub(crate) fn sources(&self) -> &[Input] {
        &self.sources
    }

    pub(crate) fn tag_number(&self) -> u64 {
        self.tag
    }

    pub(crate) fn add_requirement(&mut self, requirement: Requirement) {
        self.requirements.push(requirement);
    }

    /// Sets the arguments, of which the caller knows what they own.
    pub(crate) fn set_arguments<A: Any + Send + Sync>(&mut self, arguments: A, own: Own) {
        std::mem::replace(&mut self.arguments, Arguments::known(arguments, own)).recycle();
    }

    pub(crate) fn wait_for<T: Clone + Send + Sync + 'static>(&mut self, argument: &Argument<T>) {
        self.sources.extend(argument.source().map(|source| source.input()));
    }

    /// The launcher that was [lent](Context::submit_lent), if it can be used again: with new arguments.
    pub(crate) fn lent_again(mut self, before: &Self) -> Option<Self> {
        self.sources.clear();
        (self.parcels, self.strict) = (None, StrictLaunch::default());
        self.requirements.is_copy_of(&before.requirements).then_some(self)
    }

    /// What is to be done if the launch fails.
    pub(crate) fn on_failure(&self) -> Option<(OnFailure, Arguments)> {
        self.definition.on_failure().map(|call| (call, self.arguments.clone()))
    }

    /// Has the task wait for what other nodes send.
    pub(crate) fn wait_for_parcels(&mut self, parcels: Arc<ParcelFuture>) {
        self.parcels = Some(parcels);
    }

    /// The parcels that the task waits for, for one who sees to that it does.
    pub(crate) fn take_parcels(&mut self) -> Option<Arc<ParcelFuture>> {
        self.parcels.take()
    }

    /// Has the task wait for its parcels as for any results: for who waits for those.
    pub(crate) fn wait_by_event(&mut self, realm: &Realm) {
        if let Some(parcels) = self.parcels.take() {
            let (whole, complete) =
                ((Origin::BuiltIn("parcel"), AnyRect::from(Rect::<1>::from(0..1))), parcels.complete(realm));
            self.sources.push(Input::all(Results::from_afar(realm, whole, complete, Sources::new())));
        }
    }

    /// What nodes compare of the arguments, if they can.
    pub(crate) fn digest(&self) -> Option<Digest> {
        let (_, migratable) = self.definition.migratable()?;
        migratable.digest(&self.arguments)
    }

    pub(crate) fn arguments_mut(&mut self) -> &mut Arguments {
        &mut self.arguments
    }

    /// Leaves its memory to the next launch of this thread.
    pub(crate) fn recycle(self) {
        self.arguments.recycle();
    }

    /// The launcher, for one who has been lent it; what is left has the task alone.
    pub(crate) fn take(&mut self) -> Self {
        let definition = Arc::clone(&self.definition);
        std::mem::replace(self, Self::new(&definition))
    }

    /// What there is to a launch besides its site.
    pub(crate) fn into_task(self, site: Arc<LaunchSite>, number: u64) -> TaskLaunch {
        TaskLaunch { site, arguments: self.arguments, sources: self.sources, strict: self.strict, number }
    }
}

/// A task about to be launched that returns a `T`.
///
/// The function that `#[task]` declares gives one; [`Context::launch`] and [`Context::index_launch`] take it.
#[must_use = "a launch does nothing until it is given to `Context::launch` or `Context::index_launch`"]
pub struct Launch<T> {
    described: Described,
    marker: PhantomData<fn() -> T>,
}

/// A launch as it was described.
enum Described {
    Launcher(TaskLauncher),
    /// Of a task without regions.
    Free(Fork),
}

impl<T> Launch<T> {
    /// Of a task without regions.
    pub(crate) fn free(fork: Fork) -> Self {
        Self { described: Described::Free(fork), marker: PhantomData }
    }

    /// A number for the mapper.
    pub fn tag(self, tag: u64) -> Self {
        let launcher = TaskLauncher { tag, ..self.into_launcher() };
        Self { described: Described::Launcher(launcher), marker: PhantomData }
    }

    fn into_launcher(self) -> TaskLauncher {
        match self.described {
            Described::Launcher(launcher) => launcher,
            Described::Free(fork) => fork.into_launcher(),
        }
    }
}

impl<T> Clone for Launch<T> {
    fn clone(&self) -> Self {
        let described = match &self.described {
            Described::Launcher(launcher) => Described::Launcher(launcher.clone()),
            Described::Free(fork) => Described::Free(fork.duplicate()),
        };
        Self { described, marker: PhantomData }
    }
}

impl Context {
    /// Launches a task once. Returns at once; the task takes effect at this place in program order.
    ///
    /// A launch that is refused (a privilege that is not held, requirements that interfere, a region that was destroyed, a partition where only
    /// one of its pieces can be meant) gives a future that fails.
    pub fn launch<T>(&self, task: Launch<T>) -> Future<T> {
        let launcher = match task.described {
            Described::Free(mut fork) => match self.state.replica.is_none() && self.state.fork(&mut fork) {
                true => return Future::of_fork(fork),
                false => fork.into_launcher(),
            },
            Described::Launcher(launcher) => launcher,
        };
        Future::new(self.submit_task(launcher, AnyRect::from(Rect::<1>::from(0..1)), false), 0)
    }

    /// Launches a task once for each point of a domain. Returns at once; the points run side by side, at this place in program order.
    ///
    /// Analysed once, whatever the number of points. A launch that is refused (as for [`Context::launch`], or points that interfere with one
    /// another, or a projection that leaves its bound) gives futures that fail.
    pub fn index_launch<T>(&self, domain: impl Into<Domain>, task: Launch<T>) -> FutureMap<T> {
        FutureMap::new(self.submit_task(task.into_launcher(), domain.into().rect(), true))
    }

    fn submit_task(&self, mut launcher: TaskLauncher, domain: AnyRect, index_launch: bool) -> Arc<Results> {
        launcher.requirements.iter().for_each(|requirement| self.state.fetch_pieces(&requirement.target, &[domain]));
        let Some(replica) = &self.state.replica else {
            return self.submit_local(launcher, (domain, None, index_launch));
        };
        let definition = Arc::clone(&launcher.definition);
        let refused = refused(&mut launcher, &domain, self.state.core.realm());
        let launched = refused.and_then(|()| replica.launch(self, launcher, (domain, index_launch)));
        launched.unwrap_or_else(|error| self.failed(&definition, domain, &error))
    }

    /// Launches a task here, for those points of the domain that are given, or all.
    pub(crate) fn submit_local(
        &self,
        mut launcher: TaskLauncher,
        of: (AnyRect, Option<AnyRect>, bool),
    ) -> Arc<Results> {
        let results = self.submit_lent(&mut launcher, of, None);
        launcher.recycle();
        results
    }

    /// As [`submit_local`](Self::submit_local), for one who launches the same again: a replay leaves the launcher as it was, but for its arguments, which
    /// are those of an earlier launch.
    pub(crate) fn submit_lent(
        &self,
        launcher: &mut TaskLauncher,
        (domain, share, index_launch): (AnyRect, Option<AnyRect>, bool),
        part: Option<Part>,
    ) -> Arc<Results> {
        let state: &Arc<ContextState> = &self.state;
        let refused = refused(launcher, &domain, state.core.realm());
        let mut launching = Launching::new(launcher, domain, index_launch);
        (launching.share, launching.part) = (share, part);
        let submitted = refused.and_then(|()| match state.trace_launch(&mut launching) {
            Some(results) => Ok(results),
            None => {
                let name = Arc::clone(launching.launcher.definition());
                profiling::analysing(state.core.profiler(), name.name(), || self.submit_untraced(&mut launching))
            }
        });
        let results = submitted.unwrap_or_else(|error| {
            let definition = Arc::clone(&launching.launcher.definition);
            self.failed(&definition, share.unwrap_or(domain), &error)
        });
        // A replay knows by itself.
        if !results.are_replayed()
            && let Some((call, arguments)) = launching.take_on_failure()
        {
            results.when_failed(move |results| call(&arguments, results));
        }
        results
    }

    /// The results of a launch that was refused.
    fn failed(&self, definition: &Arc<TaskDefinition>, domain: AnyRect, error: &Error) -> Arc<Results> {
        let domain = if domain.volume() <= MOST_POINTS { domain } else { AnyRect::from(Rect::<1>::EMPTY) };
        let origin = Origin::of(definition);
        let results = Results::failed(self.state.core.realm(), origin, domain, error);
        self.state.watch(&results);
        results
    }

    fn submit_untraced(&self, launching: &mut Launching<'_>) -> Result<Arc<Results>> {
        let state: &Arc<ContextState> = &self.state;
        let mut renewed = Vec::new();
        let site = state.site(launching, &mut |zero| renewed.push(zero));
        // Also if the launch is refused: the next one will not be told.
        for zero in renewed {
            state.submit_zero(zero)?;
        }
        let site = site?;
        state.check_inline(site.name(), &site.bounds)?;
        launching.launcher.wait_by_event(state.core.realm());
        let task = launching.take().into_task(Arc::clone(&site), state.place_of_launch());
        let producers = Results::producers(&task.sources);
        let mut results = None;
        let operation = state.submit_after(&site.bounds, &producers, |_, submission| {
            let (realm, completion) = (state.core.realm(), submission.completion.event());
            let (origin, sources) = (Origin::of(&site.definition), task.sources.clone());
            let new = Results::new(realm, origin, site.points, completion, sources);
            results = Some(Arc::clone(&new));
            Arc::new(TaskOperation::new(state, task, (submission, &new), None))
        })?;
        let results = results.expect("the operation was made");
        results.produced_by(&operation);
        state.watch(&results);
        Ok(results)
    }
}

/// Refuses a launch that was put together wrongly, or that no context would launch.
fn refused(launcher: &mut TaskLauncher, domain: &AnyRect, realm: &Realm) -> Result<()> {
    match launcher.error.take() {
        None => check_launch(launcher, domain, realm),
        Some(error) => Err(*error),
    }
}

/// Refuses what no context would launch.
fn check_launch(launcher: &TaskLauncher, domain: &AnyRect, realm: &Realm) -> Result<()> {
    let name = launcher.definition.name();
    if launcher.definition.variants().is_empty() {
        return Err(Error::launch(name, "the task has no implementation; add a variant"));
    }
    if launcher.sources.iter().any(|source| !source.is_of(realm)) {
        let problem = "it takes a result of another runtime; `.await` that and pass the value";
        return Err(Error::launch(name, problem));
    }
    if domain.volume() > MOST_POINTS {
        return Err(Error::launch(name, format!("its domain {domain} has more than {MOST_POINTS} points")));
    }
    Ok(())
}

/// More points than this in one launch are surely a mistake.
const MOST_POINTS: u64 = 1 << 28;
