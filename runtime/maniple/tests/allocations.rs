//! What a loop allocates, counted by an allocator of its own. One test, so that nothing else allocates meanwhile.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use maniple::prelude::*;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
/// Where allocations come from is shown if the variable `SHOW_ALLOCATIONS` is set.
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
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
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

/// What a step of the loop does.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Tasks that return nothing.
    Nothing,
    /// Points that return numbers, which nobody looks at.
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
        // All memory that a replay ever needs is there when the program has run so far ahead that it has had to wait. Some lists grow now and then
        // until they are as long as they will ever be: what each step allocates shows every time.
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

#[test]
fn a_loop_that_is_replayed_allocates_nothing() {
    for workers in [1, 2, 4] {
        for marks in [Marks::None, Marks::Traces, Marks::StrictTraces] {
            for kind in [Step::Nothing, Step::Values, Step::One, Step::Sum, Step::Ratio] {
                assert_eq!(allocations(workers, 2_000, marks, kind), 0, "{kind:?}, {marks:?}, {workers} workers");
            }
        }
    }
}
