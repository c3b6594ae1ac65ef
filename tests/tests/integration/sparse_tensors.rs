//! Statements on tensors in levels, as tasks over pieces of these: the same as one kernel on the whole.

pub mod random_statements;

use std::collections::BTreeMap;
use std::sync::Arc;

use maniple::Result;
use maniple_tensor::concrete::Statement;
use maniple_tensor::distributed::{Computation as Distributed, Tensor, assemble};
use maniple_tensor::element::ElementType;
use maniple_tensor::format::Format;
use maniple_tensor::kernel::{Kernels, Serial};
use maniple_tensor::level::{Array, Component};
use maniple_tensor::lower::Output;
use maniple_tensor::notation::{Assignment, TensorVariable, parse};
use maniple_tensor::plan::{Graph, Plan};
use maniple_tensor::sparse::Computation;
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, pack};
use maniple_tests::nodes::{Nodes, on_nodes};

/// A tensor with an element in every so many places, without those whose first coordinate is a multiple of five.
pub fn tensor(variable: &TensorVariable, every: i64) -> SparseTensor<i64> {
    let extents = variable.dimensions();
    let mut entries = EntryList::new(extents.len());
    for number in 0..extents.iter().product::<i64>() {
        let mut rest = number;
        let mut at: Vec<i64> = vec![0; extents.len()];
        for (coordinate, extent) in at.iter_mut().zip(extents).rev() {
            (*coordinate, rest) = (rest % extent, rest / extent);
        }
        let is_dense = variable.format().is_dense();
        if is_dense || number * number % every == 0 && at[0] % 5 != 0 {
            entries.push(&at, number % 7 - 3);
        }
    }
    pack(variable.format(), extents, 0, entries, Duplicates::Sum).unwrap().tensor
}

/// The assignment of tensors in these formats.
pub fn assignment(text: &str, tensors: &[(&str, &str, &[i64])]) -> Assignment {
    let variable = |(name, format, extents): &(&str, &str, &[i64])| {
        let format: Format = match *format {
            "dense" => Format::dense(extents.len()),
            other => other.parse().unwrap(),
        };
        TensorVariable::new(name, ElementType::I64, extents.to_vec()).stored(format)
    };
    parse(text, &tensors.iter().map(variable).collect::<Vec<_>>()).unwrap()
}

/// Checks that the statement that `schedule` makes of the loops gives the same on so many nodes as one kernel; gives
/// what is done.
pub fn agrees(nodes: usize, assignment: &Assignment, schedule: impl Fn(&Statement) -> Statement) -> String {
    let computation = Computation::new(assignment).unwrap();
    assert_eq!(computation.conversions(), []);
    let plan = Arc::new(Plan::new(&schedule(computation.statement())).unwrap());
    let given: Vec<(String, Arc<SparseTensor<i64>>)> = assignment
        .tensors()
        .into_iter()
        .zip(2..)
        .map(|(variable, every)| (variable.name().to_owned(), Arc::new(tensor(&variable, every))))
        .collect();
    same(nodes, assignment, &plan, &given);
    Graph::new(&[plan]).to_string()
}

/// Checks that a plan gives the same as one kernel: the same elements, stored alike.
pub fn same(nodes: usize, assignment: &Assignment, plan: &Arc<Plan>, given: &[(String, Arc<SparseTensor<i64>>)]) {
    are_same((nodes, true), assignment, plan, given, &[]);
}

