//! Tests of panics anywhere in a program: every run ends, with an error that says what panicked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context as TaskContext, Wake, Waker};

use maniple::mapper::{
    DefaultMapper, InstanceChoice, InstanceInfo, MappedTask, Mapper, MappingContext, MappingFailure, ReadyOperation,
    ReductionPlace, RequirementInfo, RequirementMapping, Reuse, Slice, TaskInfo, TaskMapping, TaskProfile, Tunable,
    Validity,
};
use maniple::prelude::*;
use maniple::record::{Violation, check};
use maniple::{
    AnyPoint, AnyRect, CustomProjection, LogicalRegion, Machine, ProcessorId, Projection, ReductionOperator,
    RegionError, UpperBound, register_reduction,
};

#[derive(Fields)]
struct Cell {
    value: i64,
}

#[task(leaf)]
fn add(#[writes(value)] cells: Piece<Cell>, amount: i64) {
    cells.points().for_each(|point| cells.value[point] += amount);
}

#[task(leaf)]
fn total(#[reads(value)] cells: Piece<Cell>) -> i64 {
    cells.points().map(|point| cells.value[point]).sum()
}

/// How a loop is run.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Loop {
    Untraced,
    Traced,
    Found,
}

const LOOPS: [Loop; 3] = [Loop::Untraced, Loop::Traced, Loop::Found];

fn builder(kind: Loop) -> maniple::RuntimeBuilder {
    Runtime::builder().workers(2).tracing(kind != Loop::Untraced).automatic_tracing(kind == Loop::Found)
}

impl Loop {
    fn step(self, cx: &Context, step: impl FnOnce(&Context)) {
        match self {
            Self::Traced => cx.trace("step", step),
            Self::Untraced | Self::Found => step(cx),
        }
    }
}

const STEPS: usize = 200;

// ---- The runtime itself ----

struct Bomb;

impl Wake for Bomb {
    fn wake(self: Arc<Self>) {
        panic!("on purpose");
    }
}

#[task]
async fn never(_cx: &Context, never: Arc<Never>) {
    std::future::poll_fn(|context| {
        // Another thread might wake it.
        *never.waker.lock().unwrap() = Some(context.waker().clone());
        std::task::Poll::<()>::Pending
    })
    .await;
}

#[derive(Default)]
struct Never {
    waker: std::sync::Mutex<Option<Waker>>,
}

#[task(leaf)]
fn nothing(#[reads(value)] _cells: Piece<Cell>) {}

/// Runs a program during which something panics of which no task would hear, while a task is under way.
fn break_down(runtime: &Runtime) -> Error {
    let kept = Arc::new(Never::default());
    let outcome = runtime.run(async |cx| {
        let forever = cx.launch(never(Arc::clone(&kept)));
        let cells = cx.region::<Cell>(4)?;
        let mut future = Box::pin(cx.launch(nothing(&cells)).into_future());
        let waker = Waker::from(Arc::new(Bomb));
        // If it has ended already, another one has not.
        while future.as_mut().poll(&mut TaskContext::from_waker(&waker)).is_ready() {
            future = Box::pin(cx.launch(nothing(&cells)).into_future());
        }
        forever.await
    });
    outcome.unwrap_err()
}

#[test]
fn a_panic_of_which_no_task_would_hear_ends_the_run_and_all_later_ones() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let error = break_down(&runtime);
    assert!(matches!(&error, Error::BrokenDown { during, .. } if during.contains("waker")), "{error}");
    assert!(error.to_string().contains("on purpose") && error.to_string().contains("panics.rs"), "{error}");
    let again = runtime.run(async |_| Ok(()));
    assert!(matches!(again, Err(Error::BrokenDown { .. })), "{again:?}");
}

#[test]
fn the_record_of_a_run_that_broke_down_proves_nothing_as_it_waited_for_nobody() {
    let runtime = Runtime::builder().workers(2).record_operations(true).build().unwrap();
    break_down(&runtime);
    let outcome = check(&runtime.take_record());
    assert!(matches!(outcome, Err(Violation::Unfinished { .. })), "{outcome:?}");
}

// ---- Mappers ----

/// Panics in one call, from the so manyth on.
#[derive(Clone)]
struct Panics {
    call: &'static str,
    calls: Arc<AtomicUsize>,
    from: usize,
    inner: DefaultMapper,
}

impl Panics {
    fn new(call: &'static str, from: usize) -> Self {
        Self { call, calls: Arc::default(), from, inner: DefaultMapper::new() }
    }

    fn called(&self, call: &str) {
        if self.call == call {
            assert!(self.calls.fetch_add(1, Ordering::SeqCst) < self.from, "on purpose");
        }
    }
}

