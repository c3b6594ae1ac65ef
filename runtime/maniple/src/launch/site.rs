//! Launch sites: what launches of one kind have in common, found out once.

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use maniple_record::{Launch, OperationNumber};
use maniple_region::{Provenance, Requirement, Target, TreeId, endings};
use maniple_space::{AnyPoint, AnyRect, PointSet};
use rustc_hash::FxHasher;

use super::check::{Sharing, is_still_there, may_change};
use super::launcher::TaskLauncher;
use super::requirements::Requirements;
use super::strict::StrictLaunch;
use super::whole::{LaunchPart, WholeNumber};
use crate::context::ContextState;
use crate::instances::bound::Bound;
use crate::mapping::Decisions;
use crate::operation::lifecycle::MapperNumber;
use crate::results::Sources;
use crate::task::arguments::Arguments;
use crate::task::{OnFailure, TaskDefinition};

/// A launch that arrives, lent by the code that launches it.
pub(crate) struct Launching<'a> {
    pub(crate) launcher: &'a mut TaskLauncher,
    pub(crate) domain: AnyRect,
    /// The points of the domain that run here, if others run elsewhere.
    pub(crate) share: Option<AnyRect>,
    pub(crate) index_launch: bool,
    /// Of what it is a part, if a launch of the program is several here.
    pub(crate) part: Option<LaunchPart>,
    token: Cell<Option<u64>>,
    /// The call to make if the launch fails, once the launcher has gone.
    on_failure: Option<(OnFailure, Arguments)>,
}

/// The common part of launches of one kind from one context: all but arguments and futures. They were found to be
/// allowed.
pub(crate) struct LaunchSite {
    pub(crate) definition: Arc<TaskDefinition>,
    pub(crate) bounds: Vec<Bound>,
    pub(crate) sharing: Sharing,
    /// All points of the launch, which bodies and projections are told of.
    pub(crate) domain: AnyRect,
    share: Option<AnyRect>,
    /// The points that run here: all, unless the launch is shared with other nodes.
    pub(crate) points: AnyRect,
    pub(crate) index_launch: bool,
    /// The points of a launch over a set: the domain is their numbers.
    pub(crate) over: Option<PointSet>,
    pub(crate) tag: u64,
    pub(crate) mapper: MapperNumber,
    /// The place in the program that launched the first of them.
    pub(crate) launched: Option<Provenance>,
    /// See [`Launching::token`].
    pub(crate) token: u64,
    /// The list that the first of them came with. Those that come with copies of it want the same.
    requirements: Requirements,
    /// For each requirement, how often fields had been freed, or their ids given to new ones.
    changes: Vec<u64>,
    /// The names of a launch may be gone, or mean something else, though nothing has [ended](endings): a projection may
    /// answer otherwise.
    may_change: bool,
    /// The latest [number of endings](endings) after which everything was found to be there.
    there_after: AtomicU64,
    /// The decisions of mappers about its points.
    pub(crate) decisions: Decisions,
}

/// One launch of a site.
pub(crate) struct TaskLaunch {
    pub(crate) site: Arc<LaunchSite>,
    pub(crate) arguments: Arguments,
    pub(crate) sources: Sources,
    pub(crate) strict: StrictLaunch,
    /// The place in the program that launched it.
    pub(crate) launched: Option<Provenance>,
    /// Its place among the launches of its context.
    pub(crate) number: u64,
}

impl TaskLaunch {
    /// A launch of a site, which leaves the launcher without what the task is given.
    pub(crate) fn new(launching: &mut Launching<'_>, site: Arc<LaunchSite>, number: u64) -> Self {
        launching.on_failure = launching.launcher.on_failure();
        let (arguments, sources, strict) = launching.launcher.take_inputs();
        let launched = launching.launcher.provenance().cloned();
        Self { site, arguments, sources, strict, launched, number }
    }
}

impl<'a> Launching<'a> {
    pub(crate) fn new(launcher: &'a mut TaskLauncher, domain: AnyRect, index_launch: bool) -> Self {
        Self { launcher, domain, share: None, index_launch, part: None, token: Cell::new(None), on_failure: None }
    }

