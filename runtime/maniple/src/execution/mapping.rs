//! The points of a launch mapped and issued, slice by slice.

use std::cell::RefCell;
use std::sync::Arc;

use maniple_analysis::validity::Places;
use maniple_mapper::{
    MappedInstance, MappedTask, MappingFailure, NodeSlice, RequirementInfo, TaskInfo, TaskMapping, Validity,
};
use maniple_realm::{Class, Event, Spawn, Target, fault, pressure};
use maniple_record::{Kind, OperationNumber, Place, Task, Usage};
use maniple_region::{FieldMask, Partitioning, Privilege, Target as DataTarget};
use maniple_space::{AnyPoint, AnyRect};
use smallvec::SmallVec;

use crate::core::{Chance, is_used_once};
use crate::instances::bound::Bound;
use crate::instances::issuing::Issuing;
use crate::instances::placement::{Chosen, PhysicalRegion};
use crate::instances::places::KnownPlaces;
use crate::instances::validity::{Preconditions, Preparation};
use crate::launch::recording::{PointRecorder, RecordingProblem};
use crate::launch::{LaunchSite, check_point};
use crate::mapping::MAPPING_ATTEMPTS;
use crate::mapping::answer::checked;
use crate::mapping::decisions::MappedPoint;
use crate::mapping::lookup::Lookup;
use crate::mapping::point::{Again, LockedStates, PointError, PointMapping};
use crate::mapping::regions::Regions;
use crate::migration::Batch;
use crate::operation::lifecycle::Operation;
use crate::support::error::{Error, Result};
use crate::support::profiling::MAPPING;
use crate::task::{Body, VariantRequest};

use super::mobile::issue_leaf;
use super::point::{ContextTask, PointTask};
use super::state::TaskState;
use super::variant::MapError;

/// Points that are mapped one after the other.
pub(super) struct MappingPart {
    points: SmallVec<[AnyPoint; 1]>,
    /// How many of them are mapped, or will not be.
    next: usize,
    /// With which others they go to another node, if they do.
    batch: Option<Arc<Batch>>,
}

impl MappingPart {
    pub(super) fn of(domain: AnyRect) -> Self {
        let points = if domain.volume() == 1 { SmallVec::from_buf([domain.lo()]) } else { domain.points().collect() };
        Self { points, next: 0, batch: None }
    }
}

/// Why points are not mapped now.
enum Stop {
    /// The next one needs a variant that is to be made.
    Wants(Box<VariantRequest>),
    /// The next one finds no room.
    Full,
}

impl TaskState {
    /// Maps points that were to go to another node, and stay.
    pub(crate) fn map_all(self: &Arc<Self>, operation: &Arc<Operation>, domain: AnyRect) {
        self.map_slice(operation, MappingPart::of(domain), Chance::Another);
    }

    /// Maps points that go to another node together, each when its data is there.
    pub(super) fn map_slice_away(self: &Arc<Self>, operation: &Arc<Operation>, slice: NodeSlice) {
        let batch = self.context.core.migration().map(|migration| Batch::of_slice(migration, slice));
        self.map_part_later(
            operation,
            MappingPart { batch, ..MappingPart::of(slice.domain) },
            Target::Near(self.context.processor),
        );
    }

    pub(super) fn map_slice_later(self: &Arc<Self>, operation: &Arc<Operation>, domain: AnyRect, target: Target) {
        self.map_part_later(operation, MappingPart::of(domain), target);
    }

    pub(super) fn map_part_later(self: &Arc<Self>, operation: &Arc<Operation>, part: MappingPart, target: Target) {
        let (state, operation) = (Arc::clone(self), Arc::clone(operation));
        let spawn = Spawn { class: Class::Runtime, target, tag: MAPPING, ..Spawn::ANYWHERE };
        self.context.core.spawn_own("mapping a slice of a launch", spawn, move || {
            state.map_slice(&operation, part, Chance::Another);
        });
    }

