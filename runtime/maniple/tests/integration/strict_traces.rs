//! A strict trace tells the program which launch keeps it from being replayed, and changes nothing else.

use std::future::Future as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{self, Waker};

use maniple::mapper::{Mapper, TaskInfo};
use maniple::prelude::*;
use maniple::{Machine, ProcessorId};

#[derive(Fields)]
struct Cell {
    value: i64,
    other: i64,
    pair: [u8; 2],
}

#[task(leaf)]
fn add(#[writes(value)] cells: Piece<Cell>, amount: i64) {
    cells.points().for_each(|point| cells.value[point] += amount);
}

#[task(leaf)]
fn double(#[writes(value)] cells: Piece<Cell>) {
    cells.points().for_each(|point| cells.value[point] *= 2);
}

#[task(leaf)]
fn swap(#[writes(value, other)] cells: Piece<Cell>) {
    for point in cells.points() {
        std::mem::swap(&mut cells.value[point], &mut cells.other[point]);
    }
}

/// Launches another task, though it need not.
#[task]
async fn add_by_another(cx: &Context, #[writes(value)] cells: Region<Cell>, amount: i64) -> Result<()> {
    cx.launch(add(&cells, amount)).await
}

/// The region of the programs below, and its partitions.
struct Cells {
    all: Region<Cell>,
    halves: Partition<Cell>,
    quarters: Partition<Cell>,
}

const CELLS: usize = 8;

impl Cells {
    fn new(cx: &Context) -> Result<Self> {
        let all = cx.region::<Cell>(CELLS)?;
        cx.fill(&all, Cell::value, 0)?;
        cx.fill(&all, Cell::other, 0)?;
        let (halves, quarters) = (all.partition(2).equal()?, all.partition(4).equal()?);
        Ok(Self { all, halves, quarters })
    }

    async fn values(&self, cx: &Context) -> Result<Vec<i64>> {
        Ok(cx.map_read(&self.all, Cell::value).await?.to_vec())
    }
}

/// The steps of most programs below: one to all cells.
fn step(cx: &Context, cells: &Cells) {
    cx.index_launch(2, add(&cells.halves, 1));
    cx.index_launch(2, double(&cells.halves));
}

/// The value of a cell after so many steps.
fn after(steps: u32) -> i64 {
    (0..steps).fold(0, |value, _| 2 * (value + 1))
}

fn runtime() -> Runtime {
    Runtime::builder().workers(2).build().expect("two workers can be started")
}

/// Runs the usual step so often that it is replayed, then something else under the same name, then the usual step once
/// more. Gives what was said about the other.
fn verdict(other: impl Fn(&Context, &Cells)) -> Error {
    let runtime = runtime();
    let said = runtime.run(async |cx| {
        let cells = Cells::new(cx)?;
        for _ in 0..10 {
            cx.strict_trace("step", |cx| step(cx, &cells))?;
        }
        let said = cx.strict_trace("step", |cx| other(cx, &cells)).expect_err("that was not the step");
        cx.strict_trace("step", |cx| step(cx, &cells)).expect("that was the step again");
        Ok(said)
    });
    assert!(runtime.statistics().replays > 0, "{:?}", runtime.statistics());
    said.expect("nothing fails but the check")
}

/// Which launch differs, what was expected, and what was found.
fn difference(other: impl Fn(&Context, &Cells)) -> (usize, String, String) {
    match verdict(other) {
        Error::TraceDiffers { trace: "step", launch, expected, found } => (launch, expected, found),
        error => panic!("{error}"),
    }
}

/// After how many launches something was found that is never replayed, and what.
fn obstacle(other: impl Fn(&Context, &Cells)) -> (usize, String) {
    match verdict(other) {
        Error::NotReplayable { trace: "step", launches, found } => (launches, found),
        error => panic!("{error}"),
    }
}

#[test]
fn runs_that_launch_the_same_are_replayed_and_give_what_the_body_returns() {
    let runtime = runtime();
    let outcome = runtime.run(async |cx| {
        let cells = Cells::new(cx)?;
        let mut last = 0;
        for number in 0..20 {
            last = cx.strict_trace("step", |cx| {
                step(cx, &cells);
                number
            })?;
        }
        Ok((last, cells.values(cx).await?))
    });
    assert_eq!(outcome.expect("nothing fails"), (19, vec![after(20); CELLS]));
    assert!(runtime.statistics().replays > 15, "{:?}", runtime.statistics());
}

