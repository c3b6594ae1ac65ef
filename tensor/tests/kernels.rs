//! Kernels compute what assignments mean, whatever the schedule.

mod random;

use fastrand::Rng;
use maniple_tensor::kernel::interpret;
use maniple_tensor::loops::check;
use maniple_tensor::{lower, notation};
use random::{Problem, result, schedule};

#[test]
fn kernels_of_random_schedules_give_the_result_of_random_assignments() {
    for seed in 0..200 {
        let mut random = Rng::with_seed(seed);
        let problem = Problem::new(&mut random);
        let (statement, _) = schedule(&problem.assignment, &mut random);
        let expected = notation::evaluate(&problem.assignment, &problem.operands).unwrap();
        let kernel = lower::whole(&statement);
        let checked = check(&kernel).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{statement}\n{kernel}"));
        let found = result(&statement, &problem.operands, |arguments| {
            interpret(&checked, arguments, true)
                .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{statement}\n{kernel}"));
        });
        assert_eq!(found, expected, "seed {seed}\n{}\n{statement}\n{kernel}", problem.assignment);
    }
}
