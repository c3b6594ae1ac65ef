//! Schedules change no answer.

use crate::random;
use fastrand::Rng;
use maniple_tensor::{concrete, notation};
use random::{Problem, schedule};

#[test]
fn random_legal_schedules_keep_the_result_of_random_assignments() {
    let mut applied = std::collections::BTreeMap::<String, usize>::new();
    for seed in 0..400 {
        let mut random = Rng::with_seed(seed);
        let problem = Problem::new(&mut random);
        let (statement, commands) = schedule(&problem.assignment, &mut random);
        let expected = notation::evaluate(&problem.assignment, &problem.operands).unwrap();
        let found = concrete::evaluate(&statement, &problem.operands).unwrap();
        let shown = || commands.iter().map(|command| format!("{command}\n")).collect::<String>();
        assert_eq!(found, expected, "seed {seed}\n{}\n{}\n{statement}", problem.assignment, shown());
        for command in &commands {
            let command = command.to_string();
            *applied.entry(command[..command.find('(').unwrap()].to_owned()).or_default() += 1;
        }
    }
    // All commands were really tried.
    for name in [
        "split",
        "divide",
        "fuse",
        "reorder",
        "bound",
        "precompute",
        "store",
        "rotate",
        "distribute",
        "communicate",
        "unroll",
        "parallelize",
    ] {
        assert!(applied.get(name).is_some_and(|count| *count >= 10), "{name} in {applied:?}");
    }
}
