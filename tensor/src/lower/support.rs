//! Of which accesses an element has to be stored for iterations to have an effect.
//!
//! By the algebra of operators, not their names: a product is zero where either factor has [no
//! entry](crate::notation::Presence), a sum only where both are zero; the sum of a length and infinity is infinite. A
//! quotient is what it is of fill values: zero divided by zero is not zero. An iteration that combines the identity of
//! the operator into an element, or assigns what the element has at first, has no effect.

use std::collections::BTreeMap;

use super::leaf::Lowering;
use super::storage::{Storage, StoragePlace};
use crate::concrete::StatementNode;
use crate::element::Scalar;
use crate::loops::{BinaryOperator, Expression as Condition, Reduction};
use crate::notation::{
    Access, Backgrounds, Expression, Literal, Presence, Term, Test, annihilator, element_of, has_entries, is_among,
    is_fill as is_same, is_inexact, is_nan, is_padded, is_zero, negate,
};

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

/// Accesses, by number, that are about to be visited at what they store, and of workspaces what they have where nothing
/// is computed, and where they have something else.
#[derive(Default)]
pub(super) struct GivenAccesses<'a> {
    pub iterated: &'a [usize],
    /// Whether it is looked at the elements of workspaces, which are numbered after all accesses.
    pub looks_at_workspaces: bool,
    workspaces: BTreeMap<String, (Scalar, Support)>,
}

impl<'a> GivenAccesses<'a> {
    pub fn iterated(iterated: &'a [usize]) -> Self {
        Self { iterated, ..Self::default() }
    }
}

