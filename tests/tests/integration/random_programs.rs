//! Random programs equal the sequential oracle: 2,800 in all, under random mappers, machines, worker counts, windows
//! and delays. The records of 560 of them prove that this was no luck.
//!
//! The rest of the file is about whether that means anything: whether the programs have everything in them, whether
//! they really ran in parallel and moved data, whether every kind of mistake would be noticed, and whether what is
//! printed then is of use.
//!
//! A failure says how to replay it. To look for more:
//! `cargo run --release -p maniple-tests --bin stress -- --seconds 600`.

use std::time::Duration;

use maniple_tests::census::Census;
use maniple_tests::execute::Mistake;
use maniple_tests::oracle::World;
use maniple_tests::program::{Action, Program};
use maniple_tests::shrink::{are_alike, shrink};
use maniple_tests::trial::{Family, Outcome, Trial};
use maniple_tests::watch::silence_planned_panics;

/// Programs of each family without many loops.
const PROGRAMS: u64 = 500;

/// Programs of each family of loops. Each has about as many statements as four of the others.
const LOOPS: u64 = 150;

fn programs(family: Family) -> u64 {
    match family {
        Family::Looping | Family::FaultyLoops => LOOPS,
        Family::Flat | Family::Nested | Family::Faulty | Family::Tight | Family::Unsound => PROGRAMS,
    }
}

/// After how long without any statement or task beginning a program counts as hanging. Tests know no limits on time,
/// but a hang has no other sign, and must be reported rather than block for ever. This is no limit on a program, which
/// may take as long as it goes on.
const PATIENCE: Duration = Duration::from_secs(60);

/// One program in so many is recorded, and the record checked. Not all, since a runtime that records forgets nothing
/// that has ended.
const RECORDED: u64 = 5;

fn trials(family: Family) -> impl Iterator<Item = Trial> {
    (0..programs(family)).map(move |seed| Trial { check: seed.is_multiple_of(RECORDED), ..Trial::new(family, seed) })
}

/// The joint counts of the programs of a family.
#[derive(Debug, Default)]
struct Evidence {
    /// Programs in which leaf tasks ran at the same time.
    overlapping: u64,
    tasks: u64,
    /// Results of tasks that were compared.
    results: u64,
    /// Values of regions that were compared.
    cells: u64,
    refusals: u64,
    failures: u64,
    instances: u64,
    copies: u64,
    fills: u64,
    reductions: u64,
    /// Times that a mapper was asked again, or a task waited, for want of memory.
    retries: u64,
    /// Programs in which something was replayed.
    replaying: u64,
    recordings: u64,
    replays: u64,
    replays_given_up: u64,
    /// Replays in programs in which tasks failed.
    replays_beside_failures: u64,
}

impl Evidence {
    fn add(&mut self, Outcome { counts, statistics, .. }: &Outcome) {
        self.overlapping += u64::from(counts.most_at_once > 1);
        self.tasks += counts.tasks;
        self.results += counts.results;
        self.cells += counts.cells;
        self.refusals += counts.refusals;
        self.failures += counts.failures;
        self.instances += statistics.instances;
        self.copies += statistics.copies;
        self.fills += statistics.fills;
        self.reductions += statistics.reductions;
        self.retries += statistics.mapping_retries;
        self.replaying += u64::from(statistics.replays > 0);
        self.recordings += statistics.recordings;
        self.replays += statistics.replays;
        self.replays_given_up += statistics.replays_given_up;
        if counts.failures > 0 {
            self.replays_beside_failures += statistics.replays;
        }
    }
}

/// Runs the programs of a family, and fails with all that deviate.
fn equal_the_oracle(family: Family) -> Evidence {
    silence_planned_panics();
    let (mut evidence, mut failures) = (Evidence::default(), String::new());
    for trial in trials(family) {
        let outcome = trial.watch(trial.program(), PATIENCE);
        evidence.add(&outcome);
        if !outcome.is_right() {
            let (seed, deviations) = (trial.seed, outcome.deviations.join("\n  "));
            failures += &format!(
                "\nfamily {family}, seed {seed}:\n  {deviations}\nreplay it, and get a smaller program that fails, by\n  \
                 cargo run --release -p maniple-tests --bin stress -- --family {family} --seed {seed} --count 1\n"
            );
        }
    }
    assert!(failures.is_empty(), "{failures}");
    println!("{family}: {evidence:?}");
    evidence
}