impl Mapper for Panics {
    fn name(&self) -> &str {
        self.called("name");
        "panics"
    }

    fn slice_launch(&mut self, launch: &TaskInfo<'_>, machine: &Machine) -> Vec<Slice> {
        self.called("slice_launch");
        self.inner.slice_launch(launch, machine)
    }

    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        self.called("map_task");
        // So that there is always a question about the name.
        assert!(self.call != "name", "on purpose");
        let requirement = self.map_requirement(task, 0, task.origin, 0, context);
        let mapping = self.inner.map_task(task, context);
        let validity = self.validity(task);
        TaskMapping {
            requirements: vec![requirement; task.requirements.len()],
            profile: true,
            report: true,
            validity,
            ..mapping
        }
    }

    fn map_requirement(
        &mut self,
        _: &TaskInfo<'_>,
        _: usize,
        processor: ProcessorId,
        _: usize,
        context: &dyn MappingContext,
    ) -> RequirementMapping {
        self.called("map_requirement");
        // A new one each time, so that values are copied.
        let memory = context.machine().memories_visible_from(processor)[0].memory;
        InstanceChoice { reuse: Reuse::Never, ..InstanceChoice::in_memory(memory) }.into()
    }

    fn map_inline(
        &mut self,
        requirement: &RequirementInfo,
        processor: ProcessorId,
        context: &dyn MappingContext,
    ) -> RequirementMapping {
        self.called("map_inline");
        self.inner.map_inline(requirement, processor, context)
    }

    fn rank_sources(&mut self, sources: &[InstanceInfo], to: &InstanceInfo, machine: &Machine) -> Vec<usize> {
        self.called("rank_sources");
        self.inner.rank_sources(sources, to, machine)
    }

    fn validity(&mut self, task: &TaskInfo<'_>) -> Validity {
        self.called("validity");
        self.inner.validity(task)
    }

    fn select_operations_to_map(&mut self, ready: &[ReadyOperation<'_>]) -> Vec<usize> {
        self.called("select_operations_to_map");
        self.inner.select_operations_to_map(ready)
    }

    fn tunable(&mut self, tunable: &Tunable<'_>, machine: &Machine) -> Option<i64> {
        self.called("tunable");
        self.inner.tunable(tunable, machine)
    }

    fn mapping_failed(&mut self, task: &TaskInfo<'_>, failure: &MappingFailure) {
        self.called("mapping_failed");
        self.inner.mapping_failed(task, failure);
    }

    fn task_mapped(&mut self, _: &TaskInfo<'_>, _: &MappedTask) {
        self.called("task_mapped");
    }

    fn task_profiled(&mut self, _: &str, _: &TaskProfile) {
        self.called("task_profiled");
    }
}

/// A loop that leads to all calls of a mapper.
fn all_calls(runtime: &Runtime, kind: Loop) -> Result<i64> {
    runtime.run(async |cx| {
        let steps = cx.tunable("steps", STEPS as i64)?;
        let cells = cx.region::<Cell>(8)?;
        let halves = cells.partition(2).equal()?;
        for _ in 0..steps {
            kind.step(cx, |cx| {
                cx.index_launch(2, add(&halves, 1));
                cx.launch(total(&cells));
            });
        }
        Ok(cx.map_read(&cells, Cell::value).await?.to_vec().iter().sum())
    })
}

#[test]
fn a_mapper_that_panics_at_any_call_makes_an_error_or_no_difference() {
    let expected = (8 * STEPS) as i64;
    for kind in LOOPS {
        for from in [0, 1, 7] {
            for call in ["name", "slice_launch", "map_task", "map_requirement", "map_inline", "validity", "tunable"] {
                let outcome = all_calls(&builder(kind).mapper(Panics::new(call, from)).build().unwrap(), kind);
                match outcome {
                    // It was not called so often.
                    Ok(sum) => assert!(sum == expected && from > 0, "{call} {kind:?} {from}"),
                    Err(error) => {
                        assert!(matches!(error, Error::Mapper { .. }), "{call} {kind:?} {from}: {error}");
                        assert!(error.to_string().contains("on purpose"), "{error}");
                    }
                }
            }
            for call in ["rank_sources", "select_operations_to_map", "task_profiled", "task_mapped", "mapping_failed"] {
                let outcome = all_calls(&builder(kind).mapper(Panics::new(call, from)).build().unwrap(), kind);
                assert_eq!(outcome.unwrap(), expected, "{call} {kind:?} {from}");
            }
        }
    }
}

