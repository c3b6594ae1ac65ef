//! Results in levels into which statements accumulate on several nodes, and statements that read what they assign: the
//! same as the definition says, however often they are run.

use std::collections::BTreeMap;
use std::sync::Arc;

use maniple::{Context, Result};
use maniple_tensor::distributed::{Computation as Distributed, Tensor, assemble};
use maniple_tensor::element::Scalar;
use maniple_tensor::lower::Output;
use maniple_tensor::notation::{Assignment, TensorVariable};
use maniple_tensor::oracle::{SparseMap, evaluate};
use maniple_tensor::plan::Plan;
use maniple_tensor::sparse::Computation;
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, pack};
use maniple_tests::nodes::{Nodes, on_nodes};

use crate::sparse_tensors::{assignment, tensor};

/// A computation over so many points that has the old elements of its result among its operands, and its plan: with its
/// result as it is, or in another format.
fn planned(assignment: &Assignment, points: i64) -> (Computation<'static>, Arc<Plan>) {
    let own = Computation::new(assignment).unwrap().with_old_elements().unwrap();
    let others = own.assembled().into_iter().filter_map(|format| own.storing(&format).ok());
    let candidates = std::iter::once(own.with_old_elements().unwrap()).chain(others);
    let found = candidates.into_iter().find_map(|candidate| {
        let plan = Plan::new(candidate.on_grid(&[points]).ok()?.statement()).ok()?;
        Some((candidate, Arc::new(plan)))
    });
    found.unwrap_or_else(|| panic!("no points compute {assignment}"))
}

