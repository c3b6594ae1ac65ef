//! Task launches as operations: sliced, mapped point by point, issued, and gathered when they end.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use maniple_mapper::{MappingFailure, NodeSlice, RequirementInfo, Slice, TaskInfo, TaskMapping};
use maniple_realm::{Class, Event, Spawn, Target, fault, pressure};
use maniple_record::{Kind, OperationNumber, Place, Task, Usage};
use maniple_region::{Privilege, Target as DataTarget};
use maniple_space::{AnyPoint, AnyRect};

use crate::context::{ContextState, Submission};
use crate::core::Chance;
use crate::error::{Error, Result};
use crate::launch::{LaunchSite, check_point};
use crate::mapping::MAPPING_ATTEMPTS;
use crate::mapping::answer::{check_slices, checked};
use crate::mapping::decisions::MappedPoint;
use crate::mapping::lookup::Lookup;
use crate::mapping::point::{Again, LockedStates, PointError, PointMapping};
use crate::mapping::regions::Regions;
use crate::migration::{Batch, Share};
use crate::operation::{Mappable, Operation};
use crate::physical::bound::Bound;
use crate::physical::issuing::Issuing;
use crate::physical::movement::Preconditions;
use crate::physical::places::{KnownPlaces, Places};
use crate::physical::preparation::Preparation;
use crate::placement::PhysicalRegion;
use crate::point_task::{ContextTask, LeafTask, PointTask};
use crate::profiling::{LaunchLabels, MAPPING};
use crate::remote::{AwaySlices, Division};
use crate::results::{Input, Results, Sources};
use crate::task::arguments::Arguments;
use crate::task::{Body, Value};
use crate::trace::{PointRecorder, Problem, Recording, StrictLaunch};

/// What was launched.
pub(crate) struct TaskLaunch {
    pub(crate) site: Arc<LaunchSite>,
    pub(crate) arguments: Arguments,
    pub(crate) sources: Sources,
    pub(crate) strict: StrictLaunch,
    /// Its place among the launches of its context.
    pub(crate) number: u64,
}

/// A launch in flight: see [`TaskState`], which its points share.
pub(crate) struct TaskOperation(Arc<TaskState>);

/// What the points of a launch share.
pub(crate) struct TaskState {
    pub(crate) site: Arc<LaunchSite>,
    pub(crate) arguments: Arguments,
    sources: Sources,
    pub(crate) context: Arc<ContextState>,
    /// The launch's place among those of the context: what was destroyed before has a lower number.
    pub(crate) number: u64,
    results: Arc<Results>,
    sequence: u64,
    /// The execution fence before the launch.
    barrier: Event,
    /// Points that have not ended; and one more, in a recording, until all have been mapped: it is complete then.
    unfinished: AtomicUsize,
    /// Points that have not been mapped; virtually mapped ones count until they end.
    unmapped: AtomicUsize,
    failed: AtomicBool,
    /// Whether its tasks may go to other nodes with their data: not those of a program that runs on all nodes, whose points are dealt to them already.
    pub(crate) is_mobile: bool,
    /// How many other nodes have run.
    elsewhere: AtomicU64,
    /// What a thief is being given of its leaf tasks.
    pub(crate) share: Share,
    /// The recording of a trace that the launch is part of, and its number there.
    recorded: Option<(Arc<Recording>, u32)>,
    /// What strict traces want to hear of the launch.
    strict: StrictLaunch,
    /// There if the launch is recorded in a profile.
    pub(crate) labels: Option<LaunchLabels>,
}

/// Points that are mapped one after the other.
struct Part {
    points: Vec<AnyPoint>,
    /// With which others they go to another node, if they do.
    batch: Option<Arc<Batch>>,
}

impl Part {
    fn of(domain: AnyRect) -> Self {
        Self { points: domain.points().collect(), batch: None }
    }
}

