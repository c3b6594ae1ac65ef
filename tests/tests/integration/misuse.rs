//! Errors of wrong uses of the interface: each names task, region and field, and nothing else is disturbed.

use std::sync::{Arc, Mutex, mpsc};

use maniple::mapper::{
    DefaultMapper, InstanceChoice, Mapper, MappingContext, ReadyOperation, RequirementMapping, Slice, TaskInfo,
    TaskMapping,
};
use maniple::prelude::*;
use maniple::{Machine, MemoryId, ProcessorId, ProcessorKind, machine::MemoryKind};

#[derive(Fields)]
struct Cell {
    value: i64,
    weight: f64,
}

/// Keeps the only worker until the gate is open: all that is launched meanwhile is mapped before any of it runs.
#[task(leaf)]
fn hold(gate: Arc<Mutex<mpsc::Receiver<()>>>) {
    gate.lock().unwrap().recv().expect("the gate is opened");
}

#[task(leaf)]
fn write(#[writes(value)] cells: Piece<Cell>) {
    cells.value.fill(1);
}

#[task(leaf)]
fn read(#[reads(value)] cells: Piece<Cell>) -> i64 {
    cells.points().map(|point| cells.value[point]).sum()
}

#[task(leaf)]
fn add(#[reduces(Sum, value)] cells: Piece<Cell>) {
    cells.points().for_each(|point| cells.value.fold(point, 1));
}

#[task(leaf)]
fn read_and_write(#[reads(value)] from: Piece<Cell>, #[writes(value)] to: Piece<Cell>) {
    for point in to.points() {
        to.value[point] = from.value.get(point).unwrap_or(0);
    }
}

#[task(leaf)]
fn read_outside(#[reads(value)] cells: Piece<Cell>) -> i64 {
    cells.value[1000]
}

#[task(leaf)]
fn panics(#[writes(value)] cells: Piece<Cell>) {
    let _ = cells;
    panic!("the answer is not {}", 41);
}

#[task(leaf)]
fn fails(#[writes(value)] cells: Piece<Cell>) -> std::result::Result<(), std::num::ParseIntError> {
    let _ = cells;
    "forty-two".parse::<i64>().map(|_| ())
}

#[task]
async fn reader_that_writes(cx: &Context, #[reads(value)] cells: Region<Cell>) -> Result<()> {
    cx.launch(write(&cells)).await
}

#[task]
async fn reader_of_another_field(cx: &Context, #[writes(weight)] cells: Region<Cell>) -> Result<i64> {
    cx.launch(read(&cells)).await
}

fn runtime() -> Runtime {
    Runtime::builder().workers(2).build().unwrap()
}

/// Runs a program that must fail; the error's text.
fn refused<T>(program: impl AsyncFnOnce(&Context, Region<Cell>) -> Result<T>) -> String {
    let outcome = runtime().run(async |cx: &Context| {
        let cells = cx.region::<Cell>(10)?;
        program(cx, cells).await
    });
    outcome.err().expect("the program is wrong").to_string()
}

fn assert_says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{text:?} does not say {word:?}");
    }
    assert!(!text.contains('\n'), "{text:?} is more than a line");
}

#[test]
fn a_child_may_not_do_more_than_its_parent_holds() {
    let text = refused(async |cx, cells| cx.launch(reader_that_writes(&cells)).await);
    assert_says(&text, &["`write`", "writes field(s) value", "region", "`reader_that_writes` only reads them"]);
    let text = refused(async |cx, cells| cx.launch(reader_of_another_field(&cells)).await);
    assert_says(&text, &["`read`", "reads field(s) value", "`reader_of_another_field` holds no privilege on them"]);
}

#[test]
fn requirements_of_one_task_may_not_interfere() {
    let text = refused(async |cx, cells| {
        let halves = cells.partition(2).equal()?;
        cx.launch(read_and_write(&cells, &halves.piece(0)?)).await
    });
    assert_says(&text, &["`read_and_write`", "reads", "writes", "value"]);
}

