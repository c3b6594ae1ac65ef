//! Sparse results of statements that run as tasks: with the levels of an operand, and assembled by points.

use std::sync::Arc;

use fastrand::Rng;
use maniple::Result;
use maniple_tensor::concrete::Statement;
use maniple_tensor::distributed::{Computation as Distributed, Tensor, assemble};
use maniple_tensor::kernel::{Kernels, Serial};
use maniple_tensor::lower::Output;
use maniple_tensor::notation::{Assignment, TensorVariable};
use maniple_tensor::plan::Plan;
use maniple_tensor::schedule::Schedule;
use maniple_tensor::sparse::Computation;
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, pack};
use maniple_tests::nodes::{Nodes, on_nodes};

use crate::sparse_tensors::{agrees, assignment, equal_parts, same, tensor};

#[test]
fn results_with_the_levels_of_an_operand_have_its_pieces() {
    let sampled = |format: &str| {
        let tensors: [(&str, &str, &[i64]); 4] =
            [("Y", format, &[31, 17]), ("A", format, &[31, 17]), ("C", "dense", &[31, 4]), ("D", "dense", &[17, 4])];
        assignment("Y(i,j) = A(i,j) * C(i,k) * D(j,k)", &tensors)
    };
    let rows = |statement: &Statement| statement.distribute(["i"], ["io"], ["ii"], &[3]).unwrap();
    for nodes in 1..=3 {
        let done = agrees(nodes, &sampled("csr"), rows);
        assert!(done.contains("Y.0 = offsets of level 1 of Y in 3 pieces\nY.1 = level 1 of Y below Y.0"), "{done}");
        for format in ["csr", "dcsr"] {
            let done = agrees(nodes, &sampled(format), |statement| equal_parts(statement, &["i", "j"], 5));
            assert!(done.contains("Y.0 = level 1 of Y with 5 equal parts of level 1 of A"), "{done}");
            assert!(done.contains("Y.0 read and written") && done.contains("C.0 = C at the rows"), "{done}");
        }
    }
    let tensors: [(&str, &str, &[i64]); 3] =
        [("Y", "csr", &[12, 5]), ("A", "{D,C,C}", &[12, 5, 8]), ("x", "dense", &[8])];
    let ttv = assignment("Y(i,j) = A(i,j,k) * x(k)", &tensors);
    for nodes in 1..=3 {
        agrees(nodes, &ttv, rows);
        let done = agrees(nodes, &ttv, |statement| equal_parts(statement, &["i", "j"], 5));
        assert!(done.contains("Y.0 = level 1 of Y with 5 equal parts of level 1 of A"), "{done}");
    }
    // A grid of one column.
    agrees(2, &sampled("csr"), |statement| {
        statement.distribute(["i", "j"], ["io", "jo"], ["ii", "ji"], &[3, 1]).unwrap()
    });
    // Rows that are not stored one by one, and parts of columns, are not apart.
    for (format, schedule) in
        [("dcsr", "distribute(i, io, ii, 3)"), ("csr", "distribute({i, j}, {io, jo}, {ii, ji}, {2, 2})")]
    {
        let assignment = sampled(format);
        let computation = Computation::new(&assignment).unwrap();
        let tensors: Vec<TensorVariable> = assignment.tensors();
        let schedule = Schedule::parse(schedule, &tensors).unwrap();
        let error = Plan::new(&schedule.apply(computation.statement()).unwrap()).unwrap_err().to_string();
        assert!(error.contains("overlapping parts, of Y"), "{error}");
    }
}

