//! Expressions of index notation to those of the loop IR.

use super::leaf::{Lowering, Storage};
use crate::element::Scalar;
use crate::loops::{self, Expression, Statement as Step, Variable};
use crate::notation::{self, Access, BinaryOperator, IndexVariable, Intrinsic, Literal, element_of};

impl Lowering<'_> {
    /// The value of an index variable.
    fn index(&self, variable: &IndexVariable) -> Expression {
        self.recovered(variable).expect("the variables of an assignment are recovered from the loops around it")
    }

    /// The coordinates of an access.
    pub fn indices(&self, access: &Access) -> Vec<Expression> {
        access.variables.iter().map(|variable| self.index(variable)).collect()
    }

    /// The value of `expression`; what it needs is computed `before`.
    pub fn value(&mut self, expression: &notation::Expression, before: &mut Vec<Step>) -> Expression {
        use notation::Expression as From;
        match expression {
            From::Literal(Literal::Typed(scalar), _) => Expression::Constant(*scalar),
            From::Literal(Literal::Integer(value), _) => Expression::index(*value),
            From::Literal(Literal::Real(value), _) => Expression::Constant(Scalar::F64(*value)),
            From::Index(variable) => self.index(variable),
            From::Access(access) => {
                let indices = self.indices(access);
                match self.storage.get(access.tensor.name()) {
                    Some(Storage::Buffer(buffer)) => buffer.load(indices),
                    Some(Storage::Scalar(variable)) => variable.value(),
                    None => unreachable!("all tensors and workspaces of a statement have storage"),
                }
            }
            From::Negate(operand) => -self.value(operand, before),
            From::Binary(operator, left, right) => {
                let operator = match operator {
                    BinaryOperator::Add => loops::BinaryOperator::Add,
                    BinaryOperator::Subtract => loops::BinaryOperator::Subtract,
                    BinaryOperator::Multiply => loops::BinaryOperator::Multiply,
                    BinaryOperator::Divide => loops::BinaryOperator::Divide,
                };
                let left = self.value(left, before);
                left.binary(operator, self.value(right, before))
            }
            From::Cast(element, operand, _) => self.value(operand, before).cast(*element),
            From::Call(intrinsic, arguments, _) => {
                let element = element_of(expression);
                let arguments = arguments.iter().map(|argument| self.value(argument, before)).collect();
                self.call(*intrinsic, element, arguments, before)
            }
            // Concretising leaves none; without loops of its own it has the value of its operand.
            From::Reduce(_, _, operand) => self.value(operand, before),
        }
    }

    fn call(
        &mut self,
        intrinsic: Intrinsic,
        element: crate::element::ElementType,
        arguments: Vec<Expression>,
        before: &mut Vec<Step>,
    ) -> Expression {
        let mut rest = arguments.into_iter();
        let Some(first) = rest.next() else { unreachable!("checked calls have arguments") };
        if let Intrinsic::Square | Intrinsic::Cube = intrinsic {
            // Used more than once, but computed once.
            let base = Variable::new(self.names.fresh("base"), element);
            before.push(Step::bind(&base, first));
            let square = base.value() * base.value();
            return if intrinsic == Intrinsic::Square { square } else { square * base.value() };
        }
        if let Some(operator) = binary(intrinsic)
            && let Some(second) = rest.next()
        {
            return first.binary(operator, second);
        }
        let named = loops::Intrinsic::ALL.iter().copied().find(|function| function.name() == intrinsic.name());
        let function = named.expect("the loop IR has all functions of one name that notation has");
        Expression::call(function, std::iter::once(first).chain(rest))
    }
}

/// The functions that are operators of the loop IR.
fn binary(intrinsic: Intrinsic) -> Option<loops::BinaryOperator> {
    match intrinsic {
        Intrinsic::Min => Some(loops::BinaryOperator::Minimum),
        Intrinsic::Max => Some(loops::BinaryOperator::Maximum),
        Intrinsic::Mod => Some(loops::BinaryOperator::Remainder),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loop_ir_has_all_functions() {
        for intrinsic in Intrinsic::ALL {
            let named = loops::Intrinsic::ALL.iter().any(|function| function.name() == intrinsic.name());
            let composed = matches!(intrinsic, Intrinsic::Square | Intrinsic::Cube);
            assert!(named || composed || binary(*intrinsic).is_some(), "{intrinsic}");
        }
    }
}
