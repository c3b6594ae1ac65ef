//! Launchers: a task with its requirements and arguments, ready to be launched.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

use maniple_region::Requirement;
use maniple_space::{AnyRect, Rect};

use super::check::{Sharing, check};
use crate::context::{Context, ContextState};
use crate::error::{Error, Result};
use crate::future::{Future, FutureMap, Results};
use crate::regions::Domain;
use crate::task::call::Arguments;
use crate::task::{Argument, TaskDefinition};
use crate::task_operation::{TaskLaunch, TaskOperation};

/// A task about to be launched: what it is, what it wants of which data, and what it is given.
///
/// Requirements are numbered in the order in which they are added; the body finds its data by these numbers.
#[derive(Clone)]
pub struct TaskLauncher {
    definition: Arc<TaskDefinition>,
    requirements: Vec<Requirement>,
    arguments: Arguments,
    sources: Vec<Arc<Results>>,
    tag: u64,
    error: Option<Error>,
}

impl TaskLauncher {
    /// A launcher without requirements and arguments.
    #[must_use]
    pub fn new(definition: &Arc<TaskDefinition>) -> Self {
        Self {
            definition: Arc::clone(definition),
            requirements: Vec::new(),
            arguments: Arc::new(()),
            sources: Vec::new(),
            tag: 0,
            error: None,
        }
    }

    /// Adds a requirement.
    #[must_use]
    pub fn requirement(mut self, requirement: Requirement) -> Self {
        self.requirements.push(requirement);
        self
    }

    /// Sets the arguments: any value, which all points share. Futures inside it are waited for only if [`TaskLauncher::after`] names
    /// them.
    #[must_use]
    pub fn arguments<A: Any + Send + Sync>(mut self, arguments: A) -> Self {
        self.arguments = Arc::new(arguments);
        self
    }

    /// Has the task wait for a future that its arguments hold.
    #[must_use]
    pub fn after<T: Clone + Send + Sync + 'static>(mut self, argument: &Argument<T>) -> Self {
        self.sources.extend(argument.source().cloned());
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
        self.error.get_or_insert(error.into());
        self
    }

    /// Says what the task returns.
    pub fn typed<T>(self) -> Launch<T> {
        Launch { launcher: self, marker: PhantomData }
    }

    pub(crate) fn into_task(self, index_launch: bool, domain: AnyRect, sharing: Sharing) -> TaskLaunch {
        let Self { definition, arguments, sources, tag, .. } = self;
        TaskLaunch { definition, arguments, sources, tag, index_launch, domain, sharing }
    }
}

/// A task about to be launched that returns a `T`.
///
/// The function that `#[task]` declares gives one; [`Context::launch`] and [`Context::index_launch`] take it.
#[must_use = "a launch does nothing until it is given to `Context::launch` or `Context::index_launch`"]
#[derive(Clone)]
pub struct Launch<T> {
    launcher: TaskLauncher,
    marker: PhantomData<fn() -> T>,
}

impl<T> Launch<T> {
    /// A number for the mapper.
    pub fn tag(mut self, tag: u64) -> Self {
        self.launcher.tag = tag;
        self
    }
}

impl Context {
    /// Launches a task once. Returns at once; the task takes effect at this place in program order.
    ///
    /// A launch that is refused (a privilege that is not held, requirements that interfere, a region that was destroyed, a partition where only
    /// one of its pieces can be meant) gives a future that fails.
    pub fn launch<T>(&self, task: Launch<T>) -> Future<T> {
        let one = AnyRect::from(Rect::<1>::from(0..1));
        Future::new(self.submit_task(task.launcher, one, false), 0)
    }

    /// Launches a task once for each point of a domain. Returns at once; the points run side by side, at this place in program order.
    ///
    /// Analysed once, whatever the number of points. A launch that is refused (as for [`Context::launch`], or points that interfere with one
    /// another, or a projection that leaves its bound) gives futures that fail.
    pub fn index_launch<T>(&self, domain: impl Into<Domain>, task: Launch<T>) -> FutureMap<T> {
        FutureMap::new(self.submit_task(task.launcher, domain.into().rect(), true))
    }

    fn submit_task(&self, launcher: TaskLauncher, domain: AnyRect, index_launch: bool) -> Arc<Results> {
        let name = launcher.definition.name().to_owned();
        let launch = || self.try_submit_task(launcher, domain, index_launch);
        let results = self.state.core.analysing(&name, launch);
        let results = results.unwrap_or_else(|error| {
            let domain = if domain.volume() <= MOST_POINTS { domain } else { AnyRect::from(Rect::<1>::EMPTY) };
            Results::failed(self.state.core.realm(), &name, domain, &error)
        });
        self.state.watch(&results);
        results
    }

    fn try_submit_task(&self, launcher: TaskLauncher, domain: AnyRect, index_launch: bool) -> Result<Arc<Results>> {
        let state: &Arc<ContextState> = &self.state;
        let name = launcher.definition.name().to_owned();
        if let Some(error) = launcher.error {
            return Err(error);
        }
        if launcher.definition.variants().is_empty() {
            return Err(Error::launch(&name, "the task has no implementation; add a variant"));
        }
        if launcher.sources.iter().any(|source| !source.is_of(state.core.realm())) {
            let problem = "it takes a result of another runtime; `.await` that and pass the value";
            return Err(Error::launch(&name, problem));
        }
        if domain.volume() > MOST_POINTS {
            return Err(Error::launch(&name, format!("its domain {domain} has more than {MOST_POINTS} points")));
        }
        let mut bounds = Vec::with_capacity(launcher.requirements.len());
        for requirement in &launcher.requirements {
            bounds.push(state.bind(&name, requirement.clone())?);
        }
        state.check_inline(&name, &bounds)?;
        let sharing = check(&name, &bounds, &domain, index_launch)?;
        let producers = Results::producers(&launcher.sources);
        let task = launcher.into_task(index_launch, domain, sharing);
        let mut results = None;
        let operation = state.submit_after(&bounds, &producers, |_, submission| {
            let operation = TaskOperation::new(state, task, bounds.clone(), submission);
            results = Some(Arc::clone(operation.results()));
            Arc::new(operation)
        })?;
        let results = results.expect("the operation was made");
        results.produced_by(&operation);
        Ok(results)
    }
}

/// More points than this in one launch are surely a mistake.
const MOST_POINTS: u64 = 1 << 28;
