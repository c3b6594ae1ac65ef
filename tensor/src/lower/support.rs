//! Of which accesses an element has to be stored for iterations to have an effect.
//!
//! By the algebra of operators, not their names: a product is zero where either factor is, a sum only where both are; the sum of a length and infinity is infinite. An iteration that combines
//! the identity of the operator into an element, or assigns what the element has at first, has no effect.

use std::collections::BTreeMap;

use super::leaf::Lowering;
use super::storage::{Place, Storage};
use crate::concrete::Node;
use crate::element::Scalar;
use crate::loops::{BinaryOperator, Expression as Condition, Reduction};
use crate::notation::{Access, Expression, Literal, Test, binary, call, cast, element_of, is_zero, negate};

/// A condition on which accesses have an element stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Support {
    /// It has none, whatever is stored.
    Never,
    /// It may have one, whatever is stored.
    Always,
    /// This access has to have an element, by its number.
    Stored(usize),
    All(Vec<Support>),
    Any(Vec<Support>),
}

/// Accesses, by number, that are about to be visited at what they store, and of workspaces what they have where nothing is computed, and where they have something else.
#[derive(Default)]
pub(super) struct Given<'a> {
    pub iterated: &'a [usize],
    workspaces: BTreeMap<String, (Scalar, Support)>,
}

impl<'a> Given<'a> {
    pub fn iterated(iterated: &'a [usize]) -> Self {
        Self { iterated, workspaces: BTreeMap::new() }
    }
}

