//! Tests of the memory that loops allocate and keep, counted by an allocator of its own. One test at a time, so that
//! nothing else allocates meanwhile.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::future::{Future as _, IntoFuture};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use maniple::prelude::*;
use maniple::{Error, FieldType, LocalField};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
/// How many bytes are allocated.
static LIVE: AtomicI64 = AtomicI64::new(0);
/// Whether the backtrace of each allocation is shown: if the variable `SHOW_ALLOCATIONS` is set.
static SHOWN: AtomicBool = AtomicBool::new(false);

thread_local! {
    static IS_SHOWING: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

fn count() {
    if IS_SHOWING.get() {
        return;
    }
    ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    if SHOWN.load(Ordering::Relaxed) {
        IS_SHOWING.set(true);
        eprintln!("{}", std::backtrace::Backtrace::force_capture());
        IS_SHOWING.set(false);
    }
}

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        LIVE.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        LIVE.fetch_add(size as i64 - layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[derive(Fields)]
struct Cell {
    value: f64,
    sum: f64,
}

#[task(leaf)]
fn gather(#[reads(value)] near: Piece<Cell>, #[discards(sum)] cells: Piece<Cell>) {
    for cell in cells.points() {
        let beside = |offset| near.value.get(cell[0] + offset).unwrap_or_default();
        cells.sum[cell] = beside(-1) + beside(1);
    }
}

#[task(leaf)]
fn scatter(
    #[reads(sum)]
    #[writes(value)]
    cells: Piece<Cell>,
    factor: f64,
) {
    cells.points().for_each(|cell| cells.value[cell] += factor * cells.sum[cell]);
}

#[task(leaf)]
fn sum(#[reads(value)] cells: Piece<Cell>) -> f64 {
    cells.points().map(|cell| cells.value[cell]).sum()
}

#[task(leaf)]
fn largest(#[reads(value)] cells: Piece<Cell>) -> (f64, u64) {
    let largest = cells.points().map(|cell| cells.value[cell]).fold(0.0, f64::max);
    (largest, cells.points().count() as u64)
}

#[task(leaf)]
fn scale(#[writes(value)] cells: Piece<Cell>, factor: f64) {
    cells.points().for_each(|cell| cells.value[cell] *= factor.clamp(0.999, 1.001));
}

#[task(leaf)]
fn scale_by(#[writes(value)] cells: Piece<Cell>, largest: (f64, u64)) {
    cells.points().for_each(|cell| cells.value[cell] /= largest.0.max(1.0));
}

/// The work of a step of the loop.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Tasks that return nothing.
    Nothing,
    /// Points that return numbers, which are not looked at.
    Values,
    /// A task that returns a pair, which later ones are given.
    One,
    /// Points that return numbers, and later ones are given their sum.
    Sum,
    /// The same, and a function of that and of the one before is given to the next step, as in a conjugate gradient.
    Ratio,
}

/// How the program marks its steps.
#[derive(Clone, Copy, Debug)]
enum Marks {
    None,
    Traces,
    StrictTraces,
}

/// Runs a loop, and counts what is allocated in a part of it.
fn allocations(workers: usize, steps: usize, marks: Marks, kind: Step) -> u64 {
    let runtime = Runtime::builder().workers(workers).build().unwrap();
    let is_shown = std::env::var_os("SHOW_ALLOCATIONS").is_some();
    let counted = runtime.run(async |cx: &Context| {
        let cells = cx.region::<Cell>(64)?;
        let pieces = cells.partition(8).equal()?;
        let near = cells.tiles([8], [1])?;
        cx.fill(&cells, Cell::value, 1.0)?;
        let before = Mutex::new(None);
        let step = |cx: &Context| match kind {
            Step::Nothing => {
                cx.index_launch(8, gather(&near, &pieces));
                cx.index_launch(8, scatter(&pieces, 0.25));
            }
            Step::Values => {
                cx.index_launch(8, sum(&pieces));
                cx.index_launch(8, scale(&pieces, 1.0));
            }
            Step::One => {
                let largest = cx.launch(largest(&cells));
                cx.index_launch(8, scale_by(&pieces, &largest));
            }
            Step::Sum => {
                let sum = cx.index_launch(8, sum(&pieces)).reduce(Sum);
                cx.index_launch(8, scale(&pieces, &sum));
            }
            Step::Ratio => {
                let mut before = before.lock().unwrap();
                let sum = cx.index_launch(8, sum(&pieces)).reduce(Sum);
                cx.index_launch(8, scale(&pieces, &sum));
                *before = match before.take() {
                    Some(before) => {
                        Some(sum.zip_with(&before, |now, before: f64| (now / before).min(1.0)).map(f64::sqrt))
                    }
                    None => Some(sum),
                };
                cx.index_launch(8, scale(&pieces, before.as_ref().unwrap()));
            }
        };
        let run = |steps: usize| {
            for _ in 0..steps {
                match marks {
                    Marks::None => step(cx),
                    Marks::Traces => cx.trace("step", step),
                    Marks::StrictTraces => cx.strict_trace("step", step).expect("all steps are alike"),
                }
            }
        };
        // All memory that a replay ever needs is there when the program has run so far ahead that it has had to wait.
        // Some lists grow now and then until they are as long as they will ever be: what each step allocates shows
        // every time.
        let mut least = u64::MAX;
        for _ in 0..10 {
            run(steps);
            SHOWN.store(is_shown, Ordering::Relaxed);
            let before = ALLOCATIONS.load(Ordering::Relaxed);
            run(steps);
            least = least.min(ALLOCATIONS.load(Ordering::Relaxed) - before);
            SHOWN.store(false, Ordering::Relaxed);
            if least == 0 {
                break;
            }
        }
        Ok(least)
    });
    assert!(runtime.statistics().replays > 300, "the loop is replayed: {:?}", runtime.statistics());
    counted.unwrap()
}

/// Held by the test that runs.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn a_loop_that_is_replayed_allocates_nothing() {
    let _alone = alone();
    for workers in [1, 2, 4] {
        for marks in [Marks::None, Marks::Traces, Marks::StrictTraces] {
            for kind in [Step::Nothing, Step::Values, Step::One, Step::Sum, Step::Ratio] {
                assert_eq!(allocations(workers, 2_000, marks, kind), 0, "{kind:?}, {marks:?}, {workers} workers");
            }
        }
    }
}

