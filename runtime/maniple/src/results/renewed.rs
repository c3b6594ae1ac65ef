//! Results in the memory of earlier ones, of the same stage of a trace or of the same function.

use std::sync::Arc;

use maniple_space::AnyRect;

use crate::support::error::Result;

use super::completion::{Completion, Local, ReplayedStage};
use super::{Input, Origin, Results, Sources};

/// So many generations of results that are computed from those of a stage, from those and so on, keep their memory: a
/// chain may be long.
const MOST_GENERATIONS: u8 = 4;

impl Results {
    /// The results of a function of `sources`, which are set later: in the memory of the results of an earlier run of a
    /// stage, if that is free.
    pub(super) fn computed(name: &'static str, domain: AnyRect, sources: Sources) -> Arc<Self> {
        let first = Arc::clone(sources[0].results());
        let generations = if first.are_replayed() { MOST_GENERATIONS } else { first.generations.saturating_sub(1) };
        let earlier = first.computed.lock().take();
        if let Some(mut earlier) = earlier
            && let Some(results) = Arc::get_mut(&mut earlier)
            && results.domain == domain
        {
            results.clear(&sources);
            (results.origin, results.completion) = (Origin::BuiltIn(name), Completion::on_demand());
            results.generations = generations;
            return earlier;
        }
        let mut results = Self::new(&first.realm, Origin::BuiltIn(name), domain, Completion::on_demand(), sources);
        if let Some(results) = Arc::get_mut(&mut results) {
            results.generations = generations;
        }
        results
    }

    /// They are there, and none is a failure. If their values own nothing, they leave their memory to the next that are
    /// computed of the same.
    pub(super) fn are_computed(self: &Arc<Self>, are_plain: bool) {
        let sources = std::mem::take(&mut *self.sources.lock());
        if are_plain
            && let Some(first) = sources.first().map(Input::results)
            && (first.are_replayed() || first.generations > 0)
        {
            *first.computed.lock() = Some(Arc::clone(self));
        }
    }

    /// Makes results that are not looked at any more those of another launch of the same task over the same points: of
    /// a stage that is replayed.
    pub(crate) fn renew(
        &mut self,
        run: u64,
        is_watched: bool,
        stage: impl FnOnce() -> ReplayedStage,
        sources: &[Input],
    ) {
        self.completion.renew(run, is_watched, stage);
        self.clear(sources);
    }

    /// Makes them as new, of such sources.
    #[inline]
    pub(super) fn clear(&mut self, sources: &[Input]) {
        self.values.drop_caught(self.origin.name());
        self.ends.clear();
        *self.takes_failure.get_mut() = false;
        *self.observed.get_mut() = false;
        // To take and extend by nothing takes its time, too.
        if self.producer.get().is_some() {
            self.producer.take();
        }
        let mine = self.sources.get_mut();
        if !mine.is_empty() {
            mine.clear();
        }
        if !sources.is_empty() {
            mine.extend(sources.iter().cloned());
        }
    }

    /// Makes results that are not looked at any more those of another launch that several nodes share, of the same task
    /// over the same points. Gives back the others' results that are the sources, if these are looked at.
    pub(crate) fn renew_shared(&mut self, operation: u64, local: Local) -> Result<(), Local> {
        let Completion::Shared(shared) = &mut self.completion else { return Err(local) };
        let Some(shared) = Arc::get_mut(shared) else { return Err(local) };
        let mine = self.sources.get_mut();
        mine.clear();
        local.iter().for_each(|(_, results)| mine.push(Input::all(Arc::clone(results))));
        shared.renew(operation, local);
        self.ends.clear();
        *self.observed.get_mut() = false;
        Ok(())
    }
}