#[test]
fn a_mapper_that_panics_over_the_news_that_memory_is_full_is_asked_again() {
    let machine = Machine::uniform(2, 1 << 10);
    let runtime = Runtime::builder().machine(machine).mapper(Panics::new("mapping_failed", 0)).build().unwrap();
    let outcome = runtime.run(async |cx| cx.launch(total(&cx.region::<Cell>(1 << 10)?)).await);
    assert!(matches!(outcome, Err(Error::OutOfMemory { .. })), "{outcome:?}");
}

/// Panics when it is dropped.
#[derive(Clone)]
struct LastWords(Arc<AtomicUsize>);

impl Mapper for LastWords {}

impl Drop for LastWords {
    fn drop(&mut self) {
        if Arc::strong_count(&self.0) < 4 {
            self.0.fetch_add(1, Ordering::SeqCst);
            panic!("on purpose");
        }
    }
}

#[test]
fn mappers_that_panic_when_they_are_dropped_do_not_bring_the_program_down() {
    let count = Arc::new(AtomicUsize::new(0));
    let runtime = Runtime::builder().workers(2).mapper_for({
        let count = Arc::clone(&count);
        move |_, _| Box::new(LastWords(Arc::clone(&count)))
    });
    drop(runtime.build().unwrap());
    assert!(count.load(Ordering::SeqCst) > 0);
}

// ---- Reductions ----

/// Adds, but for what it does not like.
struct Fussy;

const DISLIKED: i64 = 1 << 40;

impl ReductionOperator<i64> for Fussy {
    type Rhs = i64;

    fn identity() -> i64 {
        0
    }

    fn apply(value: &mut i64, contribution: i64) {
        assert!(contribution < DISLIKED, "on purpose");
        *value += contribution;
    }

    fn fold(into: &mut i64, contribution: i64) {
        *into += contribution;
    }
}

/// Has no identity.
struct Nihilist;

impl ReductionOperator<i64> for Nihilist {
    type Rhs = i64;

    fn identity() -> i64 {
        panic!("on purpose");
    }

    fn apply(value: &mut i64, contribution: i64) {
        *value += contribution;
    }

    fn fold(into: &mut i64, contribution: i64) {
        *into += contribution;
    }
}

#[task(leaf)]
fn contribute(#[reduces(Fussy, value)] cells: Piece<Cell>, amount: i64) {
    cells.points().for_each(|point| cells.value.fold(point, amount));
}

#[task(leaf)]
fn contribute_nothing(#[reduces(Nihilist, value)] cells: Piece<Cell>) {
    cells.points().for_each(|point| cells.value.fold(point, 1));
}

/// Reduces in buffers.
#[derive(Clone)]
struct Buffers;

impl Mapper for Buffers {
    fn map_requirement(
        &mut self,
        _: &TaskInfo<'_>,
        _: usize,
        processor: ProcessorId,
        _: usize,
        context: &dyn MappingContext,
    ) -> RequirementMapping {
        let memory = context.machine().memories_visible_from(processor)[0].memory;
        InstanceChoice { reduction: ReductionPlace::Buffer, ..InstanceChoice::in_memory(memory).whole() }.into()
    }
}

#[test]
fn an_operator_that_panics_spoils_the_values_and_says_so() {
    register_reduction::<Fussy, i64>();
    for kind in LOOPS {
        for bad in [0, 3, STEPS - 1] {
            let runtime = builder(kind).mapper(Buffers).build().unwrap();
            let outcome = runtime.run(async |cx| {
                let cells = cx.region::<Cell>(8)?;
                let halves = cells.partition(2).equal()?;
                cx.fill(&cells, Cell::value, 0)?;
                for step in 0..STEPS {
                    kind.step(cx, |cx| {
                        cx.index_launch(2, contribute(&halves, if step == bad { DISLIKED } else { 1 }));
                        cx.index_launch(2, add(&halves, 1));
                    });
                }
                cx.launch(total(&cells)).await
            });
            let error = outcome.unwrap_err();
            let is_expected = matches!(&error, Error::ReductionPanicked { operator, message, .. } if operator.contains("Fussy") && message == "on purpose");
            assert!(is_expected, "{kind:?} {bad}: {error}");
            if bad == STEPS - 1 {
                assert_eq!(runtime.statistics().replays > 0, kind != Loop::Untraced, "{kind:?}");
            }
        }
    }
}

#[test]
fn an_operator_whose_identity_panics_makes_an_error() {
    register_reduction::<Nihilist, i64>();
    for kind in LOOPS {
        let runtime = builder(kind).mapper(Buffers).build().unwrap();
        let outcome = runtime.run(async |cx| {
            let cells = cx.region::<Cell>(8)?;
            for _ in 0..STEPS {
                kind.step(cx, |cx| {
                    cx.launch(contribute_nothing(&cells));
                });
            }
            cx.launch(total(&cells)).await
        });
        let error = outcome.unwrap_err();
        assert!(error.to_string().contains("on purpose"), "{kind:?}: {error}");
    }
}