#[test]
fn points_of_an_index_launch_may_not_interfere() {
    let text = refused(async |cx, cells| {
        let windows = cells.tiles([5], [1])?;
        cx.index_launch(2, write(&windows)).await
    });
    assert_says(&text, &["`write`", "points (0) and (1)", "value", "disjoint"]);
    let text = refused(async |cx, cells| cx.index_launch(3, write(&cells)).await);
    assert_says(&text, &["`write`", "points (0) and (1)"]);
    let text = refused(async |cx, cells| {
        let halves = cells.partition(2).equal()?;
        cx.index_launch(2, write(halves.project(|_| 0.into()))).await
    });
    assert_says(&text, &["`write`", "points (0) and (1)"]);
    let text = refused(async |cx, cells| {
        let halves = cells.partition(2).equal()?;
        let swapped = halves.project(|point| (1 - point.coords()[0]).into());
        cx.index_launch(2, read_and_write(&halves, swapped)).await
    });
    assert_says(&text, &["`read_and_write`", "points (0) and (1)"]);
}

#[test]
fn points_that_only_read_or_reduce_alike_may_share_everything() {
    let sum = runtime().run(async |cx| {
        let cells = cx.region::<Cell>(10)?;
        cx.index_launch(4, add(&cells));
        cx.index_launch(3, read(&cells)).reduce(Sum).await
    });
    assert_eq!(sum.unwrap(), 3 * 4 * 10);
}

#[test]
fn a_projection_may_not_leave_its_bound() {
    let text = refused(async |cx, cells| {
        let halves = cells.partition(2).equal()?;
        cx.index_launch(2, read(halves.project(|point| (point.coords()[0] + 1).into()))).reduce(Sum).await
    });
    assert_says(&text, &["no color (2)"]);
    let text = refused(async |cx, cells| {
        let halves = cells.partition(2).equal()?;
        cx.index_launch(3, read(&halves)).reduce(Sum).await
    });
    assert_says(&text, &["no color (2)"]);
}

#[test]
fn a_mapping_that_is_held_keeps_interfering_launches_out() {
    let text = refused(async |cx, cells| {
        let held = cx.map_read(&cells, Cell::value).await?;
        let outcome = cx.launch(write(&cells)).await;
        drop(held);
        outcome
    });
    assert_says(&text, &["`write`", "value", "mapped itself", "drop the mapping"]);
}

#[test]
fn a_mapping_for_reading_lets_readers_in_and_goes_when_dropped() {
    let sum = runtime().run(async |cx| {
        let cells = cx.region::<Cell>(10)?;
        cx.launch(write(&cells));
        let held = cx.map_read(&cells, Cell::value).await?;
        let sum = cx.launch(read(&cells)).await?;
        let seen: i64 = held.values().span(cells.bounds()).iter().sum();
        drop(held);
        cx.launch(add(&cells));
        Ok((sum, seen, cx.launch(read(&cells)).await?))
    });
    assert_eq!(sum.unwrap(), (10, 10, 20));
}

#[test]
fn an_index_outside_of_the_region_is_a_panic_of_the_task_that_names_the_point() {
    let text = refused(async |cx, cells| cx.launch(read_outside(&cells)).await);
    assert_says(&text, &["task `read_outside` panicked", "point (1000) is outside the region", "misuse.rs"]);
}

#[test]
fn a_panic_reaches_the_launcher_with_task_point_place_and_words() {
    let text = refused(async |cx, cells| {
        let halves = cells.partition(2).equal()?;
        cx.index_launch(2, panics(&halves)).await
    });
    assert_says(&text, &["task `panics` at point (0) panicked", "misuse.rs", "the answer is not 41"]);
}

