//! Whether all nodes do the same.

use std::time::Duration;

use maniple_cluster::{Describe, DeterminismCheck, Differing, Error, Failure, Job, ParcelFuture, ParcelName, Result};
use maniple_realm::threads::nap;

use super::nodes::simulate;

struct Operation(u64);

impl Describe for Operation {
    fn describe(&self) -> String {
        format!("does {}", self.0)
    }

    fn explain(differing: &[Differing<'_>]) -> String {
        differing.iter().map(|differing| format!("; they see {differing:?}")).collect()
    }
}

fn run(job: &Job, operations: impl Iterator<Item = u64>) -> Result<()> {
    let check = DeterminismCheck::begin(job);
    check.observe("rank", job.rank() as i64);
    for operation in operations {
        job.begin_operation("an operation");
        check.add(job, (operation, Operation(operation)));
    }
    assert_eq!(check.end(job, None), None);
    outcome(job)
}

fn outcome(job: &Job) -> Result<()> {
    match job.realm().breakdown() {
        None => Ok(()),
        Some(fault) => Err(fault.downcast_ref::<Error>().expect("a job ends with its own errors").clone()),
    }
}

#[test]
fn nodes_that_do_the_same_end_well() {
    for seed in 0..30 {
        let outcomes = simulate(seed, 2 + seed as usize % 5, |job| run(job, 0..20));
        assert!(outcomes.iter().all(Result::is_ok), "seed {seed}: {outcomes:?}");
    }
}

#[test]
fn the_first_difference_is_shown_with_what_may_explain_it() {
    for seed in 0..60 {
        let nodes = 2 + seed as usize % 5;
        let outcomes = simulate(seed, nodes, move |job| {
            let differs = job.rank() == nodes - 1;
            run(job, (0..20).map(move |number| if differs && number >= 13 { 100 + number } else { number }))
        });
        for outcome in outcomes {
            let error = outcome.expect_err("they differ").to_string();
            let difference = format!("where node 0 does 13, node {} does 113; they see", nodes - 1);
            assert!(error.contains(&difference), "seed {seed}: {error}");
        }
    }
}

#[test]
fn a_node_that_stops_earlier_ends_the_job() {
    for seed in 0..60 {
        let nodes = 2 + seed as usize % 5;
        let outcomes = simulate(seed, nodes, move |job| run(job, 0..if job.rank() == 0 { 12 } else { 15 }));
        for outcome in outcomes {
            // Told by this node, or by another one that has given up first.
            let error = outcome.expect_err("they differ").to_string();
            assert!(error.contains("do not run the same program"), "seed {seed}: {error}");
        }
    }
}

/// The step of a node that follows its operations.
#[derive(Clone, Copy, Debug)]
enum Then {
    /// Waits for what never comes, without a comparison.
    Wait,
    End,
    Fail,
}

/// Runs operations, with digests of their own on the last node from the tenth on.
fn run_then(job: &Job, operations: u64, then: Then) -> Result<()> {
    let check = DeterminismCheck::begin(job);
    for operation in 0..operations {
        let differs = operation >= 9 && job.rank() == job.nodes() - 1;
        let operation = if differs { 100 + operation } else { operation };
        job.begin_operation("an operation");
        check.add(job, (operation, Operation(operation)));
    }
    match then {
        Then::Wait => drop(job.realm().wait(job.realm().user_event().event())),
        Then::End => _ = check.end(job, None),
        Then::Fail => _ = check.end(job, Some(Failure { node: job.rank(), message: "it is broken".to_owned() })),
    }
    outcome(job)
}

#[test]
fn nodes_that_wait_after_different_things_are_told_whatever_the_others_do() {
    let cases = [(Then::Wait, Then::Wait), (Then::Wait, Then::End), (Then::End, Then::Wait)];
    for (seed, (last, others)) in (0..90).zip(cases.into_iter().cycle()) {
        let nodes = 2 + seed as usize % 7;
        let outcomes = simulate(seed, nodes, move |job| {
            let then = if job.rank() == job.nodes() - 1 { last } else { others };
            // As many, or one more than the others.
            run_then(job, 11 + (seed / 3 + job.rank() as u64) % 2, then)
        });
        for outcome in outcomes {
            let error = outcome.expect_err("they differ").to_string();
            let told = error.contains("does 9, node") && error.contains("does 109");
            // Ends are compared at once, but for what they follow.
            let ended = error.contains("has ended where node");
            assert!(told || ended, "seed {seed}, {last:?} and {others:?}: {error}");
        }
    }
}

#[test]
fn nodes_that_wait_after_different_things_than_one_that_has_failed_are_told_of_the_failure() {
    for (seed, (last, others)) in (0..60).zip([(Then::Fail, Then::Wait), (Then::Wait, Then::Fail)].into_iter().cycle())
    {
        let outcomes = simulate(seed, 2 + seed as usize % 7, move |job| {
            let is_last = job.rank() == job.nodes() - 1;
            run_then(job, 11, if is_last { last } else { others })
        });
        for outcome in outcomes {
            let error = outcome.expect_err("one has failed").to_string();
            assert!(error.contains("it is broken"), "seed {seed}: {error}");
        }
    }
}

#[test]
fn nodes_that_wait_long_for_one_that_is_slow_end_well() {
    for seed in 0..40 {
        let nodes = 2 + seed as usize % 7;
        let outcomes = simulate(seed, nodes, move |job| {
            let check = DeterminismCheck::begin(job);
            for number in 0..12 {
                let name = ParcelName { operation: job.begin_operation("an operation"), exchange: 0, number: 0 };
                check.add(job, (number, Operation(number)));
                if number % 4 == 1 {
                    let slow = number as usize / 4 % job.nodes();
                    if job.rank() == slow {
                        (0..20).for_each(|_| nap(Duration::from_millis(1)));
                        let others = (0..job.nodes()).filter(|&other| other != slow);
                        others.for_each(|other| job.send_short_parcel(other, name, &[1]));
                    } else {
                        let parcels = ParcelFuture::new(1, job.realm());
                        job.expect(&parcels, [(slow, name)].into_iter());
                        job.realm().wait(parcels.complete(job.realm())).unwrap();
                    }
                }
            }
            // Long after the others have ended.
            if job.rank() == 0 {
                (0..20).for_each(|_| nap(Duration::from_millis(1)));
            }
            assert_eq!(check.end(job, None), None);
            outcome(job)
        });
        assert!(outcomes.iter().all(Result::is_ok), "seed {seed}: {outcomes:?}");
    }
}
