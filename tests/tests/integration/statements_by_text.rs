//! Statements by their text, on tensors of the runtime: what the oracle says, on any number of nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use maniple::Result;
use maniple_tensor::notation::Assignment;
use maniple_tensor::oracle::{self, SparseMap};
use maniple_tensor::prelude::*;
use maniple_tensor::program::Program;
use maniple_tensor::storage::SparseTensor;
use maniple_tests::nodes::{Nodes, on_nodes};

use crate::sparse_tensors::tensor;

/// A statement, its operands with formats and extents, and results that are not dense.
type Case =
    (&'static str, &'static [(&'static str, &'static str, &'static [i64])], &'static [(&'static str, &'static str)]);

const CASES: &[Case] = &[
    ("y(i) = A(i,j) * x(j)", &[("A", "csr", &[30, 20]), ("x", "dense:1", &[20])], &[]),
    ("y(i) = A(i,j) * x(j)", &[("A", "csc", &[30, 20]), ("x", "dense:1", &[20])], &[]),
    ("y(i) = A(i,j) * x(j)", &[("A", "coo:2", &[30, 20]), ("x", "{C}", &[20])], &[]),
    ("y(j) = A(i,j) * x(i)", &[("A", "csr", &[30, 20]), ("x", "dense:1", &[30])], &[]),
    ("C(i,j) = A(i,k) * B(k,j)", &[("A", "csr", &[20, 15]), ("B", "csr", &[15, 25])], &[("C", "csr")]),
    ("C(i,j) = A(i,k) * B(k,j)", &[("A", "csr", &[20, 15]), ("B", "csc", &[15, 25])], &[]),
    ("C(i,j) = A(i,k) * B(k,j)", &[("A", "dense:2", &[20, 15]), ("B", "dense:2", &[15, 25])], &[]),
    ("C(i,j) = A(i,j) + B(i,j)", &[("A", "csr", &[20, 25]), ("B", "csc", &[20, 25])], &[("C", "csr")]),
    (
        "C(i,j) = A(i,j) * B(i,k) * D(k,j)",
        &[("A", "csr", &[20, 25]), ("B", "dense:2", &[20, 4]), ("D", "dense:2", &[4, 25])],
        &[("C", "csr")],
    ),
    ("C(i,j) = A(j,i)", &[("A", "csr", &[20, 25])], &[("C", "csr")]),
    ("s = A(i,j) * B(i,j)", &[("A", "csr", &[20, 25]), ("B", "csc", &[20, 25])], &[]),
    ("s = A(i,j) + x(j)", &[("A", "csr", &[20, 25]), ("x", "dense:1", &[25])], &[]),
    ("y(i) += A(i,j) * x(j)", &[("y", "dense:1", &[30]), ("A", "csr", &[30, 20]), ("x", "dense:1", &[20])], &[]),
    (
        "M(i,r) = T(i,j,k) * B(j,r) * C(k,r)",
        &[("T", "csf:3", &[12, 10, 8]), ("B", "dense:2", &[10, 3]), ("C", "dense:2", &[8, 3])],
        &[],
    ),
    (
        "z(i) = A(i,j) * x(j); r(i) = b(i) - z(i); s = r(i) * r(i)",
        &[("A", "csr", &[30, 20]), ("x", "dense:1", &[20]), ("b", "dense:1", &[30])],
        &[],
    ),
    (
        "D(i,j) = A(i,k) * B(k,l) * C(l,j)",
        &[("A", "dense:2", &[8, 9]), ("B", "dense:2", &[9, 10]), ("C", "dense:2", &[10, 7])],
        &[],
    ),
    ("y(i) = A(i,j) * x(j+1)", &[("A", "csr", &[30, 19]), ("x", "dense:1", &[20])], &[]),
];

fn variable(&(name, format, extents): &(&str, &str, &[i64])) -> TensorVariable {
    TensorVariable::new(name, I64, extents).stored(format.parse().unwrap())
}

/// The operands, with some elements each.
fn given((_, operands, _): &Case) -> Vec<(TensorVariable, Arc<SparseTensor<i64>>)> {
    let made = |(operand, every)| {
        let variable = variable(operand);
        let tensor = Arc::new(tensor(&variable, every));
        (variable, tensor)
    };
    operands.iter().zip(2..).map(made).collect()
}

/// The results that the oracle gives.
fn expected(
    statements: &[Assignment],
    given: &[(TensorVariable, Arc<SparseTensor<i64>>)],
) -> BTreeMap<String, SparseMap> {
    let named = |(variable, tensor): &(TensorVariable, Arc<SparseTensor<i64>>)| {
        (variable.name().to_owned(), SparseMap::of_tensor(&**tensor))
    };
    let mut maps: BTreeMap<String, SparseMap> = given.iter().map(named).collect();
    oracle::run(statements, &mut maps).unwrap();
    maps
}

/// All of a tensor.
async fn whole(cx: &Context, tensor: &Tensor) -> Result<SparseTensor<i64>> {
    let variable = tensor.variable();
    if variable.format().is_dense() {
        let elements = tensor.read_elements(cx).await?;
        return Ok(SparseTensor::from_elements(variable.dimensions(), 0, elements).unwrap());
    }
    Ok(tensor.read_sparse(cx).await?)
}

async fn made(cx: &Context, given: &[(TensorVariable, Arc<SparseTensor<i64>>)]) -> Result<Vec<Tensor>> {
    let mut tensors = Vec::new();
    for (variable, stored) in given {
        tensors.push(match variable.format().is_dense() {
            true => Tensor::new(cx, variable)?,
            false => Tensor::from_sparse(cx, variable, Arc::clone(stored))?,
        });
        if variable.format().is_dense() {
            tensors[tensors.len() - 1].write_elements(cx, stored.elements())?;
        }
    }
    Ok(tensors)
}

fn check(case: &Case, nodes: usize, times: usize) {
    let (text, _, formats) = case;
    let given = given(case);
    let outcomes = on_nodes(Nodes::new(nodes), async |cx, _| {
        let tensors = made(cx, &given).await?;
        let mut compute = cx.compute(text).with(&tensors);
        for &(result, format) in *formats {
            compute = compute.stored(result, format.parse().unwrap());
        }
        if times == 1 {
            let result = compute.run().await?;
            return Ok((result.variable().clone(), whole(cx, &result).await?));
        }
        let mut prepared = compute.prepare().await?;
        for _ in 0..times {
            prepared.run().await?;
        }
        let last = text.rsplit(';').next().unwrap().trim().split(['(', ' ']).next().unwrap();
        let result = prepared.result(last).unwrap();
        Ok((result.variable().clone(), whole(cx, result).await?))
    });
    for outcome in outcomes {
        let (result, found) = outcome.unwrap_or_else(|error| panic!("{case:?} on {nodes} nodes: {error}"));
        let mut variables: Vec<_> = given.iter().map(|(variable, _)| variable.clone()).collect();
        variables.extend(results(text, &variables, formats));
        let program = Program::parse(text, &variables).unwrap();
        let accumulates = program.statements().iter().any(Assignment::accumulates);
        let runs = if accumulates { times } else { 1 };
        let statements = vec![program.statements(); runs].concat();
        let expected = &expected(&statements, &given)[result.name()];
        let found = SparseMap::of_tensor(&found);
        assert_eq!(
            expected.difference(&found, |one, other| one == other),
            None,
            "{case:?} on {nodes} nodes, {times} times"
        );
    }
}

/// The results that are not given.
fn results(text: &str, given: &[TensorVariable], formats: &[(&str, &str)]) -> Vec<TensorVariable> {
    let names = Program::index_variables(text);
    let sketch = Program::sketch(text, I64, &names).unwrap();
    let mut extents = BTreeMap::new();
    for access in sketch.statements().iter().flat_map(|statement| statement.right().accesses()) {
        if let Some(tensor) = given.iter().find(|tensor| tensor.name() == access.tensor.name()) {
            for (variable, &extent) in access.variables.iter().zip(tensor.dimensions()) {
                if variable.window().is_none() {
                    extents.insert(variable.name().to_owned(), extent);
                }
            }
        }
    }
    let made = |left: &maniple_tensor::notation::Access| {
        let dimensions: Vec<i64> = left.variables.iter().map(|variable| extents[variable.name()]).collect();
        let format = formats.iter().find(|(name, _)| *name == left.tensor.name());
        let format = format.map_or_else(|| Format::dense(dimensions.len()), |(_, format)| format.parse().unwrap());
        TensorVariable::new(left.tensor.name(), I64, dimensions).stored(format)
    };
    let results = sketch.statements().iter().map(|statement| made(statement.left()));
    results.filter(|result| given.iter().all(|given| given.name() != result.name())).collect()
}

#[test]
fn statements_give_on_any_number_of_nodes_what_the_oracle_says() {
    for case in CASES {
        for nodes in 1..=3 {
            check(case, nodes, 1);
        }
    }
}

#[test]
fn statements_that_are_prepared_give_the_same_each_time() {
    for case in CASES {
        for nodes in 1..=2 {
            check(case, nodes, 3);
        }
    }
}

#[test]
fn schedules_and_grids_change_no_result() {
    let case = &CASES[0];
    let given = given(case);
    let outcomes = on_nodes(Nodes::new(2), async |cx, _| {
        let tensors = made(cx, &given).await?;
        let plain = cx.compute(case.0).with(&tensors).run().await?;
        let on_grid = cx.compute(case.0).with(&tensors).on_grid([5]).in_little_memory().run().await?;
        let scheduled = cx.compute(case.0).with(&tensors).schedule(1, "distribute({i}, {io}, {ii}, {4})").run().await?;
        let mut found = Vec::new();
        for tensor in [plain, on_grid, scheduled] {
            found.push(tensor.read_elements::<i64>(cx).await?);
        }
        Ok(found)
    });
    for outcome in outcomes {
        let found = outcome.unwrap();
        assert!(found[0].iter().any(|element| *element != 0));
        assert_eq!((&found[0], &found[0]), (&found[1], &found[2]));
    }
}

#[test]
fn what_does_not_fit_is_told() {
    let given = given(&CASES[0]);
    let outcomes = on_nodes(Nodes::new(1), async |cx, _| {
        let tensors = made(cx, &given).await?;
        let (a, x) = (&tensors[0], &tensors[1]);
        let told = async |compute: Compute<'_>| compute.run().await.map(drop).unwrap_err().to_string();
        Ok([
            told(cx.compute("y(i) = A(i,j) * x(j)").with([a])).await,
            told(cx.compute("y(i) = A(i,j) * A(i,j)").with([a, x])).await,
            told(cx.compute("y(i,k) = A(i,j) * x(j)").with([a, x])).await,
            told(cx.compute("y(i) = A(j,i) * x(j)").with([a, x])).await,
            told(cx.compute("y(i) = A(i,j) *").with([a])).await,
            told(cx.compute("y(i) = A(i,j) * x(j)").with([a, x]).stored("y", "csr".parse().unwrap())).await,
            told(cx.compute("y(i) = A(i,j) * x(j)").with([a, x]).schedule(2, "reorder({i})")).await,
            told(cx.compute("y(i) = A(i,j) * x(j)").with([a, x]).schedule(1, "reorder({k})")).await,
            told(cx.compute("y(i) = A(i,j) * x(j)").with([a, x, a])).await,
            told(cx.compute("y(i) = A(i,j) * x(j)").with([a, x]).stored("x", "{C}".parse().unwrap())).await,
            told(cx.compute("s = x(i) * x(i)").with([x]).on_grid([2, 2])).await,
        ])
    });
    let told = outcomes.into_iter().next().unwrap().unwrap();
    let expected = [
        "x is read, and not given",
        "x is given, and the statements have",
        "how many values k has follows from no tensor",
        "j",
        "expected",
        "y: ",
        "a schedule of statement 2 is given, and the statements have 1 statement(s)",
        "k",
        "A is given twice",
        "x is given, and stays in its format",
        "cannot be distributed over a grid of [2, 2]",
    ];
    assert_eq!(told.len(), expected.len());
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.contains(expected), "{told}");
    }
}
