//! Schedules that are chosen: legal, cheap, explained, and always the same.

use crate::random;
use std::collections::BTreeMap;

use fastrand::Rng;
use maniple_tensor::choose::{Choice, choose};
use maniple_tensor::cost::Rates;
use maniple_tensor::element::ElementType::F64;
use maniple_tensor::format::Format;
use maniple_tensor::notation::{self, Assignment, IndexVariable, TensorVariable, parse, parse_with_extents};
use random::Problem;

fn assignment(text: &str, extents: &[i64]) -> Assignment {
    let names = ["i", "j", "k", "l"].map(IndexVariable::new);
    let extents: Vec<_> = names.into_iter().zip(extents.iter().copied()).collect();
    parse_with_extents(text, F64, &extents).unwrap()
}

fn of(text: &str, extents: &[i64], processors: usize) -> Choice {
    choose(&assignment(text, extents), processors, &Rates::default())
}

const GEMM: &str = "A(i,j) = B(i,k) * C(k,j)";

#[test]
fn small_problems_stay_on_one_processor_and_large_ones_do_not() {
    let small = of(GEMM, &[8, 8, 8], 4);
    assert_eq!(small.best().name, "one processor");
    assert_eq!(small.best().traffic.bytes(), 0);
    let large = of(GEMM, &[2000, 2000, 2000], 4);
    assert_eq!(large.best().machine.size(), 4);
    assert!(large.best().estimate.seconds < small_time(&large, "one processor") / 2.0);
}

fn small_time(choice: &Choice, name: &str) -> f64 {
    choice.candidates().iter().find(|candidate| candidate.name == name).unwrap().estimate.seconds
}

#[test]
fn candidates_are_sorted_by_their_time() {
    let choice = of(GEMM, &[600, 500, 700], 6);
    assert!(choice.candidates().len() > 10);
    assert!(choice.candidates().is_sorted_by_key(|candidate| candidate.estimate.seconds));
}

#[test]
fn tall_products_are_cut_along_their_long_side() {
    // Of 4 MB of A and B and 0.1 MB of C, the latter is to move.
    let choice = of(GEMM, &[40_000, 100, 100], 4);
    assert_eq!(choice.best().algorithm.grid.iter().product::<i64>(), 4);
    let moved = choice.best().estimate.moved + choice.best().estimate.copied;
    assert!(moved <= 3 * 100 * 100 * 8, "{}", choice.explain());
    // A sum over what is long is reduced.
    let inner = of(GEMM, &[100, 100, 40_000], 4);
    assert_eq!(inner.best().estimate.moved, 3 * 100 * 100 * 8, "{}", inner.explain());
}

#[test]
fn an_odd_number_of_processors_may_leave_some_idle() {
    let choice = of(GEMM, &[3000, 3000, 3000], 7);
    let used: Vec<i64> =
        choice.candidates().iter().map(|candidate| candidate.algorithm.grid.iter().product()).collect();
    assert!(used.contains(&6) && used.contains(&7), "{used:?}");
}

#[test]
fn memory_that_is_short_is_kept() {
    let extents = [2000, 2000, 2000];
    let free = of(GEMM, &extents, 4);
    let whole = free.best().estimate.memory;
    // Each processor's share of the three matrices, and a third of a matrix.
    let capacity = (3 * 1000 * 1000 + 1_300_000) * 8;
    let rates = Rates { capacity: Some(capacity), ..Rates::default() };
    let short = choose(&assignment(GEMM, &extents), 4, &rates);
    assert!(short.best().estimate.memory <= capacity, "{whole} {}", short.explain());
    assert!(short.explain().contains("too much"));
    // None fits here: the least there is.
    let none = choose(&assignment(GEMM, &extents), 4, &Rates { capacity: Some(1000), ..Rates::default() });
    let least = none.candidates().iter().map(|candidate| candidate.estimate.memory).min();
    assert_eq!(Some(none.best().estimate.memory), least);
}

#[test]
fn faster_networks_and_slower_processors_ask_for_more_processors() {
    let processors = |rates: Rates| choose(&assignment(GEMM, &[120, 120, 120]), 8, &rates).best().machine.size();
    let slow = Rates { network: 1e6, ..Rates::default() };
    let fast = Rates { products: 1e7, loops: 1e7, ..Rates::default() };
    assert_eq!(processors(slow), 1);
    assert_eq!(processors(fast), 8);
}

#[test]
fn the_innermost_loop_runs_along_rows() {
    let innermost = |text, extents: &[i64]| {
        let choice = of(text, extents, 4);
        let statement = &choice.best().algorithm.statement;
        let last = statement.spine().last().unwrap().variable.clone();
        assert_eq!(statement.ancestors(&last).len(), 1);
        statement.ancestors(&last)[0].to_string()
    };
    assert_eq!(innermost("A(i) = B(i,j) * c(j) * d(i)", &[4000, 4000]), "j");
    assert_eq!(innermost("A(j) = B(i,j) * c(i) * d(j)", &[4000, 4000]), "j");
    assert_eq!(innermost("A(i,j) = B(i,j) + C(i,j)", &[4000, 4000]), "j");
    assert_eq!(innermost("A(j,i) = B(j,i) + C(j,i) + D(i,j)", &[4000, 4000]), "i");
}