#[test]
fn points_assemble_the_rows_of_results() {
    let matrices: [(&str, &str, &[i64]); 4] =
        [("Y", "csr", &[23, 9]), ("A", "csr", &[23, 14]), ("B", "csr", &[14, 9]), ("C", "csr", &[23, 9])];
    let rows = |statement: &Statement| statement.distribute(["i"], ["io"], ["ii"], &[4]).unwrap();
    let parts = |statement: &Statement| {
        statement.split_at("i", "io", "ii", &[2, 20, 22]).unwrap().distribute_loops(["io"]).unwrap()
    };
    for text in [
        "Y(i,j) = A(i,k) * B(k,j)",
        "Y(i,j) = C(i,j) + C(i,j) * 2",
        "Y(i,j) = A(i,k) * B(k,j) + C(i,j)",
        "Y(i,j) = reduce(max, k, A(i,k) * B(k,j))",
    ] {
        for nodes in 1..=3 {
            agrees(nodes, &assignment(text, &matrices), rows);
            agrees(nodes, &assignment(text, &matrices), parts);
        }
    }
    // Fewer rows than points, and none at all.
    for extent in [2, 1, 0] {
        let tensors: [(&str, &str, &[i64]); 3] =
            [("Y", "csr", &[extent, 3]), ("A", "csr", &[extent, 3]), ("B", "csr", &[extent, 3])];
        agrees(2, &assignment("Y(i,j) = A(i,j) + B(i,j)", &tensors), rows);
    }
    let tensors: [(&str, &str, &[i64]); 3] =
        [("Y", "{D,D,C}", &[6, 4, 8]), ("A", "{D,D,C}", &[6, 4, 8]), ("B", "csf:3", &[6, 4, 8])];
    agrees(3, &assignment("Y(i,j,k) = A(i,j,k) + B(i,j,k)", &tensors), rows);
    // More rows than there can be lengths.
    let huge: &[i64] = &[1 << 32, 1 << 32, 10];
    let tensors: [(&str, &str, &[i64]); 3] = [("Y", "{D,D,C}", huge), ("A", "{C,C,C}", huge), ("B", "{C,C,C}", huge)];
    let sum = assignment("Y(i,j,k) = A(i,j,k) + B(i,j,k)", &tensors);
    let plan = Arc::new(Plan::new(&rows(Computation::new(&sum).unwrap().statement())).unwrap());
    let results = on_nodes(Nodes::new(1), async |cx, _| -> Result<()> {
        let mut operands = Vec::new();
        for variable in &sum.tensors()[1..] {
            let none = pack(variable.format(), variable.dimensions(), 0, EntryList::<i64>::new(3), Duplicates::Sum);
            operands.push(Tensor::from_sparse(cx, variable, none.unwrap().tensor)?);
        }
        let error = assemble(cx, &plan, &operands.iter().collect::<Vec<_>>()).await.unwrap_err().to_string();
        assert!(error.contains("Y has more rows than"), "{error}");
        Ok(())
    });
    results.into_iter().for_each(|result| result.unwrap());
    // Levels of which pieces are not known.
    let tensors: [(&str, &str, &[i64]); 3] =
        [("Y", "{D,C,C}", &[6, 4, 8]), ("A", "{D,C,C}", &[6, 4, 8]), ("x", "dense", &[8])];
    let statement = assignment("Y(i,j,k) = A(i,j,k) * x(k)", &tensors);
    assert!(Plan::new(&rows(Computation::new(&statement).unwrap().statement())).is_err());
    // Parts of columns are no rows.
    let computation = assignment("Y(i,j) = C(i,j) + B(i,j)", &[matrices[0], matrices[3], ("B", "csr", &[23, 9])]);
    let computation = Computation::new(&computation).unwrap();
    let columns = computation.statement().distribute(["i", "j"], ["io", "jo"], ["ii", "ji"], &[2, 2]).unwrap();
    let error = Plan::new(&columns).unwrap_err().to_string();
    assert!(error.contains("overlapping parts, of Y"), "{error}");
}

