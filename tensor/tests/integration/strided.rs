//! Operands in parts with steps: every so many coordinates of a dimension.

use std::collections::BTreeMap;

use fastrand::Rng;
use maniple_tensor::element::{ElementType::I64, Scalar};
use maniple_tensor::kernel::{Kernels, Serial};
use maniple_tensor::notation::{DenseArray, TensorVariable, evaluate, parse};
use maniple_tensor::sparse::Computation;
use maniple_tensor::storage::SparseTensor;

use crate::sparse::{InTurn, dense, stored, thinned};

/// The extent of what parts are taken of.
const EXTENT: i64 = 90;

#[test]
fn parts_with_steps_of_any_length_are_what_evaluation_gives() {
    let (kernels, mut random) = (Kernels::new(None, None), Rng::with_seed(21));
    let statements = [
        "E(i,j) = A(i,PART)",
        "e(i) = A(i,PART)",
        "E(i,j) = A(i,PART) * B(i,j)",
        "E(i,j) = A(i,PART) + B(i,j)",
        "e(j) = A(i,PART)",
        "e(i) = A(i,PART) * d(j)",
        "E(i,j) += A(i,PART)",
        "e(i) = reduce(max, j, A(i,PART))",
        "E(i,j) = A(i,PART) + 1",
    ];
    for statement in statements {
        for (step, format) in [1, 2, 3, 16, 17, 40].into_iter().flat_map(|step| {
            ["csr", "dcsr", "coo", "csc", "{D,B}", "ell", "dia", "{D,L}", "{C,D}"].map(|format| (step, format))
        }) {
            let start = random.i64(0..4);
            let values = random.i64(0..(EXTENT - start) / step + 1);
            let part = format!("j({start},{},{step})", start + values * step);
            let tensor = |name: &str, extents: &[i64], format: &str| {
                TensorVariable::new(name, I64, extents.to_vec()).stored(format.parse().unwrap())
            };
            let result = if random.bool() { "csr" } else { "rows" };
            let e = if statement.starts_with("e(i)") { 6 } else { values };
            let tensors = [
                tensor("A", &[6, EXTENT], format),
                tensor("B", &[6, values], "csr"),
                tensor("E", &[6, values], result),
                tensor("d", &[values], "{D}"),
                tensor("e", &[e], "{D}"),
            ];
            let assignment = parse(&statement.replace("PART", &part), &tensors).unwrap();
            let arrays: BTreeMap<String, DenseArray> = assignment
                .tensors()
                .iter()
                .map(|tensor| {
                    let array = DenseArray::from_fn(I64, tensor.dimensions(), |_| Scalar::I64(random.i64(-3..4)));
                    (tensor.name().to_owned(), thinned(&array, tensor, &mut random))
                })
                .collect();
            let expected = evaluate(&assignment, &arrays).unwrap();
            let operands: Vec<(String, SparseTensor<i64>)> = assignment
                .tensors()
                .iter()
                .map(|tensor| (tensor.name().to_owned(), stored(&arrays[tensor.name()], tensor)))
                .collect();
            let operands: Vec<(&str, &SparseTensor<i64>)> =
                operands.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
            let computation = Computation::new(&assignment).unwrap();
            let found = computation.run_by(&operands, &kernels, &InTurn(random.usize(1..4))).unwrap();
            found.check().unwrap();
            assert_eq!(dense(&found), expected, "{assignment} of {format}\n{arrays:?}\n{}", computation.loops());
        }
    }
}

#[test]
fn a_loop_over_every_so_many_columns_goes_through_what_is_stored() {
    let csr = |name: &str, extents: [i64; 2]| TensorVariable::new(name, I64, extents).stored("csr".parse().unwrap());
    let tensors = [csr("A", [1000, 2000]), csr("C", [1000, 1000])];
    let assignment = parse("C(i,j) = A(i,j(0,2000,2))", &tensors).unwrap();
    let loops = Computation::new(&assignment).unwrap().loops();
    // What is searched for is halved again and again: here, where a part begins and where it ends.
    assert!(loops.matches("while").count() <= 4 && loops.contains("A1_crd"), "{loops}");
    let inner = loops.rsplit("for ").next().unwrap();
    assert!(!inner.contains("while"), "{loops}");
    let entries = [(0, 0, 1), (0, 3, 2), (7, 1998, 3), (999, 1999, 4)];
    let of = |at: &[i64]| entries.iter().find(|(i, j, _)| [*i, *j] == *at).map_or(0, |(.., value)| *value);
    let array = DenseArray::from_fn(I64, &[1000, 2000], |at| Scalar::I64(of(at)));
    let found = Computation::new(&assignment).unwrap();
    let found =
        found.run_by(&[("A", &stored::<i64>(&array, &tensors[0]))], &Kernels::new(None, None), &Serial).unwrap();
    assert_eq!(found.values(), [1, 3]);
    assert_eq!((found.get(&[0, 0]), found.get(&[7, 999])), (1, 3));
}
