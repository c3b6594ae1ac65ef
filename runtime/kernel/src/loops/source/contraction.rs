//! Whether a compiler that contracts `a * b + c` into one rounding does so in sums alone.
//!
//! There it changes no more than the order of terms may. Elsewhere it would give results that other machines, and the
//! interpreter, do not: `a * b - c * d` need not be 0 where both products are the same.

use std::collections::HashSet;
use std::sync::Arc;

use super::expression::type_of;
use crate::loops::{BinaryOperator, Checked, Expression, Intrinsic, Reduction, Statement, Type, UnaryOperator};

/// Whether products are added to nothing but sums: to what a reduction sums up.
pub fn contracts_in_sums_alone(kernel: &Checked) -> bool {
    let body = &kernel.kernel().body;
    let mut products = Products::default();
    // What is a product may be known only after what it is made from.
    while products.collect(body) {}
    !products.is_added_elsewhere(body)
}

/// The names of variables and buffers that may hold products.
#[derive(Default)]
struct Products(HashSet<Arc<str>>);

impl Products {
    /// Looks for more; gives whether there are.
    fn collect(&mut self, statement: &Statement) -> bool {
        let found = match statement {
            Statement::Let { variable, value, .. } => self.is_product(value).then_some(&variable.name),
            Statement::Set { variable, value, reduction } => self.result(*reduction, value).then_some(&variable.name),
            Statement::Store { buffer, value, reduction, .. } => self.result(*reduction, value).then_some(&buffer.name),
            _ => None,
        };
        let mut changed = found.is_some_and(|name| self.0.insert(name.clone()));
        statement.for_each_child(&mut |inner| changed |= self.collect(inner));
        changed
    }

    /// Whether what is set, or combined, may be a product then.
    fn result(&self, reduction: Option<Reduction>, value: &Expression) -> bool {
        match reduction {
            None => self.is_product(value),
            Some(reduction) => reduction == Reduction::Product,
        }
    }

    fn is_product(&self, value: &Expression) -> bool {
        match value {
            Expression::Binary(BinaryOperator::Multiply, ..)
            | Expression::Call(Intrinsic::Square | Intrinsic::Cube, _) => is_fraction(value),
            Expression::Unary(UnaryOperator::Negate, operand) | Expression::Cast(_, operand) => {
                self.is_product(operand)
            }
            Expression::Select { then, otherwise, .. } => self.is_product(then) || self.is_product(otherwise),
            Expression::Variable(variable) => self.0.contains(&variable.name),
            Expression::Load { buffer, .. } => self.0.contains(&buffer.name),
            _ => false,
        }
    }

    fn is_added_elsewhere(&self, statement: &Statement) -> bool {
        let mut found = match statement {
            Statement::Set { variable, value, reduction: Some(Reduction::Sum) } => {
                self.0.contains(&variable.name) || self.is_added_in_term(value)
            }
            Statement::Store { buffer, indices, value, reduction: Some(Reduction::Sum), .. } => {
                let in_index = indices.iter().any(|index| self.is_added(index));
                self.0.contains(&buffer.name) || in_index || self.is_added_in_term(value)
            }
            _ => {
                let mut found = false;
                statement.for_each_expression(&mut |value| found |= self.is_added(value));
                found
            }
        };
        statement.for_each_child(&mut |inner| found |= self.is_added_elsewhere(inner));
        found
    }

    /// The factors of a term of a sum may be complex: the sums in a product of them are part of the sum.
    fn is_added_in_term(&self, value: &Expression) -> bool {
        match value {
            Expression::Binary(BinaryOperator::Multiply, left, right) => self.is_added(left) || self.is_added(right),
            Expression::Call(Intrinsic::Square, operand) => operand.iter().any(|operand| self.is_added(operand)),
            Expression::Unary(UnaryOperator::Negate, operand) => self.is_added_in_term(operand),
            _ => self.is_added(value),
        }
    }

    fn is_added(&self, value: &Expression) -> bool {
        let own = match value {
            Expression::Binary(BinaryOperator::Add | BinaryOperator::Subtract, left, right) => {
                is_fraction(value) && (self.is_product(left) || self.is_product(right))
            }
            Expression::Binary(BinaryOperator::Multiply | BinaryOperator::Divide, ..)
            | Expression::Call(Intrinsic::Square | Intrinsic::Cube, _) => is_complex(value),
            _ => false,
        };
        let mut found = own;
        value.for_each_operand(|operand| found |= self.is_added(operand));
        found
    }
}

fn is_fraction(value: &Expression) -> bool {
    matches!(type_of(value), Type::Number(element) if !element.is_integer())
}

fn is_complex(value: &Expression) -> bool {
    matches!(type_of(value), Type::Number(element) if element.is_complex())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::ElementType::{self, C64, F64, I64};
    use crate::loops::{Access, Buffer, Kernel, Parameter, Variable, check};

    fn contracts(element: ElementType, body: impl FnOnce(&Buffer, [Expression; 3]) -> Statement) -> bool {
        let (x, y) = (Buffer::new("x", element, 1, Access::Read), Buffer::new("y", element, 1, Access::Update));
        let body = body(&y, [0, 1, 2].map(|index| x.load([index.into()])));
        let parameters = vec![Parameter::Buffer(x), Parameter::Buffer(y)];
        contracts_in_sums_alone(&check(&Kernel { name: "k".into(), parameters, body }).expect("well formed"))
    }

    #[test]
    fn products_in_sums_may_be_contracted() {
        let sum = |y: &Buffer, value: Expression| Statement::store(y, [0.into()], value).reduce(Reduction::Sum);
        for element in [F64, C64] {
            assert!(contracts(element, |y, [a, b, _]| sum(y, a * b)));
            assert!(contracts(element, |y, [a, b, _]| sum(y, -(a * b))));
        }
        assert!(contracts(F64, |y, [a, b, c]| sum(y, a * b * c)));
        assert!(contracts(F64, |y, [a, b, c]| Statement::store(y, [0.into()], a / b + c)));
        assert!(contracts(I64, |y, [a, b, c]| Statement::store(y, [0.into()], a * b + c)));
    }

    #[test]
    fn products_that_are_added_elsewhere_may_not() {
        let store = |y: &Buffer, value: Expression| Statement::store(y, [0.into()], value);
        assert!(!contracts(F64, |y, [a, b, c]| store(y, a * b + c)));
        assert!(!contracts(F64, |y, [a, b, c]| store(y, c - -(a * b))));
        assert!(!contracts(F64, |y, [a, b, c]| store(y, a * b + c).reduce(Reduction::Sum)));
        assert!(!contracts(C64, |y, [a, b, _]| store(y, a * b)));
        assert!(!contracts(C64, |y, [a, b, _]| store(y, a / b).reduce(Reduction::Sum)));
        let product = Variable::new("t", F64);
        assert!(!contracts(F64, |y, [a, b, c]| {
            let sum = store(y, product.value() + c);
            Statement::Sequence(vec![Statement::bind(&product, a * b), sum])
        }));
        assert!(!contracts(F64, |y, [a, b, c]| {
            Statement::Sequence(vec![store(y, a * b), store(y, c).reduce(Reduction::Sum)])
        }));
    }
}
