//! Plans fetch what their leaves use, and combine what several points compute.

use std::collections::BTreeSet;

use crate::random;
use fastrand::Rng;
use maniple_tensor::concrete::Statement;
use maniple_tensor::element::ElementType;
use maniple_tensor::notation::{self, TensorVariable, parse};
use maniple_tensor::plan::{Launch, Plan, PlanError, Privilege};
use maniple_tensor::schedule::Schedule;
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

#[test]
fn points_and_steps_are_numbered_by_blocks_in_the_order_asked_for_with_the_last_fastest() {
    let mut random = Rng::with_seed(5);
    let tensor = |name: &str, extents: [i64; 3]| TensorVariable::new(name, ElementType::F64, extents);
    let matrix = TensorVariable::new("C", ElementType::F64, [5, 6]);
    let variables = [tensor("A", [9, 8, 5]), tensor("B", [9, 8, 6]), matrix];
    let assignment = parse("A(i,j,k) = B(i,j,l) * C(k,l)", &variables).unwrap();
    for _ in 0..50 {
        let mut loops = ["i", "j", "k", "l"].map(|name| (name, random.i64(1..5)));
        random.shuffle(&mut loops);
        let (points, steps) = loops.split_at(random.usize(1..4));
        let names = |loops: &[(&str, i64)], suffix: &str| {
            loops.iter().map(|(name, _)| format!("{name}{suffix}")).collect::<Vec<_>>().join(", ")
        };
        let divide = |(name, count): &(&str, i64)| format!("divide({name}, {name}b, {name}i, {count}); ");
        let divided: String = loops.iter().map(divide).collect();
        let (blocks, inner) = (names(&loops, "b"), names(&loops, "i"));
        let last = names(&loops[3..], "b");
        let moved = format!("distribute({{{}}}); communicate({{B, C}}, {last})", names(points, "b"));
        let text = format!("{divided}reorder({{{blocks}, {inner}}}); {moved}");
        let schedule = Schedule::parse(&text, &variables).unwrap();
        let plan = Plan::new(&schedule.apply(&Statement::new(&assignment)).unwrap()).unwrap();
        let order = plan.order();
        let extent = |(_, count): &(&str, i64)| *count;
        assert_eq!(order.extents(), points.iter().map(extent).collect::<Vec<_>>(), "{text}");
        let number = |values: &[i64], of: &[(&str, i64)]| {
            values.iter().zip(of).fold(0, |number, (value, (_, count))| number * count + value)
        };
        let mut seen = BTreeSet::new();
        for step in 0..order.steps() {
            for point in 0..order.points() {
                let values = order.values(step, point);
                assert!(values.iter().zip(&loops).all(|(value, (_, count))| value < count), "{text}: {values:?}");
                let (of_point, of_step) = values.split_at(points.len());
                assert_eq!((number(of_point, points), number(of_step, steps)), (point, step), "{text}");
                assert!(seen.insert(values), "{text}");
            }
        }
        assert_eq!(seen.len() as i64, loops.iter().map(extent).product::<i64>(), "{text}");
    }
}