/// The fewest allocations of a hundred launches and a fence behind them, in a loop that is not traced.
fn allocations_untraced(launch: impl Fn(&Context, &Region<Cell>, &Partition<Cell>) + Sync) -> u64 {
    const LAUNCHES: usize = 100;
    let runtime = Runtime::builder().workers(1).tracing(false).build().unwrap();
    let counted = runtime.run(async |cx: &Context| {
        let cells = cx.region::<Cell>(64)?;
        let pieces = cells.partition(8).equal()?;
        let mut least = u64::MAX;
        for _ in 0..20 {
            let before = ALLOCATIONS.load(Ordering::Relaxed);
            (0..LAUNCHES).for_each(|_| launch(cx, &cells, &pieces));
            cx.execution_fence().await?;
            least = least.min(ALLOCATIONS.load(Ordering::Relaxed) - before);
        }
        Ok(least)
    });
    counted.unwrap()
}

/// A launch allocates its results, what its points share, its operation, a list of its points if there are several, and
/// the mapper's answer which operations to map.
#[test]
fn a_launch_from_a_known_site_allocates_a_few_times_whatever_the_number_of_its_points() {
    let _alone = alone();
    let index = allocations_untraced(|cx, _, pieces| drop(cx.index_launch(8, gather(pieces, pieces))));
    assert!(index <= 700, "{index} allocations in a hundred index launches");
    let single = allocations_untraced(|cx, cells, _| drop(cx.launch(gather(cells, cells))));
    assert!(single <= 600, "{single} allocations in a hundred launches");
}

#[task(leaf)]
fn set(#[writes(value)] cells: Piece<Cell>, value: f64) {
    cells.points().for_each(|cell| cells.value[cell] = value);
}