/// Checks that a plan gives the same as one kernel; unless it is `alike`, it may store what nothing is filled with
/// where this stores nothing, as other loops over a workspace do. Some operands in levels are placed before.
fn are_same(
    (nodes, alike): (usize, bool),
    assignment: &Assignment,
    plan: &Arc<Plan>,
    given: &[(String, Arc<SparseTensor<i64>>)],
    placed: &[(String, String)],
) {
    let operands: Vec<(&str, &SparseTensor<i64>)> = given.iter().map(|(name, tensor)| (&**name, &**tensor)).collect();
    let (kernels, computation) = (Kernels::new(None, None), Computation::new(assignment).unwrap());
    let expected = computation.run_by(&operands, &kernels, &Serial).unwrap();
    let declared = &assignment.left().tensor;
    let results = on_nodes(Nodes::new(nodes), async |cx, _| -> Result<()> {
        let result = plan.statement.result();
        let mut operands = Vec::new();
        for variable in plan.statement.tensors().into_iter().filter(|variable| *variable != result) {
            // One that is used in two formats has two names.
            let (name, mut names) = (variable.name(), given.iter());
            let stored = names.find(|(own, _)| own == name).or_else(|| {
                given.iter().find(|(own, _)| name.strip_prefix(own.as_str()).is_some_and(|rest| rest.starts_with('_')))
            });
            let stored = &stored.unwrap().1;
            operands.push(match variable.format().is_dense() {
                true => {
                    let tensor = Tensor::new(cx, variable)?;
                    tensor.write_elements(cx, stored.elements())?;
                    tensor
                }
                false => {
                    let own = Tensor::from_sparse(cx, &variable.stored(stored.format().clone()), Arc::clone(stored))?;
                    if let Some((_, placement)) = placed.iter().find(|(own, _)| own == name) {
                        let machine = nodes.to_string().parse().unwrap();
                        own.place_levels(cx, &placement.parse().unwrap(), &machine).await?.await?;
                    }
                    own.converted(cx, variable).await?
                }
            });
        }
        let mut tensors: Vec<&Tensor> = operands.iter().collect();
        let entries = |found: &SparseTensor<i64>| {
            let mut entries = BTreeMap::new();
            found.for_each(|at, value| assert!(entries.insert(at.to_vec(), value).is_none(), "{at:?} is there twice"));
            entries.retain(|_, value| alike || *value != found.fill());
            (found.format().clone(), entries)
        };
        let shown = || {
            let graph = Graph::new(std::slice::from_ref(plan));
            format!("{assignment} on {nodes} nodes\n{}\n{graph}\n{}\n{given:?}", plan.statement, plan.leaf().kernel)
        };
        if plan.leaf().output == Output::Entries {
            for _ in 0..2 {
                let made = assemble(cx, plan, &tensors).await?;
                let found = made.converted(cx, declared).await?.read_sparse(cx).await?;
                assert_eq!(entries(&found), entries(&expected), "{}", shown());
            }
            let error = Distributed::new(cx, plan, &tensors).await.map(|_| ()).unwrap_err().to_string();
            assert!(error.contains("call `assemble`"), "{error}");
            return Ok(());
        }
        let made = Tensor::for_result(cx, plan, &tensors)?;
        tensors.insert(0, &made);
        let computation = Distributed::new(cx, plan, &tensors).await?;
        for _ in 0..3 {
            if plan.statement.accumulates() {
                made.write_elements(cx, given[0].1.elements())?;
            }
            computation.launch(cx)?.await?;
            match plan.pattern() {
                Some(_) => {
                    let found = made.converted(cx, declared).await?.read_sparse(cx).await?;
                    assert_eq!(entries(&found), entries(&expected), "{}", shown());
                }
                None => assert_eq!(made.read_elements::<i64>(cx).await?, expected.elements(), "{}", shown()),
            }
        }
        Ok(())
    });
    results.into_iter().for_each(|result| result.unwrap());
}

#[test]
fn a_matrix_in_rows_goes_to_where_its_rows_are() {
    let n = 57;
    let spmv =
        assignment("y(i) = A(i,j) * x(j)", &[("y", "dense", &[n]), ("A", "csr", &[n, 40]), ("x", "dense", &[40])]);
    for nodes in 1..=3 {
        let done = agrees(nodes, &spmv, |statement| statement.distribute(["i"], ["io"], ["ii"], &[4]).unwrap());
        assert_eq!(
            done,
            "y.0 = y in 4 pieces
A.0 = offsets of level 1 of A in 4 pieces
A.1 = level 1 of A below A.0
x.0 = x in one piece
launch y over 4 points: y.0 written, A.0 read, A.1 read, x.0 read
"
        );
    }
}

