//! Plans fetch what their leaves use, and combine what several points compute.

use crate::random;
use fastrand::Rng;
use maniple_tensor::notation;
use maniple_tensor::plan::{Launch, Plan, PlanError, Privilege};
use random::{Problem, schedule};

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
                    let (here, there) = (rectangles.at(first), rectangles.at(second));
                    assert!(!here.overlaps(&there), "seed {seed}: {here} at {first:?}, {there} at {second:?}\n{plan}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 500, "{compared}");
}