    /// Maps points, in order. Points that find no room wait until another task has ended.
    pub(super) fn map_slice(self: &Arc<Self>, operation: &Arc<Operation>, mut part: MappingPart, mut chance: Chance) {
        loop {
            match self.map_points(operation, &mut part, &mut chance) {
                None => return,
                // It may take a while, and nothing is locked here.
                Some(Stop::Wants(request)) => self.site.definition.generate(*request),
                Some(Stop::Full) => {
                    self.context.core.store.counters.mapping_retries.add(1);
                    let (state, operation) = (Arc::clone(self), Arc::clone(operation));
                    self.context.core.starve(Box::new(move |chance| state.map_slice(&operation, part, chance)));
                    return;
                }
            }
        }
    }

    /// Maps points of a part up to one that has to wait: it is the first of those that are left.
    fn map_points(
        self: &Arc<Self>,
        operation: &Arc<Operation>,
        part: &mut MappingPart,
        chance: &mut Chance,
    ) -> Option<Stop> {
        let MappingPart { points, next, batch } = part;
        let (mut stop, mut failed) = (None, Vec::new());
        {
            let mut states = LockedStates::lock(&self.site.bounds);
            if let Some((recording, _)) = &self.recorded {
                recording.touch(&mut states, &self.site.bounds, self.context.core.realm());
            }
            self.refine(&mut states);
            while let Some(&point) = points.get(*next) {
                let map = || {
                    self.check_pressure()?;
                    self.map_point(operation, &mut states, point, batch.as_ref())
                };
                match self.record_mapping(point, map) {
                    // What was just issued will end, and may make room.
                    Ok(()) => *chance = Chance::Another,
                    Err(MapError::Wants(request)) => {
                        stop = Some(Stop::Wants(request));
                        break;
                    }
                    Err(MapError::Point(PointError::Fatal(error @ Error::Exhausted { .. }))) => {
                        // Nor is there any for the others, and to ask for each takes time.
                        failed.extend(points[*next..].iter().map(|&point| (point, error.clone())));
                        *next = points.len();
                        break;
                    }
                    Err(MapError::Point(PointError::Fatal(error))) => failed.push((point, error)),
                    Err(MapError::Point(PointError::Full(failure))) => match chance {
                        Chance::Another => {
                            stop = Some(Stop::Full);
                            break;
                        }
                        // Nothing will make room: this point is hopeless, the others may be smaller.
                        Chance::Last => failed.push((point, self.no_room(point, failure))),
                    },
                }
                *next += 1;
            }
            self.lose(operation, &mut states, &failed);
        }
        self.fail_points(operation, failed);
        stop
    }

    /// Refuses to map a point when there is no memory left for what is to be known of it.
    #[inline]
    pub(super) fn check_pressure(&self) -> std::result::Result<(), PointError> {
        let refused = |source| Error::Exhausted { operation: self.name().to_owned(), source };
        pressure::check(1).map_err(|source| PointError::Fatal(refused(source)))
    }

    /// Maps a point by `map`, and records that in the profile.
    pub(super) fn record_mapping<R>(&self, point: AnyPoint, map: impl FnOnce() -> R) -> R {
        let (Some(profiler), Some(labels)) = (self.context.core.profiler(), self.labels) else { return map() };
        let start = profiler.now_ns();
        let mapped = map();
        profiler.span(labels.mapping(self.index(point)), profiler.current(), start);
        mapped
    }

    /// Splits equivalence sets as partitions are about to use them: those that are disjoint first, which others follow.
    pub(super) fn refine(&self, states: &mut LockedStates<'_>) {
        if self.site.points.volume() < 2 {
            return;
        }
        let mut refine = |bound: &Bound, partition: &Arc<Partitioning>| {
            for (fields, state) in &bound.parts {
                states.of(state).validity.refine(fields, partition);
            }
        };
        let mut others: SmallVec<[_; 4]> = SmallVec::new();
        for bound in &self.site.bounds {
            if let DataTarget::Partition(partition, _) = &bound.requirement.target {
                match partition.partitioning().is_surely_disjoint() {
                    true => refine(bound, partition.partitioning()),
                    false => others.push((bound, partition.partitioning())),
                }
            }
        }
        others.into_iter().for_each(|(bound, partition)| refine(bound, partition));
    }