impl TaskOperation {
    pub(crate) fn new(
        context: &Arc<ContextState>,
        launch: TaskLaunch,
        (submission, results): (&Submission, &Arc<Results>),
        recorded: Option<(Arc<Recording>, u32)>,
    ) -> Self {
        let TaskLaunch { site, arguments, sources, strict, number } = launch;
        let points = site.points.volume() as usize;
        let results = Arc::clone(results);
        let has_others = context.core.migration().is_some_and(|migration| migration.nodes() > 1);
        let is_mobile = has_others && context.replica.is_none() && site.definition.migratable().is_some();
        let labels = context
            .core
            .profiler()
            .map(|profiler| LaunchLabels::new(profiler, site.name(), site.shown_domain().as_ref()));
        Self(Arc::new(TaskState {
            site,
            arguments,
            sources,
            context: Arc::clone(context),
            number,
            results,
            sequence: submission.sequence,
            barrier: submission.barrier,
            unfinished: AtomicUsize::new(points + usize::from(recorded.is_some())),
            unmapped: AtomicUsize::new(points),
            failed: AtomicBool::new(false),
            is_mobile,
            elsewhere: AtomicU64::new(0),
            share: Share::default(),
            recorded,
            strict,
            labels,
        }))
    }
}

impl Mappable for TaskOperation {
    fn name(&self) -> &str {
        self.0.site.name()
    }

    fn points(&self) -> u64 {
        self.0.site.points.volume()
    }

    fn map(&self, operation: &Arc<Operation>) {
        let state = &self.0;
        if state.site.points.is_empty() {
            operation.mark_mapped();
            operation.retire(Ok(()));
            return;
        }
        match state.slices() {
            Ok((slices, away)) => {
                if let (Some((recording, _)), false) = (&state.recorded, away.is_empty()) {
                    recording.fail(Problem::RunsElsewhere);
                }
                for (slice, reason) in away {
                    match state.site.bounds.is_empty() {
                        // What differs from point to point is not sent.
                        true if state.takes_per_point() => {
                            state.map_slice_later(operation, slice.domain, Target::Near(state.context.processor));
                        }
                        true => state.send_slice(operation, slice, reason),
                        false => state.map_slice_away(operation, slice),
                    }
                }
                let Some((last, others)) = slices.split_last() else { return };
                for slice in others {
                    state.map_slice_later(operation, slice.domain, Target::Near(slice.processor));
                }
                state.map_slice(operation, Part::of(last.domain), Chance::Another);
            }
            Err(error) => {
                let points: Vec<_> = state.site.points.points().map(|point| (point, error.clone())).collect();
                state.lose(operation, &mut LockedStates::lock(&state.site.bounds), &points);
                state.fail_points(operation, points);
            }
        }
    }
}

impl TaskState {
    pub(crate) fn name(&self) -> &str {
        self.site.name()
    }

    pub(crate) fn index(&self, point: AnyPoint) -> usize {
        self.site.points.linear(point) as usize
    }

    /// The point as messages show it.
    pub(crate) fn shown_point(&self, point: AnyPoint) -> Option<AnyPoint> {
        self.site.shown_point(point)
    }

    /// The slices that are mapped here, and those that go to other nodes: the mapper's, or those that thieves get; a single launch is one.
    fn slices(&self) -> Result<(Arc<[Slice]>, AwaySlices)> {
        let (slices, away) = self.slices_as_mapped()?;
        let stolen = if away.is_empty() { self.stolen_slices() } else { None };
        stolen.map_or(Ok((slices, away)), |(here, stolen)| Ok((self.slices_of(here)?.into(), stolen)))
    }

    fn slices_as_mapped(&self) -> Result<(Arc<[Slice]>, AwaySlices)> {
        if let Some(slices) = self.site.decisions.slices() {
            return Ok((slices, Vec::new()));
        }
        if !self.site.index_launch {
            let only = Slice { domain: self.site.points, processor: self.context.processor };
            return Ok((Arc::new([only]), Vec::new()));
        }
        let Division { here, away } = self.divide()?;
        let slices: Arc<[Slice]> = match here[..] {
            [only] => self.slices_of(only)?.into(),
            _ => here.into_iter().map(|part| self.slices_of(part)).collect::<Result<Vec<_>>>()?.concat().into(),
        };
        if away.is_empty() {
            self.site.decisions.keep_slices(&slices);
        }
        Ok((slices, away))
    }

