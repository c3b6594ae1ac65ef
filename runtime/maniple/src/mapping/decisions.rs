//! What mappers have decided about the points of a launch site, for as long as it holds.

use std::sync::Arc;

use maniple_mapper::{RequirementMapping, Reuse, Slice, TaskMapping, Validity};
use maniple_space::AnyPoint;
use parking_lot::Mutex;

use super::point::Chosen;
use crate::physical::places::KnownPlaces;
use crate::task::call::PhysicalRegion;

/// A point of a launch with everything that was decided about it.
pub(crate) struct MappedPoint {
    pub(crate) point: AnyPoint,
    pub(crate) index: usize,
    pub(crate) mapping: TaskMapping,
    pub(crate) chosen: Chosen,
    /// What the task gets.
    pub(crate) physical: Vec<PhysicalRegion>,
    /// Where its data is, if the decision is kept.
    pub(crate) places: Option<KnownPlaces>,
}

/// The decisions about a launch site. They hold on to instances, so they can be forgotten at any time.
#[derive(Default)]
pub(crate) struct Decisions(Mutex<Decided>);

#[derive(Default)]
struct Decided {
    /// The site is launched from again and again.
    are_kept: bool,
    slices: Option<Arc<[Slice]>>,
    /// Those about the points that have any, by their index.
    points: Vec<Option<Arc<MappedPoint>>>,
}

impl Decisions {
    /// From now on decisions are kept.
    pub(crate) fn keep(&self) {
        self.0.lock().are_kept = true;
    }

    /// The slices of the launch, if they are known and something else that the mapper decided about it holds.
    pub(crate) fn slices(&self) -> Option<Arc<[Slice]>> {
        let decided = self.0.lock();
        decided.slices.clone().filter(|_| !decided.points.is_empty())
    }

    pub(crate) fn keep_slices(&self, slices: &[Slice]) {
        let mut decided = self.0.lock();
        if decided.are_kept {
            decided.slices = Some(slices.into());
        }
    }

    /// What was decided about the point of this index.
    pub(crate) fn point(&self, index: usize) -> Option<Arc<MappedPoint>> {
        self.0.lock().points.get(index)?.clone()
    }

    /// A decision, which is kept if it holds for later launches.
    pub(crate) fn made(&self, mut mapped: MappedPoint) -> Arc<MappedPoint> {
        let holds = mapped.holds();
        let mut decided = self.0.lock();
        if !holds || !decided.are_kept {
            // Nobody will ask for them. Given back here, and not on the other core where the task ends, they cost much less.
            mapped.mapping.requirements = Vec::new();
            return Arc::new(mapped);
        }
        let mapped = Arc::new(mapped.located());
        if decided.points.len() <= mapped.index {
            decided.points.resize(mapped.index + 1, None);
        }
        decided.points[mapped.index] = Some(Arc::clone(&mapped));
        mapped
    }

    pub(crate) fn forget_point(&self, index: usize) {
        let mut decided = self.0.lock();
        if let Some(mapped) = decided.points.get_mut(index) {
            *mapped = None;
        }
    }

    /// Lets go of all instances. Whether there were any.
    pub(crate) fn forget(&self) -> bool {
        let decided = std::mem::take(&mut self.0.lock().points);
        !decided.is_empty()
    }
}

impl MappedPoint {
    /// The same, for many tasks: where fields are is found out now.
    pub(crate) fn located(mut self) -> Self {
        self.places = Some(KnownPlaces::default());
        self.physical.iter_mut().for_each(PhysicalRegion::locate);
        self
    }

    /// Whether the mapper says the same for later launches, and its choices can be taken from what there is then.
    fn holds(&self) -> bool {
        let finds = |requirement: &RequirementMapping| match requirement {
            RequirementMapping::Virtual => false,
            RequirementMapping::Instance(choices) => choices.iter().all(|choice| choice.reuse != Reuse::Never),
        };
        self.mapping.validity == Validity::WhileUnchanged
            && self.mapping.requirements.iter().all(finds)
            && !self.chosen.needs_homes()
    }
}