// ---- Projections ----

struct Moody {
    calls: AtomicUsize,
    from: usize,
}

impl Moody {
    fn ask(&self) {
        assert!(self.calls.fetch_add(1, Ordering::SeqCst) < self.from, "on purpose");
    }
}

struct Custom(Moody);

impl CustomProjection for Custom {
    fn project(&self, bound: UpperBound<'_>, point: AnyPoint, _: &AnyRect) -> Result<LogicalRegion, RegionError> {
        self.0.ask();
        let UpperBound::Partition(partition) = bound else { unreachable!("it is used with one") };
        partition.piece(point)
    }
}

#[test]
fn a_projection_that_panics_fails_the_launch() {
    for kind in LOOPS {
        for from in [0, 1, 2, 3, 5, 50] {
            for custom in [false, true] {
                let runtime = builder(kind).build().unwrap();
                let outcome = runtime.run(async |cx| {
                    let cells = cx.region::<Cell>(8)?;
                    let halves = cells.partition(2).equal()?;
                    let moody = Moody { calls: AtomicUsize::new(0), from };
                    let projection = match custom {
                        true => Projection::Custom(Arc::new(Custom(moody))),
                        false => Projection::Color(Arc::new(move |point| {
                            moody.ask();
                            point
                        })),
                    };
                    for _ in 0..STEPS {
                        kind.step(cx, |cx| {
                            cx.index_launch(2, add(halves.project_by(projection.clone()), 1));
                        });
                    }
                    Ok(())
                });
                let error = outcome.unwrap_err();
                let is_expected = matches!(&error, Error::Region(RegionError::ProjectionPanicked { .. }));
                assert!(is_expected && error.to_string().contains("on purpose"), "{kind:?} {from} {custom}: {error}");
            }
        }
    }
}

fn zeros(cx: &Context) -> Result<Region<Cell>> {
    let cells = cx.region::<Cell>(8)?;
    cx.fill(&cells, Cell::value, 0)?;
    Ok(cells)
}

/// `RUST_BACKTRACE` is looked at once in a process: so this test runs itself with it, in another one.
#[test]
fn call_stacks_are_no_part_of_messages() {
    if std::env::var_os("RUST_BACKTRACE").is_none_or(|value| value != "full") {
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "panics::call_stacks_are_no_part_of_messages"]).env("RUST_BACKTRACE", "full");
        let output = again.env_remove("RUST_LIB_BACKTRACE").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    type Program = fn(&Context) -> Result<maniple::Future<i64>>;
    let programs: [(&str, bool, Program); 6] = [
        ("a color projection", true, |cx| {
            let halves = zeros(cx)?.partition(2).equal()?;
            let projection = Projection::Color(Arc::new(|_| panic!("on purpose")));
            cx.index_launch(2, add(halves.project_by(projection), 1));
            Ok(cx.launch(total(&zeros(cx)?)))
        }),
        ("a projection of one's own", true, |cx| {
            let halves = zeros(cx)?.partition(2).equal()?;
            let projection = Projection::Custom(Arc::new(Custom(Moody { calls: AtomicUsize::new(0), from: 0 })));
            cx.index_launch(2, add(halves.project_by(projection), 1));
            Ok(cx.launch(total(&zeros(cx)?)))
        }),
        ("a function of a future", true, |cx| Ok(cx.launch(total(&zeros(cx)?)).map(|_| panic!("on purpose")))),
        ("a function of two futures", true, |cx| {
            let [one, two] = [(); 2].map(|()| Ok::<_, Error>(cx.launch(total(&zeros(cx)?))));
            Ok(one?.zip_with(&two?, |_, _| panic!("on purpose")))
        }),
        ("a function of results", true, |cx| {
            let halves = zeros(cx)?.partition(2).equal()?;
            Ok(cx.index_launch(2, total(&halves)).fold(0, |_, _| panic!("on purpose")))
        }),
        ("a reduction operator", false, |cx| {
            let cells = zeros(cx)?;
            cx.launch(contribute(&cells, DISLIKED));
            Ok(cx.launch(total(&cells)))
        }),
    ];
    for (what, has_stack, program) in programs {
        let runtime = Runtime::builder().workers(2).mapper(Buffers).build().unwrap();
        let error = runtime.run(async |cx| program(cx)?.await).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("on purpose") && !message.contains('\n'), "{what}: {message}");
        assert_eq!(error.backtrace().is_some(), has_stack, "{what}");
        assert_eq!(format!("{error:?}").contains("panics.rs"), has_stack || message.contains("panics.rs"), "{what}");
    }
}
