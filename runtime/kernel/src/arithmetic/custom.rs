//! Users' own reductions: made, checked and computed.

use super::operate::{cast, evaluate};
use crate::element::{ElementType, Scalar};
use crate::operators::{Custom, Formula, Reduction, Special};

/// A formula is no reduction.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CustomError {
    /// A name that texts could not hold.
    #[error("{0:?} is no name of a reduction: names have letters, digits and _, and begin with no digit")]
    Name(String),
    /// The formula makes no number.
    #[error(
        "{0} makes no number: comparisons are conditions of `select`, and functions take as many arguments as they have"
    )]
    NoNumber(String),
    /// No type has all of the formula's operators.
    #[error("{0} is defined for no type of elements, or may fail: integers are not divided in a reduction")]
    Undefined(String),
    /// The identity changes values.
    #[error("{identity:?} is no identity of {formula}: with {value:?} it makes {found:?}")]
    Identity {
        /// The formula.
        formula: String,
        /// The value that was given as the formula's identity.
        identity: Scalar,
        /// A value that the formula makes.
        value: Scalar,
        /// The result of the formula for the two.
        found: Scalar,
    },
    /// The order of values matters.
    #[error("{formula} depends on the order of {values:?}: it makes {one:?} or {other:?}")]
    Order {
        /// The formula.
        formula: String,
        /// Some values.
        values: Vec<Scalar>,
        /// The result of the formula for them in one order.
        one: Scalar,
        /// The result of the formula for them in another order.
        other: Scalar,
    },
}

impl Reduction {
    /// A reduction of one's own: `combine` makes a value of what there is so far and one more. It is called `name` in
    /// texts that statements are printed as, and kept for as long as the process runs.
    ///
    /// A reduction begins with the identity, so that what it combines after that has been made by the formula: it needs
    /// to be commutative and associative on such values, and to leave them as they are where one is the identity.
    /// Whether it is, is tried on a few small numbers.
    ///
    /// ```
    /// use maniple_kernel::element::Scalar;
    /// use maniple_kernel::arithmetic::reduce;
    /// use maniple_kernel::operators::{Intrinsic, Reduction, Special};
    ///
    /// // The length of a vector.
    /// let square = |value| value_squared(value);
    /// # use maniple_kernel::operators::Formula;
    /// fn value_squared(value: Formula) -> Formula {
    ///     Formula::call(Intrinsic::Square, [value])
    /// }
    /// let length = Reduction::custom("length", Special::Zero, |a, b| Formula::call(Intrinsic::Sqrt, [square(a) + square(b)]))?;
    /// assert_eq!(reduce(length, Scalar::F64(3.0), Scalar::F64(-4.0)), Scalar::F64(5.0));
    ///
    /// let mistake = Reduction::custom("minus", Special::Zero, |a, b| a - b).unwrap_err();
    /// assert!(mistake.to_string().starts_with("(a - b) depends on the order of"));
    /// # Ok::<(), maniple_kernel::arithmetic::CustomError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`CustomError`] if the formula makes no number, is defined for no type, or is no such reduction.
    pub fn custom(
        name: &str,
        identity: Special,
        combine: impl FnOnce(Formula, Formula) -> Formula,
    ) -> Result<Self, CustomError> {
        let is_name = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
            && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        if !is_name {
            return Err(CustomError::Name(name.to_owned()));
        }
        let formula = combine(Formula::Left, Formula::Right);
        if !formula.is_number() {
            return Err(CustomError::NoNumber(formula.to_string()));
        }
        let made = Self::Custom(Custom::kept(name, identity, formula.clone()));
        let tried = [ElementType::F64, ElementType::I64].into_iter().chain(ElementType::ALL);
        let element = tried.into_iter().find(|element| made.is_defined_for(*element));
        let element = element.ok_or_else(|| CustomError::Undefined(formula.to_string()))?;
        try_out(&formula, element, identity.of(element))?;
        Ok(made)
    }
}

/// Tries a formula on what it makes of some numbers.
fn try_out(formula: &Formula, element: ElementType, identity: Option<Scalar>) -> Result<(), CustomError> {
    let Some(identity) = identity else { return Err(CustomError::Undefined(formula.to_string())) };
    let of = |left, right| evaluate(formula, left, right);
    let numbers = [-3, -1, 0, 1, 2, 5].map(|value| cast(Scalar::I32(value), element));
    let made = numbers.map(|number| of(identity, number));
    let values: Vec<Scalar> = made.into_iter().chain(made.map(|value| of(value, numbers[4]))).collect();
    let differ = |one, other| !is_near(one, other);
    for &a in &values {
        let found = of(a, identity);
        if differ(found, a) {
            return Err(CustomError::Identity { formula: formula.to_string(), identity, value: a, found });
        }
        for &b in &values {
            let wrong = |values: &[Scalar], one, other| {
                Err(CustomError::Order { formula: formula.to_string(), values: values.to_vec(), one, other })
            };
            if differ(of(a, b), of(b, a)) {
                return wrong(&[a, b], of(a, b), of(b, a));
            }
            for &c in &values {
                let (one, other) = (of(of(a, b), c), of(a, of(b, c)));
                if differ(one, other) {
                    return wrong(&[a, b, c], one, other);
                }
            }
        }
    }
    Ok(())
}

/// Whether two numbers are the same within rounding.
fn is_near(one: Scalar, other: Scalar) -> bool {
    match (one, other) {
        (Scalar::F64(one), Scalar::F64(other)) => {
            let is_close = (one - other).abs() <= 1e-9 * one.abs().max(other.abs());
            one == other || is_close || one.is_nan() && other.is_nan()
        }
        _ => one == other,
    }
}
