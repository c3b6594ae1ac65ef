//! Properties of operators and functions.

use crate::element::{Element, ElementType, Scalar};
use crate::with_element;

/// The operands that an operator is defined for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// Truth values.
    Truths,
    /// Numbers of any type.
    Numbers,
    /// Numbers that have an order: all but complex ones.
    Ordered,
    /// Integers.
    Integers,
    /// Real and complex numbers.
    Fractions,
    /// Real numbers.
    Reals,
    /// Complex numbers.
    Complexes,
}

impl Domain {
    /// Whether elements of this type belong to it.
    pub fn has(self, element: ElementType) -> bool {
        match self {
            Self::Truths => false,
            Self::Numbers => true,
            Self::Ordered => !element.is_complex(),
            Self::Integers => element.is_integer(),
            Self::Fractions => !element.is_integer(),
            Self::Reals => !element.is_integer() && !element.is_complex(),
            Self::Complexes => element.is_complex(),
        }
    }
}

/// A value that plays a role in the algebra of an operator, whatever the type of its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// 0; of truth values, false.
    Zero,
    /// 1; of truth values, true.
    One,
    /// The least value of the type: minus infinity for floats.
    Least,
    /// The greatest value of the type: infinity for floats.
    Greatest,
}

impl Special {
    /// The value as an element; none for the least and greatest of complex numbers.
    pub fn of(self, element: ElementType) -> Option<Scalar> {
        fn of<T: Element>(special: Special) -> Option<T> {
            match special {
                Special::Zero => Some(T::zeroed()),
                Special::One => Some(T::ONE),
                Special::Least => T::EXTREMES.map(|[least, _]| least),
                Special::Greatest => T::EXTREMES.map(|[_, greatest]| greatest),
            }
        }
        with_element!(element, T => of::<T>(self).map(Element::to_scalar))
    }
}

/// The properties of an operator or a function: a row of the table.
///
/// Algebraic properties are those of the real numbers. Floats round, and a zero annihilates neither infinities nor NaN;
/// what computes on stored elements alone leaves those products out, as all of sparse algebra does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// The name in texts.
    pub name: &'static str,
    /// The stem of its name in generated source: `add` of `add_f64`.
    pub stem: &'static str,
    /// The number of operands.
    pub arity: usize,
    /// The operands that it is defined for.
    pub domain: Domain,
    /// Whether it makes a truth value of numbers.
    pub compares: bool,
    /// Whether operands may change places.
    pub commutative: bool,
    /// Whether it does not matter which of several are combined first.
    pub associative: bool,
    /// The operand that leaves the other as it is, on the right and, if it is commutative, on the left.
    pub identity: Option<Special>,
    /// The operand that makes the result itself, whatever the other is.
    pub annihilator: Option<Special>,
    /// Sets of operands, by position: where all of one set are zero, the result is. So what iterates over the elements
    /// that are not zero needs those of one operand of each set.
    pub zeros: &'static [&'static [usize]],
}

impl Properties {
    /// A row without algebra.
    pub(super) const fn new(name: &'static str, stem: &'static str, arity: usize, domain: Domain) -> Self {
        let (compares, commutative, associative, zeros) = (false, false, false, &[] as &[_]);
        Self { name, stem, arity, domain, compares, commutative, associative, identity: None, annihilator: None, zeros }
    }

    /// An operator that makes a truth value of two numbers.
    pub(super) const fn comparison(name: &'static str, stem: &'static str, domain: Domain) -> Self {
        Self { compares: true, ..Self::new(name, stem, 2, domain) }
    }

    pub(super) const fn commutative(self) -> Self {
        Self { commutative: true, ..self }
    }

    pub(super) const fn associative(self) -> Self {
        Self { associative: true, ..self }
    }

    pub(super) const fn identity(self, identity: Special) -> Self {
        Self { identity: Some(identity), ..self }
    }

    pub(super) const fn annihilator(self, annihilator: Special) -> Self {
        Self { annihilator: Some(annihilator), ..self }
    }

    pub(super) const fn zeros(self, zeros: &'static [&'static [usize]]) -> Self {
        Self { zeros, ..self }
    }
}
