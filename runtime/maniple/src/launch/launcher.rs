//! Launchers: a task with its requirements and arguments, ready to be launched.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

use maniple_cluster::ParcelFuture;
use maniple_realm::Realm;
use maniple_region::{Projection, Provenance, Requirement, Target};
use maniple_space::{AnyRect, PointSet, Rect};

use super::requirements::Requirements;
use super::strict::StrictLaunch;
use crate::core::RuntimeCore;
use crate::fork::{Fork, ResultSource};
use crate::future::Argument;
use crate::operation::lifecycle::MapperNumber;
use crate::results::{Input, Origin, Results, Sources};
use crate::support::error::{Error, Result};
use crate::task::arguments::{Arguments, Own};
use crate::task::digest::Digest;
use crate::task::{OnFailure, TaskDefinition};

/// A task about to be launched: what it is, what it wants of which data, and what it is given.
///
/// Requirements are numbered in the order in which they are added; the body finds its data by these numbers. A program
/// that launches the same over and over may keep a launcher and launch copies of it: they share the requirements, and
/// are known again at a glance.
pub struct TaskLauncher {
    definition: Arc<TaskDefinition>,
    requirements: Requirements,
    arguments: Arguments,
    sources: Sources,
    /// The parcels that other nodes send for the launch. Without an event, unless one is needed: see
    /// [`Self::wait_by_event`].
    parcels: Option<Arc<ParcelFuture>>,
    tag: u64,
    mapper: MapperChoice,
    /// The points of a launch over a set, whose domain is their numbers.
    over: Option<PointSet>,
    /// The place in the program that launches it.
    launched: Option<Provenance>,
    /// In a box, as launchers are moved about.
    error: Option<Box<Error>>,
    /// The findings of strict traces that mapping this launch may add to.
    pub(crate) strict: StrictLaunch,
}

/// Which mapper a launch is for.
#[derive(Clone, Debug)]
enum MapperChoice {
    /// The task's, or the context's.
    Unsaid,
    Named(Arc<str>),
    Found(MapperNumber),
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
            mapper: self.mapper.clone(),
            over: self.over.clone(),
            launched: self.launched.clone(),
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
            mapper: MapperChoice::Unsaid,
            over: None,
            launched: None,
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

    /// Sets the arguments: any value, which all points share. Futures inside it are waited for only if
    /// [`TaskLauncher::after`] names them.
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

    /// The mapper that is asked about this launch, whatever the task and the context say: one [of this
    /// name](crate::RuntimeBuilder::mapper_named). The launch fails with [`Error::NoSuchMapper`] if there is none.
    #[must_use]
    pub fn mapper(mut self, name: &str) -> Self {
        self.mapper = MapperChoice::Named(name.into());
        self
    }

    /// Finds out which mapper it is for, in a context whose launches go to this one.
    pub(crate) fn find_mapper(&mut self, core: &RuntimeCore, usual: MapperNumber) -> Result<()> {
        let name = match &self.mapper {
            MapperChoice::Found(_) => return Ok(()),
            MapperChoice::Named(name) => Some(&**name),
            MapperChoice::Unsaid => self.definition.mapper_name(),
        };
        let found = name.map_or(Ok(usual), |name| core.mapper_named(name, self.definition.name()))?;
        self.mapper = MapperChoice::Found(found);
        Ok(())
    }

    /// The same launch for a mapper by its number.
    pub(crate) fn for_mapper(mut self, mapper: MapperNumber) -> Self {
        self.mapper = MapperChoice::Found(mapper);
        self
    }

