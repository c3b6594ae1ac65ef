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
    // Rows that are not stored one by one are assembled.
    for nodes in 1..=3 {
        agrees(nodes, &sampled("dcsr"), rows);
    }
    // Parts of columns are not apart.
    for (format, schedule) in [
        ("dcsr", "distribute({i, j}, {io, jo}, {ii, ji}, {2, 2})"),
        ("csr", "distribute({i, j}, {io, jo}, {ii, ji}, {2, 2})"),
    ] {
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
    // Parts of columns are no rows.
    let computation = assignment("Y(i,j) = C(i,j) + B(i,j)", &[matrices[0], matrices[3], ("B", "csr", &[23, 9])]);
    let computation = Computation::new(&computation).unwrap();
    let columns = computation.statement().distribute(["i", "j"], ["io", "jo"], ["ii", "ji"], &[2, 2]).unwrap();
    let error = Plan::new(&columns).unwrap_err().to_string();
    assert!(error.contains("overlapping parts, of Y"), "{error}");
}

/// The formats of results that points assemble in blocks, by order.
const IN_BLOCKS: [&[&str]; 3] = [
    &["{C}", "{C~o}"],
    &[
        "dcsr",
        "dcsc",
        "{C,D}",
        "{C,D}(1,0)",
        "coo",
        "{C~u,S}(1,0)",
        "{D,H}",
        "{C,H}",
        "{D,L}",
        "{C,L}",
        "{C~o,C}",
        "csr",
        "{D,C~o}",
    ],
    &["csf:3", "{D,C,C}", "{C,D,C}(1,0,2)", "{C,C,D}", "{D,C,D}(2,0,1)", "coo:3", "{C,C,H}", "{D,D,C}"],
];

#[test]
fn points_assemble_results_of_any_format_in_blocks() {
    // The loop over the outermost dimension is distributed.
    let blocks = |parts: i64| {
        move |statement: &Statement| {
            let outer = ["i", "j", "k"][statement.result().format().order()[0]];
            statement.distribute([outer], ["outer"], ["inner"], &[parts]).unwrap()
        }
    };
    for format in IN_BLOCKS[0] {
        let tensors: [(&str, &str, &[i64]); 3] = [("Y", format, &[31]), ("A", "csr", &[31, 9]), ("b", "{C}", &[31])];
        for (nodes, text) in [(1, "Y(i) = A(i,j)"), (2, "Y(i) = A(i,j) * 2 + b(i)"), (3, "Y(i) = b(i) * b(i)")] {
            agrees(nodes, &assignment(text, &tensors), blocks(4));
        }
    }
    for format in IN_BLOCKS[1] {
        let is_by_columns = format.ends_with("(1,0)") || *format == "dcsc";
        let operand = if is_by_columns { "dcsc" } else { "dcsr" };
        let tensors: [(&str, &str, &[i64]); 4] =
            [("Y", format, &[14, 14]), ("A", operand, &[14, 14]), ("B", operand, &[14, 14]), ("C", "csr", &[14, 14])];
        agrees(2, &assignment("Y(i,j) = A(i,j) + B(i,j)", &tensors), blocks(3));
        if !is_by_columns {
            let product = assignment("Y(i,j) = A(i,k) * C(k,j)", &tensors);
            (1..=3).for_each(|nodes| _ = agrees(nodes, &product, blocks(4)));
            // More points than rows, and a grid of one column.
            agrees(2, &product, blocks(20));
            agrees(2, &assignment("Y(i,j) = A(i,k) * C(k,j) + B(i,j)", &tensors), |statement| {
                statement.split_at("i", "io", "ii", &[2, 3, 11]).unwrap().distribute_loops(["io"]).unwrap()
            });
        }
    }
    for format in IN_BLOCKS[2] {
        let order = if format.ends_with(")") { &format[format.len() - 7..] } else { "" };
        let operand = format!("{{C,C,C}}{order}");
        let tensors: [(&str, &str, &[i64]); 3] =
            [("Y", format, &[6, 4, 8]), ("A", &operand, &[6, 4, 8]), ("B", &operand, &[6, 4, 8])];
        for nodes in 1..=3 {
            agrees(nodes, &assignment("Y(i,j,k) = A(i,j,k) + B(i,j,k) * 3", &tensors), blocks(3));
        }
    }
    // Nothing at all, and extents that only levels without dense ones can have.
    for extent in [2, 1, 0] {
        let tensors: [(&str, &str, &[i64]); 3] =
            [("Y", "dcsr", &[extent, 3]), ("A", "dcsr", &[extent, 3]), ("B", "csr", &[extent, 3])];
        agrees(2, &assignment("Y(i,j) = A(i,j) + B(i,j)", &tensors), blocks(4));
    }
    for format in ["dcsr", "coo", "csf:2"] {
        let huge: &[i64] = &[1 << 40, 1 << 40];
        let tensors: [(&str, &str, &[i64]); 3] = [("Y", format, huge), ("A", "dcsr", huge), ("B", "dcsr", huge)];
        let sum = assignment("Y(i,j) = A(i,j) + B(i,j)", &tensors);
        let plan = Arc::new(Plan::new(&blocks(5)(Computation::new(&sum).unwrap().statement())).unwrap());
        let entries = |name: &str, at: &[[i64; 2]]| {
            let mut entries = EntryList::new(2);
            at.iter().for_each(|at| entries.push(at, at[0] % 5 + 1));
            let variable = sum.tensors().into_iter().find(|variable| variable.name() == name).unwrap();
            let stored = pack(variable.format(), huge, 0, entries, Duplicates::Sum).unwrap().tensor;
            (name.to_owned(), Arc::new(stored))
        };
        let last = (1 << 40) - 1;
        let given =
            [entries("A", &[[0, last], [last, 0], [1 << 39, 7]]), entries("B", &[[0, last], [3, 3], [last, last]])];
        (1..=3).for_each(|nodes| same(nodes, &sum, &plan, &given));
        let none = [entries("A", &[]), entries("B", &[])];
        same(2, &sum, &plan, &none);
    }
}

