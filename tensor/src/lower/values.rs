//! Expressions of index notation to those of the loop IR.

use super::leaf::Lowering;
use super::storage::{Scalar as OneElement, Storage, StoragePlace};
use super::support::{GivenAccesses, Support};
use crate::element::Scalar;
use crate::loops::{Expression, Reduction};
use crate::notation::{self, Access, IndexVariable, Literal, Presence, Term, Test, element_of};

impl Lowering<'_> {
    /// The value of an index variable.
    fn index(&self, variable: &IndexVariable) -> Expression {
        self.recovered(variable).expect("the variables of an assignment are recovered from the loops around it")
    }

    /// The coordinates of an access.
    pub fn indices(&self, access: &Access) -> Vec<Expression> {
        access.variables.iter().map(|variable| self.index(variable)).collect()
    }

    /// The value of `expression`.
    pub fn value(&self, expression: &notation::Expression) -> Expression {
        use notation::Expression as From;
        if !self.visits.is_empty() {
            let given = GivenAccesses::default();
            if let Some(Term { value, presence: Presence::Absent }) = self.term(expression, &given) {
                return Expression::Constant(value);
            }
            if let Some(zero) = Reduction::Sum.identity(element_of(expression))
                && self.support(expression, zero, &given) == Support::Never
            {
                return Expression::Constant(zero);
            }
        }
        match expression {
            From::Literal(Literal::Typed(scalar), _) => Expression::Constant(*scalar),
            From::Literal(Literal::Integer(value), _) => Expression::index(*value),
            From::Literal(Literal::Real(value), _) => Expression::Constant(Scalar::F64(*value)),
            From::Index(variable) => self.index(variable),
            From::Access(access) => {
                if let Some(visit) = self.visit(access) {
                    return match &self.places[visit] {
                        StoragePlace::Absent => Expression::Constant(access.tensor.fill()),
                        StoragePlace::Element(element, _) => element.clone(),
                        StoragePlace::Maybe(_, position, is_stored) => {
                            let element = self.storage[access.tensor.name()].element(position.clone());
                            is_stored.value().equal(1).select(element, access.tensor.fill())
                        }
                        StoragePlace::Level(_, position) => {
                            self.storage[access.tensor.name()].element(position.clone())
                        }
                    };
                }
                let indices = self.indices(access);
                let within = access.variables.iter().zip(&indices);
                let within = within.filter_map(|(variable, at)| self.is_in_dimension(variable, at));
                let within = within.reduce(Expression::and);
                match self.storage.get(access.tensor.name()) {
                    Some(Storage::Buffer(buffer)) => match within {
                        Some(within) => within.select(buffer.load(indices), access.tensor.fill()),
                        None => buffer.load(indices),
                    },
                    Some(Storage::Scalar(OneElement { value, .. })) => value.value(),
                    _ => unreachable!("all tensors and workspaces of a statement have storage"),
                }
            }
            From::Negate(operand) => -self.value(operand),
            From::Test(test, access) => match self.test(*test, access) {
                Expression::Bool(truth) => Expression::index(truth.into()),
                truth => truth.select(1, 0),
            },
            From::Binary(operator, left, _) if operator.is_comparison() || operator.is_logical() => {
                let number = |number: i64| Expression::index(number).cast(element_of(left));
                self.condition(expression).select(number(1), number(0))
            }
            From::Binary(operator, left, right) => {
                let value = self.value(left).binary(*operator, self.value(right));
                match self.left_out(*operator, left, right) {
                    Some((condition, otherwise)) => condition.select(value, otherwise),
                    None => value,
                }
            }
            From::Select(operands, _) => {
                let [condition, then, otherwise] = &**operands;
                match self.condition(condition) {
                    Expression::Bool(true) => self.value(then),
                    Expression::Bool(false) => self.value(otherwise),
                    condition => condition.select(self.value(then), self.value(otherwise)),
                }
            }
            From::Cast(element, operand, _) => self.value(operand).cast(*element),
            From::Call(function, arguments, _) => {
                let value = Expression::call(*function, arguments.iter().map(|argument| self.value(argument)));
                match (function.operator(), &arguments[..]) {
                    (Some(operator), [left, right]) => match self.left_out(operator, left, right) {
                        Some((condition, otherwise)) => condition.select(value, otherwise),
                        None => value,
                    },
                    _ => value,
                }
            }
            // Concretising leaves none; without loops of its own it has the value of its operand.
            From::Reduce(_, _, operand) => self.value(operand),
        }
    }

    /// A fact about an element.
    fn test(&self, test: Test, access: &Access) -> Expression {
        let keeps_fill = access.tensor.format().levels().last().is_some_and(|level| !level.kind().capabilities().full);
        match (test, self.visit(access).map(|visit| &self.places[visit])) {
            (_, Some(StoragePlace::Absent)) => Expression::Bool(test == Test::IsFill),
            (Test::Stored, Some(StoragePlace::Maybe(.., is_stored))) if keeps_fill => is_stored.value().equal(1),
            // A loop that may have found nothing leaves no element where it is asked for: see `iterate`.
            (Test::Stored, Some(StoragePlace::Level(..) | StoragePlace::Element(..))) if keeps_fill => {
                Expression::Bool(true)
            }
            (Test::Stored, _) => !self.test(Test::IsFill, access),
            (Test::IsFill, _) => {
                let (element, fill) = (self.value(&notation::Expression::Access(access.clone())), access.tensor.fill());
                match notation::is_nan(fill) {
                    true => element.clone().not_equal(element),
                    false => element.equal(fill),
                }
            }
        }
    }

    /// Whether a number is other than zero.
    fn condition(&self, expression: &notation::Expression) -> Expression {
        match expression {
            notation::Expression::Binary(operator, left, right) if operator.is_comparison() => {
                self.value(left).binary(*operator, self.value(right))
            }
            notation::Expression::Binary(operator, left, right) if operator.is_logical() => {
                self.condition(left).binary(*operator, self.condition(right))
            }
            notation::Expression::Test(test, access) => self.test(*test, access),
            notation::Expression::Cast(element, operand, _)
                if !element.is_complex() && matches!(**operand, notation::Expression::Test(..)) =>
            {
                self.condition(operand)
            }
            other => self.value(other).not_equal(Expression::index(0).cast(element_of(other))),
        }
    }
}