/// Runs a plan on tensors, each under its name in the assignment, and gives the result as it is declared.
async fn run(
    cx: &Context,
    (computation, plan): (&Computation<'_>, &Arc<Plan>),
    declared: &TensorVariable,
    tensors: &[Tensor],
) -> Result<Tensor> {
    let find = |name: &str| tensors.iter().find(|tensor| tensor.variable().name() == name).unwrap();
    let mut operands = Vec::new();
    for variable in plan.statement.operands() {
        let operand = find(computation.operand_of(variable.name()));
        operands.push(operand.snapshot(cx, variable).await?);
    }
    let mut given: Vec<&Tensor> = operands.iter().collect();
    if plan.leaf().output == Output::Entries {
        let made = assemble(cx, plan, &given).await?;
        return Ok(made.converted(cx, declared).await?);
    }
    let made = match declared.format().is_dense() {
        true => find(declared.name()).clone(),
        false => Tensor::for_result(cx, plan, &given)?,
    };
    given.push(&made);
    Distributed::new(cx, plan, &given).await?.launch(cx)?.await?;
    match declared.format().is_dense() {
        true => Ok(made),
        false => Ok(made.converted(cx, declared).await?),
    }
}

/// The elements that a tensor has now.
async fn elements(cx: &Context, tensor: &Tensor) -> Result<SparseMap> {
    let variable = tensor.variable();
    Ok(match variable.format().is_dense() {
        true => {
            let elements = tensor.read_elements::<i64>(cx).await?;
            SparseMap::of_tensor(&SparseTensor::from_elements(variable.dimensions(), 0, elements).unwrap())
        }
        false => SparseMap::of_tensor(&tensor.read_sparse::<i64>(cx).await?),
    })
}

/// Checks that a statement gives three times in a row what its definition says of what it gave before, by so many
/// points on so many nodes.
fn accumulates(nodes: usize, points: i64, assignment: &Assignment, given: &[(String, Arc<SparseTensor<i64>>)]) {
    let (computation, plan) = planned(assignment, points);
    let declared = &assignment.left().tensor;
    let is_equal = |one: Scalar, other: Scalar| one == other;
    let results = on_nodes(Nodes::new(nodes), async |cx, _| -> Result<()> {
        let mut tensors = Vec::new();
        for variable in assignment.tensors() {
            let stored = &given.iter().find(|(name, _)| name == variable.name()).unwrap().1;
            if variable.format().is_dense() {
                let tensor = Tensor::new(cx, &variable)?;
                tensor.write_elements(cx, stored.elements())?;
                tensors.push(tensor);
            } else {
                tensors.push(Tensor::from_sparse(cx, &variable, Arc::clone(stored))?);
            }
        }
        let mut expected: BTreeMap<String, SparseMap> =
            given.iter().map(|(name, stored)| (name.clone(), SparseMap::of_tensor(stored))).collect();
        for round in 0..3 {
            let made = run(cx, (&computation, &plan), declared, &tensors).await?;
            let found = elements(cx, &made).await?;
            let next = evaluate(assignment, &expected).unwrap();
            let differing = next.difference(&found, is_equal);
            assert_eq!(differing, None, "{assignment} as {}, round {round}\n{plan}", declared.format());
            expected.insert(declared.name().to_owned(), next);
            tensors.retain(|tensor| tensor.variable().name() != declared.name());
            tensors.push(made);
        }
        Ok(())
    });
    results.into_iter().for_each(|result| result.unwrap());
}

/// Elements for all tensors of an assignment.
fn given(assignment: &Assignment) -> Vec<(String, Arc<SparseTensor<i64>>)> {
    let numbered = assignment.tensors().into_iter().zip(2..);
    numbered.map(|(variable, every)| (variable.name().to_owned(), Arc::new(tensor(&variable, every)))).collect()
}

const FORMATS: [&str; 14] = [
    "csr", "csc", "dcsr", "coo", "{D,H}", "{C,D}", "{D,C~o}", "{D,L}", "bitmap", "ell", "dia", "hash", "bcsr:2x3",
    "{B,C}",
];

#[test]
fn values_are_accumulated_into_results_of_any_format() {
    for (number, format) in FORMATS.into_iter().enumerate() {
        for (text, operand) in [
            ("A(i,j) += B(i,k) * C(k,j)", "csr"),
            ("A(i,j) += B(i,j)", "csc"),
            ("A(i,j) -= B(i,j) * 2", "dcsr"),
            ("A(i,j) max= B(i,j) + C(i,j)", "csr"),
            ("A(i,j) min= B(i,j) * C(i,j)", "csr"),
            ("A(i,j) *= B(j,i)", "bitmap"),
            ("A(i,j) += C(i,j) ? B(i,k) * C(k,j)", "csr"),
        ] {
            let tensors: [(&str, &str, &[i64]); 3] =
                [("A", format, &[11, 11]), ("B", operand, &[11, 11]), ("C", "csr", &[11, 11])];
            let assignment = assignment(text, &tensors);
            accumulates(1 + number % 4, 3, &assignment, &given(&assignment));
        }
    }
    // On each number of nodes.
    for nodes in 1..=4 {
        let tensors: [(&str, &str, &[i64]); 3] =
            [("A", "csr", &[11, 11]), ("B", "csr", &[11, 11]), ("C", "csr", &[11, 11])];
        let product = assignment("A(i,j) += B(i,k) * C(k,j)", &tensors);
        accumulates(nodes, 5, &product, &given(&product));
    }
}

#[test]
fn vectors_and_tensors_of_three_dimensions_are_accumulated_into() {
    for (number, format) in ["{C}", "{B}", "{H}", "{L}", "{C~o}"].into_iter().enumerate() {
        let tensors: [(&str, &str, &[i64]); 2] = [("a", format, &[13]), ("B", "csr", &[13, 9])];
        let sums = assignment("a(i) += B(i,j)", &tensors);
        accumulates(1 + number % 4, 4, &sums, &given(&sums));
    }
    for (number, format) in ["csf:3", "{D,C,C}", "coo:3", "{D,D,B}"].into_iter().enumerate() {
        let tensors: [(&str, &str, &[i64]); 2] = [("A", format, &[6, 4, 5]), ("B", "csf:3", &[6, 4, 5])];
        let sums = assignment("A(i,j,k) max= B(i,j,k) * 2", &tensors);
        accumulates(1 + number % 4, 3, &sums, &given(&sums));
    }
}

#[test]
fn statements_may_read_what_they_assign() {
    let extents: &[i64] = &[9, 9];
    for (number, (text, result)) in [
        ("A(i,j) = A(i,j) + B(j,i)", "csr"),
        ("A(i,j) = A(i,j) * 2", "csr"),
        ("A(i,j) = A(i,j) * 2", "dcsc"),
        ("A(i,j) += A(i,j) * x(j) + B(i,j)", "dcsr"),
        ("A(i,j) = A(i,j) * B(i,j)", "bitmap"),
        ("A(i,j) = B(i,k) * B(k,j) - A(i,j)", "ell"),
        ("A(i,j) max= A(i,j) ? B(i,j) * 2", "bcsr:2x2"),
        ("A(i,j) = A(i,j) * 2 + B(i,j)", "dense"),
        ("A(i,j) += A(i,j) * B(i,j)", "dense"),
        ("x(i) = B(i,j) * B(i,j) - x(i)", "csr"),
    ]
    .into_iter()
    .enumerate()
    {
        let tensors: [(&str, &str, &[i64]); 3] = [("A", result, extents), ("B", "csr", extents), ("x", "dense", &[9])];
        let assignment = assignment(text, &tensors);
        accumulates(1 + number % 4, 3, &assignment, &given(&assignment));
    }
}

#[test]
fn extents_may_be_huge_one_or_nothing() {
    let sums = |extents: &'static [i64], format: &'static str| {
        let tensors: [(&str, &str, &[i64]); 2] = [("A", format, extents), ("B", "dcsr", extents)];
        assignment("A(i,j) += B(i,j)", &tensors)
    };
    let last = (1_i64 << 40) - 1;
    let at = |variable: &TensorVariable, at: &[[i64; 2]]| {
        let mut entries = EntryList::new(2);
        at.iter().for_each(|at| entries.push(at, at[1] % 5 + 1));
        let stored = pack(variable.format(), variable.dimensions(), 0, entries, Duplicates::Sum).unwrap().tensor;
        (variable.name().to_owned(), Arc::new(stored))
    };
    for format in ["dcsr", "coo", "{H,H}"] {
        let huge = sums(&[1 << 40, 1 << 40], format);
        let [a, b] = &huge.tensors()[..] else { panic!("there are two") };
        for (old, new) in [
            (&[[0, last], [last, 0]][..], &[[0, last], [7, 7]][..]),
            (&[], &[[last, last]]),
            (&[[1, 1]], &[]),
            (&[], &[]),
        ] {
            accumulates(3, 5, &huge, &[at(a, old), at(b, new)]);
        }
    }
    for (extents, points) in [(&[1, 1][..], 4), (&[0, 3], 2), (&[3, 0], 2), (&[2, 3], 9)] {
        for nodes in [1, 3] {
            let small = sums(extents, "csr");
            accumulates(nodes, points, &small, &given(&small));
        }
    }
}

#[test]
fn what_was_there_stays_for_who_has_a_snapshot() {
    let results = on_nodes(Nodes::new(3), async |cx, _| -> Result<()> {
        let variable =
            assignment("y(i) = x(i,j)", &[("y", "dense", &[40]), ("x", "columns", &[40, 30])]).tensors()[1].clone();
        let x = Tensor::new(cx, &variable)?;
        let before: Vec<i64> = (0..1200).map(|number| number * number % 17).collect();
        x.write_elements(cx, before.clone())?;
        let old = x.snapshot(cx, &variable.renamed("old")).await?;
        x.write_elements(cx, vec![7_i64; 1200])?;
        assert_eq!((old.variable().name(), old.variable().format()), ("old", variable.format()));
        assert_eq!(old.read_elements::<i64>(cx).await?, before);
        assert_eq!(x.read_elements::<i64>(cx).await?, vec![7; 1200]);
        // Another tensor is none of this one.
        let other = TensorVariable::new("old", variable.element(), [30, 40]);
        let error = x.snapshot(cx, &other).await.unwrap_err().to_string();
        assert!(error.contains("[40, 30]") && error.contains("[30, 40]"), "{error}");
        Ok(())
    });
    results.into_iter().for_each(|result| result.unwrap());
}