    fn no_room(&self, point: AnyPoint, failure: MappingFailure) -> Error {
        let (asked, number) = (self.requirements_at(point).unwrap_or_default(), failure.requirement());
        let region = asked.get(number).map(|asked| &asked.region);
        let requirement = &self.site.bounds[number].requirement;
        Error::no_room(self.name(), self.shown_point(point), requirement, region, failure)
    }

    pub(super) fn map_point(
        self: &Arc<Self>,
        operation: &Arc<Operation>,
        states: &mut LockedStates<'_>,
        point: AnyPoint,
        batch: Option<&Arc<Batch>>,
    ) -> std::result::Result<(), MapError> {
        // A recording is to see all that there is to a launch.
        if self.recorded.is_none() && batch.is_none() && self.map_point_again(operation, states, point) {
            return Ok(());
        }
        let asked = self.requirements_at(point).map_err(PointError::Fatal)?;
        let (info, index) = (self.info(point, &asked), self.index(point));
        let mut attempt = 0;
        loop {
            let mut mapping = self.ask(states, &info).map_err(PointError::Fatal)?;
            let target = self.context.core.target_of(self.name(), &mapping);
            let (target, is_bound) = target.map_err(PointError::Fatal)?;
            let mut node = match batch {
                Some(batch) => Some(batch.node()),
                None if mapping.any_variant => None,
                None => self.ask_for_node(&info, mapping.variant).map_err(PointError::Fatal)?,
            };
            let recorder = self.recorded.as_ref();
            let recorder = recorder.map(|(recording, stage)| {
                PointRecorder::new(recording, *stage, mapping.processor, self.context.core.realm())
            });
            let issuing = recorder.as_ref().map_or(Issuing::Live, |recorder| Issuing::Logged(recorder));
            let placed = self.placed(operation, index, Regions::Asked(&asked), issuing);
            let mut before = self.nothing_prepared(self.is_leaf(&info, &mapping), &placed);
            match placed.choose(states, &mapping.requirements, &mut before) {
                Ok(chosen) => {
                    if mapping.any_variant {
                        let fitting = self.fitting(&info, &mapping, &chosen).and_then(|variant| {
                            let node = if batch.is_none() { self.ask_for_node(&info, variant)? } else { node };
                            Ok((variant, node))
                        });
                        match fitting {
                            Ok((variant, selected)) => {
                                (mapping.variant, mapping.any_variant, node) = (variant, false, selected);
                            }
                            Err(unfit) => {
                                placed.take_back(states, &chosen);
                                let failure = unfit.failure()?;
                                self.tell_failure(&info, &failure);
                                attempt += 1;
                                if attempt == MAPPING_ATTEMPTS {
                                    return Err(PointError::Fatal(self.no_variant(&mapping, &failure)).into());
                                }
                                continue;
                            }
                        }
                    }
                    if mapping.report {
                        self.tell_mapped(states, &info, &mapping, &chosen);
                    }
                    let requirements = asked.into_iter().zip(&self.site.bounds).enumerate();
                    let physical =
                        requirements.map(|(number, (asked, bound))| PhysicalRegion::of(asked, bound, number, &chosen));
                    let physical = physical.collect();
                    let batch = batch.cloned();
                    let (copy_priority, is_brief) =
                        (mapping.copy_priority, mapping.requirements.iter().any(is_used_once));
                    let is_counted = mapping.validity == Validity::Once && self.recorded.is_none();
                    let counted = is_counted.then(|| self.context.core.store.loads.count(mapping.processor)).flatten();
                    let mapped = MappedPoint {
                        point,
                        index,
                        mapping,
                        target,
                        is_bound,
                        node,
                        batch,
                        chosen,
                        physical,
                        places: None,
                        _counted: counted,
                    };
                    let mapped = if mapped.batch.is_some() { Arc::new(mapped) } else { self.decided(mapped) };
                    let placed = self.placed(operation, index, Regions::Mapped(&mapped.physical), issuing);
                    let placed = PointMapping { copy_priority, ..placed };
                    let ended = self.issue(operation, states, &mapped, &placed, before, recorder.as_ref());
                    if is_brief {
                        self.context.core.release_after(ended, &self.site.bounds);
                    }
                    return Ok(());
                }
                Err(PointError::Full(failure)) => {
                    if let Some((recording, _)) = &self.recorded {
                        // It holds on to memory.
                        recording.fail(RecordingProblem::MemoryFull);
                    }
                    self.tell_failure(&info, &failure);
                    attempt += 1;
                    if attempt == MAPPING_ATTEMPTS {
                        return Err(PointError::Full(failure).into());
                    }
                }
                Err(fatal) => return Err(fatal.into()),
            }
        }
    }