#[test]
fn an_error_of_a_task_reaches_the_launcher_with_its_type() {
    let outcome = runtime().run(async |cx| {
        let cells = cx.region::<Cell>(10)?;
        cx.launch(fails(&cells)).await
    });
    let error = outcome.unwrap_err();
    assert_says(&error.to_string(), &["task `fails` failed", "invalid digit"]);
    assert!(error.downcast_ref::<std::num::ParseIntError>().is_some());
}

#[test]
fn a_failure_spreads_to_what_needs_its_data_and_nowhere_else() {
    let (needs, apart, after) = runtime()
        .run(async |cx| {
            let (bad, good) = (cx.region::<Cell>(10)?, cx.region::<Cell>(10)?);
            cx.launch(write(&good));
            cx.launch(panics(&bad));
            let needs = cx.launch(read(&bad)).await;
            let apart = cx.launch(read(&good)).await;
            // Data that is written anew without being looked at is good again.
            cx.fill(&bad, Cell::value, 7)?;
            let after = cx.launch(read(&bad)).await;
            Ok((needs, apart, after))
        })
        .unwrap();
    assert_says(&needs.unwrap_err().to_string(), &["task `panics` panicked"]);
    assert_eq!((apart.unwrap(), after.unwrap()), (10, 70));
}

#[test]
fn a_failure_that_nobody_looked_at_is_the_parents() {
    let outcome = runtime().run(async |cx| {
        let cells = cx.region::<Cell>(10)?;
        cx.launch(panics(&cells));
        Ok(())
    });
    assert_says(&outcome.unwrap_err().to_string(), &["task `panics` panicked"]);
}

#[test]
fn what_was_destroyed_is_refused() {
    let text = refused(async |cx, cells| {
        cx.destroy_region(cells.logical())?;
        cx.launch(read(&cells)).await
    });
    assert_says(&text, &["destroyed"]);
    let text = refused(async |cx, cells| {
        let halves = cells.partition(2).equal()?;
        cx.destroy_partition(halves.logical().partitioning())?;
        cx.index_launch(2, read(&halves)).reduce(Sum).await
    });
    assert_says(&text, &["partition", "destroyed"]);
    let text = refused(async |cx, cells| {
        let halves = cells.partition(2).equal()?;
        let other = cx.region_like::<Cell, _, 1>(&cells)?;
        cx.destroy_region(&other)?;
        // A partition is only a name, and a task that was launched before may need one.
        let (alike, thirds) = (other.split_like(&halves)?, other.partition(3).equal()?);
        assert!(cx.index_launch(2, read(&alike)).await.is_err());
        cx.launch(read(&thirds.piece(0)?)).await
    });
    assert_says(&text, &["Cell region", "destroyed"]);
}

#[test]
fn a_region_of_another_runtime_is_refused() {
    let other = runtime();
    let foreign = other.run(async |cx| cx.region::<Cell>(10)).unwrap();
    let text = refused(async |cx, _| cx.launch(read(&foreign)).await);
    assert_says(&text, &["Cell region", "another runtime"]);
    assert!(!text.contains("index space"), "{text:?} names what nobody made");
}

#[test]
fn a_region_of_an_earlier_run_is_refused() {
    let runtime = runtime();
    let earlier = runtime.run(async |cx| cx.region::<Cell>(10)).unwrap();
    let told = |outcome: Result<()>| {
        assert_says(&outcome.unwrap_err().to_string(), &["Cell region", "ended with the `Runtime::run` that made it"]);
    };
    told(runtime.run(async |cx| cx.launch(write(&earlier)).await));
    told(runtime.run(async |cx| cx.fill(&earlier, Cell::value, 1)));
    told(runtime.run(async |cx| cx.destroy_region(&earlier)));
    told(runtime.run(async |_| earlier.partition(2).equal().map(drop)));
}

#[task]
async fn destroys(cx: &Context, #[writes(value)] cells: Region<Cell>) -> Result<()> {
    cx.destroy_region(&cells)
}

#[test]
fn only_the_task_that_made_a_region_may_destroy_it() {
    let text = refused(async |cx, cells| cx.launch(destroys(&cells)).await);
    assert_says(&text, &["`destroys` cannot destroy Cell region", "another task made"]);
}

