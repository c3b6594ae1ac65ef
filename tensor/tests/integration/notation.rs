//! Index notation: texts, Rust's operators, and what they mean.

use std::collections::BTreeMap;

use maniple_tensor::element::ElementType::{self, C64, F32, F64, I32, I64};
use maniple_tensor::element::{Element, Scalar};
use maniple_tensor::notation::{
    Assignment, DenseArray, EvaluateError, Expression, IndexVariable, Intrinsic, Reduction, TensorVariable, evaluate,
    parse, parse_with_extents,
};
use maniple_tensor::program::Program;
use num_complex::Complex;

fn integers(text: &str) -> Assignment {
    let extents = [("i", 2), ("j", 3), ("k", 2), ("l", 3)].map(|(name, extent)| (IndexVariable::new(name), extent));
    parse_with_extents(text, I64, &extents).unwrap_or_else(|error| panic!("{error}"))
}

/// The result of `text`, whose operands are 1, 2, 3, ...
fn result(text: &str) -> Vec<i64> {
    let assignment = integers(text);
    let operands = assignment
        .tensors()
        .into_iter()
        .map(|tensor| {
            let mut next = 0;
            let array = DenseArray::from_fn(I64, tensor.dimensions(), |_| {
                next += 1;
                Scalar::I64(next)
            });
            (tensor.name().to_owned(), array)
        })
        .collect();
    let result = evaluate(&assignment, &operands).expect("all operands are there");
    result.values().iter().map(|value| i64::from_scalar(*value).expect("all are integers")).collect()
}

#[test]
fn operators_have_the_usual_precedence() {
    assert_eq!(result("s = 1 + 2 * 3 - 4"), [3]);
    assert_eq!(result("s = 10 - 3 - 2"), [5]);
    assert_eq!(result("s = 100 / 5 / 2"), [10]);
    assert_eq!(result("s = 2 * (3 + 4)"), [14]);
    assert_eq!(result("s = -2 * 3"), [-6]);
    assert_eq!(result("s = --2 - -3"), [5]);
    assert_eq!(result("s = -7 / 2"), [-3]);
}

#[test]
fn terms_are_summed_over_their_own_variables() {
    assert_eq!(result("a(i) = D(i,j) + b(i) + c(i)"), [1 + 2 + 3 + 1 + 1, 4 + 5 + 6 + 2 + 2]);
    assert_eq!(result("a(i) = b(i) + c(i) + D(i,j)"), result("a(i) = D(i,j) + b(i) + c(i)"));
    assert_eq!(result("a(i) = b(i) - (c(i) - D(i,j))"), [6, 15]);
    assert_eq!(result("a(i) = -(D(i,j) + b(i))"), [-7, -17]);
}

#[test]
fn a_shift_that_comes_first_is_no_function() {
    assert_eq!(result("s = a(i+1) * b(i)"), result("s = b(i) * a(i+1)"));
    assert_eq!(result("m(i) = reduce(max, k, E(i,k+1) * 2)"), [4, 8]);
    assert_eq!(result("s = max(a(i-1), b(i+1))"), [2 + 1]);
    assert_eq!(result("a(i) = sqrt_of(i+1) + 0"), [2, 0]);
}

#[test]
fn parts_of_one_tensor_are_of_one_tensor() {
    for (text, dimensions) in [
        ("a(i) = P(i(0,2)) + P(i(4,6))", [6, 0]),
        ("a(i) = P(i(4,6)) - P(i(0,2)) * P(i+1)", [6, 0]),
        ("s = P(j(0,5,2)) * P(j) * 0", [3, 0]),
        ("a(i) = Q(i(0,2),j) + Q(i(2,4),j)", [4, 3]),
        ("a(i) = Q(i+1,j-1)", [2, 3]),
    ] {
        let dimensions: Vec<i64> = dimensions.into_iter().filter(|extent| *extent > 0).collect();
        let extents = [("i", 2), ("j", 3)].map(|(name, extent)| (IndexVariable::new(name), extent));
        let found = parse_with_extents(text, I64, &extents);
        if text.contains("P(j)") {
            // All of a dimension, and a part that it does not have.
            assert!(found.unwrap_err().to_string().contains("takes a part of a dimension with 3 coordinates"));
            continue;
        }
        assert_eq!(found.unwrap().tensors()[1].dimensions(), dimensions, "{text}");
        let sketch = Program::sketch(text, I64, &["i", "j"].map(IndexVariable::new));
        assert!(sketch.is_ok(), "{text}: {sketch:?}");
    }
    assert_eq!(result("a(i) = P(i(0,2)) + P(i(4,6))"), [1 + 5, 2 + 6]);
    let extents = [("i", 2), ("j", 3)].map(|(name, extent)| (IndexVariable::new(name), extent));
    let error = parse_with_extents("y(i) = A(i,j) * A(i)", F64, &extents).unwrap_err().to_string();
    assert!(error.starts_with("A has another number of dimensions in A(i,j) than in A(i)"), "{error}");
}