#[test]
fn results_in_levels_are_operands_of_what_follows() {
    let n = 23;
    let matrices: [(&str, &str, &[i64]); 6] = [
        ("Z", "csr", &[n, n]),
        ("A", "csr", &[n, n]),
        ("S", "csr", &[n, n]),
        ("T", "{D,C,C}", &[n, n, 5]),
        ("y", "dense", &[n]),
        ("x", "dense", &[n]),
    ];
    // One with the levels of an operand, or with its outer ones; what is computed with it as an element's factor, and as a summand of what is assembled.
    for first in ["Z(i,j) = A(i,j) * 3", "Z(i,j) = 2 * T(i,j,k)"] {
        let steps = [first, "y(i) = Z(i,j) * x(j)", "S(i,j) = Z(i,j) + A(i,j)", "A(i,j) = S(i,j) * 2"];
        let steps: Vec<Assignment> = steps.iter().map(|text| assignment(text, &matrices)).collect();
        let variable = |name: &str| {
            let all = steps.iter().flat_map(Assignment::tensors).chain(assignment(first, &matrices).tensors());
            all.into_iter().find(|variable| variable.name() == name)
        };
        let given: Vec<(&str, Arc<SparseTensor<i64>>)> = [("A", 2), ("T", 3), ("x", 1)]
            .into_iter()
            .filter_map(|(name, every)| Some((name, Arc::new(tensor(&variable(name)?, every)))))
            .collect();
        let mut expected: Vec<(&str, SparseTensor<i64>)> =
            given.iter().map(|(name, tensor)| (*name, SparseTensor::clone(tensor))).collect();
        for step in &steps {
            let operands: Vec<(&str, &SparseTensor<i64>)> =
                expected.iter().map(|(name, tensor)| (*name, tensor)).collect();
            let made = Computation::new(step).unwrap().run_by(&operands, &Kernels::new(None, None), &Serial).unwrap();
            let name = matrices.iter().find(|(name, ..)| *name == step.left().tensor.name()).unwrap().0;
            expected.retain(|(other, _)| *other != name);
            expected.push((name, made));
        }
        for nodes in 1..=3 {
            let results = on_nodes(Nodes::new(nodes), async |cx, _| -> Result<()> {
                let mut tensors: Vec<Tensor> = Vec::new();
                for (name, stored) in &given {
                    let variable = variable(name).unwrap();
                    tensors.push(match variable.format().is_dense() {
                        true => {
                            let tensor = Tensor::new(cx, &variable)?;
                            tensor.write_elements(cx, stored.elements())?;
                            tensor
                        }
                        false => Tensor::from_sparse(cx, &variable, Arc::clone(stored))?,
                    });
                }
                for step in &steps {
                    let computation = Computation::new(step).unwrap();
                    let loops = computation.statement().distribute(["i"], ["io"], ["ii"], &[4]).unwrap();
                    let plan = Arc::new(Plan::new(&loops).unwrap());
                    let given: Vec<&Tensor> = tensors.iter().collect();
                    let made = if plan.leaf().output == Output::Entries {
                        assemble(cx, &plan, &given).await?
                    } else {
                        let made = Tensor::for_result(cx, &plan, &given)?;
                        let all: Vec<&Tensor> = given
                            .iter()
                            .copied()
                            .filter(|other| other.variable().name() != made.variable().name())
                            .chain([&made])
                            .collect();
                        Distributed::new(cx, &plan, &all).await?.launch(cx)?.await?;
                        made
                    };
                    tensors.retain(|other| other.variable().name() != made.variable().name());
                    tensors.push(made);
                }
                for (name, expected) in &expected {
                    let found = tensors.iter().find(|tensor| tensor.variable().name() == *name).unwrap();
                    match found.variable().format().is_dense() {
                        true => assert_eq!(found.read_elements::<i64>(cx).await?, expected.elements(), "{name}"),
                        false => {
                            let found = found.read_sparse::<i64>(cx).await?;
                            assert_eq!(found.entries(), expected.entries(), "{name} on {nodes} nodes");
                        }
                    }
                }
                Ok(())
            });
            results.into_iter().for_each(|result| result.unwrap());
        }
    }
}

