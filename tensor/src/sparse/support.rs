//! Of which operands an element has to be stored for a value to be other than zero.
//!
//! By the algebra of operators, not their names: a product is zero where either factor is, a sum only where both are.

use super::places::{Place, Places};
use crate::loops::Reduction;
use crate::notation::{Expression, Literal};

/// A condition on which accesses have an element stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Support {
    /// The value is zero.
    Never,
    /// The value may be anything.
    Always,
    /// This access has to have an element, by its number.
    Stored(usize),
    All(Vec<Support>),
    Any(Vec<Support>),
}

impl Support {
    /// The support of `expression`, whose first access has the number `first`, where the accesses in `iterated` are about to be visited at what they store.
    pub(super) fn of(expression: &Expression, places: &Places<'_>, iterated: &[usize], first: &mut usize) -> Self {
        let mut of = |operand: &Expression| Self::of(operand, places, iterated, &mut *first);
        match expression {
            Expression::Literal(literal, _) => {
                if is_zero(literal) {
                    Self::Never
                } else {
                    Self::Always
                }
            }
            Expression::Index(_) => Self::Always,
            Expression::Access(_) => {
                let access = *first;
                *first += 1;
                match places.at(access) {
                    _ if !places.fills_with_zero(access) => Self::Always,
                    Place::Absent => Self::Never,
                    Place::Level(..) if iterated.contains(&access) => Self::Stored(access),
                    Place::Level(..) => Self::Always,
                }
            }
            Expression::Negate(operand) | Expression::Cast(_, operand, _) => of(operand),
            Expression::Reduce(reduction, _, operand) => match (of(operand), reduction) {
                (support, Reduction::Sum) => support,
                _ => Self::Always,
            },
            Expression::Binary(operator, left, right) => {
                let operands = [of(left), of(right)];
                Self::by_zeros(operator.properties().zeros, &operands)
            }
            Expression::Call(function, arguments, _) => {
                let operands: Vec<Self> = arguments.iter().map(of).collect();
                Self::by_zeros(function.properties().zeros, &operands)
            }
        }
    }

    /// Of an operator whose result is zero where all operands of one of these sets are.
    fn by_zeros(zeros: &[&[usize]], operands: &[Self]) -> Self {
        if zeros.is_empty() {
            return Self::Always;
        }
        let set = |set: &&[usize]| Self::any(set.iter().map(|&operand| operands[operand].clone()).collect());
        Self::all(zeros.iter().map(set).collect())
    }

    fn all(mut parts: Vec<Self>) -> Self {
        parts.retain(|part| *part != Self::Always);
        match parts.len() {
            _ if parts.contains(&Self::Never) => Self::Never,
            0 => Self::Always,
            1 => parts.remove(0),
            _ => Self::All(parts),
        }
    }

    fn any(mut parts: Vec<Self>) -> Self {
        parts.retain(|part| *part != Self::Never);
        match parts.len() {
            _ if parts.contains(&Self::Always) => Self::Always,
            0 => Self::Never,
            1 => parts.remove(0),
            _ => Self::Any(parts),
        }
    }

    /// Whether it holds where just these accesses have an element.
    pub(super) fn holds(&self, stored: &[usize]) -> bool {
        match self {
            Self::Never => false,
            Self::Always => true,
            Self::Stored(access) => stored.contains(access),
            Self::All(parts) => parts.iter().all(|part| part.holds(stored)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(stored)),
        }
    }
}

/// The points of the merge lattice: the sets of accesses that may have an element at one coordinate where the value is other than zero, larger ones first.
///
/// A loop for each in turn visits the coordinates at which all of its accesses still have elements; within it, the first point whose accesses are all there is the case. Supports are
/// monotone, so that the first one is the right one.
pub(super) fn lattice(support: &Support, iterated: &[usize]) -> Vec<Vec<usize>> {
    let sets = (1_u32..1 << iterated.len()).map(|bits| {
        let bit = |(number, _): &(usize, &usize)| bits >> number & 1 != 0;
        iterated.iter().enumerate().filter(bit).map(|(_, &access)| access).collect::<Vec<usize>>()
    });
    let mut points: Vec<Vec<usize>> = sets.filter(|set| support.holds(set)).collect();
    points.sort_by_key(|point| std::cmp::Reverse(point.len()));
    points
}

pub(super) fn is_zero(literal: &Literal) -> bool {
    match literal {
        Literal::Integer(value) => *value == 0,
        Literal::Real(value) => *value == 0.0,
        Literal::Typed(scalar) => Reduction::Sum.identity(scalar.element_type()) == Some(*scalar),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(access: usize) -> Support {
        Support::Stored(access)
    }

    #[test]
    fn products_have_one_point_sums_three_and_sums_times_a_tensor_three() {
        let sum = Support::any(vec![stored(0), stored(1)]);
        let points = |support: &Support, count: usize| lattice(support, &(0..count).collect::<Vec<_>>());
        assert_eq!(points(&Support::all(vec![stored(0), stored(1)]), 2), [vec![0, 1]]);
        assert_eq!(points(&sum, 2), [vec![0, 1], vec![0], vec![1]]);
        let scaled = Support::all(vec![sum.clone(), stored(2)]);
        assert_eq!(points(&scaled, 3), [vec![0, 1, 2], vec![0, 2], vec![1, 2]]);
        assert_eq!(points(&Support::any(vec![sum, stored(2)]), 3).len(), 7);
    }

    #[test]
    fn what_is_always_or_never_simplifies() {
        assert_eq!(Support::all(vec![Support::Always, stored(0)]), stored(0));
        assert_eq!(Support::all(vec![Support::Never, stored(0)]), Support::Never);
        assert_eq!(Support::any(vec![Support::Never, stored(0)]), stored(0));
        assert_eq!(Support::any(vec![Support::Always, stored(0)]), Support::Always);
    }
}
