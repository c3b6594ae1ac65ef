//! Expressions of index notation to those of the loop IR.

use super::leaf::Lowering;
use super::storage::{Place, Scalar as OneElement, Storage};
use super::support::{Given, Support};
use crate::element::Scalar;
use crate::loops::{Expression, Reduction};
use crate::notation::{self, Access, IndexVariable, Literal, element_of};

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
        if !self.visits.is_empty()
            && self.support(expression, &Given::default()) == Support::Never
            && let Some(zero) = Reduction::Sum.identity(element_of(expression))
        {
            return Expression::Constant(zero);
        }
        match expression {
            From::Literal(Literal::Typed(scalar), _) => Expression::Constant(*scalar),
            From::Literal(Literal::Integer(value), _) => Expression::index(*value),
            From::Literal(Literal::Real(value), _) => Expression::Constant(Scalar::F64(*value)),
            From::Index(variable) => self.index(variable),
            From::Access(access) => {
                if let Some(visit) = self.visit(access) {
                    return match &self.places[visit] {
                        Place::Absent => Expression::Constant(access.tensor.fill()),
                        Place::Level(_, position) => self.storage[access.tensor.name()].element(position.clone()),
                    };
                }
                let indices = self.indices(access);
                match self.storage.get(access.tensor.name()) {
                    Some(Storage::Buffer(buffer)) => buffer.load(indices),
                    Some(Storage::Scalar(OneElement { value, .. })) => value.value(),
                    _ => unreachable!("all tensors and workspaces of a statement have storage"),
                }
            }
            From::Negate(operand) => -self.value(operand),
            From::Binary(operator, left, right) => self.value(left).binary(*operator, self.value(right)),
            From::Cast(element, operand, _) => self.value(operand).cast(*element),
            From::Call(function, arguments, _) => {
                Expression::call(*function, arguments.iter().map(|argument| self.value(argument)))
            }
            // Concretising leaves none; without loops of its own it has the value of its operand.
            From::Reduce(_, _, operand) => self.value(operand),
        }
    }
}