    /// The mapper that it is for, once that has been found out.
    pub(crate) fn mapper_number(&self) -> MapperNumber {
        match self.mapper {
            MapperChoice::Found(mapper) => mapper,
            MapperChoice::Named(_) | MapperChoice::Unsaid => MapperNumber::USUAL,
        }
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

    /// The same launch over a set of points: what it was to have at a point it has at the number of that.
    pub(crate) fn over(mut self, points: PointSet) -> Self {
        let mut requirements = Requirements::new();
        for requirement in &*self.requirements {
            let mut requirement = requirement.clone();
            if let Target::Partition(_, projection) | Target::Region(_, Some(projection)) = &mut requirement.target {
                *projection = Projection::Over(points.clone(), Arc::new(projection.clone()));
            }
            requirements.push(requirement);
        }
        (self.requirements, self.over) = (requirements, Some(points));
        self
    }

    /// The points of a launch over a set.
    pub(crate) fn points(&self) -> Option<&PointSet> {
        self.over.as_ref()
    }

    /// Refuses results that are taken point by point, of a launch that has other kinds of points.
    pub(crate) fn check_points(&mut self) {
        let is_other = |input: &&Input| input.is_per_point() && input.results().over() != self.over.as_ref();
        if let Some(input) = self.sources.iter().find(is_other) {
            let problem = format!(
                "results of `{}` are taken point by point, which were launched over other points; launch both over the same set, or both over \
                 rectangles",
                input.results().name()
            );
            let error = Error::launch(self.definition.name(), problem);
            self.error.get_or_insert(Box::new(error));
        }
    }

    /// Notes where the program launches it.
    pub(crate) fn note_provenance(&mut self, launched: Provenance) {
        self.launched = Some(launched);
    }

    /// The place in the program that launches it, if the program does.
    pub(crate) fn provenance(&self) -> Option<&Provenance> {
        self.launched.as_ref()
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

    /// The launcher that was [lent](crate::Context::submit_lent), if it can be used again: with new arguments.
    pub(crate) fn lent_again(mut self, before: &Self) -> Option<Self> {
        self.sources.clear();
        (self.parcels, self.strict) = (None, StrictLaunch::default());
        self.requirements.is_copy_of(&before.requirements).then_some(self)
    }

    /// The call to make if the launch fails, with its arguments.
    pub(crate) fn on_failure(&self) -> Option<(OnFailure, Arguments)> {
        self.definition.on_failure().map(|call| (call, self.arguments.clone()))
    }

    /// Has the task wait for what other nodes send.
    pub(crate) fn wait_for_parcels(&mut self, parcels: Arc<ParcelFuture>) {
        self.parcels = Some(parcels);
    }

    /// The parcels that the task waits for, for a caller that sees to it that the task does.
    pub(crate) fn take_parcels(&mut self) -> Option<Arc<ParcelFuture>> {
        self.parcels.take()
    }

    /// Has the task wait for its parcels as for any results: for a launch that waits for results alone.
    pub(crate) fn wait_by_event(&mut self, realm: &Realm) {
        if let Some(parcels) = self.parcels.take() {
            let (origin, one) = (Origin::BuiltIn("parcel"), AnyRect::from(Rect::<1>::from(0..1)));
            let complete = parcels.complete(realm);
            self.sources.push(Input::all(Results::from_afar(realm, origin, one, complete, Sources::new())));
        }
    }

    /// The digest of the arguments that nodes compare, if there is one.
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

    /// The error that was found while it was put together.
    pub(crate) fn take_error(&mut self) -> Option<Error> {
        self.error.take().map(|error| *error)
    }

    /// Takes the inputs of the task out of the launcher: its arguments, the results that it waits for, and the findings
    /// of strict traces that its mapping may add to.
    pub(crate) fn take_inputs(&mut self) -> (Arguments, Sources, StrictLaunch) {
        let arguments = std::mem::replace(&mut self.arguments, Arguments::none());
        (arguments, std::mem::take(&mut self.sources), std::mem::take(&mut self.strict))
    }
}

impl From<Fork> for TaskLauncher {
    fn from(fork: Fork) -> Self {
        let (definition, arguments, sources) = fork.into_parts();
        Self::of_free(definition, arguments, sources)
    }
}

/// A task about to be launched that returns a `T`.
///
/// The function that `#[task]` declares gives one; [`Context::launch`](crate::Context::launch) and
/// [`Context::index_launch`](crate::Context::index_launch) take it.
#[must_use = "a launch does nothing until it is given to `Context::launch` or `Context::index_launch`"]
pub struct Launch<T> {
    pub(crate) described: Described,
    marker: PhantomData<fn() -> T>,
}

/// A launch as it was described.
pub(crate) enum Described {
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

    /// The mapper that is asked about it, by its name: see [`TaskLauncher::mapper`].
    pub fn mapper(self, name: &str) -> Self {
        let launcher = self.into_launcher().mapper(name);
        Self { described: Described::Launcher(launcher), marker: PhantomData }
    }

    pub(crate) fn into_launcher(self) -> TaskLauncher {
        match self.described {
            Described::Launcher(launcher) => launcher,
            Described::Free(fork) => fork.into(),
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
