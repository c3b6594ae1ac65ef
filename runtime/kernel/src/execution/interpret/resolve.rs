//! Names of a kernel replaced by numbers, so that the interpreter need not look them up.

use std::collections::HashMap;
use std::sync::Arc;

use crate::element::{ElementType, Scalar};
use crate::loops::{
    BinaryOperator, Buffer, Expression, Intrinsic, Kernel, Parameter, Reduction, Statement, UnaryOperator,
};

/// An expression over slots.
pub(super) enum SlotExpression {
    Constant(Scalar),
    Bool(bool),
    Variable(usize),
    Negate(Box<SlotExpression>),
    Not(Box<SlotExpression>),
    Binary(BinaryOperator, Box<SlotExpression>, Box<SlotExpression>),
    Cast(ElementType, Box<SlotExpression>),
    Select(Box<[SlotExpression; 3]>),
    Load(Element),
    Low(usize, usize),
    High(usize, usize),
    Call(Intrinsic, Vec<SlotExpression>),
}

/// A place in a buffer.
pub(super) struct Element {
    pub(super) buffer: usize,
    pub(super) indices: Vec<SlotExpression>,
}

/// A statement over slots.
pub(super) enum SlotStatement {
    Sequence(Vec<SlotStatement>),
    Set {
        variable: usize,
        value: SlotExpression,
        reduction: Option<Reduction>,
    },
    Store {
        element: Element,
        value: SlotExpression,
        reduction: Option<Reduction>,
        atomic: bool,
    },
    For {
        variable: usize,
        name: Arc<str>,
        low: SlotExpression,
        high: SlotExpression,
        parallel: bool,
        body: Box<SlotStatement>,
    },
    While {
        condition: SlotExpression,
        body: Box<SlotStatement>,
    },
    If {
        condition: SlotExpression,
        then: Box<SlotStatement>,
        otherwise: Option<Box<SlotStatement>>,
    },
    Break,
    Continue,
    Allocate {
        buffer: usize,
        element: ElementType,
        bounds: Vec<(SlotExpression, SlotExpression)>,
        zeroed: bool,
    },
}

/// A kernel over slots. Parameters have the first ones of each kind, in order.
pub(super) struct SlotProgram {
    pub(super) body: SlotStatement,
    pub(super) variables: usize,
    /// The names of the buffers.
    pub(super) buffers: Vec<Arc<str>>,
}

/// Resolves a verified kernel.
pub(super) fn resolve(kernel: &Kernel) -> SlotProgram {
    let mut resolver = Resolver::default();
    for parameter in &kernel.parameters {
        match parameter {
            Parameter::Buffer(buffer) => {
                resolver.new_buffer(buffer);
            }
            Parameter::Scalar(variable) => {
                resolver.new_variable(&variable.name);
            }
        }
    }
    let body = resolver.statement(&kernel.body);
    SlotProgram { body, variables: resolver.variables, buffers: resolver.buffer_names }
}

#[derive(Default)]
struct Resolver {
    /// The slot that a name has now. The verifier has seen to it that each is bound where it is used.
    slots: HashMap<Arc<str>, usize>,
    variables: usize,
    buffer_names: Vec<Arc<str>>,
}

impl Resolver {
    fn new_variable(&mut self, name: &Arc<str>) -> usize {
        self.slots.insert(name.clone(), self.variables);
        self.variables += 1;
        self.variables - 1
    }

    fn new_buffer(&mut self, buffer: &Buffer) -> usize {
        self.slots.insert(buffer.name.clone(), self.buffer_names.len());
        self.buffer_names.push(buffer.name.clone());
        self.buffer_names.len() - 1
    }

    fn slot(&self, name: &Arc<str>) -> usize {
        self.slots.get(name).copied().unwrap_or(usize::MAX)
    }

    fn statement(&mut self, statement: &Statement) -> SlotStatement {
        match statement {
            Statement::Sequence(statements) => {
                SlotStatement::Sequence(statements.iter().map(|inner| self.statement(inner)).collect())
            }
            Statement::Let { variable, value, .. } => {
                let value = self.value(value);
                SlotStatement::Set { variable: self.new_variable(&variable.name), value, reduction: None }
            }
            Statement::Set { variable, value, reduction } => SlotStatement::Set {
                variable: self.slot(&variable.name),
                value: self.value(value),
                reduction: *reduction,
            },
            Statement::Store { buffer, indices, value, reduction, atomic } => SlotStatement::Store {
                element: self.element(buffer, indices),
                value: self.value(value),
                reduction: *reduction,
                atomic: *atomic,
            },
            Statement::For { variable, low, high, kind, body, .. } => {
                let (low, high) = (self.value(low), self.value(high));
                SlotStatement::For {
                    variable: self.new_variable(&variable.name),
                    name: variable.name.clone(),
                    low,
                    high,
                    parallel: kind.is_parallel(),
                    body: self.boxed(body),
                }
            }
            Statement::While { condition, body } => {
                SlotStatement::While { condition: self.value(condition), body: self.boxed(body) }
            }
            Statement::If { condition, then, otherwise } => SlotStatement::If {
                condition: self.value(condition),
                then: self.boxed(then),
                otherwise: otherwise.as_deref().map(|otherwise| self.boxed(otherwise)),
            },
            Statement::Break => SlotStatement::Break,
            Statement::Continue => SlotStatement::Continue,
            Statement::Allocate { buffer, bounds, zeroed, .. } => {
                let bounds = bounds.iter().map(|(low, high)| (self.value(low), self.value(high))).collect();
                SlotStatement::Allocate {
                    buffer: self.new_buffer(buffer),
                    element: buffer.element,
                    bounds,
                    zeroed: *zeroed,
                }
            }
        }
    }

    fn boxed(&mut self, statement: &Statement) -> Box<SlotStatement> {
        Box::new(self.statement(statement))
    }

    fn element(&self, buffer: &Buffer, indices: &[Expression]) -> Element {
        Element { buffer: self.slot(&buffer.name), indices: indices.iter().map(|index| self.value(index)).collect() }
    }

    fn value(&self, expression: &Expression) -> SlotExpression {
        let boxed = |operand: &Expression| Box::new(self.value(operand));
        match expression {
            Expression::Constant(value) => SlotExpression::Constant(*value),
            Expression::Bool(value) => SlotExpression::Bool(*value),
            Expression::Variable(variable) => SlotExpression::Variable(self.slot(&variable.name)),
            Expression::Unary(UnaryOperator::Negate, operand) => SlotExpression::Negate(boxed(operand)),
            Expression::Unary(UnaryOperator::Not, operand) => SlotExpression::Not(boxed(operand)),
            Expression::Binary(operator, left, right) => SlotExpression::Binary(*operator, boxed(left), boxed(right)),
            Expression::Cast(element, operand) => SlotExpression::Cast(*element, boxed(operand)),
            Expression::Select { condition, then, otherwise } => {
                SlotExpression::Select(Box::new([self.value(condition), self.value(then), self.value(otherwise)]))
            }
            Expression::Load { buffer, indices } => SlotExpression::Load(self.element(buffer, indices)),
            Expression::Low(buffer, dimension) => SlotExpression::Low(self.slot(&buffer.name), *dimension),
            Expression::High(buffer, dimension) => SlotExpression::High(self.slot(&buffer.name), *dimension),
            Expression::Call(function, arguments) => {
                SlotExpression::Call(*function, arguments.iter().map(|argument| self.value(argument)).collect())
            }
        }
    }
}
