//! Schedules change no answer.

use crate::random;
use fastrand::Rng;
use maniple_tensor::element::ElementType;
use maniple_tensor::notation::TensorVariable;
use maniple_tensor::schedule::Schedule;
use maniple_tensor::{concrete, notation};
use random::{Problem, schedule, workspaces};

#[test]
fn random_legal_schedules_keep_the_result_of_random_assignments() {
    let mut applied = std::collections::BTreeMap::<String, usize>::new();
    let times = std::env::var("MANIPLE_SCHEDULES").ok().and_then(|count| count.parse().ok()).unwrap_or(400);
    for seed in 0..times {
        let mut random = Rng::with_seed(seed);
        let problem = Problem::new(&mut random);
        let (statement, commands) = schedule(&problem.assignment, &mut random);
        let expected = notation::evaluate(&problem.assignment, &problem.operands).unwrap();
        let found = concrete::evaluate(&statement, &problem.operands).unwrap();
        let shown = || commands.iter().map(|command| format!("{command}\n")).collect::<String>();
        assert_eq!(found, expected, "seed {seed}\n{}\n{}\n{statement}", problem.assignment, shown());
        // As text, too: workspaces are known to what comes after them.
        let text = Schedule { commands: commands.clone() }.to_string();
        let plain = concrete::Statement::new(&problem.assignment);
        let own = workspaces(plain.body()).into_iter().map(|name| TensorVariable::new(&name, ElementType::I64, []));
        let known: Vec<TensorVariable> = problem.assignment.tensors().into_iter().chain(own).collect();
        let read = Schedule::parse(&text, &known);
        let read = read.unwrap_or_else(|error| panic!("seed {seed}\n{}\n{text}{error}", problem.assignment));
        let again = read.apply(&plain).unwrap();
        assert_eq!(again.to_string(), statement.to_string(), "seed {seed}\n{}\n{text}", problem.assignment);
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