/// What is computed, and in which formats the result and A are. Other matrices are in compressed rows.
const SPARSE_RESULTS: [(&str, &[(&str, &str)]); 8] = [
    ("Y(i,j) = A(i,j) * C(i,k) * D(j,k)", &[("csr", "csr"), ("dcsr", "dcsr"), ("csc", "csc")]),
    ("Y(j,i) = A(i,j) * x(j)", &[("csc", "csr"), ("dcsc", "dcsr")]),
    ("Y(i,j) = T(i,j,k) * x(k)", &[("csr", "{D,C,C}"), ("dcsr", "csf:3"), ("csr", "{D,C,D}")]),
    ("Y(i,j) = A(i,k) * B(k,j)", &[("csr", "csr"), ("csr", "rows")]),
    ("Y(i,j) = A(i,j) + B(i,j)", &[("csr", "csr"), ("csr", "dcsr")]),
    ("Y(i,j) = A(i,k) * B(k,j) * 2 + B(i,j)", &[("csr", "csr")]),
    ("Y(i,j) = reduce(max, k, A(i,k) * B(k,j))", &[("csr", "csr")]),
    ("Y(i,j) = A(i,j) ? B(i,k) * B(k,j)", &[("csr", "csr")]),
];

#[test]
fn random_sparse_results_are_the_same_as_tasks() {
    let (mut random, mut assembled, mut beside) = (Rng::with_seed(23), 0, 0);
    let most = std::env::var("MANIPLE_TESTS_COUNT").ok().and_then(|count| count.parse().ok()).unwrap_or(60);
    for number in 0..most {
        let (text, formats) = SPARSE_RESULTS[number % SPARSE_RESULTS.len()];
        let (result, operand) = formats[random.usize(..formats.len())];
        let (n, k) = (random.i64(1..14), random.i64(1..6));
        // Named as the operand that positions are of.
        let text = text.replace("T(", "A(");
        let order = if text.contains("A(i,j,k)") { 3 } else { 2 };
        let extents: &[i64] = if order == 3 { &[n, n, n] } else { &[n, n] };
        let (x, wide): (&[i64], &[i64]) = (&[n], &[n, k]);
        let tensors: [(&str, &str, &[i64]); 6] = [
            ("Y", result, &[n, n]),
            ("A", operand, extents),
            ("B", "csr", &[n, n]),
            ("C", "dense", wide),
            ("D", "dense", wide),
            ("x", "dense", x),
        ];
        let assignment = assignment(&text, &tensors);
        let computation = Computation::new(&assignment).unwrap();
        if !computation.conversions().is_empty() {
            continue;
        }
        let statement = computation.statement();
        let outer = statement.spine().first().map(|outer| outer.variable.clone()).unwrap();
        let parts = random.i64(1..6);
        let in_rows = || statement.distribute([outer.clone()], ["po"], ["pi"], &[parts]).ok();
        let in_parts = || {
            let spine: Vec<String> = statement.spine().iter().map(|outer| outer.variable.name().to_owned()).collect();
            let [first, second, ..] = &spine[..] else { return None };
            let fused = statement.fuse(&**first, &**second, "f").and_then(|made| made.pos("f", "p", "A"));
            fused.and_then(|made| made.divide("p", "po", "pi", parts)?.distribute_loops(["po"])).ok()
        };
        let scheduled = if random.bool() { in_rows().or_else(in_parts) } else { in_parts().or_else(in_rows) };
        let Some(Ok(plan)) = scheduled.map(|statement| Plan::new(&statement)) else { continue };
        assembled += usize::from(plan.leaf().output == Output::Entries);
        beside += usize::from(plan.leaf().output == Output::Beside);
        let every = random.i64(2..6);
        let given: Vec<(String, Arc<SparseTensor<i64>>)> = assignment
            .tensors()
            .into_iter()
            .zip(every..)
            .map(|(variable, every)| (variable.name().to_owned(), Arc::new(tensor(&variable, every))))
            .collect();
        same(1 + number % 3, &assignment, &Arc::new(plan), &given);
    }
    assert!(assembled > most / 6 && beside > most / 6, "{assembled} assembled and {beside} with levels of {most}");
}
