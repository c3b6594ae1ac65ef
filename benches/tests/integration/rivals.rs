//! All contestants of a contest do the same: those that this machine has find the same answer. Rivals that it lacks are
//! named, and left out.

use std::path::Path;
use std::sync::{LazyLock, Mutex, PoisonError};

use maniple_benches::rivals::CONTESTS;
use maniple_benches::toolbox::{Rival, Toolbox};

static TOOLBOX: LazyLock<Toolbox> = LazyLock::new(|| {
    let toolbox = Toolbox::new(Path::new(env!("CARGO_TARGET_TMPDIR")), 2);
    toolbox.report(&Rival::OF_TASKS).iter().for_each(|line| println!("{line}"));
    toolbox
});

/// Programs of several threads that spin while they wait take long where cores are shared. So one runs at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs all contestants at the small sizes.
fn everybody_is_right(contest: &str) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let contest = CONTESTS.iter().find(|one| one.name == contest).expect("it is a contest");
    for mut contestant in (contest.contestants)(&TOOLBOX) {
        for size in contest.small {
            let outcome = contestant.run(size, (contest.answer)(size));
            outcome.unwrap_or_else(|error| panic!("{} at {size:?}: {error}", contestant.name()));
        }
    }
}

#[test]
fn every_stencil_runs_each_task_after_what_it_reads() {
    everybody_is_right("stencil");
}

#[test]
fn every_graph_runs_each_task_after_what_it_reads() {
    everybody_is_right("graph");
}

#[test]
fn everybody_finds_the_fibonacci_numbers() {
    everybody_is_right("fibonacci");
}

#[test]
fn everybody_finds_all_ways_to_place_queens() {
    everybody_is_right("queens");
}

#[test]
fn no_empty_task_is_lost() {
    everybody_is_right("empty");
}

#[test]
fn no_link_of_a_chain_is_lost() {
    everybody_is_right("chain");
}

#[test]
fn who_is_found_takes_part() {
    for rival in Rival::OF_TASKS.into_iter().filter(|&rival| TOOLBOX.find(rival).is_some()) {
        let takes_part = |name: &str| name.starts_with(&rival.to_string());
        let names =
            CONTESTS.iter().flat_map(|contest| (contest.contestants)(&TOOLBOX)).map(|one| one.name().to_owned());
        assert!(names.collect::<Vec<_>>().iter().any(|name| takes_part(name)), "{rival} is nowhere");
    }
}
