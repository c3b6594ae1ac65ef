//! The decisions of mappers about the points of a launch site, kept for as long as it holds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crossbeam_utils::atomic::AtomicCell;
use maniple_mapper::{Keep, RequirementMapping, Reuse, Slice, TaskMapping, Validity};
use maniple_realm::Target;
use maniple_realm::locks::Mutex;
use maniple_realm::machine::NodeId;
use maniple_space::AnyPoint;

use crate::instances::loads::Counted;
use crate::instances::placement::{Chosen, PhysicalRegion};
use crate::instances::places::KnownPlaces;
use crate::migration::Batch;

/// A point of a launch with everything that was decided about it.
pub(crate) struct MappedPoint {
    pub(crate) point: AnyPoint,
    pub(crate) index: usize,
    pub(crate) mapping: TaskMapping,
    /// The processors on which it is to run.
    pub(crate) target: Target,
    /// Only some of this node's workers may run it.
    pub(crate) is_bound: bool,
    /// The node that the mapper has selected, if it was asked and wants a certain one.
    pub(crate) node: Option<NodeId>,
    /// The tasks with which it goes there, if it is of a slice: then the decision is not kept.
    pub(crate) batch: Option<Arc<Batch>>,
    pub(crate) chosen: Chosen,
    /// The regions that the task gets.
    pub(crate) physical: Vec<PhysicalRegion>,
    /// The places of its data, if the decision is kept.
    pub(crate) places: Option<KnownPlaces>,
    /// Among the tasks of its processor, if the decision holds for this task alone.
    pub(crate) _counted: Option<Counted>,
}

/// The decisions about a launch site. They hold on to instances, so they can be forgotten at any time.
///
/// No lock is taken for a point: the thread that maps it takes the decision out of its cell, and puts one back. Should
/// two map the same point at a time, one finds nothing and asks again.
#[derive(Default)]
pub(crate) struct Decisions {
    /// The site is launched from again and again.
    are_kept: AtomicBool,
    slices: Mutex<Option<Arc<[Slice]>>>,
    /// Something was decided about a point, and not forgotten since.
    are_any: AtomicBool,
    /// The decisions about the points, by their index.
    points: OnceLock<Box<[Decided]>>,
}

/// The decision about a point, if there is one.
type Decided = AtomicCell<Option<Arc<MappedPoint>>>;

const _: () = assert!(Decided::is_lock_free(), "a decision is exchanged by one instruction");

impl Decisions {
    /// From now on decisions are kept.
    pub(crate) fn keep(&self) {
        if !self.are_kept.load(Ordering::Relaxed) {
            self.are_kept.store(true, Ordering::Relaxed);
        }
    }

    /// The slices of the launch, if they are known and something else that the mapper decided about it holds.
    pub(crate) fn slices(&self) -> Option<Arc<[Slice]>> {
        self.are_any.load(Ordering::Acquire).then(|| self.slices.lock().clone()).flatten()
    }

    pub(crate) fn keep_slices(&self, slices: &[Slice]) {
        if self.are_kept.load(Ordering::Relaxed) {
            *self.slices.lock() = Some(slices.into());
        }
    }

    /// Takes out what was decided about the point of this index. It is forgotten unless it is [put
    /// back](Self::put_back).
    pub(crate) fn take(&self, index: usize) -> Option<Arc<MappedPoint>> {
        self.points.get()?.get(index)?.take()
    }

    /// Puts back a decision that still holds.
    pub(crate) fn put_back(&self, mapped: Arc<MappedPoint>) {
        if let Some(decided) = self.points.get().and_then(|points| points.get(mapped.index)) {
            decided.store(Some(mapped));
        }
    }

    /// A decision about one of so many points, which is kept if it holds for later launches.
    pub(crate) fn made(&self, mut mapped: MappedPoint, points: usize) -> Arc<MappedPoint> {
        if !mapped.holds() || !self.are_kept.load(Ordering::Relaxed) {
            // They are not needed any more. Given back here, and not on the other core where the task ends, they cost
            // much less.
            mapped.mapping.requirements = Vec::new();
            return Arc::new(mapped);
        }
        let mapped = Arc::new(mapped.located());
        self.points.get_or_init(|| (0..points).map(|_| Decided::default()).collect());
        self.put_back(Arc::clone(&mapped));
        if !self.are_any.load(Ordering::Relaxed) {
            self.are_any.store(true, Ordering::Release);
        }
        mapped
    }

    /// Lets go of all instances. Whether there were any.
    pub(crate) fn forget(&self) -> bool {
        self.are_any.store(false, Ordering::Release);
        let points = self.points.get().into_iter().flatten();
        points.filter_map(AtomicCell::take).count() > 0
    }
}

impl MappedPoint {
    /// The same, for many tasks: where fields are is found out now.
    pub(crate) fn located(mut self) -> Self {
        self.places = Some(KnownPlaces::default());
        self.physical.iter_mut().for_each(|region| region.locate(false));
        self
    }

    /// Whether the mapper says the same for later launches, and its choices can be taken from what there is then.
    fn holds(&self) -> bool {
        let finds = |requirement: &RequirementMapping| match requirement {
            RequirementMapping::Virtual => false,
            RequirementMapping::Instance(choices) => {
                choices.iter().all(|choice| choice.reuse != Reuse::Never && choice.keep != Keep::WhileUsed)
            }
        };
        self.mapping.validity == Validity::WhileUnchanged
            && self.mapping.requirements.iter().all(finds)
            && !self.chosen.needs_homes()
            && !self.chosen.has_read_only()
    }
}