#[test]
fn arguments_and_futures_may_differ() {
    let outcome = runtime().run(async |cx| {
        let cells = Cells::new(cx)?;
        let (one, two) = (cx.launch(identity(1)), cx.launch(identity(2)));
        for amount in [&one, &two] {
            cx.strict_trace("add", |cx| cx.index_launch(2, add(&cells.halves, amount)))?;
        }
        cx.strict_trace("add", |cx| cx.index_launch(2, add(&cells.halves, 4)))?;
        cells.values(cx).await
    });
    assert_eq!(outcome.expect("nothing differs that counts"), [7; CELLS]);
}

#[task(leaf)]
fn identity(value: i64) -> i64 {
    value
}

#[test]
fn another_task_is_told_by_its_name() {
    let (launch, expected, found) = difference(|cx, cells| {
        cx.index_launch(2, add(&cells.halves, 1));
        cx.index_launch(2, swap(&cells.halves));
    });
    assert_eq!((launch, &*expected, &*found), (1, "task `double`", "task `swap`"));
}

#[test]
fn another_domain_is_told() {
    let (launch, expected, found) = difference(|cx, cells| {
        cx.index_launch(1, add(&cells.halves, 1));
        cx.index_launch(2, double(&cells.halves));
    });
    assert_eq!(launch, 0);
    assert_eq!((&*expected, &*found), ("task `add` over (0)..=(1)", "task `add` over (0)..=(0)"));
}

#[test]
fn other_data_is_told_by_the_requirement() {
    let (launch, expected, found) = difference(|cx, cells| {
        cx.index_launch(2, add(&cells.quarters, 1));
        cx.index_launch(2, double(&cells.halves));
    });
    assert_eq!(launch, 0);
    let told = "task `add` whose requirement 0 writes field(s) value of ";
    assert!(expected.starts_with(told) && found.starts_with(told) && expected != found, "{expected}; {found}");
}

#[test]
fn a_single_launch_is_not_an_index_launch() {
    let said = runtime().run(async |cx| {
        let cells = Cells::new(cx)?;
        cx.strict_trace("step", |cx| drop(cx.index_launch(1, add(&cells.all, 1))))?;
        Ok(cx.strict_trace("step", |cx| drop(cx.launch(add(&cells.all, 1)))).expect_err("it is of another kind"))
    });
    let said = said.expect("nothing fails but the check");
    let Error::TraceDiffers { launch: 0, expected, found, .. } = said else { panic!("{said}") };
    assert_eq!((&*expected, &*found), ("an index launch of task `add`", "a single launch of task `add`"));
}

#[test]
fn another_tag_is_told() {
    let (launch, expected, found) = difference(|cx, cells| {
        cx.index_launch(2, add(&cells.halves, 1));
        cx.index_launch(2, double(&cells.halves).tag(7));
    });
    assert_eq!((launch, &*expected, &*found), (1, "task `double` with tag 0", "task `double` with tag 7"));
}

#[task(leaf)]
fn look(#[reads(value)] cells: Piece<Cell>) -> i64 {
    cells.points().map(|point| cells.value[point]).sum()
}

#[test]
fn a_projection_that_is_made_anew_for_each_run_differs() {
    let said = runtime().run(async |cx| {
        let cells = Cells::new(cx)?;
        let run = || {
            let body = |cx: &Context| cx.index_launch(2, look(cells.halves.project(|point| point)));
            cx.strict_trace("mirrored", body).map(drop)
        };
        run()?;
        Ok(run().expect_err("the function is another object"))
    });
    let said = said.expect("nothing fails but the check").to_string();
    assert!(said.contains("another projection"), "{said}");
}

#[test]
fn fewer_launches_are_told_by_the_first_that_is_missing() {
    let (launch, expected, found) = difference(|cx, cells| {
        cx.index_launch(2, add(&cells.halves, 1));
    });
    assert_eq!((launch, &*expected, &*found), (1, "task `double`", "the end of the run after 1 launch(es)"));
}