#[test]
fn flat_programs_equal_the_oracle() {
    let done = equal_the_oracle(Family::Flat);
    assert!(done.tasks > 5_000 && done.results > 5_000 && done.cells > 30_000, "{done:?}");
    assert!(done.copies > 5_000 && done.fills > 2_000 && done.reductions > 1_000 && done.instances > 5_000, "{done:?}");
    assert!(done.refusals > 100 && done.overlapping > PROGRAMS / 10, "{done:?}");
    assert_eq!(done.failures, 0, "nothing may fail: {done:?}");
}

#[test]
fn nested_programs_equal_the_oracle() {
    let done = equal_the_oracle(Family::Nested);
    assert!(done.tasks > 10_000 && done.results > 10_000 && done.cells > 50_000, "{done:?}");
    assert!(
        done.copies > 5_000 && done.fills > 5_000 && done.reductions > 1_000 && done.instances > 10_000,
        "{done:?}"
    );
    assert!(done.refusals > 500 && done.overlapping > PROGRAMS / 10, "{done:?}");
    assert_eq!(done.failures, 0, "nothing may fail: {done:?}");
}

#[test]
fn what_depends_on_a_failed_task_fails_and_everything_else_equals_the_oracle() {
    let done = equal_the_oracle(Family::Faulty);
    assert!(done.failures > 1_000, "some must fail: {done:?}");
    assert!(done.results > 5_000 && done.cells > 25_000, "some must not: {done:?}");
}

#[test]
fn what_finds_room_in_little_memory_equals_the_oracle() {
    let done = equal_the_oracle(Family::Tight);
    assert!(done.retries > 200 && done.failures > 50, "room must run out: {done:?}");
    assert!(done.results > 4_000 && done.cells > 25_000, "not everywhere: {done:?}");
}

#[test]
fn what_survives_a_mapper_that_answers_nonsense_equals_the_oracle() {
    let done = equal_the_oracle(Family::Unsound);
    assert!(done.failures > 400, "nonsense must be refused: {done:?}");
    assert!(done.results > 3_000 && done.cells > 25_000, "sense must not: {done:?}");
}

#[test]
fn loops_that_are_replayed_equal_the_oracle() {
    let done = equal_the_oracle(Family::Looping);
    assert!(done.replays > 300 && done.recordings > 150 && done.replays_given_up > 15, "{done:?}");
    assert!(done.replaying > LOOPS / 4, "{done:?}");
    assert_eq!(done.failures, 0, "nothing may fail: {done:?}");
}

#[test]
fn what_depends_on_a_task_that_failed_in_a_replay_fails_and_everything_else_equals_the_oracle() {
    let done = equal_the_oracle(Family::FaultyLoops);
    assert!(done.failures > 300 && done.replays_beside_failures > 150, "{done:?}");
    assert!(done.results > 1_500 && done.cells > 1_500, "some must not fail: {done:?}");
}

#[test]
fn the_programs_have_everything_in_them() {
    let mut census = Census::default();
    Family::ALL.into_iter().flat_map(trials).for_each(|trial| census.count(&trial));
    assert_eq!(census.of("no meaning"), 0, "{census}");
    let few: Vec<_> = EVERYTHING.iter().filter(|(thing, least)| census.of(thing) < *least).collect();
    assert!(few.is_empty(), "too few of {few:?} in\n{census}");
}

