//! Results that have the levels of an operand, or keep those that they had.

use std::collections::BTreeMap;

use fastrand::Rng;
use maniple_tensor::element::{ElementType, Scalar};
use maniple_tensor::kernel::{Kernels, Serial};
use maniple_tensor::notation::{DenseArray, TensorVariable, evaluate, parse};
use maniple_tensor::schedule::Schedule;
use maniple_tensor::sparse::Computation;
use maniple_tensor::storage::SparseTensor;

use crate::sparse::{InTurn, dense, stored, thinned, with_other_values};

/// The statement, the formats of A, of B and of the result, and whether the result has the levels of A.
const ASSEMBLED: [(&str, [&str; 3], bool); 14] = [
    ("Y(i,j) = A(i,j) * C(i,k) * C(j,k)", ["csr", "csr", "csr"], true),
    ("Y(i,j) = A(i,j) * C(i,k) * C(j,k)", ["dcsr", "csr", "dcsr"], true),
    ("Y(i,j) = A(i,j) * C(i,k) * C(j,k)", ["csc", "csr", "csc"], true),
    ("Y(j,i) = 2 * A(i,j)", ["csr", "csr", "csc"], true),
    ("Y(i,j) = A(i,j) * x(j) - A(i,j)", ["dcsr", "csr", "dcsr"], true),
    ("Y(i,j) = A(i,j) ? x(i) + 1", ["csr", "csr", "csr"], true),
    ("Z(i,j) = T(i,j,k) * x(k)", ["csr", "csr", "dcsr"], true),
    ("Z(i,j) = 3 * T(i,j,k)", ["csr", "csr", "dcsr"], true),
    ("Y(i,j) = A(i,k) * B(k,j)", ["csr", "csr", "csr"], false),
    ("Y(i,j) = A(i,k) * B(k,j)", ["csc", "csc", "csr"], false),
    ("Y(i,j) = A(i,j) + B(i,j)", ["csr", "csr", "csr"], false),
    ("Y(i,j) = A(i,j) * B(i,j)", ["csr", "csr", "csr"], false),
    ("Y(i,j) = A(i,j) ? B(i,k) * B(k,j)", ["csr", "csr", "csr"], false),
    ("Y(i,j) = A(i,k) * B(k,j) + A(i,j)", ["csr", "csr", "csr"], false),
];

#[test]
fn results_keep_their_levels_as_long_as_operands_do() {
    let folder = tempfile::tempdir().unwrap();
    let compiled = Kernels::new(maniple_tensor::kernel::Compiler::find(), Some(folder.path().to_owned()));
    let (interpreted, mut random) = (Kernels::new(None, None), Rng::with_seed(37));
    for (text, [a, b, y], has_levels) in ASSEMBLED {
        let tensor = |name: &str, extents: &[i64], format: &str| {
            TensorVariable::new(name, ElementType::I64, extents).stored(format.parse().unwrap())
        };
        let tensors = [
            tensor("A", &[7, 7], a),
            tensor("B", &[7, 7], b),
            tensor("C", &[7, 3], "rows"),
            tensor("T", &[7, 7, 7], "csf:3"),
            tensor("x", &[7], "{D}"),
            tensor("Y", &[7, 7], y),
            tensor("Z", &[7, 7], y),
        ];
        let assignment = parse(text, &tensors).unwrap();
        let mut draw = || {
            let operands = assignment.right().accesses().into_iter().map(|access| {
                let array = DenseArray::from_fn(ElementType::I64, access.tensor.dimensions(), |_| {
                    Scalar::I64(random.i64(-3..4))
                });
                (access.tensor.name().to_owned(), thinned(&array, &access.tensor, &mut random))
            });
            operands.collect::<BTreeMap<String, DenseArray>>()
        };
        let (first, second) = (draw(), draw());
        let stored = |arrays: &BTreeMap<String, DenseArray>| -> Vec<(String, SparseTensor<i64>)> {
            let tensor = |name: &String| tensors.iter().find(|tensor| tensor.name() == name).unwrap();
            arrays.iter().map(|(name, array)| (name.clone(), stored(array, tensor(name)))).collect()
        };
        let (one, other) = (stored(&first), stored(&second));
        for kernels in [&interpreted, &compiled] {
            let computation = Computation::new(&assignment).unwrap();
            let given = |tensors: &'_ [(String, SparseTensor<i64>)]| -> Vec<(String, SparseTensor<i64>)> {
                tensors
                    .iter()
                    .map(|(name, tensor)| (name.clone(), with_other_values(tensor, &mut Rng::new())))
                    .collect()
            };
            let run = |tensors: &[(String, SparseTensor<i64>)], result: Option<&mut SparseTensor<i64>>| {
                let operands: Vec<(&str, &SparseTensor<i64>)> =
                    tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
                let arrays = tensors.iter().map(|(name, tensor)| (name.clone(), dense(tensor))).collect();
                let expected = evaluate(&assignment, &arrays).unwrap();
                let found = match result {
                    Some(result) => {
                        computation.run_into(&operands, kernels, &InTurn(3), result).unwrap();
                        result.clone()
                    }
                    None => computation.run_by(&operands, kernels, &InTurn(3)).unwrap(),
                };
                found.check().unwrap();
                assert_eq!(dense(&found), expected, "{text}\n{}", computation.loops());
                found
            };
            let mut result = run(&one, None);
            let before = result.clone();
            let pattern = one.iter().find(|(name, _)| name == "A").filter(|_| has_levels);
            assert!(pattern.is_none_or(|(_, a)| a.shares_levels(&result)), "{text}");
            run(&given(&one), Some(&mut result));
            assert!(result.shares_levels(&before), "{text}\n{}", computation.loops());
            // Other levels, and the first ones again.
            run(&other, Some(&mut result));
            run(&one, Some(&mut result));
            assert_eq!(result, before, "{text}");
        }
    }
}

