//! Operands in blocks, which loops go through as they are stored.

use std::collections::BTreeMap;

use fastrand::Rng;
use maniple_tensor::element::{ElementType, Scalar};
use maniple_tensor::kernel::Kernels;
use maniple_tensor::notation::{Assignment, DenseArray, TensorVariable, evaluate, parse};
use maniple_tensor::schedule::Schedule;
use maniple_tensor::sparse::Computation;
use maniple_tensor::storage::SparseTensor;

use crate::sparse::{InTurn, dense, stored, thinned};

/// Operands, each as they are stored and as an array.
struct Operands {
    arrays: BTreeMap<String, DenseArray>,
    stored: Vec<(String, SparseTensor<i64>)>,
}

/// Random operands of an assignment, of which few elements are other than their fill value.
fn operands(assignment: &Assignment, random: &mut Rng) -> Operands {
    let mut made = Operands { arrays: BTreeMap::new(), stored: Vec::new() };
    for tensor in &assignment.tensors() {
        let array = DenseArray::from_fn(ElementType::I64, tensor.dimensions(), |_| Scalar::I64(random.i64(-9..10)));
        let array = thinned(&array, tensor, random);
        made.stored.push((tensor.name().to_owned(), stored::<i64>(&array, tensor)));
        made.arrays.insert(tensor.name().to_owned(), array);
    }
    made
}

fn check(computation: &Computation<'_>, assignment: &Assignment, operands: &Operands, told: &str) {
    let kernels = Kernels::new(None, None);
    let given: Vec<_> = operands.stored.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let found = computation.run_by(&given, &kernels, &InTurn(3));
    let found = found.unwrap_or_else(|error| panic!("{told}: {assignment}: {error}\n{}", computation.loops()));
    assert_eq!(dense(&found), evaluate(assignment, &operands.arrays).unwrap(), "{told}: {assignment}");
}

fn tensor(name: &str, dimensions: &[i64], format: &str) -> TensorVariable {
    TensorVariable::new(name, ElementType::I64, dimensions).stored(format.parse().unwrap())
}

/// A statement, its tensors with their dimensions and formats, and whether nothing is converted for it.
type Case<'c> = (&'c str, &'c [(&'c str, &'c [i64], &'c str)], bool);

#[test]
fn what_is_in_blocks_is_converted_only_where_another_operand_or_the_result_would_suffer() {
    let mut random = Rng::with_seed(41);
    let cases: &[Case<'_>] = &[
        ("y(i) = A(i,j) * x(j)", &[("A", &[7, 8], "bcsr:2x3"), ("x", &[8], "{D}"), ("y", &[7], "{D}")], true),
        ("y(j) = A(i,j) * x(i)", &[("A", &[7, 8], "bcsr:3x2"), ("x", &[7], "{D}"), ("y", &[8], "{D}")], true),
        (
            "y(i) = A(i,j) * x(j)",
            &[("A", &[7, 8], "(i,j) -> (j/3: D, i: D, j%3: C)"), ("x", &[8], "{D}"), ("y", &[7], "{D}")],
            true,
        ),
        (
            "y(i) = A(i,j) * x(j)",
            &[("A", &[7, 8], "(i,j) -> (j/3: C, i/2: C, j%3: C, i%2: D)"), ("x", &[8], "{D}"), ("y", &[7], "{D}")],
            true,
        ),
        (
            "Y(i,k) = A(i,j) * X(j,k)",
            &[("A", &[5, 9], "bcsr:2x2"), ("X", &[9, 4], "rows"), ("Y", &[5, 4], "rows")],
            true,
        ),
        ("a = A(i,j) * B(i,j)", &[("A", &[5, 9], "bcsr:2x2"), ("B", &[5, 9], "bcsr:2x2"), ("a", &[], "{}")], true),
        (
            "Y(i,j) = A(i,j) + B(i,j)",
            &[("A", &[5, 9], "bcsr:2x2"), ("B", &[5, 9], "bcsr:2x2"), ("Y", &[5, 9], "rows")],
            true,
        ),
        ("Y(i,j) = A(i,k) * A(j,k)", &[("A", &[5, 9], "bcsr:2x2"), ("Y", &[5, 5], "rows")], true),
        // Blocks of other lengths, and coordinates one by one.
        ("a = A(i,j) * B(i,j)", &[("A", &[5, 9], "bcsr:2x2"), ("B", &[5, 9], "bcsr:2x4"), ("a", &[], "{}")], false),
        ("a = A(i,j) * B(i,j)", &[("A", &[5, 9], "bcsr:2x2"), ("B", &[5, 9], "csr"), ("a", &[], "{}")], false),
        ("Y(i,j) = A(i,j) * 2", &[("A", &[5, 9], "bcsr:2x2"), ("Y", &[5, 9], "csr")], false),
        ("y(i) = A(i,j+1) * x(j)", &[("A", &[5, 9], "bcsr:2x2"), ("x", &[8], "{D}"), ("y", &[5], "{D}")], false),
    ];
    for (text, tensors, is_native) in cases {
        let tensors: Vec<_> = tensors.iter().map(|(name, extents, format)| tensor(name, extents, format)).collect();
        let assignment = parse(text, &tensors).unwrap();
        let computation = Computation::new(&assignment).unwrap();
        assert_eq!(computation.conversions().is_empty(), *is_native, "{text}\n{}", computation.explain());
        for _ in 0..8 {
            check(&computation, &assignment, &operands(&assignment, &mut random), text);
        }
    }
}