#[test]
fn a_region_has_at_most_as_many_rows_as_there_are_numbers_for() {
    let text = refused(async |cx, _| cx.region::<Cell>(usize::MAX));
    assert_says(&text, &["18446744073709551615 rows", "9223372036854775807"]);
}

#[test]
fn a_copy_needs_a_source_with_all_points_and_a_gather_pointers_that_lead_somewhere() {
    #[derive(Fields)]
    struct Link {
        to: Ptr<Cell>,
    }
    let text = refused(async |cx, cells| {
        let halves = cells.partition(2).equal()?;
        let other = cx.region_like::<Cell, _, 1>(&cells)?;
        cx.copy(halves.piece(0)?.field(Cell::value), other.field(Cell::value)).await
    });
    assert_says(
        &text,
        &["copy", "the source, piece (0) of partition", "has no row (5)", "the destination, Cell region"],
    );
    let text = refused(async |cx, cells| {
        let links = cx.region::<Link>(10)?;
        let other = cx.region::<Cell>(10)?;
        cx.fill(&links, Link::to, Ptr::row(77))?;
        cx.gather(cells.field(Cell::value), links.field(Link::to), other.field(Cell::value)).await
    });
    assert_says(&text, &["`gather`", "field `to` of Link region", "from (0) to (77)", "no row of Cell region"]);
}

/// One memory that is too small.
fn small_machine() -> Machine {
    let mut builder = Machine::builder();
    builder.processor(ProcessorKind::Cpu);
    builder.memory(MemoryKind::System, 64);
    builder.connect_nodes(maniple::machine::Affinity { bandwidth_mb_s: 1, latency_ns: 1 });
    builder.build().unwrap()
}

#[test]
fn memory_that_runs_out_is_an_error_that_says_where_and_how_much() {
    let runtime = Runtime::builder().machine(small_machine()).build().unwrap();
    let no_room_for = |rows: usize| {
        let outcome = runtime.run(async |cx| {
            let cells = cx.region::<Cell>(rows)?;
            let halves = cells.partition(2).equal()?;
            cx.launch(write(&halves.piece(1)?)).await
        });
        outcome.unwrap_err().to_string()
    };
    let data = ["`write`", "field(s) value of piece (1) of partition", "Cell region"];
    assert_says(&no_room_for(200), &data);
    assert_says(&no_room_for(200), &["800 bytes in memory 0, which has 64 bytes, of which 0 bytes", "smaller pieces"]);
    assert_says(&no_room_for(20_000_000_000), &["74.5 GiB in memory 0"]);
}

#[test]
fn pieces_that_fit_one_at_a_time_run_one_at_a_time() {
    let mapper = DefaultMapper::piecewise();
    let runtime = Runtime::builder().machine(small_machine()).mapper(mapper).workers(1).build().unwrap();
    let sum = runtime.run(async |cx| {
        let (open, gate) = mpsc::channel();
        let held = cx.launch(hold(Arc::new(Mutex::new(gate))));
        // Each region fits, but not two of them: the instances of one must go before those of the next come.
        let mut sums = Vec::new();
        for _ in 0..5 {
            let cells = cx.region::<Cell>(6)?;
            cx.launch(write(&cells));
            sums.push(cx.launch(read(&cells)));
            cx.destroy_region(cells.logical())?;
        }
        open.send(()).expect("the worker waits for it");
        held.await?;
        let mut total = 0;
        for sum in sums {
            total += sum.await?;
        }
        Ok(total)
    });
    assert_eq!(sum.unwrap(), 30);
    assert!(runtime.statistics().mapping_retries > 0, "something had to wait for room");
}

/// Wrong in one way.
#[derive(Clone, Copy, Debug)]
enum Nonsense {
    Processor,
    ProcessorForAllElse,
    Variant,
    Memory,
    Requirements,
    Virtual,
    Slices,
    Panic,
    Nothing,
    Ranking,
    OutOfRange,
}

