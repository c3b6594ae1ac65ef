//! Tests of the traffic and the cost of plans on machines of many processors, for which messages are not listed.

use maniple_tensor::algorithms::*;
use maniple_tensor::choose::{choose, on_grid};
use maniple_tensor::concrete::Statement;
use maniple_tensor::cost::{Estimate, Rates, explain};
use maniple_tensor::element::ElementType::F64;
use maniple_tensor::machine::{Grid, Machine};
use maniple_tensor::notation::{Assignment, IndexVariable, parse_with_extents};
use maniple_tensor::plan::Plan;
use maniple_tensor::traffic::{Traffic, draw};

fn assignment(text: &str, extents: &[i64]) -> Assignment {
    let names = ["i", "j", "k", "l"].map(IndexVariable::new);
    let extents: Vec<_> = names.into_iter().zip(extents.iter().copied()).collect();
    parse_with_extents(text, F64, &extents).unwrap()
}

fn product(n: i64) -> Statement {
    Statement::new(&assignment("A(i,j) = B(i,k) * C(k,j)", &[n, n, n]))
}

fn machine(algorithm: &Algorithm) -> Machine {
    Grid::new(algorithm.grid.iter().map(|&extent| extent as usize).collect::<Vec<_>>()).unwrap().into()
}

/// The traffic and the cost of an algorithm, by all messages, and by some processors.
fn both(algorithm: &Algorithm) -> [(Traffic, Estimate); 2] {
    let (plan, machine) = (Plan::new(&algorithm.statement).unwrap(), machine(algorithm));
    let listed = Traffic::new(&plan, &machine, &algorithm.placements).unwrap();
    let estimated = Traffic::estimated(&plan, &machine, &algorithm.placements).unwrap();
    assert!(listed.is_listed() && !estimated.is_listed());
    [listed, estimated].map(|traffic| {
        let estimate = Estimate::new(&plan, &traffic, &algorithm.placements, &Rates::default());
        (traffic, estimate)
    })
}

/// All processors and steps are looked at here, so there is nothing to be estimated but the senders.
#[test]
fn on_small_machines_an_estimate_counts_what_messages_have() {
    for n in [24, 17] {
        let statement = product(n);
        let by_matrix = Statement::new(&assignment("A(i,j,l) = B(i,j,k) * C(k,l)", &[n, 5, 4, 3]));
        let inner = Statement::new(&assignment("a = B(i,j,k) * C(i,j,k)", &[n, 7, 5]));
        let khatri_rao = Statement::new(&assignment("A(i,l) = B(i,j,k) * C(j,l) * D(k,l)", &[n, 6, 5, 4]));
        for algorithm in [
            cannon(&statement, [4, 4]).unwrap(),
            cannon(&statement, [2, 3]).unwrap(),
            pumma(&statement, [4, 4]).unwrap(),
            summa(&statement, [3, 4], 5).unwrap(),
            johnson(&statement, [2, 3, 4]).unwrap(),
            solomonik(&statement, 8, 2).unwrap(),
            cosma(&statement, CosmaGrid { grid: [2, 2, 2], steps: [2, 1, 2] }).unwrap(),
            ttm(&by_matrix, 5).unwrap(),
            innerprod(&inner, &[2, 3]).unwrap(),
            mttkrp(&khatri_rao, [3, 1, 2]).unwrap(),
        ] {
            let [(listed, exact), (estimated, rough)] = both(&algorithm);
            for tensor in listed.tensors() {
                let [exact, rough] = [&listed, &estimated].map(|traffic| traffic.of_tensor(tensor.name()));
                assert_eq!(rough, exact, "{tensor}\n{}", algorithm.statement);
            }
            assert_eq!(estimated.bytes(), listed.bytes());
            let numbers =
                |of: &Estimate| (of.operations, of.most_operations, of.moved, of.copied, of.leaves, of.memory);
            assert_eq!(numbers(&rough), numbers(&exact), "{}", algorithm.statement);
            assert!((rough.computing - exact.computing).abs() <= 1e-9 * exact.computing);
        }
    }
}

#[test]
fn on_large_machines_an_estimate_is_near_to_what_messages_have() {
    let statement = product(480);
    let near = |name: &str, found: f64, expected: f64, tolerance: f64| {
        assert!((found - expected).abs() <= tolerance * expected, "{name}: {found}, not {expected}");
    };
    for (name, algorithm) in [
        ("cannon", cannon(&statement, [16, 16]).unwrap()),
        ("pumma", pumma(&statement, [12, 12]).unwrap()),
        ("summa", summa(&statement, [16, 10], 40).unwrap()),
        ("johnson", johnson(&statement, [6, 6, 6]).unwrap()),
        ("cosma", cosma(&statement, CosmaGrid { grid: [5, 5, 5], steps: [2, 2, 2] }).unwrap()),
    ] {
        let [(_, exact), (_, rough)] = both(&algorithm);
        near(name, rough.moved as f64, exact.moved as f64, 0.15);
        near(name, rough.operations, exact.operations, 1e-9);
        near(name, rough.memory as f64, exact.memory as f64, 0.01);
        near(name, rough.computing, exact.computing, 0.02);
        near(name, rough.seconds, exact.seconds, 0.3);
    }
}

/// To list a million processors' messages would take all memory, and to go through their points in each step hours.
#[test]
fn schedules_are_compared_for_a_million_processors() {
    let n = 1 << 20;
    let product = assignment("A(i,j) = B(i,k) * C(k,j)", &[n, n, n]);
    let choice = choose(&product, 1 << 20, &Rates::default());
    assert!(choice.candidates().len() >= 20, "{}", choice.candidates().len());
    let best = choice.best();
    assert!(best.machine.size() > 1 << 19, "{}", best.machine);
    // Each operand's rows or columns, or less: and no processor holds more than a few tiles.
    let tile = (n / 1024) as u64 * (n / 1024) as u64 * 8;
    assert!(best.estimate.memory < 4096 * tile, "{}", choice.explain());
    assert!(choice.explain().contains("about 1048576 pieces of"), "{}", choice.explain());
    let on = on_grid(&assignment("A(i,j) = B(i,j) + C(i,j)", &[n, n]), &[1024, 1024], &Rates::default()).unwrap();
    assert_eq!((on.estimate.moved, on.estimate.leaves), (0, 1 << 20));
    for algorithm in [
        cannon(&Statement::new(&product), [1024, 1024]).unwrap(),
        summa(&Statement::new(&product), [1024, 1024], 512).unwrap(),
    ] {
        let (plan, machine) = (Plan::new(&algorithm.statement).unwrap(), machine(&algorithm));
        let traffic = Traffic::of(&plan, &machine, &algorithm.placements).unwrap();
        let estimate = Estimate::new(&plan, &traffic, &algorithm.placements, &Rates::default());
        // `2 n^2 (sqrt(p) - 1)` elements.
        let formula = 2.0 * (n as f64).powi(2) * 1023.0 * 8.0;
        assert!((estimate.moved as f64 / formula - 1.0).abs() < 0.05, "{} of {formula}", estimate.moved);
        let leaves = format!("operations in {} leaves", plan.order().steps() << 20);
        assert!(explain(&plan, &algorithm.placements, &traffic, &estimate).contains(&leaves));
        assert!(draw(&traffic, "Messages").contains("too many messages to draw"));
    }
}