/// The features that must occur in the programs, and how often at least.
const EVERYTHING: &[(&str, u64)] = &[
    ("mapper Default", 100),
    ("mapper Piecewise", 100),
    ("mapper Logged", 100),
    ("mapper Random", 800),
    ("mapper Unsound", 500),
    ("workers 1", 300),
    ("workers 2", 300),
    ("workers 3", 100),
    ("workers 4", 100),
    ("window 1", 300),
    ("window 1024", 300),
    ("memory attached", 500),
    ("memory attached to be read only", 200),
    ("array attached", 50),
    ("future map scanned", 20),
    ("future map scanned without each itself", 20),
    ("memory detached", 400),
    ("memory detached without its values", 100),
    ("space of 1 dimensions", 1000),
    ("space of 2 dimensions", 500),
    ("space of 3 dimensions", 300),
    ("space of points far apart", 50),
    ("space without points", 20),
    ("field Long", 1000),
    ("field Short", 1000),
    ("field Number", 500),
    ("field Pair", 500),
    ("field Trio", 500),
    ("field Pointer", 1000),
    ("field allocated later", 30),
    ("field freed", 30),
    ("region", 3000),
    ("region of a nested task", 1000),
    ("region destroyed", 50),
    ("partition of a piece", 3000),
    ("partition aliased", 1000),
    ("partition disjoint", 1000),
    ("partition complete", 1000),
    ("partition incomplete", 1000),
    ("partition destroyed", 50),
    ("split Equal with several pieces that are not empty", 1000),
    ("split Weighted with several pieces that are not empty", 300),
    ("split Tiles with several pieces that are not empty", 300),
    ("split Tiles with a halo with several pieces that are not empty", 200),
    ("split Explicit with several pieces that are not empty", 500),
    ("split Coloring with several pieces that are not empty", 300),
    ("split Within with several pieces that are not empty", 100),
    ("split Union with several pieces that are not empty", 50),
    ("split Intersection with several pieces that are not empty", 50),
    ("split Difference with several pieces that are not empty", 5),
    ("split ByField with several pieces that are not empty", 100),
    ("split Image with several pieces that are not empty", 10),
    ("split Preimage with several pieces that are not empty", 10),
    ("split ByRanges with several pieces that are not empty", 20),
    ("split Named by Rows with several pieces that are not empty", 5),
    ("split Named by Ranges with several pieces that are not empty", 1),
    ("split Named by Firsts with several pieces that are not empty", 2),
    ("split Named by Offsets with several pieces that are not empty", 5),
    ("split Naming by Rows with several pieces that are not empty", 5),
    ("split Naming by Ranges with several pieces that are not empty", 1),
    ("split Naming by Firsts with several pieces that are not empty", 2),
    ("split Naming by Offsets with several pieces that are not empty", 5),
    ("launch of one task", 5000),
    ("launch over points", 5000),
    ("launch over no points", 50),
    ("launch of a task with a context", 1000),
    ("launch of an inner task", 1000),
    ("launch at depth 0", 5000),
    ("launch at depth 1", 3000),
    ("launch at depth 2", 2000),
    ("launch at depth 3", 1000),
    ("privilege reads", 5000),
    ("privilege writes", 3000),
    ("privilege discards", 2000),
    ("privilege reduces(Sum)", 500),
    ("privilege reduces(Max)", 500),
    ("privilege reduces(Min)", 500),
    ("privilege reduces(Xor)", 500),
    ("privilege reduces(Stamp)", 500),
    ("privilege reduces(Tally)", 200),
    ("target that is a region", 3000),
    ("target that is a piece by projection Identity", 3000),
    ("target that is a piece by projection Linearized", 1000),
    ("target that is a piece by projection Affine", 500),
    ("target that is a piece by projection Linear", 100),
    ("target below a region by a custom projection", 500),
    ("target below a partition by a custom projection", 500),
    ("target in an aliased partition", 1000),
    ("argument that is a value", 1000),
    ("argument that is a future", 1000),
    ("argument that is a future map", 300),
    ("fault PanicsAtOnce", 100),
    ("fault PanicsAtEnd", 100),
    ("fault Fails", 100),
    ("fill", 2000),
    ("invalidation", 1000),
    ("scratch region", 500),
    ("scratch region dropped", 500),
    ("copy", 500),
    ("copy of several fields", 20),
    ("copy of fields, one or none", 20),
    ("copy with operator Sum", 10),
    ("copy with operator Max", 10),
    ("copy with operator Min", 10),
    ("copy with operator Xor", 10),
    ("copy with operator Stamp", 5),
    ("gather", 50),
    ("scatter", 50),
    ("inline mapping that reads", 500),
    ("inline mapping that writes", 500),
    ("inline mapping held while other statements run", 500),
    ("mapping fence", 500),
    ("execution fence", 500),
    ("future mapped", 200),
    ("futures zipped", 200),
    ("future map reduced", 200),
    ("future map folded", 200),
    ("future of a future map", 200),
    ("loop", 500),
    ("loop in a nested task", 200),
    ("loop of ten turns or more", 300),
    ("loop without a trace", 100),
    ("loop with a trace", 300),
    ("loop with several traces", 100),
    ("turn like the one before", 4000),
    ("trace", 4000),
    ("trace in a nested task", 1000),
    ("result that nobody asks for any more", 5000),
    ("mapper Steady", 500),
    ("no tracing", 150),
    ("automatic tracing", 1000),
    ("wait", 5000),
    ("wait in a nested task", 5000),
    ("refused: a piece sticks out", 10),
    ("refused: requirements  and  interfere", 100),
    ("refused: the field space is full", 1),
    ("refused: the operator is not known on the field", 1),
    ("refused: the partition was destroyed", 10),
    ("refused: the privilege is not held", 500),
    ("refused: the projection leaves its bound", 5),
    ("refused: the region is not the task's own", 5),
    ("refused: the source lacks points", 100),
    ("refused: the task itself has mapped the data", 10),
];

