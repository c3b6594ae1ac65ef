//! Plans of launches: the data that launches of one kind have in common.

use std::sync::Arc;

use maniple_analysis::distribution::Layout;
use maniple_realm::locks::Mutex;
use maniple_region::{LogicalRegion, Privilege, Requirement};
use maniple_space::AnyRect;
use smallvec::SmallVec;

use super::knowledge::{PartOfUse, Use};
use super::preparation::Preparation;
use crate::launch::LaunchSite;
use crate::results::Results;

/// Nodes plan a launch once, and prepare it each time. So many rounds are a plan's at most.
pub(super) const ROUNDS_OF_A_PLAN: u32 = 8;

/// The plan of launches of one kind: the data that they have in common.
pub(super) struct LaunchPlan {
    pub(super) site: Arc<LaunchSite>,
    /// The digest of such launches, without their arguments.
    pub(super) digest: u64,
    /// How points are dealt to nodes, for messages.
    pub(super) dealt: Arc<str>,
    /// The points that run here.
    pub(super) mine: Vec<AnyRect>,
    /// For each requirement what each node uses.
    pub(super) layouts: Vec<Arc<Layout>>,
    /// For each requirement what it counts as.
    pub(super) privileges: Vec<Privilege>,
    /// In which order they are prepared.
    pub(super) order: Vec<usize>,
    /// The roots of the trees that they are about.
    pub(super) roots: Vec<LogicalRegion>,
    /// The preparations of earlier such launches, by the states of the trees before them.
    pub(super) known: Mutex<Vec<KnownPreparation>>,
    /// The results of the latest such launch, if they are kept.
    pub(super) results: Mutex<Option<Arc<Results>>>,
}

/// The preparation of a launch, with the states of the trees before it and after the launch: a number for each tree.
pub(super) struct KnownPreparation {
    pub(super) before: SmallVec<[u64; 2]>,
    pub(super) after: SmallVec<[u64; 2]>,
    pub(super) preparation: Arc<Preparation>,
}

impl LaunchPlan {
    /// How the launch uses regions, in the order in which that is prepared.
    pub(super) fn uses(&self) -> Vec<Use<'_>> {
        let one = |number: usize, part| {
            let Requirement { target, fields, .. } = &self.site.bounds[number].requirement;
            let (root, privilege) = (target.bound().root_region(), self.privileges[number]);
            Use { root, fields, privilege, layout: &self.layouts[number], part }
        };
        let contributes = self.privileges.iter().any(|privilege| matches!(privilege, Privilege::Reduce(_)));
        let settle_first = contributes && self.layouts.len() > 1;
        let settles = self.order.iter().filter(|_| settle_first).map(|&number| one(number, PartOfUse::Settling));
        settles.chain(self.order.iter().map(|&number| one(number, PartOfUse::All))).collect()
    }
}