/// Makes a region and uses it, and fails if it is told to.
#[task]
async fn scratch(cx: &Context, number: usize, fails: bool) -> Result<()> {
    let cells = cx.region::<Cell>(10)?;
    let pieces = cells.partition(2).equal()?;
    cx.launch(set(&cells, number as f64)).await?;
    cx.index_launch(2, gather(&pieces, &pieces)).await?;
    if fails { Err(Error::application(format!("number {number:06} fails on purpose"))) } else { Ok(()) }
}

/// As `scratch`, but fails as what it has launched does.
#[task]
async fn scratch_below(cx: &Context, number: usize) -> Result<()> {
    let cells = cx.region::<Cell>(10)?;
    cx.launch(set(&cells, number as f64));
    cx.launch(scratch(number, true)).await
}

/// Fails by a task whose result is not looked at.
#[task]
async fn scratch_behind(cx: &Context, number: usize) -> Result<()> {
    cx.launch(scratch(number, true));
    Ok(())
}

#[task]
async fn scratch_panics(cx: &Context, number: usize) -> Result<()> {
    let cells = cx.region::<Cell>(10)?;
    cx.launch(set(&cells, number as f64));
    panic!("number {number:06} panics on purpose")
}

/// Makes a region, and returns it.
#[task]
async fn make(cx: &Context, number: usize) -> Result<Region<Cell>> {
    let cells = cx.region::<Cell>(10)?;
    cx.launch(set(&cells, number as f64));
    Ok(cells)
}

/// The objects that a round of a loop leaves behind.
#[derive(Clone, Copy, Debug)]
enum Leaves {
    /// Regions of a task that ended well.
    Regions,
    /// Regions of a task that has failed by itself, by what it has launched, whether it waited for that or not, or by a
    /// panic.
    RegionsOfFailed,
    RegionsOfFailedBelow,
    RegionsOfPanicked,
    /// Regions of its own, and one that a task returned.
    Handles,
    /// Names that it has destroyed, and so have tasks that it launched.
    Destroyed,
    /// Fields that it has freed, while tasks that it launched before have not ended.
    Freed,
    /// Futures that were not waited for, or not to the end.
    Futures,
    /// Scratch regions, of the same rows in each round or of others, and partitions of them.
    Scratch,
    ScratchOfOtherRows,
    /// Regions of other rows in each round, which it has destroyed.
    DestroyedOfOtherRows,
    /// Local fields, of the same name in each round or of others.
    LocalFields,
    LocalFieldsOfOtherNames,
    /// Partitions of one region, which it has destroyed or whose handles it has dropped, and what was made of them.
    DestroyedPartitions,
    Partitions,
    /// Results of index launches, functions of these, and what they come to together.
    Maps,
    /// Traces of the same name in each round, with other launches.
    Traces,
    /// Memory that it has attached and detached.
    Attached,
    /// Rows that tasks have returned.
    Outputs,
    /// Data that it has looked at by itself.
    Mappings,
    /// Fences.
    Fences,
}

/// All of them.
const ALL: [Leaves; 21] = [
    Leaves::Regions,
    Leaves::RegionsOfFailed,
    Leaves::RegionsOfFailedBelow,
    Leaves::RegionsOfPanicked,
    Leaves::Handles,
    Leaves::Destroyed,
    Leaves::Freed,
    Leaves::Futures,
    Leaves::Scratch,
    Leaves::ScratchOfOtherRows,
    Leaves::DestroyedOfOtherRows,
    Leaves::LocalFields,
    Leaves::LocalFieldsOfOtherNames,
    Leaves::DestroyedPartitions,
    Leaves::Partitions,
    Leaves::Maps,
    Leaves::Traces,
    Leaves::Attached,
    Leaves::Outputs,
    Leaves::Mappings,
    Leaves::Fences,
];

#[task(leaf)]
fn find(#[point] point: Point<1>) -> Output<Cell> {
    (0..=point[0]).map(|row| Cell { value: row as f64, sum: 0.0 }).collect()
}

#[task(leaf)]
fn rows_of(#[reads(value)] cells: Piece<Cell>) -> f64 {
    cells.points().count() as f64
}

