//! Counts of the locks that are taken, by `maniple::locks`, which tells which locks it counts: work that is done for
//! each point takes none.
//!
//! Some locks are taken when a worker finds nothing to do, when one worker hands work to another, or for every so many
//! operations: their number is up to chance, so tests compare it with the number of points or tasks, of which there are
//! many more.
//!
//! The callers that take locks are shown if the variable `SHOW_LOCKS` is set.

use maniple::locks;
use maniple::prelude::*;
use maniple_tests::circuit::Circuit;

use crate::alone;

/// The action of a program at each of its steps.
type Step<'a> = &'a dyn Fn(&Context);

/// Launches steps until all is known that will be, and then some more: how many locks each of those took until all
/// tasks had run, rounded up.
async fn locks_of_a_step(cx: &Context, step: Step<'_>) -> Result<u64> {
    const STEPS: u64 = 25;
    for _ in 0..2 {
        (0..STEPS).for_each(|_| step(cx));
        cx.execution_fence().await?;
    }
    let before = locks::taken();
    locks::show(std::env::var_os("SHOW_LOCKS").is_some());
    (0..STEPS).for_each(|_| step(cx));
    cx.execution_fence().await?;
    locks::show(false);
    Ok((locks::taken() - before).div_ceil(STEPS))
}

/// How a program marks its steps.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Marks {
    None,
    Traces,
}

/// The locks of a step of the circuit.
fn locks_of_the_circuit(workers: usize, pieces: usize, marks: Marks) -> u64 {
    let is_traced = marks == Marks::Traces;
    let runtime = Runtime::builder().workers(workers).automatic_tracing(is_traced).build().unwrap();
    let counted = runtime.run(async |cx: &Context| {
        let circuit = Circuit::new(cx, pieces)?;
        let launch = |cx: &Context| _ = circuit.step(cx, pieces);
        let step: Step<'_> = match marks {
            Marks::None => &launch,
            Marks::Traces => &|cx| cx.trace("step", launch),
        };
        locks_of_a_step(cx, step).await
    });
    assert_eq!(runtime.statistics().replays > 50, is_traced, "{:?}", runtime.statistics());
    counted.unwrap()
}

/// A launch takes two locks, those of the context's traces and of the session, and each run of a trace four. With 256
/// pieces, one lock a point would be 768.
#[test]
fn a_loop_that_is_replayed_takes_no_lock_for_a_point() {
    let _alone = alone();
    for workers in [1, 2, 4] {
        for pieces in [16, 64, 256] {
            let taken = locks_of_the_circuit(workers, pieces, Marks::Traces);
            println!("{pieces} pieces, {workers} workers: {taken} locks a step");
            assert!(taken <= 60, "{taken} locks for three launches of {pieces} points, {workers} workers");
        }
    }
}

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

/// The locks of a step of a stencil that is not replayed.
fn locks_of_the_stencil(workers: usize, pieces: usize) -> u64 {
    let runtime = Runtime::builder().workers(workers).tracing(false).build().unwrap();
    let counted = runtime.run(async |cx: &Context| {
        let cells = cx.region::<Cell>(4 * pieces)?;
        let (pieces_of, near) = (cells.partition(pieces).equal()?, cells.tiles([4], [1])?);
        cx.fill(&cells, Cell::value, 1.0)?;
        let step = |cx: &Context| {
            cx.index_launch(pieces, gather(&near, &pieces_of));
            cx.index_launch(pieces, scatter(&pieces_of, 0.25));
        };
        locks_of_a_step(cx, &step).await
    });
    counted.unwrap()
}

/// A launch takes some twenty locks. What grows with the points are exchanges of free events between threads, 64 at a
/// time.
#[test]
fn a_launch_from_a_known_site_takes_no_lock_for_a_point_that_reads_and_writes() {
    let _alone = alone();
    let [few, many] = [64, 256].map(|pieces| locks_of_the_stencil(1, pieces));
    println!("{few} locks a step of 64 pieces, {many} of 256");
    assert!(many <= few + 2 * 256 / 8, "two launches of 64 points: {few} locks; of 256: {many}");
}

/// Several workers: the worker that maps a point may hand its task to another, whose inbox has a lock for putting
/// something in. Taking something out takes none.
#[test]
fn a_launch_from_a_known_site_takes_at_most_the_lock_of_an_inbox_for_a_point_that_reads_and_writes() {
    let _alone = alone();
    for workers in [2, 4] {
        let [few, many] = [64, 256].map(|pieces| locks_of_the_stencil(workers, pieces));
        println!("{workers} workers: {few} locks a step of 64 pieces, {many} of 256");
        let most = 160 + 2 * 256 + 2 * 256 / 8;
        assert!(many <= most, "two launches of 64 points: {few} locks; of 256: {many}; {workers} workers");
    }
}