#[test]
fn a_seed_always_gives_the_same_program_and_environment() {
    for trial in Family::ALL.into_iter().flat_map(|family| (0..20).map(move |seed| Trial::new(family, seed))) {
        assert_eq!(trial.program().to_string(), trial.program().to_string());
        assert_eq!(format!("{:?}", trial.environment()), format!("{:?}", trial.environment()));
    }
}

/// The programs in which a mistake shows, and what is said about it.
fn tells(mistake: Mistake) -> (Family, &'static str) {
    match mistake {
        Mistake::None => (Family::Flat, "nothing: there is no mistake"),
        Mistake::WrongValue | Mistake::LostContribution | Mistake::LostFill => (Family::Flat, ", not "),
        Mistake::WrongResult => (Family::Nested, "future"),
        Mistake::WrongLook => (Family::Flat, "the program has seen"),
        Mistake::LateLaunch => (Family::Nested, ", not "),
        Mistake::SwallowedFault => (Family::Faulty, "did not fail"),
        Mistake::MissedRefusal => (Family::Nested, "was not refused"),
        Mistake::Leak => (Family::Flat, "bytes still in use"),
        Mistake::Hang => (Family::Flat, "hangs"),
    }
}

/// How many programs a mistake has for being noticed.
const CHANCES: u64 = 20;

/// A program and its deviation under a mistake.
fn first_deviation(mistake: Mistake) -> Option<(Trial, Outcome)> {
    silence_planned_panics();
    let (family, words) = tells(mistake);
    // To wait long for what must never end would be a waste.
    let patience = if mistake == Mistake::Hang { Duration::from_secs(1) } else { PATIENCE };
    let trials = (0..CHANCES).map(|seed| Trial { mistake, ..Trial::new(family, seed) });
    let mut outcomes = trials.map(|trial| (trial.clone(), trial.watch(trial.program(), patience)));
    outcomes.find(|(_, outcome)| outcome.deviations.iter().any(|deviation| deviation.contains(words)))
}

#[test]
fn every_mistake_is_noticed_within_a_few_programs() {
    assert!(first_deviation(Mistake::None).is_none());
    for mistake in Mistake::ALL {
        assert!(first_deviation(mistake).is_some(), "{mistake:?} goes unnoticed");
    }
}

#[test]
fn a_program_that_fails_is_shrunk_to_what_makes_it_fail() {
    let (trial, outcome) = first_deviation(Mistake::LostFill).unwrap();
    let fails = |program: &Program| are_alike(&trial.watch(program.clone(), PATIENCE).deviations, &outcome.deviations);
    let smallest = shrink(&trial, trial.program(), &outcome.deviations, 1);
    assert!(fails(&smallest), "{smallest}");
    assert!(smallest.body.count() <= trial.program().body.count() / 2, "{smallest}");
    assert!(
        smallest.body.0.iter().any(|statement| matches!(statement.action, Action::Fill(..) | Action::Invalidate(..))),
        "{smallest}"
    );
    for left_out in 0..smallest.body.0.len() {
        let mut smaller = smallest.clone();
        smaller.body.0.remove(left_out);
        assert!(World::run(&smaller.body).is_err() || !fails(&smaller), "{smallest}\ncan do without number {left_out}");
    }
}

#[test]
fn a_task_that_is_wrong_deep_inside_stays_when_the_program_is_shrunk() {
    let (trial, outcome) = first_deviation(Mistake::WrongResult).unwrap();
    let smallest = shrink(&trial, trial.program(), &outcome.deviations, 1);
    assert!(!trial.watch(smallest.clone(), PATIENCE).is_right(), "{smallest}");
    assert!(smallest.body.count() <= trial.program().body.count() / 2, "{smallest}");
    assert!(smallest.body.0.iter().any(|statement| matches!(statement.action, Action::Launch(_))), "{smallest}");
}