    /// Takes the call to make if the launch fails, with its arguments.
    pub(crate) fn take_on_failure(&mut self) -> Option<(OnFailure, Arguments)> {
        self.on_failure.take().or_else(|| self.launcher.on_failure())
    }

    /// By what the search for repeats knows it: of a whole, its first part.
    pub(crate) fn unit_token(&self) -> u64 {
        self.part.and_then(LaunchPart::begins).map_or_else(|| self.token(), WholeNumber::token)
    }

    /// A number that is the same for launches of one kind, and hardly ever for others.
    pub(crate) fn token(&self) -> u64 {
        self.token.get().unwrap_or_else(|| {
            let mut hasher = FxHasher::default();
            Arc::as_ptr(self.launcher.definition()).hash(&mut hasher);
            self.launcher.requirements().hash(&mut hasher);
            (self.domain, self.share, self.index_launch).hash(&mut hasher);
            (self.launcher.tag_number(), self.launcher.mapper_number()).hash(&mut hasher);
            if let Some(points) = self.launcher.points() {
                points.hash(&mut hasher);
            }
            let token = hasher.finish();
            self.token.set(Some(token));
            token
        })
    }
}

impl LaunchSite {
    /// The site of a launch that was found to be allowed.
    pub(crate) fn new(launching: &Launching<'_>, bounds: Vec<Bound>, sharing: Sharing) -> Self {
        Self {
            definition: Arc::clone(launching.launcher.definition()),
            requirements: launching.launcher.requirements().clone(),
            changes: bounds.iter().map(|bound| changes(&bound.requirement)).collect(),
            may_change: bounds.iter().any(|bound| may_change(&bound.requirement)),
            there_after: AtomicU64::new(u64::MAX),
            bounds,
            sharing,
            domain: launching.domain,
            share: launching.share,
            points: launching.share.unwrap_or(launching.domain),
            index_launch: launching.index_launch,
            over: launching.launcher.points().cloned(),
            tag: launching.launcher.tag_number(),
            mapper: launching.launcher.mapper_number(),
            launched: launching.launcher.provenance().cloned(),
            token: launching.token(),
            decisions: Decisions::default(),
        }
    }

    /// How many of its points count as tasks: none of the runtime's own.
    pub(crate) fn tasks(&self) -> u64 {
        if self.definition.is_internal() { 0 } else { self.points.volume() }
    }

    /// The task's name.
    pub(crate) fn name(&self) -> &str {
        self.definition.name()
    }

    /// The record of such a launch.
    pub(crate) fn recorded(&self, parent: OperationNumber, launched: Option<&Provenance>) -> Launch {
        Launch {
            launched: launched.cloned(),
            parent,
            name: self.name().to_owned(),
            points: self.points.volume(),
            requirements: self.bounds.iter().map(|bound| bound.requirement.clone()).collect(),
            after: Vec::new(),
        }
    }

    /// Whether a launch that arrives is one of these, and its data is still there.
    #[inline]
    pub(crate) fn is_same_and_allowed(&self, launching: &Launching<'_>, context: &ContextState) -> bool {
        self.is_same(launching) && self.has_names_of(launching) && self.is_there(context)
    }

    /// As [`is_same_and_allowed`](Self::is_same_and_allowed), or all that differs is that regions or partitions were
    /// destroyed, and what was made in their place has taken over their names.
    #[inline]
    pub(crate) fn is_renewed_and_allowed(&self, launching: &Launching<'_>, context: &ContextState) -> bool {
        self.is_same(launching)
            && match self.has_names_of(launching) {
                true => self.is_there(context),
                false => {
                    let requirements = launching.launcher.requirements();
                    let mut renewed = requirements.iter().zip(&self.changes);
                    renewed.all(|(requirement, &changes)| self.is_there_for(requirement, changes, context))
                }
            }
    }

    /// Whether what a launch names that arrives is there, with the fields that there were.
    #[cold]
    fn is_there_for(&self, requirement: &Requirement, before: u64, context: &ContextState) -> bool {
        has_fields(requirement, before, context)
            && is_still_there(requirement, &self.domain, context)
            && context.may_use(&requirement.target)
    }

