//! A launch on its way to an operation: into a trace, or with its site into the stream.

use std::sync::Arc;

use maniple_realm::Realm;
use maniple_space::{AnyRect, Rect};

use crate::context::{Context, ContextState};
use crate::execution::TaskState;
use crate::launch::{LaunchPart, Launching, TaskLaunch, TaskLauncher};
use crate::results::{Origin, Results};
use crate::support::error::{Error, Result};
use crate::support::profiling;
use crate::task::TaskDefinition;

impl Context {
    /// Launches a task here, for those points of the domain that are given, or all.
    pub(crate) fn submit_local(
        &self,
        mut launcher: TaskLauncher,
        domain: AnyRect,
        share: Option<AnyRect>,
        index_launch: bool,
    ) -> Arc<Results> {
        let results = self.submit_lent(&mut launcher, domain, share, index_launch, None);
        launcher.recycle();
        results
    }

    /// As [`submit_local`](Self::submit_local), for a caller that launches the same again: a replay leaves the launcher
    /// as it was, but for its arguments, which are those of an earlier launch.
    pub(crate) fn submit_lent(
        &self,
        launcher: &mut TaskLauncher,
        domain: AnyRect,
        share: Option<AnyRect>,
        index_launch: bool,
        part: Option<LaunchPart>,
    ) -> Arc<Results> {
        let state: &Arc<ContextState> = &self.state;
        let refused = refused(launcher, &domain, self);
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
            let error = error.launched_at(launching.launcher.provenance());
            let definition = Arc::clone(launching.launcher.definition());
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
    pub(crate) fn failed(&self, definition: &Arc<TaskDefinition>, domain: AnyRect, error: &Error) -> Arc<Results> {
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
        let task = TaskLaunch::new(launching, Arc::clone(&site), state.place_of_launch());
        let producers = Results::producers(&task.sources);
        let mut results = None;
        let operation = state.submit_after(&site.bounds, &producers, |_, submission| {
            let (realm, completion) = (state.core.realm(), submission.completion.event());
            let (origin, sources) = (Origin::of(&site.definition), task.sources.clone());
            let new = Results::new(realm, origin, site.points, completion, sources);
            results = Some(Arc::clone(&new));
            TaskState::new(state, task, submission, &new, None)
        })?;
        let results = results.expect("the operation was made");
        results.produced_by(&operation);
        state.watch(&results);
        Ok(results)
    }
}

/// Refuses a launch that was put together wrongly, that is for a mapper which there is not, or that no context would
/// launch.
pub(crate) fn refused(launcher: &mut TaskLauncher, domain: &AnyRect, context: &Context) -> Result<()> {
    let core = &context.state.core;
    match launcher.take_error() {
        None => {
            launcher.find_mapper(core, context.mapper)?;
            check_launch(launcher, domain, core.realm())
        }
        Some(error) => Err(error),
    }
}

/// Refuses what no context would launch.
fn check_launch(launcher: &TaskLauncher, domain: &AnyRect, realm: &Realm) -> Result<()> {
    let name = launcher.definition().name();
    if launcher.definition().variants().is_empty() && launcher.definition().generator_of().is_none() {
        return Err(Error::launch(name, "the task has no implementation; add a variant"));
    }
    if launcher.sources().iter().any(|source| !source.is_of(realm)) {
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
