//! The table, held against the arithmetic.

use super::{BinaryOperator, Domain, Formula, Intrinsic, Properties, Reduction, Special};
use crate::arithmetic::{self, Value};
use crate::element::{ElementType, Scalar};

/// Numbers of a type on which sums and products are exact.
fn numbers(element: ElementType) -> Vec<Scalar> {
    [-3, -1, 0, 1, 2, 5].map(|value| arithmetic::cast(Scalar::I32(value), element)).to_vec()
}

fn all(binary: impl Fn(BinaryOperator, &Properties, ElementType, &dyn Fn(Scalar, Scalar) -> Option<Value>)) {
    for &operator in BinaryOperator::ALL {
        for element in ElementType::ALL.into_iter().filter(|element| operator.is_defined_for(*element)) {
            binary(operator, operator.properties(), element, &|a, b| arithmetic::binary(operator, a, b).ok());
        }
    }
}

#[test]
fn commutative_and_associative_operators_are() {
    all(|operator, row, element, apply| {
        for a in numbers(element) {
            for b in numbers(element) {
                if row.commutative {
                    assert_eq!(apply(a, b), apply(b, a), "{operator} of {a:?} and {b:?}");
                }
                for c in numbers(element).into_iter().filter(|_| row.associative) {
                    let (Some(Value::Number(ab)), Some(Value::Number(bc))) = (apply(a, b), apply(b, c)) else {
                        panic!("{operator} of numbers is a number");
                    };
                    assert_eq!(apply(ab, c), apply(a, bc), "{operator} of {a:?}, {b:?} and {c:?}");
                }
            }
        }
    });
}

#[test]
fn identities_leave_the_other_operand_and_annihilators_nothing_of_it() {
    all(|operator, row, element, apply| {
        for a in numbers(element) {
            if let Some(identity) = row.identity.and_then(|identity| identity.of(element)) {
                assert_eq!(apply(a, identity), Some(Value::Number(a)), "{a:?} {operator} {identity:?}");
            }
            if let Some(zero) = row.annihilator.and_then(|annihilator| annihilator.of(element)) {
                assert_eq!(apply(a, zero), Some(Value::Number(zero)), "{a:?} {operator} {zero:?}");
            }
        }
    });
}

/// Whether the operands of a set being zero makes the result zero, for all sets of the table and no other single
/// operand.
#[test]
fn results_are_zero_where_the_table_says() {
    let is_zero = |value: &Value, element| {
        *value == Value::Truth(false) || *value == Value::Number(arithmetic::cast(Scalar::I32(0), element))
    };
    all(|operator, row, element, apply| {
        let zero = arithmetic::cast(Scalar::I32(0), element);
        for a in numbers(element) {
            for set in row.zeros {
                let operand = |position| if set.contains(&position) { zero } else { a };
                let Some(found) = apply(operand(0), operand(1)) else { continue };
                assert!(is_zero(&found, element), "{operator} of {:?}, {:?}", operand(0), operand(1));
            }
        }
        // Of zeros, quotients have no value.
        if row.zeros.is_empty() && !operator.divides() {
            assert!(apply(zero, zero).is_some_and(|found| !is_zero(&found, element)), "{operator}");
        }
    });
    for &function in Intrinsic::ALL.iter().filter(|function| function.arity() == 1) {
        for element in ElementType::ALL.into_iter().filter(|element| function.is_defined_for(*element)) {
            let zero = arithmetic::cast(Scalar::I32(0), element);
            let found = arithmetic::call(function, &[zero]).map(Value::Number);
            let found = found.is_ok_and(|found| is_zero(&found, element));
            assert_eq!(found, function.properties().zeros == [[0]], "{function} of {element}");
        }
    }
}

#[test]
fn functions_that_are_operators_have_their_properties() {
    for function in Intrinsic::ALL {
        if let Some(operator) = function.operator() {
            let same = Properties { name: function.name(), ..*operator.properties() };
            assert_eq!(*function.properties(), same);
        }
    }
    assert!(Domain::Truths != BinaryOperator::Add.properties().domain);
}

#[test]
fn reductions_keep_what_they_made_where_the_other_is_the_identity() {
    let larger = |a: Formula, b: Formula| a.clone().compare(BinaryOperator::Less, b.clone()).select(b, a);
    let largest = Reduction::custom("largest", Special::Least, larger).unwrap();
    for reduction in Reduction::ALL.iter().copied().chain([largest]) {
        for element in ElementType::ALL.into_iter().filter(|element| reduction.is_defined_for(*element)) {
            let identity = reduction.identity(element).unwrap();
            let of = |a, b| arithmetic::reduce(reduction, a, b);
            for a in numbers(element) {
                let made = of(identity, a);
                assert_eq!(of(made, identity), made, "{reduction} of {element}");
                assert!(!reduction.keeps_any() || made == a, "{reduction} of {element}");
                for b in numbers(element) {
                    assert_eq!(of(made, b), of(of(identity, b), a), "{reduction} of {a:?} and {b:?}");
                }
            }
        }
    }
    assert_eq!(arithmetic::reduce(Reduction::Or, Scalar::I32(0), Scalar::I32(-7)), Scalar::I32(1));
    assert_eq!(arithmetic::reduce(Reduction::And, Scalar::F64(1.0), Scalar::F64(0.5)), Scalar::F64(1.0));
}

#[test]
fn formulas_that_are_no_reductions_are_refused() {
    let refused = |identity, combine: fn(Formula, Formula) -> Formula| {
        Reduction::custom("mine", identity, combine).unwrap_err().to_string()
    };
    let less = |a: Formula, b: Formula| a.compare(BinaryOperator::Less, b);
    assert!(refused(Special::Zero, less).contains("makes no number"));
    assert!(refused(Special::Zero, |a, b| a * b + 1).contains("depends on the order of"));
    assert!(refused(Special::Zero, |a, b| (a + b) / 2).contains("is no identity of"));
    assert!(Reduction::custom("no name", Special::Zero, |a, b| a + b).is_err());
    // What may fail is left to fractions.
    let velocity = |a: Formula, b: Formula| (a.clone() + b.clone()) / (a * b + 1);
    let velocity = Reduction::custom("velocity", Special::Zero, velocity).unwrap();
    assert!(velocity.is_defined_for(ElementType::F64) && !velocity.is_defined_for(ElementType::I64));
}