    /// The mapper's slices of points that are mapped here.
    fn slices_of(&self, domain: AnyRect) -> Result<Vec<Slice>> {
        let core = &self.context.core;
        let info = TaskInfo { domain, ..self.info(domain.lo(), &[]) };
        let seat = core.seat(self.context.processor);
        let slices = seat.call(&core.store, "slice_launch", |mapper| mapper.slice_launch(&info, core.machine()))?;
        check_slices(&slices, &domain, core.machine())?;
        Ok(slices)
    }

    /// Maps points that were to go to another node, and stay.
    pub(crate) fn map_all(self: &Arc<Self>, operation: &Arc<Operation>, domain: AnyRect) {
        self.map_slice(operation, Part::of(domain), Chance::Another);
    }

    /// Maps points that go to another node together, each when its data is there.
    fn map_slice_away(self: &Arc<Self>, operation: &Arc<Operation>, slice: NodeSlice) {
        let batch = self.context.core.migration().map(|migration| Batch::of_slice(migration, slice));
        self.map_part_later(operation, Part { batch, ..Part::of(slice.domain) }, Target::Near(self.context.processor));
    }

    pub(crate) fn info<'a>(&'a self, point: AnyPoint, requirements: &'a [RequirementInfo]) -> TaskInfo<'a> {
        TaskInfo {
            name: self.name(),
            point,
            domain: self.site.points,
            is_index_launch: self.site.index_launch,
            requirements,
            variants: self.site.definition.variants(),
            origin: self.context.processor,
            depth: self.context.depth + 1,
            tag: self.site.tag,
        }
    }

    fn map_slice_later(self: &Arc<Self>, operation: &Arc<Operation>, domain: AnyRect, target: Target) {
        self.map_part_later(operation, Part::of(domain), target);
    }

    fn map_part_later(self: &Arc<Self>, operation: &Arc<Operation>, part: Part, target: Target) {
        let (state, operation) = (Arc::clone(self), Arc::clone(operation));
        let spawn = Spawn { class: Class::Runtime, target, tag: MAPPING, ..Spawn::ANYWHERE };
        self.context.core.spawn_own("mapping a slice of a launch", spawn, move || {
            state.map_slice(&operation, part, Chance::Another);
        });
    }

    /// Maps points, in order. Points that find no room wait until another task has ended.
    fn map_slice(self: &Arc<Self>, operation: &Arc<Operation>, part: Part, chance: Chance) {
        let Part { points, batch } = part;
        let (mut full, mut failed) = (None, Vec::new());
        {
            let mut states = LockedStates::lock(&self.site.bounds);
            if let Some((recording, _)) = &self.recorded {
                recording.touch(&mut states, &self.site.bounds, self.context.core.realm());
            }
            self.refine(&mut states);
            for (done, &point) in points.iter().enumerate() {
                let map = || {
                    self.check_pressure()?;
                    self.map_point(operation, &mut states, (point, batch.as_ref()))
                };
                match self.record_mapping(point, map) {
                    Ok(()) => {}
                    Err(PointError::Fatal(error @ Error::Exhausted { .. })) => {
                        // Nor is there any for the others, and to ask for each takes time.
                        failed.extend(points[done..].iter().map(|&point| (point, error.clone())));
                        break;
                    }
                    Err(PointError::Fatal(error)) => failed.push((point, error)),
                    Err(PointError::Full(failure)) => {
                        full = Some((done, failure));
                        break;
                    }
                }
            }
            self.lose(operation, &mut states, &failed);
        }
        self.fail_points(operation, failed);
        if let Some((done, failure)) = full {
            // What was just issued will end, and may make room.
            let chance = if done > 0 { Chance::Another } else { chance };
            self.wait_for_room(operation, Part { points: points[done..].to_vec(), batch }, failure, chance);
        }
    }

