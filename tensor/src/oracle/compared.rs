//! Results of statements on dense tensors, compared with their definitions, element by element.
//!
//! Elements by the definition have [bounds](super::bounded) of what rounding may change in them, in whatever order sums
//! are taken. Integers must be equal.

use maniple::Context;

use super::bounded::Bounds;
use super::defined::{Load, complex, defined};
use crate::element::{Complex, Scalar};
use crate::generate::random::Random;
use crate::notation::{Assignment, DivisionByZero, TensorVariable};

/// The elements of tensors before statements ran, and after.
#[derive(Clone, Copy)]
pub struct Elements<'a> {
    /// The elements at the beginning.
    pub before: &'a Load<'a>,
    /// The elements of results, and of operands that are none.
    pub after: &'a Load<'a>,
}

/// The outcome of a comparison of results with their definitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The elements that were compared.
    pub count: usize,
    /// The largest deviation: at most 1 is right.
    pub deviation: f64,
    /// Whether elements must be equal.
    pub is_exact: bool,
}

/// Values that may be looked at, for all elements together: some seconds' worth.
const VALUES: f64 = 4e6;
/// At least so many elements are compared.
const LEAST: i64 = 100;

/// The elements that are compared, by number: all, or random ones and the first and the last.
fn chosen(assignment: &Assignment, seed: u64) -> Vec<i64> {
    let extents = assignment.extents();
    let left = assignment.left();
    let all: i64 = left.tensor.dimensions().iter().product();
    let in_sums = extents.iter().filter(|(variable, _)| !left.variables.contains(variable));
    let for_one = in_sums.map(|(_, &extent)| extent as f64).product::<f64>().max(1.0)
        * assignment.right().accesses().len().max(1) as f64;
    let some = ((VALUES / for_one) as i64).max(LEAST);
    if all <= some {
        return (0..all).collect();
    }
    let mut random = Random::of(seed, &[all]);
    let mut numbers: Vec<i64> = [0, all - 1].into_iter().chain((2..some).map(|_| random.below(all))).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// The distance of an element from its definition: 0 if it is equal, up to 1 if rounding explains the difference,
/// infinite for integers that differ.
///
/// # Errors
///
/// If an integer is divided by zero.
fn deviation(assignment: &Assignment, number: i64, found: Scalar, load: &Load<'_>) -> Result<f64, DivisionByZero> {
    let coordinates = coordinates(&assignment.left().tensor, number);
    let defined = defined(assignment, &coordinates, load)?;
    if assignment.element().is_integer() {
        return Ok(if defined == found { 0.0 } else { f64::INFINITY });
    }
    // Most extremes have one value whatever the order of sums is: that of the definition in the type of the elements.
    let defined = complex(defined);
    let expected = Bounds::new(assignment).element(assignment, &coordinates, load)?;
    let found = complex(found);
    let same = |a: f64, b: f64| a == b || a.is_nan() && b.is_nan();
    let equal = |other: Complex<f64>| same(found.re, other.re) && same(found.im, other.im);
    // Where nothing is known there is nothing to compare with.
    if equal(defined) || equal(expected.value) || expected.error == f64::INFINITY {
        return Ok(0.0);
    }
    // The definition was evaluated with rounding too.
    let distance = |found: f64, expected: f64| match expected.is_finite() {
        true => (found - expected).abs(),
        false if same(found, expected) => 0.0,
        false => f64::INFINITY,
    };
    let distance = Complex::new(distance(found.re, expected.value.re), distance(found.im, expected.value.im)).norm();
    Ok(distance / (2.0 * expected.error))
}

/// Compares results with their definitions: all elements, or some, of which each node of the job looks at its share.
/// All nodes make the same call, each with its own number.
///
/// # Errors
///
/// [`maniple::Error`] if a definition has no value, as an integer is divided by zero, or if a node fails.
pub async fn compare(
    cx: &Context,
    node: usize,
    definitions: &[Assignment],
    seed: u64,
    elements: Elements<'_>,
) -> maniple::Result<Comparison> {
    let mut all = Comparison { count: 0, deviation: 0.0, is_exact: true };
    for definition in definitions {
        let target = &definition.left().tensor;
        let chosen = chosen(definition, seed);
        all.count += chosen.len();
        all.is_exact &= definition.element().is_integer();
        // What its definition says of a result is of what it was before; other results are complete by then.
        let load = |variable: &TensorVariable, coordinates: &[i64]| {
            let of = if variable.name() == target.name() { elements.before } else { elements.after };
            of(variable, coordinates)
        };
        let mut own = chosen.into_iter().skip(node).step_by(cx.nodes());
        let largest = own.try_fold(0.0, |largest, number| {
            let found = (elements.after)(target, &coordinates(target, number));
            Ok(worse(largest, deviation(definition, number, found, &load)?))
        });
        let largest = largest.map_err(|error| maniple::Error::from_task(Senseless(error)))?;
        all.deviation = worse(all.deviation, cx.per_node(largest).fold(0.0, worse).await?);
    }
    Ok(all)
}

/// The definition has no value.
#[derive(Debug, thiserror::Error)]
#[error("the result cannot be compared with the definition: {0}")]
struct Senseless(DivisionByZero);

/// The larger of two errors: what is no number is the largest.
fn worse(a: f64, b: f64) -> f64 {
    if a.is_nan() || b <= a { a } else { b }
}

/// The coordinates of an element, by its number.
fn coordinates(tensor: &TensorVariable, number: i64) -> Vec<i64> {
    let mut coordinates = tensor.dimensions().to_vec();
    let mut rest = number;
    for coordinate in coordinates.iter_mut().rev() {
        let extent = *coordinate;
        (*coordinate, rest) = (rest % extent, rest / extent);
    }
    coordinates
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::ElementType;
    use crate::notation::{IndexVariable, cast, parse_with_extents};

    fn assignment(text: &str, element: ElementType) -> Assignment {
        let extents: Vec<_> = [("i", 4), ("k", 100)].map(|(name, extent)| (IndexVariable::new(name), extent)).into();
        parse_with_extents(text, element, &extents).unwrap()
    }

    /// Elements of all tensors: some fraction of their place.
    fn load(tensor: &TensorVariable, coordinates: &[i64]) -> Scalar {
        let place = coordinates.iter().fold(1, |place, index| place * 7 + index);
        cast(cast(Scalar::F64((place % 11) as f64 / 3.0 - 1.0), ElementType::F64), tensor.element())
    }

    fn integers(_: &TensorVariable, coordinates: &[i64]) -> Scalar {
        Scalar::I64(coordinates.iter().sum())
    }

    #[test]
    fn integers_have_to_be_equal() {
        let sum = assignment("a(i) = B(i,k)", ElementType::I64);
        let expected = 100 * 2 + 99 * 50;
        assert_eq!(deviation(&sum, 2, Scalar::I64(expected), &integers), Ok(0.0));
        assert_eq!(deviation(&sum, 2, Scalar::I64(expected + 1), &integers), Ok(f64::INFINITY));
    }

    #[test]
    fn what_rounding_does_is_right_and_what_it_does_not_is_wrong() {
        let statements = [
            "a(i) = B(i,k) * c(k)",
            "a(i) += B(i,k) * c(k) - d(i)",
            "a(i) = sqrt(abs(B(i,k))) / (abs(c(k)) + 5)",
            "a(i) = reduce(max, k, B(i,k) * c(k)) + exp(d(i))",
        ];
        for element in [ElementType::F32, ElementType::F64] {
            for text in statements {
                let statement = assignment(text, element);
                let exact = Bounds::new(&statement).element(&statement, &[1], &load).unwrap();
                let at = |value: f64| deviation(&statement, 1, cast(Scalar::F64(value), element), &load).unwrap();
                assert!(at(exact.value.re) <= 1.0, "{text}");
                // A unit in the last place, and a term too few.
                let unit = if element == ElementType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
                assert!(at(exact.value.re * (1.0 + unit)) <= 1.0, "{text}");
                assert!(at(exact.value.re * 1.01 + 0.01) > 1.0, "{text}: {exact:?}");
                assert!(is_nan_or_more(at(f64::NAN)), "{text}");
            }
        }
    }

    fn is_nan_or_more(deviation: f64) -> bool {
        deviation.is_nan() || deviation > 1.0
    }

    #[test]
    fn a_sum_in_another_order_is_within_its_bound() {
        let sum = assignment("a(i) = B(i,k) * c(k)", ElementType::F32);
        let term = |k: i64| {
            let of =
                |name: &str, at: &[i64]| complex(load(&TensorVariable::new(name, ElementType::F32, []), at)).re as f32;
            of("B", &[3, k]) * of("c", &[k])
        };
        let backwards = (0..100).rev().map(term).sum::<f32>();
        assert!(deviation(&sum, 3, Scalar::F32(backwards), &load).unwrap() <= 1.0);
        let short = (1..100).map(term).sum::<f32>();
        assert!(deviation(&sum, 3, Scalar::F32(short), &load).unwrap() > 1.0);
    }

    #[test]
    fn complex_numbers_have_bounds_too() {
        let product = assignment("a(i) = B(i,k) * conj(c(k))", ElementType::C64);
        let exact = Bounds::new(&product).element(&product, &[0], &load).unwrap();
        assert!(exact.error > 0.0 && exact.error < 1e-10);
        assert_eq!(deviation(&product, 0, Scalar::C64(exact.value), &load), Ok(0.0));
        let off = exact.value + Complex::new(0.0, 1e-6);
        assert!(deviation(&product, 0, Scalar::C64(off), &load).unwrap() > 1.0);
    }

    /// Elements of `B(i)`: what the statements below are about.
    const EXTREMES: [f64; 4] = [1.0, -2.0, 0.0, f64::NAN];

    fn extremes(tensor: &TensorVariable, coordinates: &[i64]) -> Scalar {
        let number = if tensor.name() == "B" { coordinates[0] as usize } else { 0 };
        cast(Scalar::F64(EXTREMES[number]), tensor.element())
    }

    #[test]
    fn infinities_and_nans_have_to_be_the_same() {
        let (infinity, nan) = (f64::INFINITY, f64::NAN);
        let cases = [
            ("A(i) = B(i) / 0", [infinity, -infinity, nan, nan]),
            ("A(i) = 1 / B(i)", [1.0, -0.5, infinity, nan]),
            ("A(i) = B(i) / 0 - B(i) / 0", [nan; 4]),
            ("A(i) = 1 / (B(i) / 0)", [0.0, -0.0, nan, nan]),
            ("A(i) = max(B(i), 0 / 0)", [nan; 4]),
            ("A(i) = min(B(i) / 0, 3)", [3.0, -infinity, nan, nan]),
            ("A(i) = sqrt(B(i))", [1.0, nan, 0.0, nan]),
            ("A(i) = log(B(i)) * 2", [0.0, nan, -infinity, nan]),
            ("A(i) = exp(1000 * B(i))", [infinity, 0.0, 1.0, nan]),
            ("A(i) = reduce(+, k, B(i) / 0 + C(k))", [infinity, -infinity, nan, nan]),
            ("A(i) = reduce(max, k, B(i) / 0 + C(k))", [infinity, -infinity, nan, nan]),
        ];
        for element in [ElementType::F32, ElementType::F64] {
            for (text, expected) in cases {
                let statement = assignment(text, element);
                for (number, expected) in expected.into_iter().enumerate() {
                    let at = |found: f64| {
                        deviation(&statement, number as i64, cast(Scalar::F64(found), element), &extremes).unwrap()
                    };
                    assert_eq!(at(expected), 0.0, "{text} of {} in {element}", EXTREMES[number]);
                    // Of what overflows nothing is known.
                    for wrong in [17.5, infinity, -infinity, nan] {
                        let is_wrong = !(wrong == expected || wrong.is_nan() && expected.is_nan());
                        let is_known = !text.contains("exp") || number > 0;
                        assert!(!is_wrong || !is_known || is_nan_or_more(at(wrong)), "{text}: {wrong} for {expected}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_float_that_may_overflow_may_be_infinite_and_one_that_is_tiny_may_be_zero() {
        let large = |_: &TensorVariable, _: &[i64]| Scalar::F32(1e30);
        let statement = assignment("a(i) = B(i,k) * 1e30 - C(i,k) * 1e30", ElementType::F32);
        assert!(deviation(&statement, 0, Scalar::F32(f32::NAN), &large).unwrap() <= 1.0);
        let tiny = |_: &TensorVariable, _: &[i64]| Scalar::F32(1e-30);
        let statement = assignment("a(i) = B(i) * C(i)", ElementType::F32);
        assert!(deviation(&statement, 0, Scalar::F32(0.0), &tiny).unwrap() <= 1.0);
        assert!(deviation(&statement, 0, Scalar::F32(1e-40), &tiny).unwrap() > 1.0);
    }

    #[test]
    fn all_elements_are_chosen_if_there_are_few_and_else_the_ends_and_some() {
        let few = assignment("a(i) = B(i,k)", ElementType::F64);
        assert_eq!(chosen(&few, 1), [0, 1, 2, 3]);
        let extents: Vec<_> =
            [("i", 10_000_000), ("k", 1000)].map(|(name, extent)| (IndexVariable::new(name), extent)).into();
        let many = parse_with_extents("a(i) = b(k) * i", ElementType::F64, &extents).unwrap();
        let numbers = chosen(&many, 1);
        assert!(numbers.len() > 1000 && numbers.len() < 10_000, "{}", numbers.len());
        assert_eq!((numbers.first(), numbers.last()), (Some(&0), Some(&9_999_999)));
        assert_ne!(numbers, chosen(&many, 2));
    }
}
