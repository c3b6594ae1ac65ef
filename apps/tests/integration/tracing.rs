//! The options about tracing: which launches are replayed, and that no result depends on it.

use maniple::Statistics;
use maniple_apps::cg::problem::CgProblem;
use maniple_apps::error::Result;
use maniple_apps::options::RuntimeOptions;
use maniple_apps::stencil::Extents;
use maniple_apps::{cg, circuit, stencil};

/// Runs each simulation, which checks its own result, and tells what the runtime did.
fn each_simulation(trace: bool, runtime: &RuntimeOptions) -> Result<[Statistics; 3]> {
    let [first, second, third] = [runtime.start()?, runtime.start()?, runtime.start()?];
    let circuit =
        circuit::CircuitOptions { pieces: 4, nodes_per_piece: 20, wires_per_piece: 60, trace, ..Default::default() };
    circuit::run_on(&first, &circuit)?;
    cg::solve(&second, &cg::CgOptions { trace, ..Default::default() }, &CgProblem::poisson(20)?)?;
    let size = Extents { rows: 30, columns: 20 };
    stencil::run_on(&third, &stencil::StencilOptions { size, trace, ..Default::default() })?;
    Ok([first, second, third].map(|runtime| runtime.statistics()))
}

fn two_workers() -> RuntimeOptions {
    RuntimeOptions { workers: Some(2), ..Default::default() }
}

#[test]
fn steps_that_are_marked_are_replayed_even_if_nobody_looks_for_repeats() {
    let options = RuntimeOptions { no_automatic_tracing: true, ..two_workers() };
    for statistics in each_simulation(true, &options).expect("every result is right") {
        assert!(statistics.replays > 10, "{statistics:?}");
        assert_eq!(statistics.replays_given_up, 0, "every step is like the one before");
    }
}

#[test]
fn steps_that_are_not_marked_are_replayed_only_if_somebody_looks_for_repeats() {
    let options = RuntimeOptions { no_automatic_tracing: true, ..two_workers() };
    for statistics in each_simulation(false, &options).expect("every result is right") {
        assert_eq!((statistics.recordings, statistics.replays), (0, 0));
    }
    for statistics in each_simulation(false, &two_workers()).expect("every result is right") {
        assert!(statistics.replays > 0, "{statistics:?}");
    }
}

#[test]
fn without_tracing_nothing_is_recorded_even_if_it_is_marked() {
    let options = RuntimeOptions { no_tracing: true, ..two_workers() };
    for statistics in each_simulation(true, &options).expect("every result is right") {
        assert_eq!((statistics.recordings, statistics.replays), (0, 0));
    }
}
