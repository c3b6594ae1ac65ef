//! Whoever is compared does the same: all contestants that this machine has find the same answer. Rivals that it lacks are named, and left out.

use std::path::Path;
use std::sync::LazyLock;

use maniple_benches::rivals::CONTESTS;
use maniple_benches::toolbox::{Rival, Toolbox};

static TOOLBOX: LazyLock<Toolbox> = LazyLock::new(|| {
    let toolbox = Toolbox::new(Path::new(env!("CARGO_TARGET_TMPDIR")), 2);
    toolbox.report().iter().for_each(|line| println!("{line}"));
    toolbox
});

/// Runs everybody at the small sizes.
fn everybody_is_right(contest: &str) {
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
fn who_is_found_takes_part() {
    for rival in Rival::ALL.into_iter().filter(|&rival| TOOLBOX.find(rival).is_some()) {
        let takes_part = |name: &str| name.starts_with(&rival.to_string());
        let names =
            CONTESTS.iter().flat_map(|contest| (contest.contestants)(&TOOLBOX)).map(|one| one.name().to_owned());
        assert!(names.collect::<Vec<_>>().iter().any(|name| takes_part(name)), "{rival} is nowhere");
    }
}