    /// Whether a launch that arrives, which is the same, uses the same names: equal ones may be new, see
    /// [`Target::is_same_name`].
    #[inline]
    fn has_names_of(&self, launching: &Launching<'_>) -> bool {
        let requirements = launching.launcher.requirements();
        self.requirements.is_copy_of(requirements)
            || (self.bounds.iter().zip(&**requirements))
                .all(|(bound, requirement)| bound.requirement.target.is_same_name(&requirement.target))
    }

    /// Whether all that such a launch names is there for a task.
    #[inline]
    pub(crate) fn is_there(&self, context: &ContextState) -> bool {
        let endings = endings();
        if self.there_after.load(Ordering::Relaxed) == endings {
            return true;
        }
        let is_there = |(bound, &before): (&Bound, &u64)| {
            has_fields(&bound.requirement, before, context) && is_still_there(&bound.requirement, &self.domain, context)
        };
        let all_there = self.bounds.iter().zip(&self.changes).all(is_there);
        if all_there && !self.may_change {
            self.there_after.store(endings, Ordering::Relaxed);
        }
        all_there
    }

    #[inline]
    fn is_same(&self, launching: &Launching<'_>) -> bool {
        let Launching { launcher, domain, share, index_launch, .. } = launching;
        let requirements = launcher.requirements();
        Arc::ptr_eq(&self.definition, launcher.definition())
            && (self.requirements.is_copy_of(requirements) || self.wants(requirements))
            && self.domain == *domain
            && self.share == *share
            && self.index_launch == *index_launch
            && self.tag == launcher.tag_number()
            && self.mapper == launcher.mapper_number()
            && self.over.as_ref() == launcher.points()
    }

    fn wants(&self, requirements: &[Requirement]) -> bool {
        self.bounds.len() == requirements.len()
            && self.bounds.iter().zip(requirements).all(|(bound, requirement)| bound.requirement == *requirement)
    }

    /// Whether two sites are of the same launches.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.definition, &other.definition)
            && self.bounds.len() == other.bounds.len()
            && self.bounds.iter().zip(&other.bounds).all(|(one, other)| one.requirement == other.requirement)
            && (self.domain, self.share) == (other.domain, other.share)
            && (self.index_launch, self.tag, self.mapper) == (other.index_launch, other.tag, other.mapper)
            && self.over == other.over
    }

    /// A point as messages show it.
    pub(crate) fn shown_point(&self, point: AnyPoint) -> Option<AnyPoint> {
        self.index_launch.then(|| self.outer_point(point))
    }

    /// The point that the program knows: of a launch over a set, that with this number.
    pub(crate) fn outer_point(&self, point: AnyPoint) -> AnyPoint {
        self.over.as_ref().map_or(point, |points| points.points()[point[0] as usize])
    }

    /// All points, as the program knows them: of a launch over a set, a rectangle around those.
    pub(crate) fn outer_domain(&self) -> AnyRect {
        self.over.as_ref().map_or(self.domain, PointSet::bounds)
    }

    /// The domain as messages show it.
    pub(crate) fn shown_domain(&self) -> Option<AnyRect> {
        self.index_launch.then_some(self.points)
    }

    /// Whether some partition that it is over had not all its pieces here when it was made.
    pub(crate) fn is_over_distributed_pieces(&self) -> bool {
        self.bounds.iter().any(|bound| match &bound.requirement.target {
            Target::Region(..) => false,
            Target::Partition(partition, _) => partition.partitioning().piece_source().is_some(),
        })
    }

    /// Whether it is about a region tree.
    pub(crate) fn uses(&self, tree: TreeId) -> bool {
        self.bounds.iter().any(|bound| bound.requirement.target.tree().id() == tree)
    }
}

pub(super) fn changes(requirement: &Requirement) -> u64 {
    requirement.target.tree().fields().changes()
}

/// Whether the ids of fields mean what they meant after so many [changes](maniple_region::FieldSpace::changes), or
/// fields of the same types whose values have begun anew.
#[inline]
pub(super) fn has_fields(requirement: &Requirement, before: u64, context: &ContextState) -> bool {
    before == changes(requirement) || context.has_fields_of(requirement)
}