#[test]
fn more_launches_are_told_by_the_first_that_is_too_many() {
    let (launch, expected, found) = difference(|cx, cells| {
        step(cx, cells);
        cx.index_launch(2, swap(&cells.halves));
        cx.index_launch(2, add(&cells.halves, 1));
    });
    assert_eq!((launch, &*expected, &*found), (2, "the end of the run after 2 launch(es)", "task `swap`"));
}

#[test]
fn the_first_of_several_differences_is_told() {
    let (launch, _, found) = difference(|cx, cells| {
        cx.index_launch(2, swap(&cells.halves));
        cx.index_launch(2, add(&cells.halves, 1));
        cx.index_launch(2, swap(&cells.halves));
    });
    assert_eq!((launch, &*found), (0, "task `swap`"));
}

#[test]
fn a_fill_in_a_run_is_part_of_it() {
    let outcome = runtime().run(async |cx| {
        let cells = Cells::new(cx)?;
        let run = |value: i64| {
            cx.strict_trace("step", |cx| {
                cx.index_launch(2, add(&cells.halves, 1));
                cx.fill(&cells.all, Cell::other, value).expect("the field is there");
                cx.index_launch(2, double(&cells.halves));
            })
        };
        (0..10).try_for_each(|_| run(3))?;
        let other = run(4).expect_err("it is another value");
        let left_out = cx.strict_trace("step", |cx| {
            cx.index_launch(2, add(&cells.halves, 1));
            cx.index_launch(2, double(&cells.halves));
        });
        Ok([other.to_string(), left_out.expect_err("there is no fill").to_string()])
    });
    let [other, left_out] = outcome.expect("nothing fails but the check");
    assert!(other.contains("fill of field(s) other") && other.contains("but with another value"), "{other}");
    assert!(left_out.contains("fill of field(s) other") && left_out.contains("found task `double`"), "{left_out}");
}

#[test]
fn a_fill_with_a_value_that_cannot_be_compared_is_told() {
    let (launches, found) = obstacle(|cx, cells| {
        cx.index_launch(2, add(&cells.halves, 1));
        cx.fill(&cells.all, Cell::pair, [3, 4]).expect("the field is there");
    });
    assert_eq!(launches, 1);
    assert!(found.contains("neither zero nor a number"), "{found}");
}

#[test]
fn a_fence_in_a_run_is_told() {
    let found = obstacle(|cx, cells| {
        step(cx, cells);
        cx.execution_fence();
    });
    assert_eq!(found, (2, "a fence".to_owned()));
}

#[test]
fn an_inline_mapping_in_a_run_is_told() {
    let found = obstacle(|cx, cells| {
        let mapping = pin!(cx.map_read(&cells.all, Cell::other));
        // It is asked for when the future is first looked at.
        let _ = mapping.poll(&mut task::Context::from_waker(Waker::noop()));
        step(cx, cells);
    });
    assert_eq!(found, (0, "an inline mapping".to_owned()));
}

#[test]
fn the_destruction_of_a_region_in_a_run_is_told() {
    let outcome = runtime().run(async |cx| {
        let region = cx.region::<Cell>(3)?;
        let told = cx.strict_trace("step", |cx| {
            cx.launch(add(&region, 1));
            cx.destroy_region(&region).expect("it was made here");
        });
        match told.expect_err("the region is used") {
            Error::NotReplayable { launches, found, .. } => Ok((launches, found)),
            other => Err(other),
        }
    });
    assert_eq!(outcome.expect("nothing fails but the check"), (1, "the destruction of a region".to_owned()));
}

#[test]
fn the_destruction_of_a_region_that_a_run_does_not_use_is_none_of_its() {
    let runtime = runtime();
    let outcome = runtime.run(async |cx| {
        let cells = Cells::new(cx)?;
        for _ in 0..30 {
            cx.strict_trace("step", |cx| {
                let region = cx.region::<Cell>(3)?;
                step(cx, &cells);
                cx.destroy_region(&region)
            })??;
        }
        Ok(())
    });
    outcome.expect("nothing differs");
    assert!(runtime.statistics().replays > 20, "{:?}", runtime.statistics());
}