    /// Maps a point as an earlier one of the same site, if what was decided about that holds.
    pub(super) fn map_point_again(
        self: &Arc<Self>,
        operation: &Arc<Operation>,
        states: &mut LockedStates<'_>,
        point: AnyPoint,
    ) -> bool {
        let index = self.index(point);
        let Some(earlier) = self.site.decisions.take(index) else { return false };
        let placed = self.placed(operation, index, Regions::Mapped(&earlier.physical), Issuing::Live);
        let placed = PointMapping { copy_priority: earlier.mapping.copy_priority, ..placed };
        let is_leaf = matches!(self.site.definition.body(earlier.mapping.variant), Body::Leaf(_));
        let mut before = self.nothing_prepared(is_leaf, &placed);
        let Some(again) = placed.choose_again(states, &earlier, &mut before) else { return false };
        let other = match again {
            Again::Same => None,
            Again::Other(mapped) => Some(self.decided(*mapped)),
        };
        self.issue(operation, states, other.as_ref().unwrap_or(&earlier), &placed, before, None);
        if other.is_none() {
            self.site.decisions.put_back(earlier);
        }
        true
    }

    /// A decision about a point, which is kept if it holds.
    pub(super) fn decided(&self, mapped: MappedPoint) -> Arc<MappedPoint> {
        self.site.decisions.made(mapped, self.site.points.volume() as usize)
    }