    /// Refuses to map a point when there is no memory left for what is to be known of it.
    #[inline]
    fn check_pressure(&self) -> std::result::Result<(), PointError> {
        let refused = |source| Error::Exhausted { operation: self.name().to_owned(), source };
        pressure::check(1).map_err(|source| PointError::Fatal(refused(source)))
    }

    /// Maps a point by `map`, and records that in the profile.
    fn record_mapping<R>(&self, point: AnyPoint, map: impl FnOnce() -> R) -> R {
        let (Some(profiler), Some(labels)) = (self.context.core.profiler(), self.labels) else { return map() };
        let start = profiler.now_ns();
        let mapped = map();
        profiler.span(labels.mapping(self.index(point)), profiler.current(), start);
        mapped
    }

    /// Splits equivalence sets as partitions are about to use them: those that are disjoint first, which others follow.
    fn refine(&self, states: &mut LockedStates<'_>) {
        if self.site.points.volume() < 2 {
            return;
        }
        for is_disjoint in [true, false] {
            for bound in &self.site.bounds {
                if let DataTarget::Partition(partition, _) = &bound.requirement.target
                    && partition.partitioning().is_surely_disjoint() == is_disjoint
                {
                    for (fields, state) in &bound.parts {
                        states.of(state).refine(fields, partition.partitioning());
                    }
                }
            }
        }
    }

    fn wait_for_room(
        self: &Arc<Self>,
        operation: &Arc<Operation>,
        rest: Part,
        failure: MappingFailure,
        chance: Chance,
    ) {
        if chance == Chance::Another {
            self.context.core.store.counters.mapping_retries.add(1);
            let (state, operation) = (Arc::clone(self), Arc::clone(operation));
            self.context.core.starve(Box::new(move |chance| state.map_slice(&operation, rest, chance)));
            return;
        }
        // Nothing will make room: this point is hopeless, the others may be smaller.
        let (first, rest) = (rest.points[0], Part { points: rest.points[1..].to_vec(), ..rest });
        let asked = self.requirements_at(first).unwrap_or_default();
        let number = failure.requirement();
        let asked = (&self.site.bounds[number].requirement, asked.get(number).map(|asked| &asked.region));
        let error = Error::no_room((self.name(), self.shown_point(first)), asked, failure);
        let failed = vec![(first, error)];
        self.lose(operation, &mut LockedStates::lock(&self.site.bounds), &failed);
        self.fail_points(operation, failed);
        if !rest.points.is_empty() {
            self.map_slice(operation, rest, Chance::Last);
        }
    }

    fn map_point(
        self: &Arc<Self>,
        operation: &Arc<Operation>,
        states: &mut LockedStates<'_>,
        (point, batch): (AnyPoint, Option<&Arc<Batch>>),
    ) -> std::result::Result<(), PointError> {
        // A recording is to see all that there is to a launch.
        if self.recorded.is_none() && batch.is_none() && self.map_point_again(operation, states, point) {
            return Ok(());
        }
        let asked = self.requirements_at(point).map_err(PointError::Fatal)?;
        let (info, index) = (self.info(point, &asked), self.index(point));
        let mut attempt = 0;
        loop {
            let mapping = self.ask(states, &info).map_err(PointError::Fatal)?;
            let node = match batch {
                Some(batch) => Some(batch.node()),
                None => self.ask_for_node(&info, mapping.variant).map_err(PointError::Fatal)?,
            };
            let recorder = self.recorded.as_ref();
            let recorder = recorder.map(|(recording, stage)| {
                PointRecorder::new(recording, *stage, mapping.processor, self.context.core.realm())
            });
            let issuing = recorder.as_ref().map_or(Issuing::Live, |recorder| Issuing::Logged(recorder));
            let placed = self.placed(operation, index, (Regions::Asked(&asked), issuing));
            let mut before = self.nothing_prepared(mapping.variant, &placed);
            match placed.choose(states, &mapping.requirements, &mut before) {
                Ok(chosen) => {
                    let requirements = asked.into_iter().zip(&self.site.bounds).enumerate();
                    let physical = requirements
                        .map(|(number, (asked, bound))| PhysicalRegion::of(asked, (bound, number), &chosen));
                    let physical = physical.collect();
                    let batch = batch.cloned();
                    let mapped = MappedPoint { point, index, mapping, node, batch, chosen, physical, places: None };
                    let mapped = if mapped.batch.is_some() { Arc::new(mapped) } else { self.decided(mapped) };
                    let placed = self.placed(operation, index, (Regions::Mapped(&mapped.physical), issuing));
                    self.issue(operation, states, &mapped, (&placed, before, recorder.as_ref()));
                    return Ok(());
                }
                Err(PointError::Full(failure)) => {
                    if let Some((recording, _)) = &self.recorded {
                        // It holds on to memory.
                        recording.fail(Problem::MemoryFull);
                    }
                    self.context.core.seat(self.context.processor).tell_failure(
                        &self.context.core.store,
                        &info,
                        &failure,
                    );
                    attempt += 1;
                    if attempt == MAPPING_ATTEMPTS {
                        return Err(PointError::Full(failure));
                    }
                }
                Err(fatal) => return Err(fatal),
            }
        }
    }

