//! Tests of replays: the work that they are spared, and the events that they may wait for.

use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use maniple::prelude::*;
use maniple_tests::circuit::Circuit;

/// Runs a step, as a trace if it is to be marked.
fn run(cx: &Context, marked: bool, step: impl Fn(&Context)) {
    if marked { cx.trace("step", step) } else { step(cx) }
}

#[test]
fn no_tree_is_walked_and_no_mapper_asked_for_what_is_replayed() {
    for marked in [true, false] {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let (before, after) = runtime
            .run(async |cx| {
                let circuit = Circuit::new(cx, 16)?;
                // More than the window, so that the first of them have ended when the last is launched.
                let steps = || (0..1_000).for_each(|_| run(cx, marked, |cx| _ = circuit.step(cx, 16)));
                steps();
                let before = runtime.statistics();
                steps();
                Ok((before, runtime.statistics()))
            })
            .unwrap();
        assert!(after.launches > before.launches && after.replays > before.replays + 50, "{after:?}");
        assert_eq!((after.logical_visits, after.mapper_calls), (before.logical_visits, before.mapper_calls));
    }
}

#[derive(Fields)]
struct Cell {
    value: u64,
}

/// A barrier at which all points of a launch wait until all have begun.
#[derive(Default)]
struct Meeting {
    begun: Mutex<u64>,
    more: Condvar,
}

#[task(leaf)]
fn meet(#[writes(value)] cells: Piece<Cell>, until: u64, meeting: Arc<Meeting>) {
    let mut begun = meeting.begun.lock().unwrap();
    *begun += 1;
    meeting.more.notify_all();
    drop(meeting.more.wait_while(begun, |begun| *begun < until).unwrap());
    cells.points().for_each(|cell| cells.value[cell] += 1);
}

/// Launches of as many points as there are workers, of which none ends before all of its launch have begun.
fn points_that_meet(workers: usize, steps: u64) {
    for (traced, marked) in [(false, false), (true, true), (true, false)] {
        let meeting = Arc::new(Meeting::default());
        let runtime = Runtime::builder().workers(workers).tracing(traced).build().unwrap();
        let values = runtime.run(async |cx| {
            let cells = cx.region::<Cell>(workers)?;
            let pieces = cells.partition(workers).equal()?;
            cx.fill(&cells, Cell::value, 0)?;
            for step in 1..=steps {
                let until = step * workers as u64;
                run(cx, marked, |cx| _ = cx.index_launch(workers, meet(&pieces, until, Arc::clone(&meeting))));
            }
            Ok(cx.map_read(&cells, Cell::value).await?.to_vec())
        });
        assert_eq!(values.unwrap(), vec![steps; workers], "traced: {traced}, marked: {marked}");
        assert_eq!(runtime.statistics().replays > 0, traced);
    }
}

fn cores() -> usize {
    thread::available_parallelism().unwrap().get()
}

#[test]
fn points_that_wait_for_one_another_all_begin_where_there_are_more_workers_than_cores() {
    points_that_meet(2 * cores(), 60);
    points_that_meet(3 * cores() + 1, 40);
}

#[test]
fn points_that_wait_for_one_another_all_begin_where_each_worker_has_a_core() {
    points_that_meet(cores(), 500);
}