    pub(super) fn placed<'a>(
        &'a self,
        operation: &Operation,
        index: usize,
        regions: Regions<'a>,
        issuing: Issuing<'a>,
    ) -> PointMapping<'a> {
        PointMapping {
            store: &self.context.core.store,
            seat: self.context.core.seat(self.whom()),
            bounds: &self.site.bounds,
            regions,
            order: (self.sequence, index as u64),
            place: operation.place(index as u64),
            may_wait: self.context.may_wait_for_any(),
            reduces_twice: &self.site.sharing.reduces_twice,
            issuing,
            copy_priority: 0,
        }
    }

    /// The requirements at a point, as the mapper is told of them.
    pub(super) fn requirements_at(&self, point: AnyPoint) -> Result<Vec<RequirementInfo>> {
        let LaunchSite { bounds, sharing, domain, .. } = &*self.site;
        let project = || {
            let mut requirements = Vec::with_capacity(bounds.len());
            for (Bound { requirement, .. }, &is_shared) in bounds.iter().zip(&sharing.shared) {
                let region = requirement.target.region_at(point, domain)?;
                if region.space().known_shape().is_none() {
                    // A projection that answered otherwise before.
                    let problem = format!(
                        "at point {point} a projection names {region}, whose points are not known on this node; a projection must name the \
                         same region each time it is asked"
                    );
                    return Err(Error::launch(self.name(), problem));
                }
                let (fields, privilege) = (requirement.fields.clone(), requirement.privilege);
                requirements.push(RequirementInfo { region, fields, privilege, is_shared });
            }
            Ok::<_, Error>(requirements)
        };
        let requirements = fault::catch(project).map_err(|fault| self.blame_fault(&fault, point))??;
        check_point(self.name(), bounds, &requirements)?;
        Ok(requirements)
    }

    pub(super) fn ask(&self, states: &mut LockedStates<'_>, info: &TaskInfo<'_>) -> Result<TaskMapping> {
        let core = &self.context.core;
        let states = RefCell::new(states);
        let regions = Regions::Asked(info.requirements);
        let mail = core.mail_of(self.whom());
        let lookup = Lookup { store: &core.store, bounds: &self.site.bounds, regions, states: &states, mail: &mail };
        let seat = core.seat(self.whom());
        let mut mapping = seat.call(&core.store, "map_task", |mapper| mapper.map_task(info, &lookup))?;
        mapping.any_variant |= self.lacks_variant(info, &mapping);
        checked(mapping, info, core.machine())
    }

    /// Tells the mapper which instances a task got.
    fn tell_mapped(&self, states: &mut LockedStates<'_>, info: &TaskInfo<'_>, mapping: &TaskMapping, chosen: &Chosen) {
        let mut requirements = vec![Vec::new(); info.requirements.len()];
        if let Chosen::Instances(selections) = chosen {
            for selection in selections {
                let (number, part) = selection.place;
                let (region, data) =
                    (&info.requirements[number].region, states.of(&self.site.bounds[number].parts[part].1));
                for (fields, instance) in &selection.instances {
                    let valid = match instance.reduction() {
                        None => data.validity.valid_fields(region, fields, instance),
                        Some(_) => FieldMask::new(),
                    };
                    let is_new = selection.has_made(instance);
                    requirements[number].push(MappedInstance { instance: instance.info(valid), is_new });
                }
            }
        }
        let mapped = MappedTask { processor: mapping.processor, variant: mapping.variant, requirements };
        let core = &self.context.core;
        core.seat(self.whom()).tell_mapped(&core.store, info, &mapped);
    }

    /// An empty preparation of a point, in which the events that the point comes after are gathered.
    pub(super) fn nothing_prepared(&self, is_leaf: bool, placed: &PointMapping<'_>) -> Preparation {
        match (is_leaf, placed.issuing) {
            // On record, everything that happens is an operation.
            (true, Issuing::Live) if placed.place.is_none() => Preparation::with_beginning(),
            (true, _) => Preparation::together(),
            // It may begin before its data is there, or with part of it.
            (false, _) => Preparation::each(self.site.bounds.len()),
        }
    }

    fn tell_failure(&self, info: &TaskInfo<'_>, failure: &MappingFailure) {
        self.context.core.seat(self.whom()).tell_failure(&self.context.core.store, info, failure);
    }

    /// Hands a point that has its instances to the machine, after what was prepared and what comes with that. Gives its
    /// end.
    pub(super) fn issue(
        self: &Arc<Self>,
        operation: &Arc<Operation>,
        states: &mut LockedStates<'_>,
        mapped: &Arc<MappedPoint>,
        placed: &PointMapping<'_>,
        mut before: Preparation,
        recorder: Option<&PointRecorder<'_>>,
    ) -> Event {
        let MappedPoint { mapping, target, chosen, places, .. } = &**mapped;
        let (mut known, mut found) = (places.as_ref().map(KnownPlaces::take), Places::new());
        let found = known.as_deref_mut().unwrap_or(&mut found);
        if found.is_empty() {
            // Nearly always enough.
            found.reserve(2 * self.site.bounds.len());
        }
        placed.prepare(states, chosen, found, &mut before);
        let recorded =
            placed.place.and_then(|place| self.record(mapped, place, self.start_of(mapped.point), before.after()));
        let task = PointTask {
            state: Arc::clone(self),
            operation: Arc::clone(operation),
            mapped: Arc::clone(mapped),
            beginning: before.take_beginning(),
        };
        let (realm, target, priority) = (self.context.core.realm(), *target, mapping.priority);
        let event = match (self.site.definition.body(mapping.variant), recorder) {
            (Body::Leaf(_), Some(recorder)) => {
                let data = before.after_mut();
                if task.migrates() {
                    recorder.fail(RecordingProblem::RunsElsewhere);
                }
                let event = issue_leaf(task, realm, target, priority, &self.start_of(mapped.point).and(data));
                recorder.add_point(mapped, data, event);
                event
            }
            (Body::Leaf(_), None) => {
                let after = before.after_mut();
                self.add_start_of(mapped.point, after);
                issue_leaf(task, realm, target, priority, after)
            }
            (Body::Context(_), recorder) => {
                self.strict.launches_tasks(self.name());
                if let Some(recorder) = recorder {
                    // Before it begins: one that is mapped virtually may be over, and the recording with it, by the
                    // time that it is issued.
                    recorder.fail(RecordingProblem::LaunchesTasks);
                }
                let start = self.start_of(mapped.point);
                ContextTask::issue(task, target, priority, start, before.after(), recorded)
            }
        };
        self.context.core.store.record_end(recorded, event);
        placed.commit(states, chosen, found, event);
        if let (Some(places), Some(known)) = (places, known) {
            places.put_back(known);
        }
        before.ends_with(event);
        if !chosen.is_virtual() {
            self.point_mapped(operation);
        }
        event
    }

    /// Records a point that is about to be issued. An inner task begins without its data.
    pub(super) fn record(
        &self,
        mapped: &MappedPoint,
        place: Place,
        start: Preconditions,
        data: &[Preconditions],
    ) -> Option<OperationNumber> {
        let variant = self.site.definition.info(mapped.mapping.variant);
        let after = if variant.is_inner { start } else { start.and(&Preconditions::all(data)) };
        self.context.core.store.record(Some(place.parent), &after, || {
            Kind::Task(Task {
                place,
                name: self.name().to_owned(),
                point: self.shown_point(mapped.point),
                is_leaf: variant.is_leaf,
                usages: mapped.physical.iter().map(PhysicalRegion::usage).collect(),
            })
        })
    }

    /// Marks data as lost that points which can't be mapped were to write: a task that reads it fails too.
    pub(super) fn lose(&self, operation: &Operation, states: &mut LockedStates<'_>, failed: &[(AnyPoint, Error)]) {
        if let (Some((recording, _)), false) = (&self.recorded, failed.is_empty()) {
            recording.fail(RecordingProblem::NotMapped);
        }
        let mut exhausted = None;
        for (point, error) in failed {
            let poisoned = || self.context.core.store.poisoned(error.clone());
            let event = match error {
                Error::Exhausted { .. } => *exhausted.get_or_insert_with(poisoned),
                _ => poisoned(),
            };
            let (asked, mut lost) = (self.requirements_at(*point).ok(), Vec::new());
            let changed = self.site.bounds.iter().enumerate();
            for (number, bound) in changed.filter(|(_, bound)| bound.requirement.privilege != Privilege::Read) {
                // Without an answer of the projections, it may be anything.
                let target = &bound.requirement.target;
                let region = asked.as_ref().map_or_else(|| target.bound(), |asked| asked[number].region.clone());
                bound.parts.iter().for_each(|(fields, state)| states.of(state).validity.lose(&region, fields, event));
                let (fields, privilege) = (bound.requirement.fields.clone(), bound.requirement.privilege);
                lost.push(Usage { region, fields, privilege, instances: Vec::new() });
            }
            self.context.core.store.record_loss(operation.place(self.index(*point) as u64), lost);
        }
    }
}