#[task]
async fn destroy(cx: &Context, number: usize) -> Result<()> {
    let cells = cx.region::<Cell>(10)?;
    let pieces = cells.partition(2).equal()?;
    cx.launch(set(&cells, number as f64));
    let (rows, fields) = (cx.index_space(cells.logical().space().space()), cx.field_space(2));
    let freed = ["a", "b"].map(|name| fields.allocate(name, FieldType::of::<f64>()));
    for field in freed {
        cx.free_field(&fields, field?)?;
    }
    cx.destroy_partition(&pieces)?;
    cx.destroy_region(&cells)?;
    cx.destroy_index_space(&rows)?;
    cx.destroy_field_space(&fields)
}

async fn round(cx: &Context, cells: &Region<Cell>, leaves: Leaves, number: usize) -> Result<()> {
    let fails = |outcome: Result<()>| match outcome {
        Ok(()) => Err(Error::application("it was to fail")),
        Err(_) => Ok(()),
    };
    match leaves {
        Leaves::Regions => cx.launch(scratch(number, false)).await,
        Leaves::RegionsOfFailed => fails(cx.launch(scratch(number, true)).await),
        Leaves::RegionsOfFailedBelow if number.is_multiple_of(2) => fails(cx.launch(scratch_below(number)).await),
        Leaves::RegionsOfFailedBelow => fails(cx.launch(scratch_behind(number)).await),
        Leaves::RegionsOfPanicked => fails(cx.launch(scratch_panics(number)).await),
        Leaves::Handles => {
            let cells = cx.region::<Cell>(10)?;
            let pieces = cells.partition(2).equal()?;
            cx.index_launch(2, gather(&pieces, &pieces));
            let made = cx.launch(make(number)).await?;
            cx.launch(sum(&made)).await.map(drop)
        }
        Leaves::Destroyed => {
            cx.launch(destroy(number)).await?;
            let cells = cx.region::<Cell>(10)?;
            cx.launch(set(&cells, number as f64));
            cx.destroy_region(&cells)?;
            destroy_own(cx)
        }
        Leaves::Freed => Ok(()),
        Leaves::Futures => {
            drop(cx.launch(scratch(number, false)));
            let mut polled = pin!(cx.launch(scratch(number, false)).into_future());
            std::future::poll_fn(|context| {
                let _ = polled.as_mut().poll(context);
                let _ = polled.as_mut().poll(&mut std::task::Context::from_waker(Waker::noop()));
                Poll::Ready(())
            })
            .await;
            Ok(())
        }
        Leaves::Scratch | Leaves::ScratchOfOtherRows => {
            let rows = if let Leaves::Scratch = leaves { 10 } else { 10 + number * 7 % 1_000 };
            let scratch = cx.scratch::<Cell>(rows)?;
            let pieces = scratch.partition(2).equal()?;
            cx.index_launch(2, gather(&pieces, &pieces));
            Ok(())
        }
        Leaves::DestroyedOfOtherRows => {
            let cells = cx.region::<Cell>(10 + number * 7 % 1_000)?;
            cx.launch(set(&cells, number as f64));
            cx.destroy_region(&cells)
        }
        Leaves::LocalFields | Leaves::LocalFieldsOfOtherNames => {
            let number = if let Leaves::LocalFields = leaves { 0 } else { number };
            let field: LocalField<Cell, f64> = cx.local_field(cells, &format!("{number:06}"))?;
            cx.fill(cells, *field, 1.0)?;
            cx.copy(cells.field(*field), cells.field(Cell::value));
            Ok(())
        }
        Leaves::DestroyedPartitions | Leaves::Partitions => {
            let pieces = cells.partition(2 + number % 5).equal()?;
            let others = cells.partition(2).equal()?;
            let both = pieces.intersection_with_all(&others)?;
            cx.index_launch(pieces.colors(), gather(&pieces, &pieces));
            cx.index_launch(both.colors(), rows_of(&both));
            cx.launch(rows_of(&others.piece(0)?));
            if let Leaves::DestroyedPartitions = leaves {
                cx.destroy_partition(&both)?;
                cx.destroy_partition(&pieces)?;
                cx.destroy_partition(&others)?;
            }
            Ok(())
        }
        Leaves::Maps => {
            let pieces = cells.partition(2).equal()?;
            let counts = cx.index_launch(2, rows_of(&pieces));
            drop((counts.get(1)?.map(|count| count + 1.0), counts.fold(0.0, |all, one| all + one)));
            counts.reduce(Sum).await.map(drop)
        }
        Leaves::Traces => cx.trace("round", |cx| {
            for _ in 0..=number % 3 {
                cx.launch(set(cells, number as f64));
            }
            Ok(())
        }),
        Leaves::Attached => {
            let cells = cx.region::<Cell>(10)?;
            let attached = cx.attach_vec(&cells, Cell::value, vec![1.0; 10])?;
            cx.launch(set(&cells, number as f64));
            cx.detach(attached)?.await.map(drop)
        }
        Leaves::Outputs => {
            let (rows, _) = cx.collect(cx.index_launch(2, find())).await?;
            cx.launch(rows_of(&rows)).await.map(drop)
        }
        Leaves::Mappings => {
            cx.map_write(cells, Cell::value).await?[0] = number as f64;
            cx.map_read(cells, Cell::value).await.map(drop)
        }
        Leaves::Fences => {
            drop((cx.mapping_fence(), cx.time()));
            cx.launch(set(cells, number as f64));
            drop((cx.time(), cx.mapping_fence()));
            Ok(())
        }
    }
}