/// Buffers for contributions: the earlier and the present users of one are behind a lock of the buffer's own, and
/// whether the points of a buffer lie within those of a set is remembered by a table of all. One task of the three
/// of a piece contributes: that takes five.
#[test]
fn a_launch_from_a_known_site_takes_few_locks_for_a_point_that_contributes_to_a_buffer() {
    let _alone = alone();
    let [few, many] = [64, 256].map(|pieces| locks_of_the_circuit(1, pieces, Marks::None));
    println!("{few} locks a step of 64 pieces, {many} of 256");
    assert!(many <= few + 256 * 6, "a step of 64 pieces: {few} locks; of 256: {many}");
}

#[task(leaf)]
fn touch(#[writes(value)] cells: Piece<Cell>) {
    cells.points().for_each(|cell| cells.value[cell] += 1.0);
}

/// How many locks the launching thread takes to launch a task that was never seen before over so many points. Mapping
/// them is the worker's.
fn locks_of_a_new_launch(points: usize) -> u64 {
    let runtime = Runtime::builder().workers(1).tracing(false).build().unwrap();
    let counted = runtime.run(async |cx: &Context| {
        let cells = cx.region::<Cell>(points)?;
        let pieces = cells.partition(points).equal()?;
        let before = locks::taken_here();
        cx.index_launch(points, touch(&pieces));
        let taken = locks::taken_here() - before;
        cx.execution_fence().await?;
        Ok(taken)
    });
    counted.unwrap()
}

#[test]
fn to_launch_over_many_points_takes_as_many_locks_as_over_few() {
    let _alone = alone();
    assert_eq!(locks_of_a_new_launch(10_000), locks_of_a_new_launch(10));
}

#[task]
async fn fibonacci(cx: &Context, n: u64) -> Result<u64> {
    if n < 2 {
        return Ok(n);
    }
    let (a, b) = (cx.launch(fibonacci(n - 1)), cx.launch(fibonacci(n - 2)));
    Ok(a.await? + b.await?)
}

/// The locks of a second run of the program, and how many tasks it has.
fn locks_of_fibonacci(workers: usize, n: u64) -> (u64, u64) {
    let runtime = Runtime::builder().workers(workers).build().unwrap();
    runtime.run_task(fibonacci(n)).unwrap();
    let before = (locks::taken(), runtime.statistics().tasks);
    runtime.run_task(fibonacci(n)).unwrap();
    (locks::taken() - before.0, runtime.statistics().tasks - before.1)
}

#[test]
fn tasks_without_regions_take_no_locks() {
    let _alone = alone();
    for workers in [1, 2, 4] {
        let (taken, tasks) = locks_of_fibonacci(workers, 20);
        println!("{workers} workers: {taken} locks, {tasks} tasks");
        assert_eq!(tasks, 21_891);
        // Workers that steal take some, and so do workers that find nothing to steal.
        assert!(taken <= tasks / 16, "{taken} locks for {tasks} tasks, {workers} workers");
    }
}

#[task(leaf)]
fn copy_from_afar(#[reads(value)] far: Piece<Cell>, #[discards(sum)] cells: Piece<Cell>) {
    let sum: f64 = far.points().map(|point| far.value[point]).sum();
    cells.points().for_each(|cell| cells.sum[cell] = sum);
}

/// All locks of a first launch whose points each read three cells that are far apart, and then of one that overwrites
/// these.
fn locks_of_scattered_reads(points: usize) -> u64 {
    let runtime = Runtime::builder().workers(1).tracing(false).build().unwrap();
    let counted = runtime.run(async |cx: &Context| {
        let cells = cx.region::<Cell>(points)?;
        let pieces = cells.partition(points).equal()?;
        let third = points as i64 / 3;
        let far = cells.partition(points).by(|color| {
            let rows = [0, third, 2 * third].map(|offset| (color.coords()[0] + offset) % points as i64);
            IndexSpace::from_rects(rows.map(|row| Rect::<1>::from(row..row + 1)))
        })?;
        let before = locks::taken();
        cx.index_launch(points, copy_from_afar(&far, &pieces));
        cx.index_launch(points, touch(&pieces));
        cx.execution_fence().await?;
        Ok(locks::taken() - before)
    });
    counted.unwrap()
}

/// The table that knows which sets of points overlap takes a lock for each question.
#[test]
fn twice_the_points_that_read_here_and_there_are_twice_the_work_and_not_four_times() {
    let _alone = alone();
    let (few, many) = (locks_of_scattered_reads(600), locks_of_scattered_reads(1200));
    println!("{few} locks for 600 points, {many} for 1200");
    assert!(2 * many <= 5 * few, "{few} locks for 600 points, {many} for 1200");
}
