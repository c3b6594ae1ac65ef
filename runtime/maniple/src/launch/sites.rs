//! The launch sites that a context knows.

use std::sync::Arc;

use maniple_realm::locks::Mutex;
use maniple_region::{LogicalRegion, TreeId};
use rustc_hash::FxHashMap;

use super::check::{CheckContext, Everywhere, Here, View, check};
use super::site::{LaunchSite, Launching};
use crate::context::{ContextPart, ContextState, Renewed};
use crate::instances::bound::Bound;
use crate::instances::store::{Cache, Discard};
use crate::support::error::{Error, Result};

/// Launch sites by the tokens of their launches. With too many, all are forgotten: a program that launches ever new
/// things gains nothing from the old ones.
#[derive(Default)]
pub(crate) struct Sites(Mutex<KnownSites>);

#[derive(Default)]
struct KnownSites {
    by_token: FxHashMap<u64, Arc<LaunchSite>>,
    /// How many points they have in all.
    points: u64,
}

/// The most points that sites may have in all: what mappers decide about each is kept.
const MOST_POINTS: u64 = 1 << 16;

impl Sites {
    /// The site of a launch, if it is known and its data is still there.
    fn find(&self, launching: &Launching<'_>, context: &ContextState) -> Option<Arc<LaunchSite>> {
        let known = self.0.lock();
        let site =
            known.by_token.get(&launching.token()).filter(|site| site.is_same_and_allowed(launching, context))?;
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
        let mut forgotten = KnownSites::default();
        let replaced: Option<Arc<LaunchSite>>;
        let mut known = self.0.lock();
        if known.points + points > MOST_POINTS {
            std::mem::swap(&mut *known, &mut forgotten);
        }
        known.points += points;
        replaced = known.by_token.insert(site.token, Arc::clone(site));
        known.points -= replaced.as_ref().map_or(0, |other| other.points.volume().max(1));
    }

    /// Forgets what keeps partitions whose pieces are not all here: there are many.
    pub(crate) fn forget_distributed_pieces(&self) {
        self.forget(LaunchSite::is_over_distributed_pieces);
    }

    fn forget(&self, is_forgotten: impl Fn(&LaunchSite) -> bool) {
        let mut known = self.0.lock();
        let (gone, kept) = std::mem::take(&mut known.by_token).into_iter().partition(|(_, site)| is_forgotten(site));
        known.by_token = kept;
        known.points = known.by_token.values().map(|site| site.points.volume().max(1)).sum();
        drop(known);
        // They hold on to instances: dropped when the lock is free.
        let _: FxHashMap<u64, Arc<LaunchSite>> = gone;
    }

    /// Forgets the instances that mappers have chosen for launches on a region tree.
    fn forget_instances(&self, tree: TreeId) {
        let known = self.0.lock();
        let using: Vec<_> = known.by_token.values().filter(|site| site.uses(tree)).cloned().collect();
        drop(known);
        // They hold on to instances, and may be the last to do so.
        using.iter().for_each(|site| _ = site.decisions.forget());
    }

    /// Forgets all. Whether there was anything.
    fn clear(&self) -> bool {
        let known = std::mem::take(&mut *self.0.lock());
        !known.by_token.is_empty()
    }
}

/// Instances that mappers have chosen; and what launches have used, by name.
impl Cache for Sites {
    fn discard(&self, extent: Discard) -> bool {
        match extent {
            // No holder of this lock asks for memory.
            Discard::Instances => self.0.lock().by_token.values().filter(|site| site.decisions.forget()).count() > 0,
            Discard::Everything => self.clear(),
        }
    }

    fn discard_of(&self, tree: TreeId) {
        self.forget_instances(tree);
    }
}

impl ContextPart for Sites {
    fn destroyed(&self, _context: &ContextState, region: &LogicalRegion) {
        self.forget(|site| site.uses(region.tree().id()));
    }

    fn gave_up(&self, tree: TreeId) {
        self.forget_instances(tree);
    }

    fn release_regions(&self) {
        self.clear();
    }

    fn end(&self) -> Option<Error> {
        self.clear();
        None
    }
}

impl ContextState {
    /// The sites of launches that repeat.
    pub(crate) fn sites(&self) -> &Sites {
        self.parts.sites.get_or_init(|| {
            let sites = Arc::default();
            self.core.store.register_cache(Arc::downgrade(&sites) as _);
            sites
        })
    }

    /// The site of a launch. One that is not known yet is checked against the privileges of the task and against
    /// itself; fields that took the ids of freed ones are given to `renew`, and must be zero before the launch.
    pub(crate) fn site(&self, launching: &Launching<'_>, renew: &mut dyn FnMut(Renewed)) -> Result<Arc<LaunchSite>> {
        let sites = self.sites();
        if let Some(site) = sites.find(launching, self) {
            return Ok(site);
        }
        let bounds = self.bounds(launching, renew)?;
        let name = launching.launcher.definition().name();
        // Of a launch whose points here are a share, the whole was checked before.
        let view: &dyn View = if launching.share.is_some() { &Here } else { &Everywhere };
        let sharing =
            check(name, &bounds, &launching.domain, launching.index_launch, CheckContext { view, deletions: self })?;
        let site = Arc::new(LaunchSite::new(launching, bounds, sharing));
        sites.insert(&site);
        Ok(site)
    }

    /// The requirements of a launch, checked against the privileges of the task, but not against one another: see
    /// [`site`](Self::site).
    pub(crate) fn bounds(&self, launching: &Launching<'_>, renew: &mut dyn FnMut(Renewed)) -> Result<Vec<Bound>> {
        let (name, requirements) = (launching.launcher.definition().name(), launching.launcher.requirements());
        requirements.iter().map(|requirement| self.bind_and(name, requirement.clone(), renew)).collect()
    }
}
