//! The place where a failed operation was launched: errors, records and profiles say it, whichever way the launch went.

use std::panic::Location;

use maniple::prelude::*;
use maniple::profile::Recording;
use maniple::record::Kind;
use maniple::task::{TaskDefinition, TaskOptions, Value};
use maniple::{Error, Machine, TaskLauncher, profile};

#[derive(Fields)]
struct Cell {
    value: i64,
    other: i64,
}

#[task(leaf)]
fn spoil(#[writes(value)] cells: Piece<Cell>, is_bad: bool) -> Result<i64> {
    match is_bad {
        true => Err(Error::application("spoilt")),
        false => Ok(cells.points().count() as i64),
    }
}

#[task(leaf)]
fn panics(#[reads(value)] cells: Piece<Cell>) -> i64 {
    panic!("{} cells are too many", cells.points().count());
}

#[task]
fn free(is_bad: bool) -> Result<i64> {
    if is_bad { Err(Error::application("as always")) } else { Ok(1) }
}

#[task]
async fn launches(cx: &Context, #[reads(value)] cells: Region<Cell>) -> Result<i64> {
    cx.at("below").launch(panics(&cells)).await
}

/// This line, as errors tell it.
#[track_caller]
fn here() -> String {
    let here = Location::caller();
    format!("{}:{}", here.file(), here.line())
}

/// The place that an error names, at which its operation was launched.
fn place(error: &Error) -> String {
    let place = error.provenance().unwrap_or_else(|| panic!("no place: {error}")).to_string();
    assert!(error.to_string().ends_with(&format!(" (launched at {place})")), "{error}");
    place
}

fn runtime() -> Runtime {
    Runtime::builder().machine(Machine::uniform(2, 1 << 24)).build().unwrap()
}

#[test]
fn a_task_that_fails_or_panics_says_where_it_was_launched() {
    runtime()
        .run(async |cx| {
            let cells = cx.region::<Cell>(10)?;
            let pieces = cells.partition(2).equal()?;
            let (failed, line) = (cx.launch(spoil(&cells, true)).await, here());
            assert!(place(&failed.unwrap_err()).starts_with(&line));
            cx.fill(&cells, Cell::value, 1)?;
            let (failed, line) = (cx.index_launch(2, spoil(&pieces, true)).reduce(Sum).await, here());
            assert!(place(&failed.unwrap_err()).starts_with(&line));
            cx.fill(&cells, Cell::value, 1)?;
            let (failed, line) = (cx.launch(panics(&cells)).await, here());
            assert!(place(&failed.unwrap_err()).starts_with(&line));
            let (failed, line) = (cx.launch(free(true)).await, here());
            assert!(place(&failed.unwrap_err()).starts_with(&line), "forked");
            let (failed, line) = (cx.index_launch(3, free(true)).reduce(Sum).await, here());
            assert!(place(&failed.unwrap_err()).starts_with(&line), "without regions");
            Ok(())
        })
        .unwrap();
}