#[test]
fn a_term_with_sums_or_quotients_inside_is_summed_whole() {
    assert_eq!(result("a(i) = D(i,j) * (b(j) + c(j))"), [2 * (1 + 4 + 9), 2 * (4 + 10 + 18)]);
    assert_eq!(result("a(i) = D(i,j) / b(j)"), [3, 4 + 2 + 2]);
    assert_eq!(integers("a(i) = D(i,j) / b(j)").to_string(), "a(i) = reduce(+, j, D(i,j) / b(j))");
}

#[test]
fn variables_of_the_left_side_alone_broadcast() {
    assert_eq!(result("A(i,j) = b(i)"), [1, 1, 1, 2, 2, 2]);
    assert_eq!(result("A(i,j) = 7"), [7; 6]);
}

#[test]
fn scalars_are_results_and_operands() {
    assert_eq!(result("s = B(i,j)"), [21]);
    assert_eq!(result("a(j) = t * b(j)"), [1, 2, 3]);
}

#[test]
fn old_contents_count_with_plus_assign_alone() {
    assert_eq!(result("a(i) = D(i,j)"), [6, 15]);
    assert_eq!(result("a(i) += D(i,j)"), [7, 17]);
}

#[test]
fn accesses_may_be_transposed_or_repeat_a_variable() {
    assert_eq!(result("A(j,i) = B(i,j)"), [1, 4, 2, 5, 3, 6]);
    assert_eq!(result("a(i) = B(i,i)"), [1, 4]);
    assert_eq!(result("s = B(i,i)"), [5]);
}

#[test]
fn the_result_may_be_read_where_it_is_written() {
    assert_eq!(result("a(i) = a(i) * D(i,j)"), [6, 30]);
}

#[test]
fn index_variables_are_values() {
    assert_eq!(result("A(i,j) = 10 * i + j"), [0, 1, 2, 10, 11, 12]);
    assert_eq!(result("s = i * b(i)"), [2]);
}

#[test]
fn reductions_can_be_written() {
    assert_eq!(result("a(i) = reduce(max, j, -D(i,j))"), [-1, -4]);
    assert_eq!(result("a(i) = reduce(*, j, D(i,j)) + 1"), [7, 121]);
    assert_eq!(result("s = reduce(min, i, reduce(+, j, D(i,j)))"), [6]);
    assert_eq!(result("a(i) = reduce(product, j, D(i,j))"), [6, 120]);
}

#[test]
fn subscripts_may_follow_an_underscore() {
    assert_eq!(result("a_i = D_{i,j}"), result("a(i) = D(i,j)"));
    let tensors = [TensorVariable::new("a", F64, [3]), TensorVariable::new("a_i", F64, [])];
    assert_eq!(parse("a_i = 1", &tensors).unwrap().left().tensor.name(), "a_i");
    assert_eq!(parse("a_j = 1", &tensors).unwrap().left().to_string(), "a(j)");
}

#[test]
fn integers_wrap() {
    assert_eq!(result("s = 9223372036854775807 + 1"), [i64::MIN]);
    assert_eq!(result("s = (-9223372036854775807 - 1) / -1"), [i64::MIN]);
}

#[test]
fn division_of_an_integer_by_zero_is_an_error() {
    assert_eq!(
        evaluate(&integers("s = 1 / 0"), &BTreeMap::new()),
        Err(EvaluateError::DivisionByZero(Default::default()))
    );
    assert!(evaluate(&integers("s = mod(1, 0)"), &BTreeMap::new()).is_err());
}

#[test]
fn missing_and_wrong_operands_are_named() {
    let assignment = integers("a(i) = b(i)");
    let said = |operands| evaluate(&assignment, &operands).unwrap_err().to_string();
    assert_eq!(said(BTreeMap::new()), "no elements are given for b");
    let wrong = BTreeMap::from([("b".to_owned(), DenseArray::zeros(F64, &[3]))]);
    assert_eq!(said(wrong), "b has elements of type i64 and extents [2]; given are f64 and [3]");
}

#[test]
fn text_that_is_printed_parses_to_the_same() {
    for text in [
        "a(i) = D(i,j) * (b(j) + c(j)) / 2 - -(b(j) - (b(j) - c(j)))",
        "s = max(B(i,j), -3) / (2 * t)",
        "s += reduce(max, i, reduce(+, j, B(i,j)) - i)",
        "A(i,j) = i64(2.5) + j * square(B(j,i))",
    ] {
        let printed = integers(text).to_string();
        assert_eq!(integers(&printed).to_string(), printed);
        assert_eq!(result(&printed), result(text));
    }
}