#[test]
fn an_explicit_copy_is_a_launch_like_others() {
    let runtime = runtime();
    let outcome = runtime.run(async |cx| {
        let cells = Cells::new(cx)?;
        for _ in 0..10 {
            cx.strict_trace("step", |cx| {
                step(cx, &cells);
                cx.copy(cells.all.field(Cell::value), cells.all.field(Cell::other));
            })?;
        }
        Ok(cx.map_read(&cells.all, Cell::other).await?.to_vec())
    });
    assert_eq!(outcome.expect("nothing fails"), [after(10); CELLS]);
    assert!(runtime.statistics().replays > 5, "{:?}", runtime.statistics());
}

#[test]
fn a_task_that_launches_tasks_is_told_in_the_first_run_and_in_each() {
    let outcome = runtime().run(async |cx| {
        let cells = Cells::new(cx)?;
        for _ in 0..3 {
            let said = cx.strict_trace("step", |cx| {
                cx.index_launch(2, add(&cells.halves, 1));
                cx.launch(add_by_another(&cells.all, 1));
            });
            let said = said.map(drop).expect_err("such a task is never replayed");
            let Error::NotReplayable { launches: 1, found, .. } = said else { panic!("{said}") };
            assert_eq!(found, "task `add_by_another`, which launches tasks");
        }
        cells.values(cx).await
    });
    assert_eq!(outcome.expect("nothing fails but the check"), [6; CELLS]);
}

#[test]
fn data_that_the_task_holds_mapped_is_told() {
    let outcome = runtime().run(async |cx| {
        let (cells, apart) = (Cells::new(cx)?, Cells::new(cx)?);
        let held = cx.map_read(&apart.all, Cell::value).await?;
        let said = cx.strict_trace("step", |cx| step(cx, &cells)).expect_err("nothing is replayed meanwhile");
        drop(held);
        cx.strict_trace("step", |cx| step(cx, &cells)).expect("the mapping is gone");
        Ok((said.to_string(), cells.values(cx).await?))
    });
    let (said, values) = outcome.expect("nothing fails but the check");
    assert!(said.contains("a mapping that the launching task holds"), "{said}");
    assert_eq!(values, [after(2); CELLS]);
}

/// Reduces on behalf of its parent, whose data that stays.
#[task]
async fn contribute(cx: &Context, #[reduces(Sum, value)] cells: Region<Cell>) -> Result<String> {
    let pieces = cells.partition(2).equal()?;
    let said = cx.strict_trace("contribute", |cx| cx.index_launch(2, add_one(&pieces)));
    Ok(said.map(drop).expect_err("such data is not replayed on").to_string())
}

#[task(leaf)]
fn add_one(#[reduces(Sum, value)] cells: Piece<Cell>) {
    cells.points().for_each(|point| cells.value.fold(point, 1));
}

#[test]
fn data_that_stays_the_parents_is_told() {
    let outcome = runtime().run(async |cx| {
        let cells = Cells::new(cx)?;
        let said = cx.launch(contribute(&cells.all)).await?;
        Ok((said, cells.values(cx).await?))
    });
    let (said, values) = outcome.expect("nothing fails but the check");
    assert!(said.contains("of which `contribute` has no instance of its own"), "{said}");
    assert_eq!(values, [1; CELLS]);
}

#[test]
fn what_a_refused_run_launched_is_carried_out_and_replays_go_on_afterwards() {
    let runtime = runtime();
    let outcome = runtime.run(async |cx| {
        let cells = Cells::new(cx)?;
        let mut refused = Vec::new();
        for number in 0..60 {
            let run = cx.strict_trace("step", |cx| {
                cx.index_launch(2, add(&cells.halves, 1));
                if number % 20 == 19 {
                    cx.index_launch(4, double(&cells.quarters));
                    cx.index_launch(2, add(&cells.halves, 1));
                }
                cx.index_launch(2, double(&cells.halves));
                cx.index_launch(2, modulo(&cells.halves, 1009));
            });
            if run.is_err() {
                refused.push(number);
            }
        }
        Ok((refused, cells.values(cx).await?))
    });
    let model = |value: i64, number| {
        let value = if number % 20 == 19 { 2 * (value + 1) } else { value };
        2 * (value + 1) % 1009
    };
    let (refused, values) = outcome.expect("nothing fails but the check");
    assert_eq!(refused, [19, 39, 59]);
    assert_eq!(values, [(0..60).fold(0, model); CELLS]);
    assert!(runtime.statistics().replays > 40, "{:?}", runtime.statistics());
}