    /// Maps a point as an earlier one of the same site, if what was decided about that holds.
    fn map_point_again(
        self: &Arc<Self>,
        operation: &Arc<Operation>,
        states: &mut LockedStates<'_>,
        point: AnyPoint,
    ) -> bool {
        let index = self.index(point);
        let Some(earlier) = self.site.decisions.take(index) else { return false };
        let placed = self.placed(operation, index, (Regions::Mapped(&earlier.physical), Issuing::Live));
        let mut before = self.nothing_prepared(earlier.mapping.variant, &placed);
        let Some(again) = placed.choose_again(states, &earlier, &mut before) else { return false };
        let other = match again {
            Again::Same => None,
            Again::Other(mapped) => Some(self.decided(*mapped)),
        };
        self.issue(operation, states, other.as_ref().unwrap_or(&earlier), (&placed, before, None));
        if other.is_none() {
            self.site.decisions.put_back(earlier);
        }
        true
    }

    /// A decision about a point, which is kept if it holds.
    fn decided(&self, mapped: MappedPoint) -> Arc<MappedPoint> {
        self.site.decisions.made(mapped, self.site.points.volume() as usize)
    }

    fn placed<'a>(
        &'a self,
        operation: &Operation,
        index: usize,
        (regions, issuing): (Regions<'a>, Issuing<'a>),
    ) -> PointMapping<'a> {
        PointMapping {
            store: &self.context.core.store,
            seat: self.context.core.seat(self.context.processor),
            bounds: &self.site.bounds,
            regions,
            order: (self.sequence, index as u64),
            place: operation.place(index as u64),
            may_wait: self.context.depth == 0,
            reduces_twice: &self.site.sharing.reduces_twice,
            issuing,
        }
    }

    /// What the mapper is told of the requirements at a point.
    fn requirements_at(&self, point: AnyPoint) -> Result<Vec<RequirementInfo>> {
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

    fn ask(&self, states: &mut LockedStates<'_>, info: &TaskInfo<'_>) -> Result<TaskMapping> {
        let core = &self.context.core;
        let states = RefCell::new(states);
        let regions = Regions::Asked(info.requirements);
        let lookup = Lookup { store: &core.store, bounds: &self.site.bounds, regions, states: &states };
        let seat = core.seat(self.context.processor);
        let mapping = seat.call(&core.store, "map_task", |mapper| mapper.map_task(info, &lookup))?;
        checked(mapping, info, core.machine())
    }

    /// Where what comes before a point is gathered.
    fn nothing_prepared(&self, variant: usize, placed: &PointMapping<'_>) -> Preparation {
        match (self.site.definition.body(variant), placed.issuing) {
            // On record, everything that happens is an operation.
            (Body::Leaf(_), Issuing::Live) if placed.place.is_none() => Preparation::of_leaf(),
            (Body::Leaf(_), _) => Preparation::together(),
            // It may begin before its data is there, or with part of it.
            (Body::Context(_), _) => Preparation::each(self.site.bounds.len()),
        }
    }

    /// Hands a point that has its instances to the machine, after what was prepared and what comes with that.
    fn issue(
        self: &Arc<Self>,
        operation: &Arc<Operation>,
        states: &mut LockedStates<'_>,
        mapped: &Arc<MappedPoint>,
        (placed, mut before, recorder): (&PointMapping<'_>, Preparation, Option<&PointRecorder<'_>>),
    ) {
        let MappedPoint { mapping, chosen, places, .. } = &**mapped;
        let (mut known, mut found) = (places.as_ref().map(KnownPlaces::take), Places::new());
        let found = known.as_deref_mut().unwrap_or(&mut found);
        if found.is_empty() {
            // Nearly always enough.
            found.reserve(2 * self.site.bounds.len());
        }
        placed.prepare(states, (chosen, found), &mut before);
        let start = self.start_of(mapped.point);
        let recorded = self.record(mapped, placed.place, (&start, before.after()));
        let target = if mapping.pinned { Target::On(mapping.processor) } else { Target::Near(mapping.processor) };
        let task = PointTask {
            state: Arc::clone(self),
            operation: Arc::clone(operation),
            mapped: Arc::clone(mapped),
            beginning: before.take_beginning(),
        };
        let (realm, priority) = (self.context.core.realm(), mapping.priority);
        let event = match (self.site.definition.body(mapping.variant), recorder) {
            (Body::Leaf(_), Some(recorder)) => {
                let data = before.after_mut();
                if task.goes_elsewhere() {
                    recorder.fail(Problem::RunsElsewhere);
                }
                let event = LeafTask::issue(task, (realm, target, priority), &start.and(data));
                recorder.add_point(mapped, data, event);
                event
            }
            (Body::Leaf(_), None) => {
                let after = before.after_mut();
                after.add_all(&start);
                LeafTask::issue(task, (realm, target, priority), after)
            }
            (Body::Context(_), recorder) => {
                self.strict.launches_tasks(self.name());
                if let Some(recorder) = recorder {
                    // Before it begins: one that is mapped virtually may be over, and the recording with it, by the time that it is issued.
                    recorder.fail(Problem::LaunchesTasks);
                }
                ContextTask::issue(task, (target, priority), (start, before.after()), recorded)
            }
        };
        self.context.core.store.record_end(recorded, event);
        placed.commit(states, (chosen, found), event);
        if let (Some(places), Some(known)) = (places, known) {
            places.put_back(known);
        }
        before.ends_with(event);
        if !chosen.is_virtual() {
            self.point_mapped(operation);
        }
    }

    /// What a point comes after: what it is given, and the fence before.
    fn start_of(&self, point: AnyPoint) -> Preconditions {
        let mut start = Preconditions::default();
        self.sources.iter().for_each(|source| start.need(source.end_at(point)));
        start.follow(self.barrier);
        start
    }

    /// Whether something that the points are given may still have to come, or the launch is recorded in a trace.
    pub(crate) fn waits_or_is_recorded(&self) -> bool {
        !self.sources.is_empty() || self.recorded.is_some()
    }

    /// The number of points that have not ended, more or less.
    pub(crate) fn unfinished(&self) -> usize {
        self.unfinished.load(Ordering::Relaxed)
    }

    /// Whether each point takes a result of its own.
    fn takes_per_point(&self) -> bool {
        self.sources.iter().any(Input::is_per_point)
    }

    /// What all points come after, if they [take](Self::takes_per_point) the same.
    pub(crate) fn start(&self) -> Preconditions {
        let mut start = Preconditions::default();
        self.sources.iter().for_each(|source| start.need(source.end()));
        start.follow(self.barrier);
        start
    }

    /// Records a point that is about to be issued. An inner task begins without its data.
    fn record(
        &self,
        mapped: &MappedPoint,
        place: Option<Place>,
        (start, data): (&Preconditions, &[Preconditions]),
    ) -> Option<OperationNumber> {
        let (place, variant) = (place?, &self.site.definition.variants()[mapped.mapping.variant]);
        let after = if variant.is_inner { start.clone() } else { start.clone().and(&Preconditions::all(data)) };
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

    /// Tells the mapper when and where a task ran.
    pub(crate) fn report(&self, profile: &maniple_mapper::TaskProfile) {
        self.context.report(self.name(), profile);
    }

    fn point_mapped(&self, operation: &Operation) {
        self.points_mapped(operation, 1);
    }

    /// So many points have been mapped, here or elsewhere.
    pub(crate) fn points_mapped(&self, operation: &Operation, points: usize) {
        if self.unmapped.fetch_sub(points, Ordering::AcqRel) == points {
            operation.mark_mapped();
            if self.recorded.is_some() {
                self.finish_one(operation);
            }
        }
    }

    /// What points that can't be mapped were to write is lost: whoever reads it fails too.
    fn lose(&self, operation: &Operation, states: &mut LockedStates<'_>, failed: &[(AnyPoint, Error)]) {
        if let (Some((recording, _)), false) = (&self.recorded, failed.is_empty()) {
            recording.fail(Problem::NotMapped);
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
                bound.parts.iter().for_each(|(fields, state)| states.of(state).lose(&region, fields, event));
                let (fields, privilege) = (bound.requirement.fields.clone(), bound.requirement.privilege);
                lost.push(Usage { region, fields, privilege, instances: Vec::new() });
            }
            self.context.core.store.record_loss(operation.place(self.index(*point) as u64), lost);
        }
    }

    /// Ends points that can't be mapped. No state may be locked: who hears of a failure may do anything.
    pub(crate) fn fail_points(&self, operation: &Arc<Operation>, failed: Vec<(AnyPoint, Error)>) {
        for (point, error) in failed {
            self.point_mapped(operation);
            self.point_ended(operation, self.index(point), Err(error));
        }
    }

    /// A point that was mapped virtually has ended, and with it all that it launched: now it counts as mapped.
    pub(crate) fn virtual_point_ended(&self, operation: &Operation) {
        self.point_mapped(operation);
    }

    /// A point has ended. The last one ends the launch.
    pub(crate) fn point_ended(&self, operation: &Arc<Operation>, index: usize, value: Result<Value>) {
        if value.is_err() {
            self.failed.store(true, Ordering::Release);
        }
        match self.site.index_launch {
            true => self.results.point_ended(index, value),
            // Its end is that of the launch.
            false => self.results.set(index, value),
        }
        self.finish_one(operation);
    }

    fn finish_one(&self, operation: &Operation) {
        if self.unfinished.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        let elsewhere = self.elsewhere.load(Ordering::Relaxed);
        self.context.core.store.counters.tasks.add(self.site.tasks() - elsewhere);
        if !self.failed.load(Ordering::Acquire) {
            self.results.forget_sources();
            operation.retire(Ok(()));
            return;
        }
        operation.retire(self.results.first_error().map_or(Ok(()), Err));
    }

    /// Another node has run one of the points, and counts it.
    pub(crate) fn ran_elsewhere(&self) {
        // Before its end, which orders it.
        self.elsewhere.fetch_add(1, Ordering::Relaxed);
        self.context.core.store.counters.tasks_sent.add(1);
    }

    /// Another node has run a slice of so many points, or was to, and counts them.
    pub(crate) fn slice_ran_elsewhere(&self, points: u64) {
        // Before their end, which orders it.
        self.elsewhere.fetch_add(points, Ordering::Relaxed);
    }

    /// An error with this task's name and point.
    pub(crate) fn blame(&self, error: Error, point: AnyPoint) -> Error {
        error.of_task(self.name(), self.shown_point(point))
    }

    /// The error behind a fault, with this task's name and point.
    pub(crate) fn blame_fault(&self, fault: &maniple_realm::Fault, point: AnyPoint) -> Error {
        Error::of_fault(fault, self.name(), self.shown_point(point))
    }
}