fn destroy_own(cx: &Context) -> Result<()> {
    let fields = cx.field_space(2);
    for name in ["a", "b"] {
        let field = fields.allocate(name, FieldType::of::<f64>())?;
        cx.free_field(&fields, field)?;
    }
    Ok(())
}

/// So much more than before is nothing that each of at least 7,000 rounds has left behind: of 16 bytes each it would be
/// nearly twice as much.
const SLACK: i64 = 64_000;

/// So many rounds are a stretch; for a longer run, `MANIPLE_ROUNDS` says how many.
fn stretch() -> usize {
    let said = std::env::var("MANIPLE_ROUNDS").ok();
    said.map_or(12_000, |rounds| rounds.parse().expect("MANIPLE_ROUNDS is a number"))
}

/// Whether a loop comes back to the memory that it held before: in some stretch to the least that it held early in the
/// one before; and the last two that were compared. Tables that are looked through whenever they have doubled are
/// smallest just then, which may be thousands of rounds later. And a thread that the system keeps waiting may have a
/// table double that stays so: that happens in one stretch, where what is left behind does in all.
fn comes_back(leaves: Leaves) -> (bool, [i64; 2]) {
    // What the most operations in flight ever needed stays: so there are few at any time.
    let runtime = Runtime::builder().workers(2).window(16).build().unwrap();
    let stretch = stretch();
    let held = runtime.run(async |cx: &Context| {
        let (fields, cells) = (cx.field_space(1), cx.region::<Cell>(16)?);
        // The least of the stretch before, and of this one so far; and what the next one is compared with.
        let (mut least, mut next) = ([i64::MAX; 2], i64::MAX);
        for number in 0..7 * stretch {
            round(cx, &cells, leaves, number).await?;
            if let Leaves::Freed = leaves {
                let field = fields.allocate("field", FieldType::of::<f64>())?;
                cx.launch(scratch(number, false));
                // Deletions are forgotten when nothing is in flight that was launched before.
                if number % 8 == 0 {
                    cx.execution_fence().await?;
                }
                cx.free_field(&fields, field)?;
            }
            if number % 8 == 0 {
                cx.execution_fence().await?;
            }
            let live = LIVE.load(Ordering::Relaxed);
            if number.is_multiple_of(stretch) {
                least = [next, i64::MAX];
                next = i64::MAX;
            }
            if (stretch / 12..stretch * 5 / 12).contains(&(number % stretch)) {
                next = next.min(live);
            }
            least[1] = least[1].min(live);
            if number >= stretch && least[1] < least[0] + SLACK {
                return Ok((true, least));
            }
        }
        Ok((false, least))
    });
    held.unwrap()
}

#[test]
fn what_tasks_leave_behind_takes_no_memory_in_the_end() {
    let _alone = alone();
    for leaves in ALL {
        let (comes_back, [first, last]) = comes_back(leaves);
        assert!(
            comes_back,
            "{leaves:?}: {first} bytes in a stretch of rounds, {last} bytes or more in all of the next"
        );
    }
}
