//! Of which accesses an element has to be stored for iterations to have an effect.
//!
//! By the algebra of operators, not their names: a product is zero where either factor is, a sum only where both are. An iteration that adds zero, or assigns it where zero was, has none.

use std::collections::BTreeMap;

use super::leaf::Lowering;
use super::storage::Place;
use crate::concrete::Node;
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

/// Accesses, by number, that are about to be visited at what they store, and the supports of workspaces.
#[derive(Default)]
pub(super) struct Given<'a> {
    pub iterated: &'a [usize],
    workspaces: BTreeMap<String, Support>,
}

impl<'a> Given<'a> {
    pub fn iterated(iterated: &'a [usize]) -> Self {
        Self { iterated, workspaces: BTreeMap::new() }
    }
}

impl Lowering<'_> {
    /// Where a node has an effect.
    pub(super) fn effect(&self, node: &Node, given: &mut Given<'_>) -> Support {
        match node {
            Node::Forall(_, body) => self.effect(body, given),
            Node::Assign { operator, value, .. } => match operator {
                None | Some(Reduction::Sum) => self.support(value, given),
                Some(_) => Support::Always,
            },
            Node::Where { workspace, consumer, producer } => {
                let made = self.effect(producer, given);
                given.workspaces.insert(workspace.name().to_owned(), made);
                self.effect(consumer, given)
            }
        }
    }

    /// Where an expression is other than zero.
    pub(super) fn support(&self, expression: &Expression, given: &Given<'_>) -> Support {
        let of = |operand: &Expression| self.support(operand, given);
        match expression {
            Expression::Literal(literal, _) if is_zero(literal) => Support::Never,
            Expression::Literal(..) | Expression::Index(_) => Support::Always,
            Expression::Access(access) => {
                let zero = Reduction::Sum.identity(access.tensor.element());
                match self.visit(access) {
                    _ if zero != Some(access.tensor.fill()) => Support::Always,
                    Some(visit) => match &self.places[visit] {
                        Place::Absent => Support::Never,
                        Place::Level(..) if given.iterated.contains(&visit) => Support::Stored(visit),
                        Place::Level(..) => Support::Always,
                    },
                    None => given.workspaces.get(access.tensor.name()).cloned().unwrap_or(Support::Always),
                }
            }
            Expression::Negate(operand) | Expression::Cast(_, operand, _) => of(operand),
            Expression::Reduce(Reduction::Sum, _, operand) => of(operand),
            Expression::Reduce(..) => Support::Always,
            Expression::Binary(operator, left, right) => {
                Support::by_zeros(operator.properties().zeros, &[of(left), of(right)])
            }
            Expression::Call(function, arguments, _) => {
                let operands: Vec<Support> = arguments.iter().map(of).collect();
                Support::by_zeros(function.properties().zeros, &operands)
            }
        }
    }
}

impl Support {
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

fn is_zero(literal: &Literal) -> bool {
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