#[task(leaf)]
fn modulo(#[writes(value)] cells: Piece<Cell>, modulus: i64) {
    cells.points().for_each(|point| cells.value[point] %= modulus);
}

#[test]
fn a_state_of_the_data_that_was_not_recorded_is_no_error() {
    let runtime = runtime();
    let outcome = runtime.run(async |cx| {
        let cells = Cells::new(cx)?;
        for number in 0..30 {
            // A fill before it, now and then, which the recorded run had not.
            if number % 5 == 4 {
                cx.fill(&cells.all, Cell::value, 0)?;
            }
            cx.strict_trace("step", |cx| step(cx, &cells))?;
        }
        cells.values(cx).await
    });
    assert_eq!(outcome.expect("nothing differs that counts"), [after(1); CELLS]);
    assert!(runtime.statistics().recordings > 1, "{:?}", runtime.statistics());
}

#[test]
fn the_verdict_is_the_same_where_traces_are_switched_off() {
    for traced in [true, false] {
        let runtime = Runtime::builder().workers(2).tracing(traced).build().expect("two workers can be started");
        let said = runtime.run(async |cx| {
            let cells = Cells::new(cx)?;
            cx.strict_trace("step", |cx| step(cx, &cells))?;
            cx.strict_trace("step", |cx| step(cx, &cells))?;
            let other = cx.strict_trace("step", |cx| cx.index_launch(2, double(&cells.halves)));
            let filled = cx.strict_trace("fill", |cx| cx.fill(&cells.all, Cell::pair, [0, 1]));
            Ok([other.map(drop), filled.map(drop)].map(|said| said.expect_err("not the step").to_string()))
        });
        let [other, filled] = said.expect("nothing fails but the check");
        assert!(other.contains("expected task `add`, found task `double`"), "traced: {traced}: {other}");
        assert!(filled.contains("a fill"), "traced: {traced}: {filled}");
    }
}

#[test]
fn a_trace_whose_region_was_destroyed_may_use_another_one() {
    let outcome = runtime().run(async |cx| {
        for _ in 0..3 {
            let cells = Cells::new(cx)?;
            for _ in 0..3 {
                cx.strict_trace("step", |cx| step(cx, &cells))?;
            }
            assert_eq!(cells.values(cx).await?, [after(3); CELLS]);
            cx.destroy_region(&cells.all)?;
        }
        let (one, other) = (Cells::new(cx)?, Cells::new(cx)?);
        cx.strict_trace("step", |cx| step(cx, &one))?;
        cx.destroy_region(&Cells::new(cx)?.all)?;
        cx.strict_trace("step", |cx| step(cx, &other)).expect_err("the first region is still there");
        Ok(())
    });
    outcome.expect("nothing fails but the check");
}

#[test]
fn a_run_that_ends_in_a_panic_leaves_the_trace_as_it_was() {
    let outcome = runtime().run(async |cx| {
        let cells = Cells::new(cx)?;
        for _ in 0..2 {
            // Neither as the first run nor as a later one.
            let body = |cx: &Context| {
                cx.index_launch(2, double(&cells.halves));
                panic!("enough");
            };
            let run = || cx.strict_trace("step", body);
            catch_unwind(AssertUnwindSafe(run)).expect_err("it panics");
            cx.strict_trace("step", |cx| step(cx, &cells)).expect("the step is what it was");
        }
        cells.values(cx).await
    });
    assert_eq!(outcome.expect("nothing fails but the check"), [2 * (2 * 2 + 1); CELLS]);
}

