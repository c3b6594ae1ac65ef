//! Tests of the record of traces: launches that are replayed are on record like others, and the record proves that the
//! run was right.

use std::collections::BTreeSet;

use maniple::mapper::DefaultMapper;
use maniple::prelude::*;
use maniple::record::{Graph, Kind, OperationNumber, Record, check};

use maniple::{Future, IntoArgument};

#[derive(Fields)]
struct Cell {
    old: i64,
    new: i64,
    sum: i64,
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
) -> i64 {
    cells.points().for_each(|point| cells.old[point] = cells.new[point]);
    cells.points().map(|point| cells.old[point]).sum()
}

#[task(leaf)]
fn spread(#[reads(old)] cells: Piece<Cell>, #[reduces(Sum, sum)] near: Piece<Cell>) {
    let sum: i64 = cells.points().map(|point| cells.old[point]).sum();
    near.points().for_each(|point| near.sum.fold(point, sum % 97));
}

#[task(leaf)]
fn gather(
    #[reads(sum)]
    #[writes(old)]
    cells: Piece<Cell>,
    factor: i64,
) -> Result<i64> {
    if factor == 7 {
        return Err(Error::application("it had enough"));
    }
    cells.points().for_each(|point| cells.old[point] = (cells.old[point] * factor + cells.sum[point]) % 1009);
    Ok(cells.points().map(|point| cells.old[point]).sum())
}

#[task(leaf)]
fn look(#[reads(old)] cells: Piece<Cell>) -> i64 {
    cells.points().map(|point| cells.old[point]).sum()
}

#[task(leaf)]
fn take(value: i64) -> i64 {
    value
}

#[task(leaf)]
fn double(#[writes(old)] cells: Piece<Cell>) {
    cells.points().for_each(|point| cells.old[point] = cells.old[point] * 2 % 1009);
}

#[task]
async fn many_steps(cx: &Context, #[writes(old)] cells: Region<Cell>) -> Result<()> {
    let halves = cells.partition(2).equal()?;
    for _ in 0..10 {
        cx.trace("double", |cx| cx.index_launch(2, double(&halves)));
    }
    Ok(())
}

/// A region in five tiles, with and without the cells beside each.
struct Cells {
    all: Region<Cell>,
    tiles: Partition<Cell>,
    near: Partition<Cell>,
}

impl Cells {
    fn new(cx: &Context) -> Result<Self> {
        let all = cx.region::<Cell>(40)?;
        let (tiles, near) = (all.blocks([8])?, all.tiles([8], [1])?);
        cx.fill(&all, Cell::old, 7)?;
        cx.fill(&all, Cell::sum, 0)?;
        Ok(Self { all, tiles, near })
    }

    /// One step of a stencil.
    fn step(&self, cx: &Context, factor: i64) -> Future<i64> {
        let Self { tiles, near, .. } = self;
        cx.index_launch(tiles.colors(), blur(near, tiles, factor));
        cx.index_launch(tiles.colors(), keep(tiles)).reduce(Sum)
    }

    /// One step of a program with reductions.
    fn reduce(&self, cx: &Context, factor: impl IntoArgument<i64>) -> Future<i64> {
        let Self { tiles, near, .. } = self;
        cx.index_launch(tiles.colors(), spread(tiles, near));
        cx.index_launch(tiles.colors(), gather(tiles, factor)).reduce(Sum)
    }
}

/// Runs a program in runtimes of several kinds, so that data is copied within and between launches or not. Records must
/// prove that it was right, and show at least so many replays.
fn prove(replays: u64, program: impl AsyncFn(&Context, &Cells) -> Result<()>) -> Vec<Record> {
    let two = || Runtime::builder().workers(2);
    let builders = [Runtime::builder().workers(1), two(), two().mapper(DefaultMapper::piecewise()), two().window(3)];
    let records = builders.into_iter().enumerate().map(|(number, builder)| {
        let runtime = builder.record_operations(true).build().unwrap();
        runtime.run(async |cx| program(cx, &Cells::new(cx)?).await).unwrap();
        let record = runtime.take_record();
        if let Err(violation) = check(&record) {
            panic!("runtime {number}: {violation}\n{record}");
        }
        assert!(runtime.statistics().replays >= replays, "runtime {number}: {:?}", runtime.statistics());
        record
    });
    records.collect()
}

