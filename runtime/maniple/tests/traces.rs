//! Traces change what things cost, and nothing else.

use maniple::prelude::*;

#[derive(Fields)]
struct Cell {
    old: i64,
    new: i64,
}

/// `near` reaches one cell further on either side.
#[task(leaf)]
fn blur(#[reads(old)] near: Piece<Cell>, #[discards(new)] cells: Piece<Cell>, factor: i64) {
    for point in cells.points() {
        let beside = |offset| near.old.get(point[0] + offset).unwrap_or(1);
        cells.new[point] = (beside(-1) + factor * beside(0) + beside(1)) % 1_000_003;
    }
}

#[task(leaf)]
fn keep(
    #[reads(new)]
    #[writes(old)]
    cells: Piece<Cell>,
) {
    cells.points().for_each(|point| cells.old[point] = cells.new[point]);
}

#[task(leaf)]
fn total(#[reads(old)] cells: Piece<Cell>) -> i64 {
    cells.points().map(|point| cells.old[point]).sum()
}

const CELLS: i64 = 40;

/// The same on an array.
fn expected(steps: i64) -> Vec<i64> {
    let mut old = vec![7; CELLS as usize];
    for step in 0..steps {
        let at = |cell: i64| if (0..CELLS).contains(&cell) { old[cell as usize] } else { 1 };
        old = (0..CELLS).map(|cell| (at(cell - 1) + step * at(cell) + at(cell + 1)) % 1_000_003).collect();
    }
    old
}

/// How a program marks its steps.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Marks {
    Named,
    None,
}

/// Runs some steps; a total is taken now and then, which no trace has.
fn run(runtime: &Runtime, steps: i64, look_every: i64, marks: Marks) -> (Vec<i64>, Vec<i64>) {
    let outcome = runtime.run(async |cx| {
        let cells = cx.region::<Cell>(CELLS as usize)?;
        let tiles = cells.blocks([8])?;
        let near = cells.tiles([8], [1])?;
        cx.fill(&cells, Cell::old, 7)?;
        let mut totals = Vec::new();
        for step in 0..steps {
            let body = |cx: &Context| {
                cx.index_launch(tiles.colors(), blur(&near, &tiles, step));
                cx.index_launch(tiles.colors(), keep(&tiles));
            };
            match marks {
                Marks::Named => cx.trace("step", body),
                Marks::None => body(cx),
            }
            if step % look_every == look_every - 1 {
                totals.push(cx.index_launch(tiles.colors(), total(&tiles)).reduce(Sum));
            }
        }
        let mut sums = Vec::new();
        for total in totals {
            sums.push(total.await?);
        }
        Ok((cx.map_read(&cells, Cell::old).await?.to_vec(), sums))
    });
    outcome.expect("nothing fails")
}

#[test]
fn a_traced_loop_computes_what_the_untraced_one_does() {
    for workers in [1, 2, 4] {
        for marks in [Marks::Named, Marks::None] {
            for look_every in [1, 7, 1000] {
                let runtime = Runtime::builder().workers(workers).build().expect("there are threads");
                let (values, sums) = run(&runtime, 60, look_every, marks);
                assert_eq!(values, expected(60), "{workers} workers, {marks:?}, a look every {look_every}");
                let totals =
                    (1..=60).filter(|step| step % look_every == 0).map(|step| expected(step).iter().sum::<i64>());
                assert_eq!(sums, totals.collect::<Vec<_>>());
                let statistics = runtime.statistics();
                assert!(
                    statistics.replays > 0,
                    "{workers} workers, {marks:?}, a look every {look_every}: {statistics:?}"
                );
            }
        }
    }
}

#[test]
fn nearly_all_steps_of_a_traced_loop_are_replayed() {
    let runtime = Runtime::builder().workers(2).build().expect("there are threads");
    run(&runtime, 200, 1000, Marks::Named);
    let statistics = runtime.statistics();
    assert!(statistics.replays >= 195, "{statistics:?}");
    assert!(statistics.recordings <= 3, "{statistics:?}");
}

#[test]
fn nothing_is_traced_where_that_is_switched_off() {
    let runtime = Runtime::builder().workers(2).tracing(false).build().expect("there are threads");
    let (values, _) = run(&runtime, 30, 10, Marks::Named);
    assert_eq!(values, expected(30));
    assert_eq!(runtime.statistics().replays, 0);
}
