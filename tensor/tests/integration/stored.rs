//! Loops follow the way in which tensors are stored.

use maniple_tensor::choose::choose;
use maniple_tensor::concrete::Execution;
use maniple_tensor::cost::Rates;
use maniple_tensor::element::{ElementType::F64, Scalar};
use maniple_tensor::format::{Format, Level};
use maniple_tensor::loops::Parameter;
use maniple_tensor::notation::{NotationErrorKind, TensorVariable, parse};
use maniple_tensor::plan::Plan;

fn dense(order: &[usize]) -> Format {
    Format::new(vec![Level::Dense; order.len()], order).expect("each mode once")
}

/// The loops that are chosen for one processor, from the outside to the inside.
fn loops(text: &str, tensors: &[TensorVariable]) -> Vec<String> {
    let choice = choose(&parse(text, tensors).expect("a statement"), 1, &Rates::default());
    let statement = &choice.best().algorithm.statement;
    let spine = statement.spine();
    let last = spine.last().expect("a loop");
    assert!(matches!(last.execution, Execution::Parallel(_)), "the innermost loop is a vector loop:\n{statement}");
    // What kernels are compiled for is what is stored side by side.
    let plan = Plan::new(statement).expect("a plan");
    for (parameter, tensor) in plan.leaf().kernel.parameters.iter().zip(&plan.leaf().tensors) {
        let Parameter::Buffer(buffer) = parameter else { panic!("tensors come first") };
        assert_eq!(buffer.contiguous, tensor.format().contiguous(), "{tensor}");
    }
    spine.into_iter().map(|outer| outer.variable.name().to_owned()).collect()
}

#[test]
fn the_dimension_that_is_side_by_side_is_innermost_by_rows_and_by_columns() {
    for (text, rows, columns) in [
        ("A(i,j) = B(i,j) + 2 * C(i,j)", ["i", "j"], ["j", "i"]),
        ("y(i) = reduce(max, j, A(i,j) * x(j))", ["i", "j"], ["j", "i"]),
        ("y(i) = reduce(max, j, A(j,i) * x(j))", ["j", "i"], ["i", "j"]),
        ("A(i,j) = B(i,j) * x(i)", ["i", "j"], ["j", "i"]),
    ] {
        for (order, expected) in [([0, 1], rows), ([1, 0], columns)] {
            let matrices = ["A", "B", "C"].map(|name| TensorVariable::new(name, F64, [40, 40]).stored(dense(&order)));
            let vectors = ["x", "y"].map(|name| TensorVariable::new(name, F64, [40]));
            assert_eq!(loops(text, &[&matrices[..], &vectors].concat()), expected, "{text} in {order:?}");
        }
    }
}

#[test]
fn loops_over_tensors_of_three_dimensions_have_the_order_of_levels() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let tensors = ["A", "B"].map(|name| TensorVariable::new(name, F64, [5, 6, 7]).stored(dense(&order)));
        let expected = order.map(|mode| ["i", "j", "k"][mode]);
        assert_eq!(loops("A(i,j,k) = B(i,j,k) + 1", &tensors), expected);
    }
}

#[test]
fn most_accesses_decide_where_tensors_are_stored_in_different_ways() {
    let [a, b] = ["A", "B"].map(|name| TensorVariable::new(name, F64, [5, 6]));
    let c = TensorVariable::new("C", F64, [5, 6]).stored(dense(&[1, 0]));
    assert_eq!(loops("A(i,j) = B(i,j) + C(i,j)", &[a.clone(), b.clone(), c.clone()]), ["i", "j"]);
    let columns = [a, b.stored(dense(&[1, 0])), c];
    assert_eq!(loops("A(i,j) = B(i,j) + C(i,j)", &columns), ["j", "i"]);
}

#[test]
fn formats_have_a_level_for_each_dimension_and_may_be_sparse() {
    let vector = TensorVariable::new("a", F64, [5]);
    let b = TensorVariable::new("b", F64, [5]);
    let error = parse("a(i) = b(i)", &[vector.stored(dense(&[1, 0])), b.clone()]);
    assert!(matches!(error.expect_err("no format for it").kind, NotationErrorKind::Format { .. }));
    let sparse = vector.stored("{C}(0)".parse().expect("a format"));
    assert_eq!(parse("a(i) = b(i)", &[sparse.clone(), b]).expect("a statement").left().tensor, sparse);
}

#[test]
fn tensors_differ_in_format_and_fill_and_are_alike_for_all_that() {
    let rows = TensorVariable::new("A", F64, [5, 5]);
    let columns = rows.stored(dense(&[1, 0]));
    assert!(rows != columns && rows.is_like(&columns) && columns.stored(dense(&[0, 1])) == rows);
    let ones = rows.filled(Scalar::I32(1));
    assert_eq!((rows.fill(), ones.fill()), (Scalar::F64(0.0), Scalar::F64(1.0)));
    assert!(rows != ones && !rows.is_like(&ones) && rows.filled(Scalar::F64(-0.0)) != rows);
}
