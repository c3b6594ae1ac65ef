//! A job that has failed leaves no threads behind in a process that goes on.

use std::fs;
use std::time::{Duration, Instant};

use maniple::prelude::*;
use maniple_tests::nodes::{Nodes, on_nodes};

#[derive(Fields)]
struct Cell {
    value: i64,
}

#[task(leaf)]
fn add(#[writes(value)] cells: Piece<Cell>) {
    cells.points().for_each(|point| cells.value[point] += 1);
}

#[task(leaf)]
fn total(#[reads(value)] cells: Piece<Cell>, _before: i64) -> i64 {
    cells.points().map(|point| cells.value[point]).sum()
}

/// A task that launches, whose body is under way when the job ends.
#[task]
async fn nested(cx: &Context, #[writes(value)] cells: Region<Cell>) -> Result<i64> {
    cx.launch(add(&cells));
    cx.launch(total(&cells, 0)).await
}

/// Workers of this process, of whatever realm.
fn workers() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    // One that ends meanwhile has no name.
    let names = tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("comm")).ok());
    names.filter(|name| name.starts_with("realm-")).count()
}

#[test]
fn a_job_that_has_failed_leaves_no_workers_behind() {
    let _turn = crate::alone();
    for step in 0..20 {
        let outcomes = on_nodes(Nodes::new(4), async |cx, runtime| {
            let cells = cx.region::<Cell>(64)?;
            let pieces = cx.colors(8);
            let own = cells.partition(pieces).equal()?;
            let near = cells.around(&own, [3])?;
            let mut sum = cx.index_launch(pieces, total(&near, 0)).reduce(Sum);
            for now in 0..20 {
                cx.index_launch(pieces, add(&own));
                cx.launch(nested(&cells));
                // Each step waits for all nodes, and the program does not wait for it here.
                sum = cx.index_launch(pieces, total(&near, sum)).reduce(Sum);
                if now == step && runtime.node() == 2 {
                    return Err(Error::Ended { task: "the program".to_owned() });
                }
            }
            sum.await
        });
        assert!(outcomes.iter().all(std::result::Result::is_err), "step {step}: {outcomes:?}");
    }
    // The system may show one for a moment that has ended.
    let end = Instant::now() + LONG;
    while workers() > 0 {
        assert!(Instant::now() < end, "{} workers are left behind", workers());
        std::thread::yield_now();
    }
}

/// How long the system may take to forget a thread.
const LONG: Duration = Duration::from_secs(20);