#[test]
fn what_a_program_says_takes_the_place_of_the_line_for_all_that_is_launched_from_the_context() {
    runtime()
        .run(async |cx| {
            let cells = cx.region::<Cell>(10)?;
            let script = cx.at("solver.py:42");
            assert_eq!(place(&script.launch(spoil(&cells, true)).await.unwrap_err()), "solver.py:42");
            assert_eq!(place(&script.launch(free(true)).await.unwrap_err()), "solver.py:42", "not forked");
            assert_eq!(place(&script.at("").launch(free(true)).await.unwrap_err()), "");
            // The context itself is as it was, and another mapper is no other place.
            assert!(place(&cx.launch(free(true)).await.unwrap_err()).contains("provenance.rs:"));
            // The innermost launch is what failed.
            cx.fill(&cells, Cell::value, 1)?;
            assert_eq!(place(&script.launch(launches(&cells)).await.unwrap_err()), "below");
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_launch_that_is_refused_says_where_it_was_made() {
    runtime()
        .run(async |cx| {
            let cells = cx.region::<Cell>(10)?;
            let pieces = cells.partition(2).equal()?;
            let script = cx.at("here");
            let refused = [
                script.launch(spoil(&pieces, false)).await.unwrap_err(),
                script.index_launch(2, spoil(&cells, false)).reduce(Sum).await.unwrap_err(),
                script.launch(free(false).mapper("nobody's")).await.unwrap_err(),
                script.copy(cells.field(Cell::value), cells.field(Cell::value)).await.unwrap_err(),
                script.copy_fields(&cells, &cells, &[(Cell::value.into(), Cell::value.into())]).await.unwrap_err(),
                script.contribute(Sum, cells.field(Cell::value), cells.field(Cell::value)).await.unwrap_err(),
            ];
            refused.iter().for_each(|error| assert_eq!(place(error), "here", "{error}"));
            let mapping = cx.map_write(&cells, Cell::value).await?;
            let error = script.fill(&cells, Cell::value, 3).unwrap_err();
            assert_eq!(place(&error), "here", "{error}");
            drop(mapping);
            Ok(())
        })
        .unwrap();
}

#[test]
fn tasks_that_are_made_at_run_time_and_copied_launchers_have_places_too() {
    let task = TaskDefinition::new("made").leaf(TaskOptions::default(), |_| Err::<Value, _>(Error::application("no")));
    let launcher = TaskLauncher::new(&std::sync::Arc::new(task));
    runtime()
        .run(async |cx| {
            for step in 0..20 {
                let failed = cx.at(&format!("step {step}")).launch(launcher.clone().typed::<i64>()).await;
                assert_eq!(place(&failed.unwrap_err()), format!("step {step}"));
            }
            Ok(())
        })
        .unwrap();
}

/// A replay repeats what was found out about a launch, but not where it was made.
#[test]
fn a_replayed_launch_says_where_it_was_made_and_not_where_the_recorded_one_was() {
    for automatic in [false, true] {
        let runtime = Runtime::builder().workers(2).automatic_tracing(automatic).build().unwrap();
        runtime
            .run(async |cx| {
                let cells = cx.region::<Cell>(10)?;
                let pieces = cells.partition(2).equal()?;
                for step in 0..40 {
                    let place_of_step = cx.at(&format!("step {step}"));
                    let mut last = None;
                    cx.trace("step", |_| {
                        last = Some(place_of_step.index_launch(2, spoil(&pieces, step % 7 == 6)));
                    });
                    let outcome = last.unwrap().reduce(Sum).await;
                    match outcome {
                        Ok(sum) => assert_eq!((sum, step % 7 == 6), (10, false)),
                        Err(error) => {
                            assert_eq!(place(&error), format!("step {step}"));
                            cx.fill(&cells, Cell::value, 1)?;
                        }
                    }
                }
                Ok(())
            })
            .unwrap();
        assert!(runtime.statistics().replays > 0);
    }
}

#[test]
fn a_record_says_where_each_launch_was_made() {
    let runtime = Runtime::builder().workers(1).record_operations(true).build().unwrap();
    runtime
        .run(async |cx| {
            let cells = cx.region::<Cell>(10)?;
            cx.at("step 1").launch(spoil(&cells, false));
            cx.launch(spoil(&cells, false)).await
        })
        .unwrap();
    let record = runtime.take_record();
    let launched = record.launches.iter().filter(|launch| launch.name == "spoil");
    let places: Vec<String> = launched.map(|launch| launch.launched.as_ref().unwrap().to_string()).collect();
    assert_eq!(places[0], "step 1");
    assert!(places[1].contains("provenance.rs:"), "{places:?}");
    let named = record.numbered().filter(|(_, operation)| matches!(operation.kind, Kind::Task(_)));
    let first = named.map(|(number, _)| record.name(number).text).next().unwrap();
    assert_eq!(first, "task `spoil` (launched at step 1)");
}

#[test]
fn a_profile_says_where_tasks_were_launched_and_what_is_copied() {
    let file = std::env::temp_dir().join(format!("maniple-provenance-{}.mprof", std::process::id()));
    let runtime = Runtime::builder().workers(1).profile(&file).build().unwrap();
    runtime
        .run(async |cx| {
            let cells = cx.region::<Cell>(10)?.named("grid");
            cx.at("step 1").launch(spoil(&cells, false));
            cx.fill(&cells, Cell::other, 7)?;
            Ok(cx.map_read(&cells, Cell::other).await?.to_vec())
        })
        .unwrap();
    drop(runtime);
    let recording = Recording::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let labels = &recording.labels;
    let place = labels
        .iter()
        .find(|label| label.name == "spoil" && label.kind == profile::Kind::Task)
        .and_then(|label| label.launched.clone());
    assert_eq!(place.as_deref(), Some("step 1"));
    assert!(labels.iter().any(|label| label.name == "fill of other of region `grid`"), "{labels:?}");
}