#[test]
fn a_vector_is_moved_as_far_as_columns_name_it() {
    let (n, nodes) = (60_i64, 3);
    let spmv = assignment("y(i) = A(i,j) * x(j)", &[("y", "dense", &[n]), ("A", "csr", &[n, n]), ("x", "dense", &[n])]);
    let variables = spmv.tensors();
    let statement = Computation::new(&spmv).unwrap().statement().distribute(["i"], ["io"], ["ii"], &[nodes]).unwrap();
    let plan = Arc::new(Plan::new(&statement).unwrap());
    let graph = Graph::gathering(std::slice::from_ref(&plan)).to_string();
    assert!(graph.contains("x.0 = x at A.1\n") && !graph.contains("x.1"), "{graph}");
    // Two diagonals, and the last column in three rows.
    let mut entries = EntryList::new(2);
    for row in 0..n {
        entries.push(&[row, row], 2);
        entries.push(&[row, (row + 1).min(n - 1)], row);
    }
    [3, 25, 26].into_iter().for_each(|row| entries.push(&[row, n - 1], 5));
    let a = Arc::new(pack(&"csr".parse().unwrap(), &[n, n], 0, entries, Duplicates::Sum).unwrap().tensor);
    let moved = on_nodes(Nodes::new(nodes as usize), async |cx, runtime| -> Result<u64> {
        let y = Tensor::new(cx, &variables[0])?;
        let a = Tensor::from_sparse(cx, &variables[1], Arc::clone(&a))?;
        let x = Tensor::new(cx, &variables[2])?;
        let computation = Distributed::new(cx, &plan, &[&y, &a, &x]).await?;
        let mut moved = 0;
        for round in 0..3 {
            x.generate(cx, &x.slabs(nodes as usize), move |at| at[0] + round)?;
            cx.execution_fence().await?;
            let before = runtime.statistics().parcel_bytes_received;
            computation.launch(cx)?.await?;
            cx.execution_fence().await?;
            moved = runtime.statistics().parcel_bytes_received - before;
            let found: Vec<i64> = y.read_elements(cx).await?;
            let value = |at: i64| at + round;
            for (row, found) in (0..n).zip(found) {
                let more = if [3, 25, 26].contains(&row) { 5 * value(n - 1) } else { 0 };
                assert_eq!(found, 2 * value(row) + row * value((row + 1).min(n - 1)) + more, "row {row}");
            }
        }
        Ok(moved)
    });
    // The first element of the next block, and the last one of all.
    let moved: Vec<u64> = moved.into_iter().map(|moved| moved.unwrap()).collect();
    assert_eq!(moved, [16, 16, 0]);
}