/// All operations that come before one.
fn before(record: &Record, operation: OperationNumber) -> BTreeSet<OperationNumber> {
    let (mut all, mut open) = (BTreeSet::new(), vec![operation]);
    while let Some(next) = open.pop() {
        let after = &record.operation(next).unwrap().after;
        open.extend(after.iter().filter(|earlier| all.insert(**earlier)));
    }
    all
}

fn tasks(record: &Record, name: &str) -> Vec<OperationNumber> {
    let named =
        record.numbered().filter(|(_, operation)| matches!(&operation.kind, Kind::Task(task) if task.name == name));
    named.map(|(number, _)| number).collect()
}

#[test]
fn loops_of_traces_are_proved_right() {
    prove(40, async |cx, cells| {
        for step in 0..30 {
            cx.trace("step", |cx| cells.step(cx, step));
        }
        for _ in 0..30 {
            cx.trace("reduce", |cx| cells.reduce(cx, 3));
        }
        Ok(())
    });
}

#[test]
fn loops_that_nobody_has_marked_are_proved_right() {
    prove(10, async |cx, cells| {
        for step in 0..60 {
            cells.step(cx, step);
        }
        for _ in 0..60 {
            cells.reduce(cx, 3);
        }
        Ok(())
    });
}

#[test]
fn replays_come_after_the_results_that_they_take() {
    let records = prove(20, async |cx, cells| {
        let mut factor = cx.launch(look(&cells.all)).map(|sum| sum % 5);
        for _ in 0..30 {
            factor = cx.trace("reduce", |cx| cells.reduce(cx, &factor)).map(|sum| sum % 5);
        }
        cx.launch(take(factor)).await?;
        Ok(())
    });
    for record in records {
        let gathers = tasks(&record, "gather");
        for (step, points) in gathers.chunks(5).enumerate() {
            let earlier: Vec<_> = points.iter().map(|point| before(&record, *point)).collect();
            let results = &gathers[..5 * step];
            assert!(earlier.iter().all(|earlier| results.iter().all(|result| earlier.contains(result))), "step {step}");
        }
        let earlier = before(&record, tasks(&record, "take")[0]);
        assert!(gathers.iter().all(|gather| earlier.contains(gather)));
    }
}

#[test]
fn what_is_launched_after_replays_comes_after_all_of_them_and_they_after_what_was_launched_before() {
    let records = prove(10, async |cx, cells| {
        for step in 0..20 {
            cx.launch(take(step));
            cx.trace("step", |cx| cells.step(cx, 2));
        }
        cx.launch(take(20));
        Ok(())
    });
    for record in records {
        // They use no data in common: it is what a trace does.
        let (takes, keeps) = (tasks(&record, "take"), tasks(&record, "keep"));
        for (step, keeps) in keeps.chunks(5).enumerate().filter(|(_, keeps)| record.replayed.contains(&keeps[0])) {
            assert!(keeps.iter().all(|keep| before(&record, *keep).contains(&takes[step])));
            let earlier = before(&record, takes[step + 1]);
            assert!(keeps.iter().all(|keep| earlier.contains(keep)));
        }
    }
}

#[test]
fn launches_that_are_replayed_are_drawn_behind_those_that_their_nodes_wait_for() {
    let records = prove(5, async |cx, cells| {
        (0..8).for_each(|_| drop(cx.trace("step", |cx| cells.step(cx, 2))));
        cx.launch(look(&cells.all));
        Ok(())
    });
    for record in records {
        let graph = Graph::of_launches(&record, false);
        let name = |node: usize| graph.nodes[node].label[0].as_str();
        let before = |node: usize| -> Vec<&str> {
            graph.edges.iter().filter(|edge| edge.to == node).map(|edge| name(edge.from)).collect()
        };
        let last = |wanted: &str| (0..graph.nodes.len()).rfind(|&node| name(node) == wanted).unwrap();
        assert_eq!(before(last("blur")), ["keep"]);
        assert_eq!(before(last("keep")), ["blur"]);
        assert_eq!(before(last("look")), ["end of trace"]);
        assert_eq!(before(last("end of trace")), ["trace"]);
        assert_eq!(before(last("trace")), ["keep"]);
        // Nothing is drawn beside the steps: each follows upon the one before.
        assert_eq!(graph.edges.len(), graph.nodes.len() - 1, "{}", graph.to_dot());
    }
}