#[test]
fn rusts_operators_and_texts_say_the_same() {
    let (i, j, k) = (IndexVariable::new("i"), IndexVariable::new("j"), IndexVariable::new("k"));
    let tensor = |name, dimensions: &[i64]| TensorVariable::new(name, F64, dimensions);
    let (a, b, c, s) = (tensor("A", &[2, 2]), tensor("B", &[2, 2]), tensor("C", &[2, 2]), tensor("s", &[]));
    let tensors = [a.clone(), b.clone(), c.clone(), s.clone()];
    let b_ik = b.at([&i, &k]);
    let pairs = [
        (a.at([&i, &j]).assign(&b_ik * c.at([&k, &j]) + 1.5), "A(i,j) = B(i,k) * C(k,j) + 1.5"),
        (a.at([&i, &j]).accumulate(2 * -&b.at([&i, &j]) / s.scalar()), "A(i,j) += 2 * -B(i,j) / s"),
        (
            s.scalar().assign(Expression::call(Intrinsic::Max, [b.at(["i", "j"]), c.at(["i", "j"])])),
            "s = max(B(i,j), C(i,j))",
        ),
        (
            s.scalar()
                .assign(Expression::reduce(Reduction::Maximum, "i", 0.5 * b.at(["i", "i"])) - &i * b.at(["i", "i"])),
            "s = reduce(max, i, 0.5 * B(i,i)) - i * B(i,i)",
        ),
    ];
    for (written, text) in pairs {
        assert_eq!(written.unwrap(), parse(text, &tensors).unwrap());
    }
}

#[test]
fn every_type_computes() {
    fn square_sum<T: Element>(values: &[T]) -> Scalar {
        let extents = [(IndexVariable::new("i"), values.len() as i64)];
        let assignment = parse_with_extents("s = 2 * b(i) * b(i)", T::TYPE, &extents).expect("the text is fine");
        let b = DenseArray::from_elements(&[values.len() as i64], values).expect("as many as there are");
        evaluate(&assignment, &BTreeMap::from([("b".to_owned(), b)])).expect("b is there").values()[0]
    }
    assert_eq!(square_sum(&[1_i32, 2]), Scalar::I32(10));
    assert_eq!(square_sum(&[1_i64, 2]), Scalar::I64(10));
    assert_eq!(square_sum(&[0.5_f32, 2.0]), Scalar::F32(8.5));
    assert_eq!(square_sum(&[0.5_f64, 2.0]), Scalar::F64(8.5));
    assert_eq!(square_sum(&[Complex::new(0.0_f32, 1.0)]), Scalar::C32(Complex::new(-2.0, 0.0)));
    assert_eq!(square_sum(&[Complex::new(0.0_f64, 1.0)]), Scalar::C64(Complex::new(-2.0, 0.0)));
}

#[test]
fn functions_give_what_rust_gives() {
    let value = |text: &str, element: ElementType, b: Scalar| {
        let assignment = parse_with_extents(text, element, &[]).unwrap();
        let b = DenseArray::from_fn(b.element_type(), &[], |_| b);
        evaluate(&assignment, &BTreeMap::from([("b".to_owned(), b)])).unwrap().values()[0]
    };
    assert_eq!(value("s = sqrt(b) + pow(b, 0.5)", F64, Scalar::F64(4.0)), Scalar::F64(4.0));
    assert_eq!(value("s = min(b, 2) + mod(b, 3)", I32, Scalar::I32(7)), Scalar::I32(3));
    assert_eq!(value("s = abs(b) + cube(b)", I32, Scalar::I32(-2)), Scalar::I32(-6));
    assert_eq!(value("s = exp(log(b))", F32, Scalar::F32(1.0)), Scalar::F32(1.0));
    let Scalar::C64(root) = value("s = sqrt(b)", C64, Scalar::C64(Complex::new(-4.0, 0.0))) else { panic!("no C64") };
    assert!((root - Complex::new(0.0, 2.0)).norm() < 1e-15);
}

#[test]
fn casts_change_the_type() {
    let tensors = [TensorVariable::new("N", I64, []), TensorVariable::new("x", F64, [])];
    let assignment = parse("N = i64(x * 2) + i64(2.5)", &tensors).unwrap();
    let x = DenseArray::from_elements(&[], &[1.75]).unwrap();
    assert_eq!(evaluate(&assignment, &BTreeMap::from([("x".to_owned(), x)])).unwrap().values(), [Scalar::I64(5)]);
}

#[test]
fn a_sum_over_nothing_is_the_identity() {
    let extents = [(IndexVariable::new("i"), 0)];
    let value = |text| evaluate(&parse_with_extents(text, I64, &extents).unwrap(), &operand()).unwrap().values()[0];
    fn operand() -> BTreeMap<String, DenseArray> {
        BTreeMap::from([("b".to_owned(), DenseArray::zeros(I64, &[0]))])
    }
    assert_eq!(value("s = b(i)"), Scalar::I64(0));
    assert_eq!(value("s = reduce(*, i, b(i))"), Scalar::I64(1));
    assert_eq!(value("s = reduce(max, i, b(i))"), Scalar::I64(i64::MIN));
}