#[derive(Clone)]
struct Nonsensical(Nonsense);

/// Leaves everything but the processor to the defaults.
struct OnNoProcessor;

impl Mapper for OnNoProcessor {
    fn select_processor(&mut self, _: &TaskInfo<'_>, _: &Machine) -> ProcessorId {
        ProcessorId(499)
    }
}

impl Mapper for Nonsensical {
    fn slice_launch(&mut self, launch: &TaskInfo<'_>, _: &Machine) -> Vec<Slice> {
        match self.0 {
            Nonsense::Slices => vec![Slice { domain: Rect::<1>::from(0..1).into(), processor: launch.origin }],
            _ => vec![Slice { domain: launch.domain, processor: launch.origin }],
        }
    }

    fn map_task(&mut self, task: &TaskInfo<'_>, context: &dyn MappingContext) -> TaskMapping {
        let mut mapping = match self.0 {
            Nonsense::ProcessorForAllElse => OnNoProcessor.map_task(task, context),
            _ => DefaultMapper::new().map_task(task, context),
        };
        match self.0 {
            Nonsense::Processor => mapping.processor = ProcessorId(99),
            Nonsense::Variant => mapping.variant = 99,
            Nonsense::Memory => {
                let choice = InstanceChoice::in_memory(MemoryId(99));
                mapping.requirements = mapping.requirements.iter().map(|_| choice.clone().into()).collect();
            }
            Nonsense::Requirements => drop(mapping.requirements.pop()),
            Nonsense::Virtual => {
                mapping.requirements.iter_mut().for_each(|requirement| *requirement = RequirementMapping::Virtual);
            }
            Nonsense::Panic => panic!("no idea"),
            _ => {}
        }
        mapping
    }

    fn rank_sources(
        &mut self,
        _: &[maniple::mapper::InstanceInfo],
        _: &maniple::mapper::InstanceInfo,
        _: &Machine,
    ) -> Vec<usize> {
        vec![99, 0, 0]
    }

    fn select_operations_to_map(&mut self, ready: &[ReadyOperation<'_>]) -> Vec<usize> {
        match self.0 {
            Nonsense::Nothing => Vec::new(),
            Nonsense::OutOfRange => vec![99, 0, 0],
            _ => (0..ready.len()).collect(),
        }
    }
}

fn with_mapper(nonsense: Nonsense) -> Result<i64> {
    let runtime = Runtime::builder().workers(2).mapper(Nonsensical(nonsense)).build()?;
    runtime.run(async |cx| {
        let cells = cx.region::<Cell>(10)?;
        let halves = cells.partition(2).equal()?;
        cx.index_launch(2, write(&halves));
        cx.index_launch(2, read(&halves)).reduce(Sum).await
    })
}

#[test]
fn a_mapper_that_answers_nonsense_gets_an_error_that_names_the_call() {
    for (nonsense, words) in [
        (Nonsense::Processor, "processor 99, which the machine does not have"),
        (Nonsense::ProcessorForAllElse, "processor 499, which the machine does not have"),
        (Nonsense::Variant, "variant 99, of 1"),
        (Nonsense::Memory, "memory 99, which processor"),
        (Nonsense::Requirements, "mapped 0 requirements, of 1"),
        (Nonsense::Virtual, "is a leaf"),
        (Nonsense::Slices, "every point"),
        (Nonsense::Panic, "panicked: no idea"),
    ] {
        let text = with_mapper(nonsense).unwrap_err().to_string();
        assert_says(&text, &["mapper call", words]);
    }
}

#[test]
fn a_mapper_that_puts_everything_off_or_picks_what_is_not_there_hangs_nothing() {
    for nonsense in [Nonsense::Nothing, Nonsense::OutOfRange, Nonsense::Ranking] {
        assert_eq!(with_mapper(nonsense).unwrap(), 10, "{nonsense:?}");
    }
}