#[test]
fn of_two_ways_that_cost_the_same_the_one_with_pieces_in_one_stretch_is_chosen() {
    for (format, best) in [("{D,D}(0,1)", "i over 2"), ("{D,D}(1,0)", "j over 2")] {
        let format: Format = format.parse().unwrap();
        let tensors = ["A", "B", "C"].map(|name| TensorVariable::new(name, F64, [4000, 4000]).stored(format.clone()));
        let sum = parse("A(i,j) = B(i,j) + 2 * C(i,j)", &tensors).unwrap();
        let choice = choose(&sum, 2, &Rates::default());
        assert_eq!(choice.best().name, best, "{}", choice.explain());
    }
}

#[test]
fn the_same_question_has_the_same_answer() {
    assert_eq!(of(GEMM, &[640, 480, 320], 12), of(GEMM, &[640, 480, 320], 12));
}

/// Computes with the best plan, and with some others, and compares.
fn right(assignment: &Assignment, choice: &Choice, operands: &BTreeMap<String, notation::DenseArray>, seed: u64) {
    let expected = notation::evaluate(assignment, operands).unwrap();
    for candidate in choice.candidates().iter().take(4) {
        let (found, _) = candidate
            .plan
            .run_sequentially(operands)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{}", candidate.plan));
        assert_eq!(
            found, expected,
            "seed {seed}: {}\n{}\n{}",
            candidate.name, candidate.plan.statement, candidate.plan
        );
    }
}

#[test]
fn random_assignments_on_up_to_twelve_processors_have_plans_with_the_right_result() {
    // Launches cost nothing, so that most are distributed.
    let rates = Rates { launch: 0.0, latency: 0.0, network: 1e12, ..Rates::default() };
    let default = Rates::default();
    let mut distributed = 0;
    for seed in 5000..5200 {
        let mut random = Rng::with_seed(seed);
        let problem = Problem::new(&mut random);
        let processors = random.usize(1..=12);
        let choice = choose(&problem.assignment, processors, if seed % 4 == 0 { &default } else { &rates });
        assert!(choice.candidates().iter().all(|candidate| candidate.machine.size() <= processors));
        right(&problem.assignment, &choice, &problem.operands, seed);
        distributed += usize::from(choice.best().machine.size() > 1);
    }
    assert!(distributed > 60, "{distributed}");
}

#[test]
fn known_products_have_plans_with_the_right_result() {
    let mut random = Rng::with_seed(11);
    for text in [
        GEMM,
        "A(i,j) = B(i,j,k) * C(k)",
        "A(i,j,l) = B(i,j,k) * C(k,l)",
        "A(i,l) = B(i,j,k) * C(j,l) * D(k,l)",
        "A = B(i,j,k) * C(i,j,k)",
    ] {
        let extents = ["i", "j", "k", "l"].map(IndexVariable::new).into_iter().zip([7, 9, 8, 5]);
        let assignment =
            parse_with_extents(text, maniple_tensor::element::ElementType::I64, &extents.collect::<Vec<_>>()).unwrap();
        let operands = random::operands(&assignment, &mut random);
        for processors in [1, 4, 6, 8] {
            let rates = Rates { launch: 0.0, latency: 0.0, ..Rates::default() };
            let choice = choose(&assignment, processors, &rates);
            let expected = notation::evaluate(&assignment, &operands).unwrap();
            for candidate in choice.candidates() {
                let (found, _) = candidate.plan.run_sequentially(&operands).unwrap();
                assert_eq!(found, expected, "{text}, {processors} processors: {}", candidate.name);
            }
        }
    }
}

/// Compares with a file; with `UPDATE_EXPLANATIONS` in the environment the file is written instead, to be read and
/// committed.
fn explained(choice: &Choice, file: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/explanations").join(file);
    if std::env::var_os("UPDATE_EXPLANATIONS").is_some() {
        std::fs::write(&path, choice.explain()).unwrap();
    }
    assert_eq!(choice.explain(), std::fs::read_to_string(&path).unwrap(), "{file}");
}

/// Explanations tell the statement, where its tensors are, pieces, launches, bytes, memory and time, and why nothing
/// else was chosen.
#[test]
fn choices_are_explained() {
    explained(&of(GEMM, &[2000, 2000, 1000], 4), "gemm.txt");
    explained(&of("A(i,l) = B(i,j,k) * C(j,l) * D(k,l)", &[200, 200, 100, 32], 8), "mttkrp.txt");
    explained(&of("A(i,j) = B(i,j,k) * c(k)", &[400, 300, 200], 6), "ttv.txt");
}
