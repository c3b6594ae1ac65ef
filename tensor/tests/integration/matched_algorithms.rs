//! Algorithms are found whatever the order of factors, and where operands are transposed.

use std::collections::BTreeMap;

use fastrand::Rng;
use maniple_tensor::algorithms::*;
use maniple_tensor::concrete::Statement;
use maniple_tensor::element::ElementType::I64;
use maniple_tensor::element::Scalar;
use maniple_tensor::machine::{Grid, Machine};
use maniple_tensor::notation::{DenseArray, IndexVariable, evaluate, parse_with_extents};
use maniple_tensor::plan::Plan;
use maniple_tensor::traffic::Traffic;

type Make = fn(&Statement) -> Result<Algorithm, AlgorithmError>;

/// The bytes that the algorithm moves; its result is compared with the definition.
fn moved(text: &str, make: Make) -> u64 {
    let extents = [("i", 8), ("j", 12), ("k", 10), ("l", 6)].map(|(name, extent)| (IndexVariable::new(name), extent));
    let assignment = parse_with_extents(text, I64, &extents).expect("a statement");
    let algorithm = in_any_order(&Statement::new(&assignment), make).unwrap_or_else(|error| panic!("{text}: {error}"));
    let plan = Plan::new(&algorithm.statement).expect("algorithms have plans");
    let mut random = Rng::with_seed(3);
    let tensors = assignment.tensors();
    let mut array = |dimensions: &[i64]| DenseArray::from_fn(I64, dimensions, |_| Scalar::I64(random.i64(-9..10)));
    let operands: BTreeMap<String, DenseArray> =
        tensors.iter().map(|tensor| (tensor.name().to_owned(), array(tensor.dimensions()))).collect();
    let (found, _) = plan.run_sequentially(&operands).unwrap_or_else(|error| panic!("{text}: {error}\n{plan}"));
    assert_eq!(found, evaluate(&assignment, &operands).expect("a value"), "{text}\n{plan}");
    let extents: Vec<usize> = algorithm.grid.iter().map(|&extent| extent as usize).collect();
    let machine = Machine::from(Grid::new(extents).expect("a grid"));
    Traffic::new(&plan, &machine, &algorithm.placements).expect("placements fit").bytes()
}

#[test]
fn products_of_matrices_have_factors_in_any_order_and_transposed() {
    let makes: [Make; 6] = [
        |statement| cannon(statement, [2, 2]),
        |statement| pumma(statement, [2, 2]),
        |statement| summa(statement, [2, 2], 3),
        |statement| johnson(statement, [2, 2, 2]),
        |statement| solomonik(statement, 8, 2),
        |statement| cosma(statement, CosmaGrid { grid: [2, 1, 2], steps: [1, 2, 1] }),
    ];
    for (number, make) in makes.into_iter().enumerate() {
        let plain = moved("A(i,j) = B(i,k) * C(k,j)", make);
        for text in [
            "A(i,j) = C(k,j) * B(i,k)",
            "A(i,j) = B(k,i) * C(k,j)",
            "A(i,j) = B(i,k) * C(j,k)",
            "A(i,j) = C(j,k) * B(k,i)",
            "A(i,j) += C(k,j) * B(k,i)",
        ] {
            // What is added to is fetched too.
            let more = if text.contains('+') { moved("A(i,j) += B(i,k) * C(k,j)", make) } else { plain };
            assert_eq!(moved(text, make), more, "{text}, algorithm {number}");
        }
    }
}

#[test]
fn products_of_higher_order_have_factors_in_any_order_and_transposed() {
    let cases: [(&str, &[&str], Make); 4] = [
        ("A(i,j) = B(i,j,k) * c(k)", &["A(i,j) = c(k) * B(k,j,i)", "A(i,j) = B(j,k,i) * c(k)"], |statement| {
            ttv(statement, [2, 2])
        }),
        ("a = B(i,j,k) * C(i,j,k)", &["a = C(k,i,j) * B(i,j,k)", "a = B(j,i,k) * C(k,j,i)"], |statement| {
            innerprod(statement, &[2, 2])
        }),
        ("A(i,j,l) = B(i,j,k) * C(k,l)", &["A(i,j,l) = C(l,k) * B(k,i,j)"], |statement| ttm(statement, 2)),
        (
            "A(i,l) = B(i,j,k) * C(j,l) * D(k,l)",
            &["A(i,l) = D(l,k) * B(k,j,i) * C(j,l)", "A(i,l) = C(l,j) * D(k,l) * B(j,k,i)"],
            |statement| mttkrp(statement, [2, 2, 2]),
        ),
    ];
    for (plain, others, make) in cases {
        let expected = moved(plain, make);
        for text in others {
            assert_eq!(moved(text, make), expected, "{text}");
        }
    }
}

#[test]
fn what_is_another_product_is_none() {
    let extents = [("i", 4), ("j", 4), ("k", 4)].map(|(name, extent)| (IndexVariable::new(name), extent));
    for text in
        ["A(i,j) = B(i,k) * C(i,j)", "A(i,i) = B(i,k) * C(k,i)", "A(i,j) = B(k,k) * C(k,j)", "A(i,j) = B(i,k) + C(k,j)"]
    {
        // Some are no statements at all.
        let Ok(assignment) = parse_with_extents(text, I64, &extents) else { continue };
        let refused = in_any_order(&Statement::new(&assignment), |of| cannon(of, [2, 2]));
        assert!(matches!(refused, Err(AlgorithmError::Form { .. })), "{text}");
    }
}
