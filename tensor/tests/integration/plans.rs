//! Plans fetch what their leaves use, and combine what several points compute.

use std::collections::BTreeSet;

use crate::random;
use fastrand::Rng;
use maniple_tensor::notation;
use maniple_tensor::plan::{Launch, Plan, PlanError, Privilege};
use random::{Problem, fused, nested, schedule};

#[test]
fn plans_of_random_schedules_give_the_result_of_random_assignments() {
    let (mut launched, mut refused) = (0, 0);
    for seed in 0..300 {
        let mut random = Rng::with_seed(seed);
        let problem = Problem::new(&mut random);
        let (statement, _) = schedule(&problem.assignment, &mut random);
        let plan = match Plan::new(&statement) {
            Ok(plan) => plan,
            Err(PlanError::Overlap { .. }) => {
                refused += 1;
                continue;
            }
            Err(other) => panic!("seed {seed}: {other}"),
        };
        launched += usize::from(!plan.launches().is_empty());
        let expected = notation::evaluate(&problem.assignment, &problem.operands).unwrap();
        let (found, _) = plan
            .run_sequentially(&problem.operands)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{statement}\n{plan}\n{}", plan.leaf().kernel));
        assert_eq!(found, expected, "seed {seed}\n{}\n{statement}\n{plan}", problem.assignment);
    }
    assert!(launched > 50 && refused < 15, "{launched} {refused}");
}

/// The values of a launch's variables and of all around it, for each point.
fn points(plan: &Plan, launch: &Launch) -> Vec<Vec<i64>> {
    let extents = launch.fixed.iter().map(|variable| plan.statement.extent(variable).expect("loops have extents"));
    extents.fold(vec![Vec::new()], |points, extent| {
        points.iter().flat_map(|point| (0..extent).map(move |value| [&point[..], &[value]].concat())).collect()
    })
}

#[test]
fn points_that_do_not_reduce_write_disjoint_rectangles() {
    let mut compared = 0;
    for seed in 0..600 {
        let mut random = Rng::with_seed(seed);
        let problem = Problem::new(&mut random);
        let (statement, _) = schedule(&problem.assignment, &mut random);
        let Ok(plan) = Plan::new(&statement) else { continue };
        for launch in plan.launches() {
            let result = launch.uses.iter().find(|used| used.tensor == *plan.statement.result()).expect("it is used");
            if !matches!(result.privilege, Privilege::ReadWrite | Privilege::Write) {
                continue;
            }
            let around = launch.fixed.len() - launch.variables.len();
            let rectangles = plan.rectangles(result.tensor.name(), &launch.fixed);
            let all = points(&plan, launch);
            for (position, first) in all.iter().enumerate().take(40) {
                for second in all[position + 1..].iter().filter(|second| second[..around] == first[..around]) {
                    let (here, there) = (rectangles.parts(first), rectangles.parts(second));
                    let overlap = here.iter().any(|here| there.iter().any(|there| here.overlaps(there)));
                    assert!(!overlap, "seed {seed}: {here:?} at {first:?}, {there:?} at {second:?}\n{plan}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 500, "{compared}");
}

#[test]
fn blocks_of_fused_loops_and_launches_in_launches_give_the_result_of_random_assignments() {
    let (mut exclusive, mut apart, mut twice) = (0, 0, 0);
    for seed in 0..800 {
        let mut random = Rng::with_seed(seed);
        let problem = Problem::new(&mut random);
        let make = if seed % 2 == 0 { fused } else { nested };
        let Some(statement) = make(&problem.assignment, &mut random) else { continue };
        let Ok(plan) = Plan::new(&statement) else { continue };
        let expected = notation::evaluate(&problem.assignment, &problem.operands).unwrap();
        let (found, fetched) = plan
            .run_sequentially(&problem.operands)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{statement}\n{plan}\n{}", plan.leaf().kernel));
        assert_eq!(found, expected, "seed {seed}\n{}\n{statement}\n{plan}", problem.assignment);
        let launch = plan.launches()[0];
        let result = launch.uses.iter().find(|used| used.tensor == *plan.statement.result()).expect("it is used");
        exclusive += usize::from(seed % 2 == 0 && !matches!(result.privilege, Privilege::Reduce(_)));
        let parts = plan.rectangles(result.tensor.name(), &launch.fixed);
        apart += usize::from(points(&plan, launch).iter().any(|point| parts.parts(point).len() > 1));
        let levels = |name: &str| -> BTreeSet<_> {
            fetched.iter().filter(|fetch| fetch.tensor == name).map(|fetch| fetch.fixed.len()).collect()
        };
        let two = |name: &str| levels(name).len() > 1;
        twice += usize::from(plan.statement.operands().iter().any(|tensor| two(tensor.name())));
    }
    assert!(exclusive > 60 && apart > 20 && twice > 30, "{exclusive} {apart} {twice}");
}
