//! `maniple run circuit`: its report and its errors.

use super::*;

#[test]
fn the_report_says_what_was_done() {
    let report = prints(SMALL_CIRCUIT);
    assert!(report.starts_with("circuit\n"), "{report}");
    assert_eq!((value(&report, "pieces"), value(&report, "steps")), ("4", "20"));
    assert_eq!(value(&report, "tasks run"), "240", "three launches a step");
    for name in ["time", "tasks/s", "largest relative error"] {
        assert!(!value(&report, name).is_empty());
    }
}

#[test]
fn every_mapper_and_number_of_workers_gives_the_right_result() {
    for mapper in ["default", "piecewise", "random", "random:7"] {
        for workers in 1..=3 {
            prints(&format!("{SMALL_CIRCUIT} --inside 50 --mapper {mapper} --workers {workers} --window 5"));
        }
    }
}

#[test]
fn the_logging_mapper_tells_its_decisions_on_standard_error() {
    let run = maniple(&format!("{SMALL_CIRCUIT} --mapper log"));
    assert_eq!(run.code, Some(0));
    assert!(run.stderr.lines().all(|line| line.starts_with("mapper: ")), "{}", run.stderr);
    assert!(run.stderr.contains("distribute_charge"));
}

#[test]
fn a_step_cannot_be_marked_as_a_trace_where_nothing_is_traced() {
    for simulation in ["circuit", "cg", "stencil"] {
        let message = "the argument '--trace' cannot be used with '--no-tracing'";
        fails(&format!("run {simulation} --trace --no-tracing"), 2, message);
    }
}

#[test]
fn without_verification_there_is_no_error_to_print() {
    assert!(!prints(&format!("{SMALL_CIRCUIT} --no-verify")).contains("error"));
}

#[test]
fn numbers_that_make_no_sense_are_refused() {
    fails("run circuit --pieces 0", 2, "invalid value '0' for '--pieces <N>': it must be at least 1");
    fails("run circuit --steps -3", 2, "invalid value '-3' for '--steps <N>': it must be a whole number of at least 1");
    fails("run circuit --nodes-per-piece many", 2, "invalid value 'many' for '--nodes-per-piece <N>': it must be");
    fails("run circuit --inside 101", 2, "invalid value '101' for '--inside <PERCENT>': it must be");
    fails("run circuit --pieces 99999999999", 2, "invalid value '99999999999' for '--pieces <N>': it must be at most");
    fails("run circuit --pieces 1000000 --nodes-per-piece 1000000", 2, "1000000 pieces of 1000000 nodes");
}

#[test]
fn memory_that_runs_out_is_an_error_that_says_how_much_there_was() {
    for mapper in ["default", "piecewise", "random"] {
        fails(&format!("{SMALL_CIRCUIT} --memory 2KiB --mapper {mapper}"), 1, "cannot place `make_piece` at point");
    }
}