#[test]
fn what_is_below_rows_follows_them_whatever_reads_it() {
    let rows = |statement: &Statement| statement.distribute(["i"], ["io"], ["ii"], &[3]).unwrap();
    let vectors: [(&str, &str, &[i64]); 2] = [("y", "dense", &[23]), ("x", "dense", &[9])];
    // Several operands, one of them read through another; elements that are added to; coordinates that are searched.
    let sums = [
        ("y(i) = A(i,j) * B(i,j) + x(j) * A(i,j)", "csr", "csr"),
        ("y(i) += A(i,j) + B(i,j)", "csr", "{D,C}"),
        ("y(i) = A(i,j) * B(j,i)", "csr", "csc"),
        ("y(i) = max(A(i,j) * x(j), 0) + B(i,j)", "csr", "rows"),
    ];
    for (text, a, b) in sums {
        let extents: &[i64] = if text.contains("B(j,i)") { &[9, 23] } else { &[23, 9] };
        let b = if b == "rows" { "dense" } else { b };
        let tensors = [vectors[0], ("A", a, &[23, 9]), ("B", b, extents), vectors[1]];
        agrees(2, &assignment(text, &tensors), rows);
    }
    // Rows that are not stored one by one: those between bounds are looked up.
    for format in ["dcsr", "{C,D}"] {
        let tensors = [vectors[0], ("A", format, &[23, 9]), vectors[1]];
        for nodes in 1..=3 {
            let done = agrees(nodes, &assignment("y(i) = A(i,j) * x(j)", &tensors), rows);
            assert!(done.contains("= level 0 of A below 3 parts of its outermost coordinates"), "{done}");
            assert!(!done.contains("all of A"), "{done}");
        }
    }
    // Parts of any length, some without rows, and loops that search; and where all rows are used, all are given.
    let vector: [(&str, &str, &[i64]); 3] = [("y", "dense", &[23]), ("A", "{C}", &[23]), ("B", "dcsr", &[23, 23])];
    let parts = |statement: &Statement| {
        statement.split_at("i", "io", "ii", &[1, 2, 20, 22]).unwrap().distribute_loops(["io"]).unwrap()
    };
    for text in ["y(i) = A(i) + 1", "y(i) = A(i) * B(i,j)", "y(i) = A(i) * B(j,i)", "y(i) = B(i,j) * A(j) + A(i)"] {
        let assignment = assignment(text, &vector);
        if Computation::new(&assignment).unwrap().conversions().is_empty() {
            (1..=2).for_each(|nodes| _ = agrees(nodes, &assignment, parts));
        }
    }
    let square = assignment("s = B(i,j) * B(i,k) * B(j,k)", &[("s", "dense", &[]), ("B", "dcsr", &[23, 23])]);
    assert!(agrees(2, &square, rows).contains("all of B read"));
}

#[test]
fn tensors_of_more_levels_are_given_by_the_first_that_has_offsets() {
    let extents = [12, 5, 8];
    let tensors: [(&str, &str, &[i64]); 3] =
        [("y", "dense", &[12, 5]), ("T", "{D,D,C}", &extents), ("x", "dense", &[8])];
    let grid = |statement: &Statement| statement.distribute(["i", "j"], ["io", "jo"], ["ii", "ji"], &[3, 2]).unwrap();
    let done = agrees(3, &assignment("y(i,j) = T(i,j,k) * x(k)", &tensors), grid);
    assert!(done.contains("T.0 = offsets of level 2 of T in 6 pieces\nT.1 = level 2 of T below T.0"), "{done}");
    let tensors: [(&str, &str, &[i64]); 3] = [("y", "dense", &[12]), ("T", "{D,C,C}", &extents), ("x", "dense", &[8])];
    let rows = |statement: &Statement| statement.distribute(["i"], ["io"], ["ii"], &[5]).unwrap();
    let done = agrees(2, &assignment("y(i) = T(i,j,k) * x(k)", &tensors), rows);
    assert!(done.contains("= level 1 of T below T.0") && !done.contains("all of T"), "{done}");
    assert!(done.contains("= level 2 of T below 5 parts of its outermost coordinates"), "{done}");
    let tensors = [tensors[0], ("T", "csf:3", tensors[1].2), tensors[2]];
    for nodes in 1..=3 {
        let done = agrees(nodes, &assignment("y(i) = T(i,j,k) * x(k)", &tensors), rows);
        assert!(!done.contains("all of T"), "{done}");
    }
    // A result with the levels of an operand has the same pieces.
    for format in ["{D,C,C}", "{D,C,D}"] {
        let tensors: [(&str, &str, &[i64]); 3] =
            [("Y", format, &extents), ("T", format, &extents), ("x", "dense", &[8])];
        (1..=3).for_each(|nodes| _ = agrees(nodes, &assignment("Y(i,j,k) = T(i,j,k) * x(k)", &tensors), rows));
    }
}