#[test]
fn random_blocks_in_random_loops_equal_all_elements() {
    let mut random = Rng::with_seed(7);
    let mut as_stored = 0;
    for round in 0..600 {
        let [rows, columns] = [random.i64(0..12), random.i64(0..12)];
        let [high, wide] = [random.i64(1..5), random.i64(1..5)];
        let kinds = |random: &mut Rng| ["D", "C"][random.usize(..2)];
        let mut levels = [
            format!("i/{high}: {}", kinds(&mut random)),
            format!("i%{high}: {}", kinds(&mut random)),
            format!("j/{wide}: {}", kinds(&mut random)),
            format!("j%{wide}: {}", kinds(&mut random)),
        ];
        random.shuffle(&mut levels);
        let mut format = format!("(i,j) -> ({})", levels.join(", "));
        if random.u8(..4) == 0 {
            format = format!(
                "(i,j) -> (j/{wide}: {}, i: {}, j%{wide}: {})",
                kinds(&mut random),
                kinds(&mut random),
                kinds(&mut random)
            );
        }
        let fill = if random.u8(..5) == 0 { random.i64(-2..3) } else { 0 };
        let a = tensor("A", &[rows, columns], &format).filled(Scalar::I64(fill));
        let other = ["rows", "csr", "columns", "bcsr:2x2", &format][random.usize(..5)];
        let b = tensor("B", &[rows, columns], other);
        let tensors = [
            a,
            b,
            tensor("x", &[columns], "{D}"),
            tensor("y", &[rows], "{D}"),
            tensor("Y", &[rows, columns], ["rows", "csr"][random.usize(..2)]),
        ];
        let text = [
            "y(i) = A(i,j) * x(j)",
            "y(i) += A(i,j) * x(j)",
            "y(i) = A(i,j) + x(j)",
            "y(i) = min(j, A(i,j) + x(j))",
            "y(i) = A(i,j) * B(i,j) * x(j)",
            "Y(i,j) = A(i,j) + B(i,j)",
            "Y(i,j) = A(i,j) * B(i,j)",
            "y(i) = A(i,j) * A(i,j)",
        ][random.usize(..8)];
        let Ok(assignment) = parse(text, &tensors) else { panic!("{text}") };
        let told = format!("round {round}, A as {format} filled with {fill}, B as {other}");
        let operands = operands(&assignment, &mut random);
        let plain = Computation::new(&assignment).unwrap();
        check(&plain, &assignment, &operands, &told);
        as_stored += usize::from(plain.conversions().iter().all(|(name, _)| name != "A"));
        let length = if random.bool() { wide } else { random.i64(1..5) };
        let commands = [
            format!("split(j, jo, ji, {length}); reorder({{jo, i, ji}})"),
            format!("split(i, io, ii, {high}); split(j, jo, ji, {length}); reorder({{io, jo, ii, ji}})"),
            format!("split(j, jo, ji, {length}); reorder({{i, jo, ji}}); parallelize(i, threads)"),
            format!("divide(i, io, ii, {}); parallelize(io, threads)", random.i64(1..4)),
        ];
        let schedule = Schedule::parse(&commands[random.usize(..4)], &assignment.tensors()).unwrap();
        if let Ok(scheduled) = plain.scheduled(&schedule) {
            check(&scheduled, &assignment, &operands, &format!("{told}, {schedule}"));
        }
    }
    assert!(as_stored > 150, "{as_stored} of 600");
}