#[test]
fn traces_that_leave_the_data_otherwise_than_they_found_it_are_proved_right() {
    prove(10, async |cx, cells| {
        let Cells { tiles, near, .. } = cells;
        for _ in 0..20 {
            // Contributions are pending at the end, and none were at the beginning.
            cx.trace("contribute", |cx| cx.index_launch(tiles.colors(), spread(tiles, near)));
            cx.index_launch(tiles.colors(), gather(tiles, 3));
        }
        Ok(())
    });
}

#[test]
fn traces_that_find_the_data_in_several_states_are_proved_right() {
    prove(20, async |cx, cells| {
        for step in 0..40 {
            if step % 3 == 0 {
                // Leaves a copy of all behind, or not, as the mapper likes.
                cx.launch(look(&cells.all));
            }
            cx.trace("reduce", |cx| cells.reduce(cx, 3));
            cx.launch(look(&cells.tiles.piece(step % 2)?));
        }
        Ok(())
    });
}

#[test]
fn traces_that_are_left_in_the_middle_are_proved_right() {
    prove(10, async |cx, cells| {
        let Cells { tiles, near, .. } = cells;
        for step in 0..40 {
            cx.trace("step", |cx| {
                cx.index_launch(tiles.colors(), spread(tiles, near));
                match step % 8 {
                    3 => return,
                    5 => drop(cx.index_launch(tiles.colors(), look(tiles))),
                    7 => drop(cx.execution_fence()),
                    _ => {}
                }
                cx.index_launch(tiles.colors(), gather(tiles, 3));
                cells.step(cx, step);
            });
        }
        Ok(())
    });
}

#[test]
fn traces_in_which_tasks_fail_are_proved_right() {
    prove(20, async |cx, cells| {
        let mut results = Vec::new();
        for step in 0..40 {
            results.push(cx.trace("reduce", |cx| cells.reduce(cx, if step == 20 { 7 } else { 3 })));
            if step == 30 {
                cx.fill(&cells.all, Cell::old, 1)?;
                cx.fill(&cells.all, Cell::sum, 1)?;
            }
        }
        let mut failed = Vec::new();
        for (step, result) in results.into_iter().enumerate() {
            failed.extend(result.await.err().map(|_| step));
        }
        assert_eq!(failed, (20..=30).collect::<Vec<_>>());
        Ok(())
    });
}

#[test]
fn results_that_come_too_late_or_fail_are_on_record_like_others() {
    prove(20, async |cx, cells| {
        let mut results = Vec::new();
        for step in 0..40 {
            let factor = cx.launch(take(step)).map(|step| step % 5);
            results.push(cx.trace("reduce", |cx| cells.reduce(cx, &factor)));
            let failed = results[step as usize].map(|sum| 1 / (sum - sum));
            if step == 35 {
                results.push(cx.trace("reduce", |cx| cells.reduce(cx, &failed)));
            }
        }
        let mut failures = 0;
        for result in results {
            failures += u64::from(result.await.is_err());
        }
        assert_eq!(failures, 5);
        Ok(())
    });
}

#[test]
fn tasks_with_traces_of_their_own_are_proved_right() {
    prove(60, async |cx, cells| {
        for _ in 0..3 {
            cx.index_launch(cells.tiles.colors(), many_steps(&cells.tiles));
        }
        Ok(())
    });
}

#[task]
async fn make(cx: &Context) -> Result<Region<Cell>> {
    let cells = cx.region::<Cell>(40)?;
    cx.fill(&cells, Cell::old, 1)?;
    for _ in 0..10 {
        cx.trace("double", |cx| cx.launch(double(&cells)));
    }
    Ok(cells)
}

#[test]
fn what_a_task_leaves_to_its_parent_after_replays_is_used_after_them() {
    prove(5, async |cx, _| {
        let cells = cx.launch(make()).await?;
        assert_eq!(cx.map_read(&cells, Cell::old).await?.to_vec(), [1024 % 1009; 40]);
        cx.launch(look(&cells));
        Ok(())
    });
}
