//! What plans move between nodes, as the runtime counts it: what the model of their traffic says, which follows the published formulas.

#![allow(clippy::unwrap_used)] // in a test, a panic is the report

use std::collections::BTreeMap;
use std::sync::Arc;

use maniple::Result;
use maniple_tensor::algorithms::*;
use maniple_tensor::concrete::Statement;
use maniple_tensor::distributed::{Tensor, compute};
use maniple_tensor::element::{ElementType, Scalar};
use maniple_tensor::machine::{Grid, Machine};
use maniple_tensor::notation::{Assignment, DenseArray, IndexVariable, TensorVariable, evaluate, parse_with_extents};
use maniple_tensor::plan::Plan;
use maniple_tensor::traffic::Traffic;
use maniple_tests::nodes::{Nodes, on_nodes};

fn product(n: i64) -> Assignment {
    let extents: Vec<_> = ["i", "j", "k"].map(|name| (IndexVariable::new(name), n)).into();
    parse_with_extents("A(i,j) = B(i,k) * C(k,j)", ElementType::I64, &extents).unwrap()
}

/// The bytes that each node sends and receives while an algorithm runs, from tensors that are placed as it says to a result that is.
fn moved(algorithm: &Algorithm, assignment: &Assignment) -> Vec<(u64, u64)> {
    let machine = machine(algorithm);
    let plan = Arc::new(Plan::new(&algorithm.statement).unwrap());
    let array = |tensor: &TensorVariable| {
        let mut next = 0;
        DenseArray::from_fn(tensor.element(), tensor.dimensions(), |_| {
            next = (next * 7 + 3) % 11;
            Scalar::I64(next)
        })
    };
    let operands: BTreeMap<String, DenseArray> =
        assignment.tensors().iter().map(|tensor| (tensor.name().to_owned(), array(tensor))).collect();
    let expected = evaluate(assignment, &operands).unwrap();
    let results = on_nodes(Nodes::new(machine.size()), async |cx, runtime| -> Result<(u64, u64)> {
        let mut tensors = Vec::new();
        for (variable, placement) in &algorithm.placements {
            let tensor = Tensor::new(cx, variable)?;
            tensor.write(cx, &operands[variable.name()])?;
            tensor.place(cx, placement, &machine)?.await?;
            tensors.push(tensor);
        }
        let before = runtime.statistics();
        compute(cx, &plan, &tensors.iter().collect::<Vec<_>>())?.await?;
        tensors[0].place(cx, &algorithm.placements[0].1, &machine)?.await?;
        let after = runtime.statistics();
        assert!(tensors[0].read(cx).await? == expected);
        Ok((
            after.parcel_bytes_sent - before.parcel_bytes_sent,
            after.parcel_bytes_received - before.parcel_bytes_received,
        ))
    });
    results.into_iter().map(|result| result.unwrap()).collect()
}

fn machine(algorithm: &Algorithm) -> Machine {
    let extents: Vec<usize> = algorithm.grid.iter().map(|&extent| extent as usize).collect();
    Grid::new(extents).unwrap().into()
}

/// The model of an algorithm's traffic.
fn traffic(algorithm: &Algorithm) -> Traffic {
    Traffic::new(&Plan::new(&algorithm.statement).unwrap(), &machine(algorithm), &algorithm.placements).unwrap()
}

fn all(algorithm: &Algorithm, n: i64) -> u64 {
    let (moved, traffic) = (moved(algorithm, &product(n)), traffic(algorithm));
    let received: Vec<u64> = moved.iter().map(|(_, received)| *received).collect();
    assert_eq!(received, traffic.received(), "{}", algorithm.statement);
    let sent: u64 = moved.iter().map(|(sent, _)| *sent).sum();
    assert_eq!(sent, traffic.bytes());
    sent
}

/// `2 n^2 (sqrt(p) - 1)` elements: each processor gets the rest of a block of rows and of one of columns.
#[test]
fn two_dimensional_algorithms_move_what_their_formula_says() {
    for (g, n) in [(2, 8), (3, 9), (4, 16), (8, 16)] {
        let statement = Statement::new(&product(n));
        let mut algorithms = vec![cannon(&statement, [g, g]).unwrap(), summa(&statement, [g, g], n / g).unwrap()];
        if g < 8 {
            algorithms.push(pumma(&statement, [g, g]).unwrap());
            algorithms.push(summa(&statement, [g, g], 1).unwrap());
        }
        for algorithm in algorithms {
            assert_eq!(all(&algorithm, n), (8 * 2 * n * n * (g - 1)) as u64, "{}", algorithm.statement);
        }
    }
}

/// Tiles go around: what a processor sends in each step goes to one processor for each operand, and it sends as much as it gets.
#[test]
fn rotated_tiles_are_passed_on_evenly() {
    let (g, n) = (4, 16);
    let algorithm = cannon(&Statement::new(&product(n)), [g, g]).unwrap();
    for (sent, received) in moved(&algorithm, &product(n)) {
        assert_eq!(sent, received);
    }
}

/// `3 n^2 (q - 1)` elements on a cube of `q^3`: the tiles of a face go along a dimension to all other layers, or come from them.
#[test]
fn johnsons_algorithm_moves_what_its_formula_says() {
    for (q, n) in [(2, 8), (3, 9), (4, 8)] {
        let algorithm = johnson(&Statement::new(&product(n)), [q, q, q]).unwrap();
        assert_eq!(all(&algorithm, n), (8 * 3 * n * n * (q - 1)) as u64);
    }
}

#[test]
fn the_algorithm_in_two_and_a_half_dimensions_moves_what_its_model_says() {
    for (processors, copies, n) in [(4, 1, 8), (8, 2, 8), (32, 2, 16), (128, 2, 16)] {
        let algorithm = solomonik(&Statement::new(&product(n)), processors, copies).unwrap();
        all(&algorithm, n);
    }
}