#[test]
fn points_that_share_elements_of_the_result_reduce_into_it() {
    let tensors: [(&str, &str, &[i64]); 3] = [("y", "dense", &[31]), ("A", "csc", &[31, 17]), ("x", "dense", &[17])];
    let columns = |statement: &Statement| statement.distribute(["j"], ["jo"], ["ji"], &[4]).unwrap();
    let done = agrees(2, &assignment("y(i) = A(i,j) * x(j)", &tensors), columns);
    assert!(done.contains("fill y with 0") && done.contains("y.0 reduced with +"), "{done}");
    let tensors: [(&str, &str, &[i64]); 2] = [("s", "dense", &[]), ("A", "csr", &[31, 17])];
    let rows = |statement: &Statement| statement.distribute(["i"], ["io"], ["ii"], &[4]).unwrap();
    agrees(2, &assignment("s = A(i,j) * A(i,j)", &tensors), rows);
}

#[test]
fn blocks_of_columns_are_fetched_one_after_the_other() {
    let tensors: [(&str, &str, &[i64]); 3] =
        [("C", "dense", &[20, 12]), ("A", "csr", &[20, 30]), ("B", "dense", &[30, 12])];
    let rounds = |statement: &Statement| {
        let statement = statement.divide("k", "ko", "ki", 3).unwrap();
        let statement = statement.distribute(["i"], ["io"], ["ii"], &[2]).unwrap();
        let statement = statement.reorder(["io", "ko", "ii", "j", "ki"]).unwrap();
        statement.communicate(["B", "C"], "ko").unwrap()
    };
    let done = agrees(2, &assignment("C(i,k) = A(i,j) * B(j,k)", &tensors), rounds);
    assert!(done.contains("for ko in 0..3\n  launch C over 2 points"), "{done}");
}

#[test]
fn blocks_of_any_length_have_what_is_below_their_rows() {
    let tensors: [(&str, &str, &[i64]); 3] = [("y", "dense", &[31]), ("A", "csr", &[31, 17]), ("x", "dense", &[17])];
    let parts = |statement: &Statement| {
        let statement = statement.split_at("i", "io", "ii", &[1, 20, 22]).unwrap();
        statement.distribute_loops(["io"]).unwrap()
    };
    for nodes in 1..=2 {
        let done = agrees(nodes, &assignment("y(i) = A(i,j) * x(j)", &tensors), parts);
        assert!(done.contains("A.0 = offsets of level 1 of A in 4 pieces") && done.contains("y.0 written"), "{done}");
    }
}

/// The loops over these variables, fused, as loops over the positions of A, of which each point has an equal part.
pub fn equal_parts(statement: &Statement, variables: &[&str], parts: i64) -> Statement {
    let mut statement = statement.clone();
    let mut fused = variables[0].to_owned();
    for inner in &variables[1..] {
        let both = format!("{fused}{inner}");
        statement = statement.fuse(&*fused, *inner, &*both).unwrap();
        fused = both;
    }
    let statement = statement.pos(&*fused, "p", "A").unwrap().divide("p", "po", "pi", parts).unwrap();
    statement.distribute_loops(["po"]).unwrap()
}

#[test]
fn points_have_as_many_elements_whatever_rows_they_are_in() {
    let spmv = |format: &str, [rows, columns]: [i64; 2]| {
        let tensors: [(&str, &str, &[i64]); 3] =
            [("y", "dense", &[rows]), ("A", format, &[rows, columns]), ("x", "dense", &[columns])];
        assignment("y(i) = A(i,j) * x(j)", &tensors)
    };
    // One point, more points than elements, and a matrix without any.
    for (extents, parts) in [([57, 40], 4), ([57, 40], 1), ([3, 2], 9), ([1, 30], 3), ([5, 1], 4), ([4, 0], 2)] {
        for format in ["csr", "dcsr"] {
            for nodes in 1..=3 {
                let done =
                    agrees(nodes, &spmv(format, extents), |statement| equal_parts(statement, &["i", "j"], parts));
                if nodes == 2 && extents == [57, 40] && parts == 4 && format == "csr" {
                    assert_eq!(
                        done,
                        "y.0 = y at the rows of 4 equal parts of level 1 of A
A.0 = offsets of level 1 of A with 4 equal parts of level 1 of A
A.1 = level 1 of A with 4 equal parts of level 1 of A
x.0 = x in one piece
fill y with 0
launch y over 4 points: y.0 reduced with +, A.0 read, A.1 read, x.0 read
"
                    );
                }
            }
        }
    }
}

