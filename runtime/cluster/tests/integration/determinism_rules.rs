//! Whether all nodes do the same.

use maniple_cluster::{Describe, DeterminismCheck, Differing, Error, Job, Result};

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
    let check = DeterminismCheck::default();
    check.observe("rank", job.rank() as i64);
    for operation in operations {
        job.begin_operation("an operation");
        check.add(job, (operation, Operation(operation)));
    }
    assert_eq!(check.end(job, None), None);
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
