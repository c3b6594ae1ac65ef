//! `maniple run stencil`: its report and its errors.

use super::*;

#[test]
fn the_report_says_what_was_done() {
    let report = prints("run stencil --size 30x20 --tiles 3x2 --steps 10 --radius 3");
    assert_eq!((value(&report, "grid"), value(&report, "tiles")), ("30 x 20", "3 x 2"));
    assert!(value(&report, "largest relative error").starts_with("0 (at most 1e-8 "), "{report}");
}

#[test]
fn every_radius_tiling_and_mapper_gives_the_right_result() {
    for radius in 1..=4 {
        for tiles in ["1", "5x1", "1x9", "9x9"] {
            for mapper in ["default", "piecewise", "random"] {
                prints(&format!(
                    "run stencil --size 9x17 --steps 5 --radius {radius} --tiles {tiles} --mapper {mapper} --seed {radius}"
                ));
            }
        }
    }
}

#[test]
fn numbers_that_make_no_sense_are_refused() {
    fails("run stencil --size 0", 2, "invalid value '0' for '--size <N|NxM>'");
    fails("run stencil --size 10x-1", 2, "invalid value '10x-1' for '--size <N|NxM>'");
    fails("run stencil --radius 5", 2, "invalid value '5' for '--radius <R>': it must be 1, 2, 3 or 4");
    fails("run stencil --size 4 --radius 2", 2, "a grid of 4 x 4 points has no room for a star of radius 2");
    fails("run stencil --size 10 --tiles 11x1", 2, "11 x 1 tiles are more than the grid has points: 10 x 10");
    fails("run stencil --size 9999999999", 2, "a grid of 9999999999 x 9999999999 points is too large");
    fails("run stencil --size 3000 --tiles 2000", 2, "2000 x 2000 tiles are too many");
}

#[test]
fn memory_that_runs_out_is_an_error_that_says_how_much_there_was() {
    for mapper in ["default", "piecewise", "random"] {
        fails(
            &format!("run stencil --size 1000 --memory 1MiB --mapper {mapper}"),
            1,
            "cannot place `make_slope` at point",
        );
    }
}
