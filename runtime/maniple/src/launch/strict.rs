//! The findings of strict traces about a launch that is mapped.

use std::sync::Arc;

use maniple_realm::locks::Mutex;

use crate::support::error::Error;

/// Problems of a trace that mapping has found.
pub(crate) struct Findings {
    pub(crate) trace: &'static str,
    pub(crate) problem: Option<Error>,
    /// The program has been told of one.
    pub(crate) are_told: bool,
}

/// A launch as strict traces know it, for the code that maps it.
#[derive(Clone, Default)]
pub(crate) struct StrictLaunch {
    /// In the innermost run.
    inner: Option<Place>,
    /// In those around it.
    outer: Vec<Place>,
}

/// The findings of a trace, and how many launches of a run came before.
pub(crate) type Place = (Arc<Mutex<Findings>>, usize);

impl StrictLaunch {
    /// The launch is part of a run, at a place in it.
    pub(crate) fn is_in(&mut self, place: Place) {
        if let Some(outer) = self.inner.replace(place) {
            self.outer.push(outer);
        }
    }

    /// The mapper has chosen a variant that launches tasks.
    #[cold]
    pub(crate) fn launches_tasks(&self, task: &str) {
        for (findings, launches) in self.inner.iter().chain(&self.outer) {
            let mut findings = findings.lock();
            let found = format!("task `{task}`, for which the mapper has chosen a variant that launches tasks");
            let problem = Error::NotReplayable { trace: findings.trace, launches: *launches, found };
            findings.problem.get_or_insert(problem);
        }
    }
}