#[test]
fn strict_traces_within_others_are_compared_each_by_itself() {
    let outcome = runtime().run(async |cx| {
        let cells = Cells::new(cx)?;
        let mut refused = Vec::new();
        for number in 0..4 {
            let outer = cx.strict_trace("outer", |cx| {
                let inner = cx.strict_trace("inner", |cx| {
                    let pieces = if number == 2 { &cells.quarters } else { &cells.halves };
                    cx.index_launch(2, double(pieces));
                });
                refused.extend(inner.is_err().then_some((number, "inner")));
                if number == 1 {
                    cx.index_launch(2, double(&cells.halves));
                }
            });
            refused.extend(outer.is_err().then_some((number, "outer")));
        }
        Ok(refused)
    });
    assert_eq!(outcome.expect("nothing fails but the check"), [(1, "outer"), (2, "inner"), (2, "outer")]);
}

#[test]
fn a_panic_within_a_trace_within_another_spoils_nothing_of_the_outer_one() {
    let outcome = runtime().run(async |cx| {
        let cells = Cells::new(cx)?;
        let run = |times: usize| {
            cx.strict_trace("outer", |cx| {
                let panics = || cx.strict_trace("inner", |_| panic!("enough"));
                catch_unwind(AssertUnwindSafe(panics)).map(drop).expect_err("it panics");
                (0..times).for_each(|_| drop(cx.index_launch(2, double(&cells.halves))));
            })
        };
        run(1)?;
        run(1)?;
        Ok(run(2).expect_err("that is one launch more"))
    });
    let said = outcome.expect("nothing fails but the check");
    assert!(matches!(said, Error::TraceDiffers { trace: "outer", launch: 1, .. }), "{said}");
}

/// Doubles, or has it done.
#[task(leaf)]
fn double_somehow(#[writes(value)] cells: Piece<Cell>) {
    cells.points().for_each(|point| cells.value[point] *= 2);
}

#[task(variant_of(double_somehow))]
async fn double_by_another(cx: &Context, #[writes(value)] cells: Region<Cell>) -> Result<()> {
    cx.launch(double(&cells)).await
}

/// Chooses the variant that launches.
#[derive(Clone)]
struct Delegates;

impl Mapper for Delegates {
    fn select_variant(&mut self, task: &TaskInfo<'_>, _: ProcessorId, _: &Machine) -> usize {
        task.variants.iter().position(|variant| !variant.is_leaf).unwrap_or(0)
    }
}

/// The error of a strict trace whose second launch is mapped to a variant that launches.
fn is_told_of_the_variant(error: &Error) -> bool {
    matches!(error, Error::NotReplayable { trace: "step", launches: 1, found } if found.contains("`double_somehow`") && found.contains("mapper"))
}

#[test]
fn a_mapper_that_chooses_a_variant_that_launches_tasks_is_an_error() {
    for tracing in [false, true] {
        let runtime = Runtime::builder().workers(2).tracing(tracing).mapper(Delegates).build().expect("it starts");
        // The next run that ends after the launch has been mapped tells it, and all is carried out.
        let outcome = runtime.run(async |cx| {
            let cells = Cells::new(cx)?;
            let (mut steps, mut told) = (0, None);
            while told.is_none() {
                let run = cx.strict_trace("step", |cx| {
                    cx.index_launch(2, add(&cells.halves, 1));
                    cx.index_launch(2, double_somehow(&cells.halves));
                });
                cx.execution_fence().await?;
                steps += 1;
                told = run.err();
            }
            assert!(told.as_ref().is_some_and(is_told_of_the_variant), "{told:?}");
            assert!(steps <= 2);
            assert_eq!(cells.values(cx).await?, [after(steps); CELLS]);
            Ok(())
        });
        outcome.expect("it was told");
        // Without another run, the program ends with it.
        let outcome = runtime.run(async |cx| {
            let cells = Cells::new(cx)?;
            let run = cx.strict_trace("step", |cx| {
                cx.index_launch(2, add(&cells.halves, 1));
                cx.index_launch(2, double_somehow(&cells.halves));
            });
            run.inspect_err(|error| assert!(is_told_of_the_variant(error), "{error}"))
        });
        assert!(outcome.as_ref().is_err_and(is_told_of_the_variant), "{outcome:?}");
    }
}
