//! Launches on their way into a trace.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use maniple_realm::UserEvent;
use maniple_record::LaunchNumber;
use maniple_region::Requirement;
use maniple_space::{AnyPoint, AnyRect};
use rustc_hash::FxHasher;

use crate::context::Bound;
use crate::future::Results;
use crate::launch::{Sharing, TaskLauncher};
use crate::task::TaskDefinition;

/// A launch that was found to be allowed and has its results, and is to be analysed or replayed.
pub(crate) struct Staged {
    pub(crate) bounds: Vec<Bound>,
    pub(crate) sharing: Sharing,
    pub(crate) launcher: TaskLauncher,
    pub(crate) domain: AnyRect,
    pub(crate) index_launch: bool,
    pub(crate) results: Arc<Results>,
    pub(crate) completion: UserEvent,
    /// Its number, while a record is kept.
    pub(crate) recorded: Option<LaunchNumber>,
}

/// A launch that arrives, lent by who launches it.
pub(crate) struct Launching<'a> {
    pub(crate) launcher: &'a mut TaskLauncher,
    pub(crate) domain: AnyRect,
    pub(crate) index_launch: bool,
}

/// What two launches must have in common for one to be replayed as the other: all but arguments and futures.
#[derive(Clone)]
pub(super) struct StageKind {
    definition: Arc<TaskDefinition>,
    requirements: Vec<Requirement>,
    /// For each requirement, how often ids of fields had been given to new ones.
    reuses: Vec<u64>,
    pub(super) domain: AnyRect,
    index_launch: bool,
    tag: u64,
    /// See [`token`].
    pub(super) token: u64,
}

impl StageKind {
    pub(super) fn of(launcher: &TaskLauncher, domain: AnyRect, index_launch: bool) -> Self {
        Self {
            definition: Arc::clone(launcher.definition()),
            requirements: launcher.requirements().to_vec(),
            reuses: launcher.requirements().iter().map(reuses).collect(),
            domain,
            index_launch,
            tag: launcher.tag_number(),
            token: token(launcher, domain, index_launch),
        }
    }

    pub(super) fn definition(&self) -> &Arc<TaskDefinition> {
        &self.definition
    }

    pub(super) fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether a launch that arrives is one of these, and its data is still there.
    #[inline]
    pub(super) fn is_same_and_allowed(&self, launching: &Launching<'_>) -> bool {
        let Launching { launcher, domain, index_launch } = launching;
        self.is_same(launcher, *domain, *index_launch)
            && self
                .requirements
                .iter()
                .zip(&self.reuses)
                .all(|(requirement, &before)| before == reuses(requirement) && requirement.target.check_alive().is_ok())
    }

    /// Whether a launch is one of these.
    #[inline]
    pub(super) fn is_same(&self, launcher: &TaskLauncher, domain: AnyRect, index_launch: bool) -> bool {
        Arc::ptr_eq(&self.definition, launcher.definition())
            && *self.requirements == *launcher.requirements()
            && self.domain == domain
            && self.index_launch == index_launch
            && self.tag == launcher.tag_number()
    }

    /// Whether a launch that stands in line is one of these.
    pub(super) fn is_same_staged(&self, staged: &Staged) -> bool {
        self.is_same(&staged.launcher, staged.domain, staged.index_launch)
    }

    /// A point as messages show it.
    pub(super) fn shown_point(&self, point: AnyPoint) -> Option<AnyPoint> {
        self.index_launch.then_some(point)
    }

    /// The domain as messages show it.
    pub(super) fn shown_domain(&self) -> Option<AnyRect> {
        self.index_launch.then_some(self.domain)
    }

    /// Whether it is about a region tree.
    pub(super) fn uses(&self, tree: maniple_region::TreeId) -> bool {
        self.requirements.iter().any(|requirement| requirement.target.tree().id() == tree)
    }
}

fn reuses(requirement: &Requirement) -> u64 {
    requirement.target.tree().fields().reuses()
}

impl Launching<'_> {
    /// A number that is the same for launches of one kind, and hardly ever for others.
    pub(super) fn token(&self) -> u64 {
        token(self.launcher, self.domain, self.index_launch)
    }
}

/// A number that is the same for launches of one kind, and hardly ever for others.
fn token(launcher: &TaskLauncher, domain: AnyRect, index_launch: bool) -> u64 {
    let mut hasher = FxHasher::default();
    Arc::as_ptr(launcher.definition()).hash(&mut hasher);
    launcher.requirements().hash(&mut hasher);
    (domain, index_launch, launcher.tag_number()).hash(&mut hasher);
    hasher.finish()
}
