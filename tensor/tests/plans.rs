//! Plans fetch what their leaves use, and combine what several points compute.

mod random;

use fastrand::Rng;
use maniple_tensor::notation;
use maniple_tensor::plan::{Plan, PlanError};
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