#[test]
fn results_that_points_cannot_assemble_are_refused_with_what_to_write_instead() {
    let schedule = |format: &str, text: &str, commands: &str| {
        let tensors: [(&str, &str, &[i64]); 3] =
            [("Y", format, &[12, 12]), ("A", "csr", &[12, 12]), ("B", "csr", &[12, 12])];
        let assignment = assignment(text, &tensors);
        let computation = Computation::new(&assignment).unwrap();
        let schedule = Schedule::parse(commands, &assignment.tensors()).unwrap();
        Plan::new(&schedule.apply(computation.statement()).unwrap()).unwrap_err().to_string()
    };
    let sum = "Y(i,j) = A(i,j) + B(i,j)";
    let rows = "distribute(i, io, ii, 3)";
    for format in ["ell", "bitmap", "hash", "{D,E}", "{C,B}", "{C<ranges>,C}"] {
        let told = schedule(format, sum, rows);
        assert!(told.ends_with("declare it csr, dcsr or coo, and have tasks convert it"), "{format}: {told}");
    }
    for format in ["dia", "bcsr:2x3"] {
        let told = schedule(format, sum, rows);
        assert!(
            told.contains("whose levels are no dimensions")
                && told.ends_with("declare it csr or dcsr, and have tasks convert it"),
            "{told}"
        );
    }
    for format in ["{H}", "{L}", "{B}", "(i) -> (i/4: C, i%4: B)"] {
        let tensors: [(&str, &str, &[i64]); 2] = [("Y", format, &[12]), ("A", "{C}", &[12])];
        let sum = assignment("Y(i) = A(i) + A(i)", &tensors);
        let loops = Computation::new(&sum).unwrap().statement().distribute(["i"], ["io"], ["ii"], &[3]).unwrap();
        let told = Plan::new(&loops).unwrap_err().to_string();
        assert!(told.ends_with("declare it {C}, and have tasks convert it"), "{format}: {told}");
    }
    let told = schedule("dcsr", "Y(i,j) += A(i,j)", rows);
    assert!(told.contains("its old elements are an operand"), "{told}");
    let told = schedule("dcsr", sum, "distribute(j, jo, ji, 3)");
    assert!(told.contains("the launch over jo would write different elements, but overlapping parts"), "{told}");
    let told = schedule("dcsr", sum, "distribute({i, j}, {io, jo}, {ii, ji}, {2, 2})");
    let advice = "distribute one loop, over the dimension that it stores outermost, or declare it dense";
    assert!(told.contains("overlapping parts, of Y") && told.ends_with(advice), "{told}");
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
    // One with the levels of an operand, or with its outer ones; what is computed with it as an element's factor, and
    // as a summand of what is assembled.
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

/// The statements that are computed, and the formats of the result and A. Other matrices are in compressed rows.
const SPARSE_RESULTS: [(&str, &[(&str, &str)]); 9] = [
    (
        "Y(i,j) = A(i,j) * C(i,k) * D(j,k)",
        &[("csr", "csr"), ("dcsr", "dcsr"), ("csc", "csc"), ("coo", "csr"), ("csr", "dcsr")],
    ),
    ("Y(j,i) = A(i,j) * x(j)", &[("csc", "csr"), ("dcsc", "dcsr"), ("{C~u,S}(1,0)", "csr")]),
    ("Y(i,j) = T(i,j,k) * x(k)", &[("csr", "{D,C,C}"), ("dcsr", "csf:3"), ("csr", "{D,C,D}"), ("{C,D}", "csf:3")]),
    (
        "Y(i,j) = A(i,k) * B(k,j)",
        &[("csr", "csr"), ("csr", "rows"), ("dcsr", "dcsr"), ("coo", "csr"), ("{D,H}", "csr")],
    ),
    (
        "Y(i,j) = A(i,j) + B(i,j)",
        &[("csr", "csr"), ("csr", "dcsr"), ("dcsr", "dcsr"), ("{C,D}", "csr"), ("{D,L}", "csr")],
    ),
    ("Y(i,j) = A(i,k) * B(k,j) * 2 + B(i,j)", &[("csr", "csr"), ("dcsr", "csr")]),
    ("Y(i,j) = reduce(max, k, A(i,k) * B(k,j))", &[("csr", "csr"), ("dcsr", "csr"), ("coo", "dcsr")]),
    ("Y(i,j) = A(i,j) ? B(i,k) * B(k,j)", &[("csr", "csr"), ("dcsr", "dcsr")]),
    ("Y(i,k) = T(i,j,k) * x(j)", &[("csr", "{D,C,C}"), ("dcsr", "csf:3"), ("coo", "csf:3"), ("dcsr", "{C,D,C}")]),
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

/// Results in all formats, of operands by rows and by columns: points assemble compressed levels in the order of the
/// loops, and tasks convert these.
#[test]
fn results_of_any_format_are_made_of_those_that_points_assemble() {
    let all = [
        "csr",
        "csc",
        "dcsc",
        "ell",
        "dia",
        "bitmap",
        "hash",
        "bcsr:2x3",
        "coo",
        "{D,L}",
        "{B,C}",
        "{C,E}(1,0)",
        "{H,C}",
    ];
    for (number, format) in all.into_iter().enumerate() {
        for (text, operand) in [
            ("Y(i,j) = A(i,k) * B(k,j)", "csr"),
            ("Y(i,j) = A(i,j) + B(i,j)", "csr"),
            ("Y(i,j) = A(i,j) + B(i,j)", "csc"),
            ("Y(i,j) = A(i,j) * 2", "csr"),
            ("Y(j,i) = A(i,j) * 2 + B(i,j)", "csr"),
        ] {
            let tensors: [(&str, &str, &[i64]); 3] =
                [("Y", format, &[13, 13]), ("A", operand, &[13, 13]), ("B", operand, &[13, 13])];
            let declared = assignment(text, &tensors);
            let computation = Computation::new(&declared).unwrap();
            let planned = computation.assembled().into_iter().find_map(|format| {
                let other = computation.storing(&format).ok().filter(|other| other.conversions().is_empty())?;
                Plan::new(other.on_grid(&[4]).ok()?.statement()).ok()
            });
            let planned = Arc::new(planned.unwrap_or_else(|| panic!("{text} as {format}")));
            let given: Vec<(String, Arc<SparseTensor<i64>>)> = declared
                .tensors()
                .into_iter()
                .zip(2..)
                .map(|(variable, every)| (variable.name().to_owned(), Arc::new(tensor(&variable, every))))
                .collect();
            same(1 + number % 3, &declared, &planned, &given);
        }
    }
    let tensors: [(&str, &str, &[i64]); 2] = [("Y", "csc", &[13, 13]), ("A", "csr", &[13, 13])];
    let scaled = assignment("Y(i,j) = A(i,j) * 2", &tensors);
    let formats: Vec<String> = Computation::new(&scaled).unwrap().assembled().iter().map(ToString::to_string).collect();
    assert_eq!(formats, ["{C,C}(0,1)", "{C,C}(1,0)"]);
}