impl Lowering<'_> {
    /// What elements of a tensor are that no iteration changes: the identity of the operator that combines values in them, if that is what they are at first, or what the tensor is filled with.
    fn unchanged(&self, target: &Access, operator: Option<Reduction>) -> Option<Scalar> {
        let tensor = &target.tensor;
        let Some(operator) = operator else { return Some(tensor.fill()) };
        let identity = operator.identity(tensor.element());
        // Elements that are not appended have the fill value.
        let is_appended = matches!(self.storage.get(tensor.name()), Some(Storage::Appended(_) | Storage::Beside(..)));
        identity.filter(|identity| !is_appended || *identity == tensor.fill())
    }

    /// Whether elements that no value was combined into by `operator` need not be appended.
    pub(super) fn leaves_out(&self, target: &Access, operator: Reduction) -> bool {
        self.unchanged(target, Some(operator)).is_some()
    }

    /// Where a node has an effect.
    pub(super) fn effect(&self, node: &Node, given: &mut Given<'_>) -> Support {
        match node {
            Node::Forall(_, body) => self.effect(body, given),
            Node::Assign { target, operator, value } => match self.unchanged(target, *operator) {
                Some(unchanged) => self.support(value, unchanged, given),
                None => Support::Always,
            },
            Node::Where { workspace, consumer, producer } => {
                let made = self.effect(producer, given);
                let sites = producer.sites();
                let site = sites.iter().find(|site| site.target.tensor == *workspace);
                let unchanged = site.and_then(|site| self.unchanged(site.target, site.operator));
                if let Some(unchanged) = unchanged {
                    given.workspaces.insert(workspace.name().to_owned(), (unchanged, made));
                }
                self.effect(consumer, given)
            }
        }
    }

    /// Whether a node changes nothing, as accesses have nothing stored here, and elements have their first values.
    pub(super) fn has_no_effect(&self, node: &Node) -> bool {
        self.places.contains(&Place::Absent)
            && !(self.is_unset && self.changes_result(node))
            && self.effect(node, &mut Given::default()) == Support::Never
    }

    /// Where an expression is other than `value`, which has its type.
    pub(super) fn support(&self, expression: &Expression, value: Scalar, given: &Given<'_>) -> Support {
        let zero = |operand: &Expression| Reduction::Sum.identity(element_of(operand));
        let is_at_zero = zero(expression) == Some(value);
        let at_zero =
            |operand: &Expression| zero(operand).map_or(Support::Always, |zero| self.support(operand, zero, given));
        let stored = |visit: usize| match &self.places[visit] {
            Place::Absent => Support::Never,
            Place::Level(..) | Place::Maybe(..) if given.iterated.contains(&visit) => Support::Stored(visit),
            Place::Level(..) | Place::Maybe(..) | Place::Element(..) => Support::Always,
        };
        match expression {
            Expression::Test(test, access) => {
                let unless_stored = Scalar::I64(i64::from(*test == Test::IsFill));
                let visit = self.visit(access).filter(|_| value == unless_stored && !is_made(given, access));
                visit.map_or(Support::Always, stored)
            }
            Expression::Access(access) => match self.visit(access) {
                Some(visit) if access.tensor.fill() == value && !is_made(given, access) => stored(visit),
                _ => match given.workspaces.get(access.tensor.name()) {
                    Some((unchanged, support)) if *unchanged == value => support.clone(),
                    _ => Support::Always,
                },
            },
            Expression::Negate(operand) => self.support(operand, negate(value), given),
            Expression::Binary(operator, left, right) => {
                let properties = operator.properties();
                let annihilator = properties.annihilator.and_then(|special| special.of(value.element_type()));
                if annihilator == Some(value) || *operator == BinaryOperator::Add && is_infinite(value) {
                    return Support::all(vec![self.support(left, value, given), self.support(right, value, given)]);
                }
                match is_at_zero {
                    true => Support::by_zeros(properties.zeros, &[at_zero(left), at_zero(right)]),
                    false => self.by_defaults(expression, value, given),
                }
            }
            Expression::Select(operands, _) => {
                let [condition, then, otherwise] = &**operands;
                let chosen = Support::all(vec![at_zero(condition), self.support(then, value, given)]);
                let by_choice = Support::any(vec![chosen, self.support(otherwise, value, given)]);
                Support::all(vec![by_choice, self.by_defaults(expression, value, given)])
            }
            Expression::Call(function, arguments, _) if is_at_zero && !function.properties().zeros.is_empty() => {
                Support::by_zeros(function.properties().zeros, &arguments.iter().map(at_zero).collect::<Vec<_>>())
            }
            _ => self.by_defaults(expression, value, given),
        }
    }

    /// The support of an expression that has `value` if all of its operands are what they are where nothing is stored.
    fn by_defaults(&self, expression: &Expression, value: Scalar, given: &Given<'_>) -> Support {
        if self.default(expression, given) != Some(value) {
            return Support::Always;
        }
        let of = |operand: &Expression| match self.default(operand, given) {
            Some(default) => self.support(operand, default, given),
            None => Support::Always,
        };
        Support::any(expression.operands().into_iter().map(of).collect())
    }

    /// What an expression is where nothing is stored; none if that is not known.
    fn default(&self, expression: &Expression, given: &Given<'_>) -> Option<Scalar> {
        let of = |operand: &Expression| self.default(operand, given);
        match expression {
            Expression::Literal(Literal::Typed(scalar), _) => Some(*scalar),
            Expression::Literal(Literal::Integer(value), _) => Some(Scalar::I64(*value)),
            Expression::Literal(Literal::Real(value), _) => Some(Scalar::F64(*value)),
            Expression::Test(test, access) => match self.visit(access) {
                Some(visit) if given.iterated.contains(&visit) || self.places[visit] == Place::Absent => {
                    Some(Scalar::I64(i64::from(*test == Test::IsFill)))
                }
                _ => None,
            },
            Expression::Access(access) => match (given.workspaces.get(access.tensor.name()), self.visit(access)) {
                (Some((unchanged, _)), _) => Some(*unchanged),
                (None, Some(visit)) if given.iterated.contains(&visit) || self.places[visit] == Place::Absent => {
                    Some(access.tensor.fill())
                }
                _ => None,
            },
            Expression::Negate(operand) => of(operand).map(negate),
            Expression::Cast(element, operand, _) => of(operand).map(|operand| cast(operand, *element)),
            Expression::Binary(operator, left, right) => binary(*operator, of(left)?, of(right)?).ok(),
            Expression::Call(function, arguments, _) => {
                let arguments = arguments.iter().map(of).collect::<Option<Vec<_>>>()?;
                call(*function, &arguments).ok()
            }
            Expression::Select(operands, _) => {
                let [condition, then, otherwise] = &**operands;
                of(if is_zero(of(condition)?) { otherwise } else { then })
            }
            Expression::Index(_) | Expression::Reduce(..) => None,
        }
    }
}

/// Whether an access is of a workspace that is computed where it is asked about.
fn is_made(given: &Given<'_>, access: &Access) -> bool {
    given.workspaces.contains_key(access.tensor.name())
}

fn is_infinite(value: Scalar) -> bool {
    matches!(value, Scalar::F32(value) if value.is_infinite())
        || matches!(value, Scalar::F64(value) if value.is_infinite())
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

    /// Whether it holds where those accesses have an element for which `is_stored` says so; nothing if it always does.
    pub(super) fn condition(&self, is_stored: &dyn Fn(usize) -> Condition) -> Option<Condition> {
        let all = |parts: &[Self], combine: fn(Condition, Condition) -> Condition| {
            parts.iter().filter_map(|part| part.condition(is_stored)).reduce(combine)
        };
        match self {
            Self::Always => None,
            Self::Never => Some(Condition::Bool(false)),
            Self::Stored(access) => Some(is_stored(*access)),
            Self::All(parts) => all(parts, Condition::and),
            Self::Any(parts) => all(parts, Condition::or),
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