#[test]
fn equal_parts_of_a_level_have_what_is_above_and_below() {
    let extents = [12, 5, 8];
    for format in ["csf:3", "{D,C,C}", "{D,D,C}", "{C,D,C}", "{C,C,D}", "{D,C,D}"] {
        let tensors: [(&str, &str, &[i64]); 4] =
            [("Y", "dense", &[12, 3]), ("A", format, &extents), ("C", "dense", &[5, 3]), ("D", "dense", &[8, 3])];
        let mttkrp = assignment("Y(i,l) = A(i,j,k) * C(j,l) * D(k,l)", &tensors);
        for (variables, parts) in [(&["i", "j", "k"][..], 5), (&["i", "j"], 4), (&["i"], 3)] {
            let is_last_compressed = match variables.len() {
                3 => !format.ends_with("D}"),
                2 => !["{D,D,C}", "{C,D,C}"].contains(&format),
                _ => !format.starts_with("{D"),
            };
            if is_last_compressed {
                for nodes in 1..=3 {
                    let done = agrees(nodes, &mttkrp, |statement| {
                        let statement = statement.reorder(["i", "j", "k", "l"]).unwrap();
                        equal_parts(&statement, variables, parts)
                    });
                    assert!(done.contains("Y at the rows of") && !done.contains("all of A"), "{format} {done}");
                }
            }
        }
    }
    let tensors: [(&str, &str, &[i64]); 2] = [("s", "dense", &[]), ("A", "csr", &[31, 17])];
    agrees(2, &assignment("s = A(i,j) * A(i,j)", &tensors), |statement| equal_parts(statement, &["i", "j"], 4));
}

/// Parts of parts of positions have other lengths than where all is stored.
#[test]
fn parts_of_parts_have_all_positions() {
    for (extents, parts) in [([14, 4], [2, 9]), ([9, 7], [4, 5]), ([5, 5], [3, 9])] {
        let [rows, columns] = extents;
        let tensors: [(&str, &str, &[i64]); 3] =
            [("y", "dense", &[rows]), ("A", "dcsr", &[rows, columns]), ("x", "dense", &[columns])];
        let spmv = assignment("y(i) = A(i,j) * x(j)", &tensors);
        for nodes in 1..=2 {
            agrees(nodes, &spmv, |statement| {
                let statement = equal_parts(statement, &["i", "j"], parts[0]);
                statement.divide("pi", "pm", "pn", parts[1]).unwrap().distribute_loops(["pm"]).unwrap()
            });
        }
    }
}

#[test]
fn slots_of_rows_follow_them() {
    let tensors: [(&str, &str, &[i64]); 4] =
        [("y", "dense", &[23]), ("A", "ell", &[23, 9]), ("x", "dense", &[9]), ("B", "csr", &[23, 9])];
    let rows = |statement: &Statement| statement.distribute(["i"], ["io"], ["ii"], &[3]).unwrap();
    for nodes in 1..=3 {
        let done = agrees(nodes, &assignment("y(i) = A(i,j) * x(j)", &tensors), rows);
        assert!(done.contains("A.0 = offsets of level 1 of A in 3 pieces\nA.1 = level 1 of A below A.0"), "{done}");
        agrees(nodes, &assignment("y(i) = A(i,j) * B(i,j) + B(i,j) * x(j)", &tensors), rows);
    }
    let cubes: [(&str, &str, &[i64]); 3] =
        [("Y", "dense", &[6, 5]), ("A", "{D,D,E}", &[6, 5, 8]), ("x", "dense", &[8])];
    let grid = |statement: &Statement| statement.distribute(["i", "j"], ["io", "jo"], ["ii", "ji"], &[3, 2]).unwrap();
    agrees(2, &assignment("Y(i,j) = A(i,j,k) * x(k)", &cubes), grid);
    let cubes = [cubes[0], ("A", "{D,E,C}", cubes[1].2), cubes[2]];
    agrees(2, &assignment("Y(i,j) = A(i,j,k) * x(k)", &cubes), rows);
}

