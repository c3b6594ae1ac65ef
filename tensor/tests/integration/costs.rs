//! Estimates are what the rates say, by hand.

use maniple_tensor::algorithms::*;
use maniple_tensor::concrete::Statement;
use maniple_tensor::cost::{Estimate, Rates, explain};
use maniple_tensor::element::ElementType::{self, C64, F32, F64};
use maniple_tensor::machine::{Grid, Machine};
use maniple_tensor::notation::{IndexVariable, parse_with_extents};
use maniple_tensor::plan::Plan;
use maniple_tensor::traffic::Traffic;

fn statement(text: &str, element: ElementType, extents: &[i64]) -> Statement {
    let names = ["i", "j", "k", "l"].map(IndexVariable::new);
    let extents: Vec<_> = names.into_iter().zip(extents.iter().copied()).collect();
    Statement::new(&parse_with_extents(text, element, &extents).unwrap())
}

fn product(extents: [i64; 3]) -> Statement {
    statement("A(i,j) = B(i,k) * C(k,j)", F64, &extents)
}

/// Rates of which each has its own magnitude.
const RATES: Rates = Rates {
    products: 1e9,
    loops: 1e8,
    memory: 1e15,
    network: 1e6,
    latency: 1e-3,
    launch: 1e-2,
    overlap: 0.0,
    capacity: None,
};

fn estimate(algorithm: &Algorithm, rates: &Rates) -> Estimate {
    let plan = Plan::new(&algorithm.statement).unwrap();
    let extents: Vec<usize> = algorithm.grid.iter().map(|&extent| extent as usize).collect();
    let machine = Machine::from(Grid::new(extents).unwrap());
    let traffic = Traffic::new(&plan, &machine, &algorithm.placements).unwrap();
    let estimate = Estimate::new(&plan, &traffic, &algorithm.placements, rates);
    // What is explained is what is estimated.
    let explained = explain(&plan, &algorithm.placements, &traffic, &estimate);
    assert!(explained.contains(&format!("{} operations in {} leaves", estimate.operations, estimate.leaves)));
    estimate
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{found}, not {expected}");
}

#[test]
fn each_iteration_of_a_product_is_two_operations_whoever_does_it() {
    for [m, n, k] in [[8, 8, 8], [7, 11, 13], [2, 3, 1]] {
        let statement = product([m, n, k]);
        for algorithm in [
            cannon(&statement, [2, 3]).unwrap(),
            summa(&statement, [3, 2], 4).unwrap(),
            johnson(&statement, [2, 2, 2]).unwrap(),
            solomonik(&statement, 8, 2).unwrap(),
        ] {
            assert_eq!(estimate(&algorithm, &RATES).operations, (2 * m * n * k) as f64, "{}", algorithm.statement);
        }
    }
    let largest = estimate(&cannon(&product([7, 11, 13]), [2, 3]).unwrap(), &RATES).most_operations;
    assert_eq!(largest, (2 * 4 * 4 * 13) as f64);
}

/// Half of the operands' panels come before each of two steps: each processor has two messages of 50 x 50 elements in
/// each, as sender or receiver.
#[test]
fn summas_time_is_that_of_its_messages_and_products() {
    let algorithm = summa(&product([100, 100, 100]), [2, 2], 50).unwrap();
    let moving = 2.0 * (50.0 * 50.0 * 8.0 / 1e6 + 1e-3);
    let computing = 2.0 * 50.0 * 50.0 * 50.0 / 1e9 + 1e-2;
    let found = estimate(&algorithm, &RATES);
    close(found.computing, 2.0 * computing);
    close(found.moving, 2.0 * moving);
    close(found.seconds, 2.0 * (computing + moving));
    // The second step's messages overlap with the first step's product.
    let found = estimate(&algorithm, &Rates { overlap: 1.0, ..RATES });
    close(found.seconds, moving + moving.max(computing) + computing);
    let found = estimate(&algorithm, &Rates { overlap: 0.5, ..RATES });
    close(found.seconds, moving + moving + computing / 2.0 + computing);
    assert_eq!((found.messages, found.leaves, found.moved, found.copied), (8, 8, 8 * 50 * 50 * 8, 0));
    assert_eq!(found.most_moved, 2 * 50 * 50 * 8);
}

#[test]
fn sums_that_are_sent_after_the_last_step_overlap_with_nothing() {
    let grid = CosmaGrid { grid: [1, 1, 2], steps: [1, 1, 2] };
    let algorithm = cosma(&product([100, 100, 100]), grid).unwrap();
    let found = estimate(&algorithm, &Rates { overlap: 1.0, ..RATES });
    // Operands are where they are needed, and half of the sum goes from one to the other.
    assert_eq!((found.messages, found.moved), (1, 100 * 100 * 8));
    close(found.seconds, 100.0 * 100.0 * 100.0 / 1e9 + 2e-2 + 100.0 * 100.0 * 8.0 / 1e6 + 1e-3);
}

#[test]
fn copies_that_placements_keep_are_paid_for() {
    let by_vector = statement("A(i,j) = B(i,j,k) * c(k)", F64, &[10, 10, 30]);
    let found = estimate(&ttv(&by_vector, [2, 2]).unwrap(), &RATES);
    assert_eq!((found.moved, found.copied), (0, 3 * 30 * 8));
    let computing = 2.0 * 5.0 * 5.0 * 30.0 / 1e8 + 1e-2;
    close(found.seconds, computing + 30.0 * 8.0 / 1e6 + 1e-3);
}

#[test]
fn leaves_that_compute_little_take_as_long_as_their_data() {
    let by_vector = statement("A(i,j) = B(i,j,k) * c(k)", F64, &[10, 10, 30]);
    let found = estimate(&ttv(&by_vector, [2, 2]).unwrap(), &Rates { memory: 1e6, ..RATES });
    close(found.computing, (25.0 + 750.0 + 30.0) * 8.0 / 1e6 + 1e-2);
}

#[test]
fn operations_on_small_elements_are_quicker_and_on_complex_ones_slower() {
    let computing = |element| {
        let statement = statement("A(i,j) = B(i,k) * C(k,j)", element, &[100, 100, 100]);
        estimate(&cannon(&statement, [1, 1]).unwrap(), &Rates { launch: 0.0, ..RATES }).computing
    };
    close(computing(F32), 0.5 * computing(F64));
    close(computing(C64), 4.0 * computing(F64));
}
