//! The launch sites that a context knows.

use std::sync::Arc;

use maniple_realm::locks::Mutex;
use maniple_region::TreeId;
use rustc_hash::FxHashMap;

use super::check::check;
use super::site::{LaunchSite, Launching};
use crate::context::{ContextState, Renewed};
use crate::error::Result;

/// Launch sites by the tokens of their launches. With too many, all are forgotten: a program that launches ever new things gains nothing from
/// the old ones.
#[derive(Default)]
pub(crate) struct Sites(Mutex<Known>);

#[derive(Default)]
struct Known {
    by_token: FxHashMap<u64, Arc<LaunchSite>>,
    /// How many points they have in all.
    points: u64,
}

/// The most points that sites may have in all: what mappers decide about each is kept.
const MOST_POINTS: u64 = 1 << 16;

impl Sites {
    /// The site of a launch, if it is known and its data is still there.
    fn find(&self, launching: &Launching<'_>) -> Option<Arc<LaunchSite>> {
        let known = self.0.lock();
        let site = known.by_token.get(&launching.token()).filter(|site| site.is_same_and_allowed(launching))?;
        // What is launched once only is not worth the memory.
        site.decisions.keep();
        Some(Arc::clone(site))
    }

    fn insert(&self, site: &Arc<LaunchSite>) {
        let points = site.points.volume().max(1);
        if points > MOST_POINTS / 4 {
            return;
        }
        // They hold on to instances: dropped when the lock is free again.
        let mut forgotten = Known::default();
        let replaced: Option<Arc<LaunchSite>>;
        let mut known = self.0.lock();
        if known.points + points > MOST_POINTS {
            std::mem::swap(&mut *known, &mut forgotten);
        }
        known.points += points;
        replaced = known.by_token.insert(site.token, Arc::clone(site));
        known.points -= replaced.as_ref().map_or(0, |other| other.points.volume().max(1));
    }

    /// Forgets what is about a region tree that was destroyed.
    pub(crate) fn forget_tree(&self, tree: TreeId) {
        let mut known = self.0.lock();
        known.by_token.retain(|_, site| !site.uses(tree));
        known.points = known.by_token.values().map(|site| site.points.volume().max(1)).sum();
    }

    /// Lets go of the instances that mappers have chosen. Whether there were any.
    pub(crate) fn forget_decisions(&self) -> bool {
        // Nobody who holds this lock asks for memory.
        self.0.lock().by_token.values().filter(|site| site.decisions.forget()).count() > 0
    }

    pub(crate) fn clear(&self) {
        let known = std::mem::take(&mut *self.0.lock());
        drop(known);
    }
}

impl ContextState {
    /// The site of a launch. One that is not known yet is checked against the privileges of the task and against itself; fields that took the ids
    /// of freed ones are given to `renew`, and must be zero before the launch.
    pub(crate) fn site(&self, launching: &Launching<'_>, renew: &mut dyn FnMut(Renewed)) -> Result<Arc<LaunchSite>> {
        let sites = self.sites();
        if let Some(site) = sites.find(launching) {
            return Ok(site);
        }
        let (name, requirements) = (launching.launcher.definition().name(), launching.launcher.requirements());
        let mut bounds = Vec::with_capacity(requirements.len());
        for requirement in requirements.iter() {
            bounds.push(self.bind_and(name, requirement.clone(), renew)?);
        }
        let sharing = check(name, &bounds, &launching.domain, launching.index_launch)?;
        let site = Arc::new(LaunchSite::new(launching, bounds, sharing));
        sites.insert(&site);
        Ok(site)
    }
}