/// Rows in lists of which each has a part: what is known of the result's rows says nothing of these.
#[test]
fn results_whose_rows_are_gathered_in_parts_are_computed_again() {
    let csr = |name: &str| TensorVariable::new(name, ElementType::I64, [9, 40]).stored("csr".parse().unwrap());
    let tensors = [csr("Y"), csr("A"), csr("B")];
    let assignment = parse("Y(i,j) = A(i,j) + B(i,j)", &tensors).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let compiled = Kernels::new(maniple_tensor::kernel::Compiler::find(), Some(folder.path().to_owned()));
    let mut random = Rng::with_seed(41);
    let arrays: BTreeMap<String, DenseArray> = ["A", "B"]
        .map(|name| {
            // Rows of which all elements are in one part, and others.
            let mut value = |at: &[i64]| if at[0] % 3 == 0 && at[1] < 32 { 0 } else { random.i64(-2..3).max(0) };
            (name.to_owned(), DenseArray::from_fn(ElementType::I64, &[9, 40], |at| Scalar::I64(value(at))))
        })
        .into();
    let expected = evaluate(&assignment, &arrays).unwrap();
    let [a, b] = [("A", &tensors[1]), ("B", &tensors[2])].map(|(name, tensor)| stored::<i64>(&arrays[name], tensor));
    for schedule in [
        "split(j, jo, ji, 16); precompute(A(i,j) + B(i,j), {ji}, {jw}, w); store(w, {C~o})",
        "split(j, jo, ji, 16); rotate(jo, {i}, js); precompute(A(i,j) + B(i,j), {ji}, {jw}, w); store(w, {C~o})",
        "precompute(A(i,j) + B(i,j), {j}, {jw}, w); store(w, {C~o})",
    ] {
        let schedule = Schedule::parse(schedule, &tensors).unwrap();
        let computation = Computation::new(&assignment).unwrap().scheduled(&schedule).unwrap();
        for kernels in [&Kernels::new(None, None), &compiled] {
            let operands = [("A", &a), ("B", &b)];
            let mut result = computation.run_by(&operands, kernels, &Serial).unwrap();
            for _ in 0..2 {
                result.values_mut().fill(-77);
                computation.run_into(&operands, kernels, &Serial, &mut result).unwrap();
                assert_eq!(dense(&result), expected, "{schedule}\n{}", computation.loops());
            }
        }
    }
    // An accumulation reads what the result was.
    let add = parse("Y(i,j) += A(i,j)", &tensors).unwrap();
    let mut twice = a.clone();
    Computation::new(&add).unwrap().run_into(&[("A", &a)], &compiled, &Serial, &mut twice).unwrap();
    assert!(twice.values().iter().zip(a.values()).all(|(twice, once)| *twice == 2 * once));
}