#[test]
fn entries_are_gone_through_without_a_conversion() {
    let (n, m): (&'static [i64], &'static [i64]) = (&[31, 17], &[9, 5, 7]);
    let (x, y): (&'static [i64], &'static [i64]) = (&[17], &[31]);
    type Declared = (&'static str, &'static str, &'static [i64]);
    let problems: [(&str, [Declared; 4]); 7] = [
        ("y(i) = A(i,j) * x(j)", [("y", "dense", y), ("A", "coo", n), ("x", "dense", x), ("C", "dense", &[17, 3])]),
        ("y(i) = A(i,j) * x(j)", [("y", "dense", y), ("A", "{C~u,S}(1,0)", n), ("x", "dense", x), ("C", "dense", x)]),
        (
            "y(i) = A(i,j) * x(j)",
            [("y", "dense", y), ("A", "{C~u<i64,i64>,S<i64>}", n), ("x", "dense", x), ("C", "dense", x)],
        ),
        ("y(i) += 3 * A(i,j) * -x(j)", [("y", "dense", y), ("A", "coo", n), ("x", "dense", x), ("C", "dense", x)]),
        (
            "Y(i,k) = A(i,j) * C(j,k)",
            [("Y", "dense", &[31, 3]), ("A", "coo", n), ("C", "dense", &[17, 3]), ("x", "dense", x)],
        ),
        (
            "Y(i,l) = A(i,j,k) * C(j,l) * D(k,l)",
            [("Y", "dense", &[9, 2]), ("A", "coo:3", m), ("C", "dense", &[5, 2]), ("D", "dense", &[7, 2])],
        ),
        ("s = A(i,j,k) * 2", [("s", "dense", &[]), ("A", "{C~u,S,S}(2,0,1)", m), ("C", "dense", x), ("D", "dense", x)]),
    ];
    for (text, tensors) in problems {
        let assignment = assignment(text, &tensors);
        let computation = Computation::new(&assignment).unwrap();
        assert!(!computation.conversions().is_empty());
        let entries = computation.by_entries().unwrap().expect(text);
        assert_eq!(entries.conversions(), []);
        let given: Vec<(String, Arc<SparseTensor<i64>>)> = assignment
            .tensors()
            .into_iter()
            .zip(2..)
            .map(|(variable, every)| (variable.name().to_owned(), Arc::new(tensor(&variable, every))))
            .collect();
        let operands: Vec<(&str, &SparseTensor<i64>)> =
            given.iter().map(|(name, tensor)| (&**name, &**tensor)).collect();
        let kernels = Kernels::new(None, None);
        let expected = computation.run_by(&operands, &kernels, &Serial).unwrap();
        assert_eq!(entries.run_by(&operands, &kernels, &Serial).unwrap(), expected, "{text}");
        for (nodes, parts) in [(1, 4), (2, 1), (2, 5), (3, 1000)] {
            let plan = Arc::new(Plan::new(entries.on_grid(&[parts]).unwrap().statement()).unwrap());
            same(nodes, &assignment, &plan, &given);
            let graph = Graph::new(&[plan]).to_string();
            assert!(!graph.contains("all of A") && graph.contains("equal parts of level"), "{graph}");
        }
    }
    // No products, or more to be merged with.
    let with = |text: &str, b: &str| {
        let tensors: [(&str, &str, &[i64]); 4] =
            [("y", "dense", &[9]), ("A", "coo", &[9, 9]), ("B", b, &[9, 9]), ("x", "dense", &[9])];
        let assignment = assignment(text, &tensors);
        Computation::new(&assignment).unwrap().by_entries().unwrap().is_some()
    };
    assert!(with("y(i) = A(i,j) * B(i,j)", "dense") && !with("y(i) = A(i,j) * B(i,j)", "csr"));
    assert!(!with("y(i) = A(i,j) * x(j) + x(i)", "dense") && !with("y(i) = A(i,i)", "dense"));
    assert!(!with("y(i) = reduce(max, j, A(i,j))", "dense") && !with("y(i) = max(A(i,j), 0) * x(j)", "dense"));
    assert!(!with("y(i) = B(i,j) * x(j)", "csr"));
}

/// Entries may be there twice, in any order, and places where none is.
#[test]
fn entries_with_equal_coordinates_add_up() {
    let tensors: [(&str, &str, &[i64]); 3] = [("y", "dense", &[4]), ("A", "{C~u~o,S}", &[4, 3]), ("x", "dense", &[3])];
    let assignment = assignment("y(i) = A(i,j) * x(j)", &tensors);
    let numbers = |name, numbers: &[i32]| Component { name, array: Array::I32(numbers.to_vec()) };
    let format = assignment.tensors()[1].format().clone();
    let levels = vec![
        vec![numbers("pos", &[0, 6]), numbers("crd", &[2, 0, 2, 3, 0, 2])],
        vec![numbers("crd", &[1, 2, 1, i32::MAX, 0, 2])],
    ];
    let a = SparseTensor::from_components(&format, &[4, 3], 0_i64, levels, vec![1, 10, 100, 1000, 10_000, 5]).unwrap();
    let x = SparseTensor::from_elements(&[3], 0, vec![1, 2, 3]).unwrap();
    let computation = Computation::new(&assignment).unwrap();
    let entries = computation.by_entries().unwrap().unwrap();
    let expected = [10_030, 0, 2 + 200 + 15, 0];
    let operands = [("A", &a), ("x", &x)];
    for one in [&computation, &entries] {
        assert_eq!(one.run_by(&operands, &Kernels::new(None, None), &Serial).unwrap().values(), expected);
    }
    let y = SparseTensor::from_elements(&[4], 0, vec![0; 4]).unwrap();
    let given = [("y", y), ("A", a), ("x", x)].map(|(name, stored)| (name.to_owned(), Arc::new(stored)));
    for parts in [1, 3, 6] {
        let plan = Arc::new(Plan::new(entries.on_grid(&[parts]).unwrap().statement()).unwrap());
        same(2, &assignment, &plan, &given);
    }
}

#[test]
fn what_regions_have_not_is_refused() {
    let results = on_nodes(Nodes::new(1), async |cx, _| -> Result<()> {
        let variable =
            |format: &str| TensorVariable::new("A", ElementType::I64, [4, 6]).stored(format.parse().unwrap());
        let coo = Arc::new(tensor(&variable("coo"), 2));
        let ranges = tensor(&variable("{D,C<ranges>}"), 2);
        let error = Tensor::from_sparse(cx, &variable("{D,C<ranges>}"), ranges).unwrap_err().to_string();
        assert!(error.contains("convert it, to csr"), "{error}");
        let error = Tensor::from_sparse(cx, &variable("csr"), coo).unwrap_err().to_string();
        assert!(error.contains("{C~u,S}") && error.contains("{D,C}"), "{error}");
        let csr = Tensor::from_sparse(cx, &variable("csr"), tensor(&variable("csr"), 2))?;
        let error = csr.write_elements(cx, vec![0_i64; 24]).unwrap_err().to_string();
        assert!(error.contains("only elements of dense tensors"), "{error}");
        Ok(())
    });
    results.into_iter().for_each(|result| result.unwrap());
    let sparse = assignment("B(i,j) = 2 + A(i,j)", &[("B", "{C,B}", &[4, 6]), ("A", "csr", &[4, 6])]);
    let error = Plan::new(Computation::new(&sparse).unwrap().statement()).unwrap_err().to_string();
    assert!(error.starts_with("B is stored as"), "{error}");
}
