//! The state that the points of a launch share, and counts of the points until all have ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use maniple_mapper::{RequirementInfo, TaskInfo};
use maniple_realm::Event;
use maniple_region::Provenance;
use maniple_space::AnyPoint;

use crate::context::{ContextState, Submission};
use crate::instances::validity::Preconditions;
use crate::launch::recording::Recording;
use crate::launch::{LaunchSite, StrictLaunch, TaskLaunch};
use crate::mapping::Whom;
use crate::migration::Share;
use crate::operation::lifecycle::Operation;
use crate::results::{Input, Results, Sources};
use crate::support::error::{Error, Result};
use crate::support::profiling::LaunchLabels;
use crate::task::Value;
use crate::task::arguments::Arguments;

/// The state that the points of a launch share.
pub(crate) struct TaskState {
    pub(crate) site: Arc<LaunchSite>,
    pub(crate) arguments: Arguments,
    sources: Sources,
    pub(crate) context: Arc<ContextState>,
    /// The launch's place among those of the context: what was destroyed before has a lower number.
    pub(crate) number: u64,
    results: Arc<Results>,
    pub(super) sequence: u64,
    /// The execution fence before the launch.
    barrier: Event,
    /// Points that have not ended; and one more, in a recording, until all have been mapped: it is complete then.
    unfinished: AtomicUsize,
    /// Points that have not been mapped; virtually mapped ones count until they end.
    unmapped: AtomicUsize,
    failed: AtomicBool,
    /// Whether its tasks may go to other nodes with their data: not those of a program that runs on all nodes, whose
    /// points are dealt to them already.
    pub(crate) is_mobile: bool,
    /// How many other nodes have run.
    elsewhere: AtomicU64,
    /// The share of its leaf tasks that a thief is being given.
    pub(crate) share: Share,
    /// The recording of a trace that the launch is part of, and its number there.
    pub(super) recorded: Option<(Arc<Recording>, u32)>,
    /// The findings of strict traces that mapping may add to.
    pub(super) strict: StrictLaunch,
    /// The place in the program at which it was launched.
    pub(crate) launched: Option<Provenance>,
    /// There if the launch is recorded in a profile.
    pub(crate) labels: Option<LaunchLabels>,
}

impl TaskState {
    /// Of a launch that is about to be mapped.
    pub(crate) fn new(
        context: &Arc<ContextState>,
        launch: TaskLaunch,
        submission: &Submission,
        results: &Arc<Results>,
        recorded: Option<(Arc<Recording>, u32)>,
    ) -> Arc<Self> {
        let TaskLaunch { site, arguments, sources, strict, launched, number } = launch;
        let points = site.points.volume() as usize;
        let results = Arc::clone(results);
        let has_others = context.core.migration().is_some_and(|migration| migration.nodes() > 1);
        let is_mobile =
            has_others && !context.is_replicated() && site.definition.migratable().is_some() && site.over.is_none();
        let labels = context
            .core
            .profiler()
            .map(|profiler| LaunchLabels::new(profiler, site.name(), site.shown_domain().as_ref(), launched.as_ref()));
        Arc::new(Self {
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
            launched,
            labels,
        })
    }

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

    /// The preconditions of a point: its arguments that are futures, and the fence before.
    pub(super) fn start_of(&self, point: AnyPoint) -> Preconditions {
        let mut start = Preconditions::default();
        self.add_start_of(point, &mut start);
        start
    }

    /// Adds what a point comes after.
    pub(super) fn add_start_of(&self, point: AnyPoint, after: &mut Preconditions) {
        self.sources.iter().for_each(|source| after.need(source.end_at(point)));
        after.follow(self.barrier);
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
    pub(super) fn takes_per_point(&self) -> bool {
        self.sources.iter().any(Input::is_per_point)
    }

    /// The preconditions of all points, if they [take](Self::takes_per_point) the same.
    pub(crate) fn start(&self) -> Preconditions {
        let mut start = Preconditions::default();
        self.sources.iter().for_each(|source| start.need(source.end()));
        start.follow(self.barrier);
        start
    }

    /// The mapper that is asked about it.
    pub(crate) fn whom(&self) -> Whom {
        self.context.whom(self.site.mapper)
    }

    /// Tells the mapper when and where a task ran.
    pub(crate) fn report(&self, profile: &maniple_mapper::TaskProfile) {
        self.context.report(self.site.mapper, self.name(), profile);
    }

    pub(super) fn point_mapped(&self, operation: &Operation) {
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

    /// Ends points that can't be mapped. No state may be locked: code that hears of a failure may do anything.
    pub(crate) fn fail_points(&self, operation: &Arc<Operation>, failed: Vec<(AnyPoint, Error)>) {
        for (point, error) in failed {
            self.point_mapped(operation);
            self.point_ended(operation, self.index(point), Err(error.launched_at(self.launched.as_ref())));
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
        error.of_task(self.name(), self.shown_point(point), self.launched.as_ref())
    }

    /// The error behind a fault, with this task's name and point.
    pub(crate) fn blame_fault(&self, fault: &maniple_realm::Fault, point: AnyPoint) -> Error {
        Error::of_fault_in(fault, self.name(), self.shown_point(point), self.launched.as_ref())
    }
}