impl Lowering<'_> {
    /// The value of those elements of a tensor that no iteration changes: the identity of the operator that combines
    /// values in them, if that is their value at first, or the fill value of the tensor.
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

    /// The condition under which a node has an effect.
    pub(super) fn effect(&self, node: &StatementNode, given: &mut GivenAccesses<'_>) -> Support {
        match node {
            StatementNode::Forall(_, body) => self.effect(body, given),
            StatementNode::Assign { target, operator, value } => match self.unchanged(target, *operator) {
                Some(unchanged) => self.support(value, unchanged, given),
                None => Support::Always,
            },
            StatementNode::Where { workspace, consumer, producer } => {
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
    pub(super) fn has_no_effect(&self, node: &StatementNode) -> bool {
        self.places.contains(&StoragePlace::Absent)
            && !(self.is_unset && self.changes_result(node))
            && self.effect(node, &mut GivenAccesses::default()) == Support::Never
    }

    /// The condition under which an expression is other than `value`, which has its type.
    pub(super) fn support(&self, expression: &Expression, value: Scalar, given: &GivenAccesses<'_>) -> Support {
        let zero = |operand: &Expression| Reduction::Sum.identity(element_of(operand));
        let is_at_zero = zero(expression) == Some(value);
        let at_zero =
            |operand: &Expression| zero(operand).map_or(Support::Always, |zero| self.support(operand, zero, given));
        let stored = |visit: usize| match &self.places[visit] {
            StoragePlace::Absent => Support::Never,
            _ if given.iterated.contains(&visit) => Support::Stored(visit),
            StoragePlace::Level(..) | StoragePlace::Maybe(..) | StoragePlace::Element(..) => Support::Always,
        };
        match expression {
            Expression::Test(test, access) => {
                let unless_stored = Scalar::I64(i64::from(*test == Test::IsFill));
                let visit = self.visit(access).filter(|_| value == unless_stored && !is_made(given, access));
                visit.map_or(Support::Always, stored)
            }
            Expression::Access(access) => match self.visit(access) {
                Some(visit) if is_same(access.tensor.fill(), value) && !is_made(given, access) => stored(visit),
                _ => match given.workspaces.get(access.tensor.name()) {
                    Some((unchanged, support)) if is_same(*unchanged, value) => support.clone(),
                    None if given.looks_at_workspaces
                        && self.background(access).is_some_and(|of| is_same(of, value)) =>
                    {
                        Support::Stored(self.number(access))
                    }
                    _ => Support::Always,
                },
            },
            Expression::Negate(operand) => self.support(operand, negate(value), given),
            Expression::Binary(operator, left, right) => {
                match self.by_annihilation(*operator, [left, right], value, given) {
                    Some(support) => support,
                    None if is_at_zero && annihilator(*operator, value).is_none() => {
                        match Support::by_zeros(operator.properties().zeros, &[at_zero(left), at_zero(right)]) {
                            Support::Always => self.by_defaults(expression, value, given),
                            support => support,
                        }
                    }
                    None => self.by_defaults(expression, value, given),
                }
            }
            Expression::Select(operands, _) => {
                let [condition, then, otherwise] = &**operands;
                if let Expression::Literal(Literal::Typed(number), _) = condition {
                    return self.support(if is_zero(*number) { otherwise } else { then }, value, given);
                }
                let chosen = Support::all(vec![at_zero(condition), self.support(then, value, given)]);
                let by_choice = Support::any(vec![chosen, self.support(otherwise, value, given)]);
                Support::all(vec![by_choice, self.by_defaults(expression, value, given)])
            }
            Expression::Call(function, arguments, _) => {
                if let (Some(operator), [left, right]) = (function.operator(), &arguments[..])
                    && let Some(support) = self.by_annihilation(operator, [left, right], value, given)
                {
                    return support;
                }
                let annihilates = function.operator().is_some_and(|operator| annihilator(operator, value).is_some());
                let zeros = if is_at_zero && !annihilates { function.properties().zeros } else { &[] };
                match Support::by_zeros(zeros, &arguments.iter().map(at_zero).collect::<Vec<_>>()) {
                    Support::Always => self.by_defaults(expression, value, given),
                    support => support,
                }
            }
            _ => self.by_defaults(expression, value, given),
        }
    }

    /// The support of an operation of which either operand makes `value`: where both have entries. What is made of
    /// numbers and of dense operands does not annihilate infinities and NaNs.
    fn by_annihilation(
        &self,
        operator: BinaryOperator,
        operands: [&Expression; 2],
        value: Scalar,
        given: &GivenAccesses<'_>,
    ) -> Option<Support> {
        let of = |operand: &Expression| match !is_inexact(value.element_type()) || self.has_entries(operand) {
            true => self.support(operand, value, given),
            false => Support::Always,
        };
        if operator.divides() {
            let is_checked = is_zero(value) && is_among(operands[1], &self.statement.divisors);
            return is_checked.then(|| of(operands[0])).filter(|support| *support != Support::Always);
        }
        annihilator(operator, value)?;
        if operator == BinaryOperator::Add {
            // Infinities of both signs have no sum.
            let is_opposite = |operand: &Expression| {
                let of = self.default_everywhere(operand);
                of.is_some_and(|of| annihilator(operator, of).is_some() && !is_same(of, value))
            };
            if operands.into_iter().any(is_opposite) {
                return None;
            }
        }
        Some(Support::all(operands.map(of).to_vec())).filter(|support| *support != Support::Always)
    }

    /// Whether operands of an expression are in levels, or workspaces that are made of such.
    fn has_entries(&self, expression: &Expression) -> bool {
        let mut accesses = expression.accesses().into_iter();
        accesses.any(|access| self.visit(access).is_some() || self.background(access).is_some())
    }

    /// The value that a workspace has where no operand in levels has an entry.
    pub(super) fn background(&self, access: &Access) -> Option<Scalar> {
        self.backgrounds.get(access.tensor.name()).copied()
    }

    /// The value of an expression where no operand in levels has an entry at all.
    fn default_everywhere(&self, expression: &Expression) -> Option<Scalar> {
        let element = |access: &Access| match self.background(access) {
            Some(value) => Some(Term::absent(value)),
            None => has_entries(&access.tensor).then(|| Term::absent(access.tensor.fill())),
        };
        let is_checked = |divisor: &Expression| is_among(divisor, &self.statement.divisors);
        let of = Backgrounds { element: &element, is_checked: &is_checked }.of(expression);
        of.filter(|term| term.presence == Presence::Absent).map(|term| term.value)
    }

    /// The number of a workspace.
    fn number(&self, access: &Access) -> usize {
        let place = self.backgrounds.keys().position(|name| name == access.tensor.name());
        self.visits.len() + place.unwrap_or(0)
    }

    /// The support of an expression that has `value` if all of its operands are what they are where nothing is stored.
    fn by_defaults(&self, expression: &Expression, value: Scalar, given: &GivenAccesses<'_>) -> Support {
        if !self.default(expression, given).is_some_and(|default| is_same(default, value)) {
            return Support::Always;
        }
        let of = |operand: &Expression| match self.default(operand, given) {
            Some(default) => self.support(operand, default, given),
            None => Support::Always,
        };
        let operands = match expression {
            Expression::Select(operands, _) => match (&**operands, self.default(&operands[0], given)) {
                // The other one is not chosen then.
                ([condition, then, otherwise], Some(number)) => {
                    vec![condition, if is_zero(number) { otherwise } else { then }]
                }
                ([condition, then, otherwise], None) => vec![condition, then, otherwise],
            },
            _ => expression.operands(),
        };
        Support::any(operands.into_iter().map(of).collect())
    }

    /// The value of an expression where nothing is stored; none if it is not known.
    fn default(&self, expression: &Expression, given: &GivenAccesses<'_>) -> Option<Scalar> {
        self.term(expression, given).map(|term| term.value)
    }

    /// The same, and what it is made of.
    pub(super) fn term(&self, expression: &Expression, given: &GivenAccesses<'_>) -> Option<Term> {
        let element = |access: &Access| match (given.workspaces.get(access.tensor.name()), self.visit(access)) {
            (Some((unchanged, _)), _) => Some(Term::absent(*unchanged)),
            (None, Some(visit)) if given.iterated.contains(&visit) || self.places[visit] == StoragePlace::Absent => {
                Some(Term::absent(access.tensor.fill()))
            }
            (None, None) if given.looks_at_workspaces => self.background(access).map(Term::absent),
            _ => None,
        };
        let is_checked = |divisor: &Expression| is_among(divisor, &self.statement.divisors);
        Backgrounds { element: &element, is_checked: &is_checked }.of(expression)
    }

    /// The condition under which an operation is other than the value that one of its operands makes of it alone, and
    /// this value. The condition is found out while a kernel runs. None if it is known whether operands have entries,
    /// or if that does not matter, as integers are annihilated anyway.
    pub(super) fn left_out(
        &self,
        operator: BinaryOperator,
        left: &Expression,
        right: &Expression,
    ) -> Option<(Condition, Scalar)> {
        let element = element_of(left);
        let accesses = [left.accesses(), right.accesses()].concat();
        let mut uncertain = Vec::new();
        for visit in accesses.iter().filter_map(|access| self.visit(access)) {
            if !uncertain.contains(&visit) && self.entry(visit).is_some() {
                uncertain.push(visit);
            }
        }
        let has_workspace =
            || accesses.iter().any(|access| self.visit(access).is_none() && self.background(access).is_some());
        if !is_inexact(element) || uncertain.is_empty() && !has_workspace() {
            return None;
        }
        let given = GivenAccesses { iterated: &uncertain, looks_at_workspaces: true, ..GivenAccesses::default() };
        let of_operands = [left, right].map(|operand| self.default_everywhere(operand));
        let of_type = operator.properties().annihilator.and_then(|own| own.of(element));
        // A zero that is divided stays as it is, with its sign.
        let is_checked = operator.divides() && is_among(right, &self.statement.divisors);
        let divided = of_operands[0].filter(|value| is_checked && is_zero(*value));
        let mut values = of_operands
            .into_iter()
            .flatten()
            .filter_map(|value| annihilator(operator, value))
            .chain(of_type)
            .chain(divided);
        values.find_map(|value| {
            let support = self.by_annihilation(operator, [left, right], value, &given)?;
            let condition = support.condition(&|number| match self.visits.get(number) {
                Some(_) => self.entry(number).unwrap_or(Condition::Bool(true)),
                None => {
                    let workspace = accesses.iter().find(|access| {
                        self.visit(access).is_none()
                            && self.background(access).is_some()
                            && self.number(access) == number
                    });
                    let workspace = workspace.expect("only workspaces are numbered so");
                    let value = self.background(workspace).expect("it is known of those that are numbered");
                    differs(self.value(&Expression::Access((*workspace).clone())), value)
                }
            })?;
            Some((condition, value))
        })
    }

    /// Whether an access has an entry here, if that is found out while a kernel runs.
    fn entry(&self, visit: usize) -> Option<Condition> {
        let tensor = &self.visits[visit].access.tensor;
        let element = |position: &Condition| {
            self.storage.get(tensor.name()).map(|_| self.stored(visit).element(position.clone()))
        };
        let counts_by_value = is_padded(tensor) || self.background(&self.visits[visit].access).is_some();
        let differs = |element: Condition| differs(element, tensor.fill());
        match &self.places[visit] {
            StoragePlace::Absent => None,
            StoragePlace::Level(_, position) => counts_by_value.then(|| element(position)).flatten().map(differs),
            StoragePlace::Maybe(_, position, is_stored) => {
                let is_stored = is_stored.value().equal(1);
                Some(match counts_by_value.then(|| element(position)).flatten() {
                    Some(element) => differs(is_stored.select(element, tensor.fill())),
                    None => is_stored,
                })
            }
            StoragePlace::Element(element, place) => match &**place {
                _ if counts_by_value => Some(differs(element.clone())),
                StoragePlace::Maybe(.., is_stored) => Some(is_stored.value().equal(1)),
                _ => None,
            },
        }
    }
}

/// Whether an element is other than what elements are where nothing is stored.
fn differs(element: Condition, from: Scalar) -> Condition {
    match is_nan(from) {
        true => element.clone().equal(element),
        false => element.not_equal(from),
    }
}

/// Whether an access is of a workspace that is computed where it is asked about.
fn is_made(given: &GivenAccesses<'_>, access: &Access) -> bool {
    given.workspaces.contains_key(access.tensor.name())
}

/// Leaves one of each.
fn unique(parts: &mut Vec<Support>) {
    let mut number = 0;
    while number < parts.len() {
        if parts[..number].contains(&parts[number]) {
            parts.remove(number);
        } else {
            number += 1;
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
        unique(&mut parts);
        match parts.len() {
            _ if parts.contains(&Self::Never) => Self::Never,
            0 => Self::Always,
            1 => parts.remove(0),
            _ => Self::All(parts),
        }
    }

    fn any(mut parts: Vec<Self>) -> Self {
        parts.retain(|part| *part != Self::Never);
        unique(&mut parts);
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

/// The points of the merge lattice: the sets of accesses that may have an element at one coordinate where the value is
/// other than zero, larger ones first.
///
/// A loop for each in turn visits the coordinates at which all of its accesses still have elements; within it, the
/// first point whose accesses are all there is the case. Supports are monotone, so that the first one is the right one.
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
