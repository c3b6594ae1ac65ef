//! Values: variables, views of tensors, and arithmetic on them.

use std::fmt;
use std::ops;
use std::sync::Arc;

use super::{BinaryOperator, Intrinsic, Reduction, UnaryOperator};
use crate::arithmetic;
use crate::element::{Element, ElementType, Scalar};
use crate::operators::Formula;

/// The type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A truth value.
    Bool,
    /// A number.
    Number(ElementType),
}

impl From<ElementType> for Type {
    fn from(element: ElementType) -> Self {
        Self::Number(element)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => formatter.write_str("bool"),
            Self::Number(element) => element.fmt(formatter),
        }
    }
}

/// A scalar with a name: a parameter, a let, or the index of a loop.
///
/// Variables with the same name are the same. A name is bound once on every path through a kernel; see
/// [`FreshNames`](super::FreshNames).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Variable {
    /// An identifier: letters, digits, `_`, not starting with a digit.
    pub name: Arc<str>,
    /// The type of its value.
    pub element: ElementType,
}

impl Variable {
    /// A variable that holds an element of type `element`.
    pub fn new(name: impl Into<Arc<str>>, element: ElementType) -> Self {
        Self { name: name.into(), element }
    }

    /// A variable that holds an index.
    pub fn index(name: impl Into<Arc<str>>) -> Self {
        Self::new(name, ElementType::I64)
    }

    /// Its value.
    pub fn value(&self) -> Expression {
        Expression::Variable(self.clone())
    }
}

/// The access of a kernel to a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// It loads elements.
    Read,
    /// It stores or reduces elements, and may load them.
    Update,
}

/// A view of a tensor, as a kernel sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Buffer {
    /// An identifier.
    pub name: Arc<str>,
    /// The type of its elements.
    pub element: ElementType,
    /// How many indices a load takes; 0 for a scalar.
    pub rank: usize,
    /// The access that the kernel may have.
    pub access: Access,
    /// The dimension whose elements are probably side by side: kernels are compiled for this first, and for other views
    /// when there are some.
    pub contiguous: Option<usize>,
}

impl Buffer {
    /// A view of elements that are probably side by side in the last dimension.
    pub fn new(name: impl Into<Arc<str>>, element: ElementType, rank: usize, access: Access) -> Self {
        Self { name: name.into(), element, rank, access, contiguous: rank.checked_sub(1) }
    }

    /// The same, whose elements are probably side by side in dimension `contiguous`.
    pub fn with_contiguous(mut self, contiguous: Option<usize>) -> Self {
        self.contiguous = contiguous;
        self
    }

    /// The element at the point `indices`.
    pub fn load(&self, indices: impl IntoIterator<Item = Expression>) -> Expression {
        Expression::Load { buffer: self.clone(), indices: indices.into_iter().collect() }
    }

    /// The lowest index in `dimension`.
    pub fn low(&self, dimension: usize) -> Expression {
        Expression::Low(self.clone(), dimension)
    }

    /// The index after the highest in `dimension`.
    pub fn high(&self, dimension: usize) -> Expression {
        Expression::High(self.clone(), dimension)
    }
}

/// A value computed without side effects.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A number known when the kernel is made.
    Constant(Scalar),
    /// A truth value known when the kernel is made.
    Bool(bool),
    /// The value of a variable.
    Variable(Variable),
    /// An operator of one operand.
    Unary(UnaryOperator, Box<Expression>),
    /// An operator of two operands.
    Binary(BinaryOperator, Box<Expression>, Box<Expression>),
    /// A number as another type.
    Cast(ElementType, Box<Expression>),
    /// `then` if `condition` holds, else `otherwise`; the other one is not evaluated.
    Select {
        /// A truth value.
        condition: Box<Expression>,
        /// The value if it holds.
        then: Box<Expression>,
        /// The value if it doesn't.
        otherwise: Box<Expression>,
    },
    /// An element.
    Load {
        /// Of this buffer.
        buffer: Buffer,
        /// At this point, in global coordinates.
        indices: Vec<Expression>,
    },
    /// The lowest index of a buffer in a dimension.
    Low(Buffer, usize),
    /// The index after the highest of a buffer in a dimension.
    High(Buffer, usize),
    /// A function.
    Call(Intrinsic, Vec<Expression>),
}

impl Expression {
    /// A constant of any element type.
    pub fn constant(value: impl Element) -> Self {
        Self::Constant(value.to_scalar())
    }

    /// The index `value`.
    pub fn index(value: i64) -> Self {
        Self::Constant(Scalar::I64(value))
    }

    /// This and `right` under `operator`.
    pub fn binary(self, operator: BinaryOperator, right: impl Into<Self>) -> Self {
        Self::Binary(operator, Box::new(self), Box::new(right.into()))
    }

    /// The lesser of the two.
    pub fn minimum(self, right: impl Into<Self>) -> Self {
        self.binary(BinaryOperator::Minimum, right)
    }

    /// The greater of the two.
    pub fn maximum(self, right: impl Into<Self>) -> Self {
        self.binary(BinaryOperator::Maximum, right)
    }

    /// The quotient of integers, rounded down.
    pub fn floor_divide(self, right: impl Into<Self>) -> Self {
        self.binary(BinaryOperator::FloorDivide, right)
    }

    /// The remainder that goes with [`floor_divide`](Self::floor_divide).
    pub fn floor_remainder(self, right: impl Into<Self>) -> Self {
        self.binary(BinaryOperator::FloorRemainder, right)
    }

    /// The bit with this number of an integer: 1 if it is set, else 0.
    pub fn bit(self, right: impl Into<Self>) -> Self {
        self.binary(BinaryOperator::Bit, right)
    }

    /// The number of the first bit of an integer that is set, from this number on; if there is none, how many bits its
    /// type has.
    pub fn next_bit(self, right: impl Into<Self>) -> Self {
        self.binary(BinaryOperator::NextBit, right)
    }

    /// The quotient of integers, rounded up.
    pub fn ceiling_divide(self, right: impl Into<Self>) -> Self {
        -((-self).floor_divide(right))
    }

    /// Whether this is less than `right`.
    pub fn less(self, right: impl Into<Self>) -> Self {
        self.binary(BinaryOperator::Less, right)
    }

    /// Whether this is less than `right`, or equal.
    pub fn less_equal(self, right: impl Into<Self>) -> Self {
        self.binary(BinaryOperator::LessEqual, right)
    }

    /// Whether the two are equal.
    pub fn equal(self, right: impl Into<Self>) -> Self {
        self.binary(BinaryOperator::Equal, right)
    }

    /// Whether the two differ.
    pub fn not_equal(self, right: impl Into<Self>) -> Self {
        self.binary(BinaryOperator::NotEqual, right)
    }

    /// Whether both hold; `right` is evaluated only if this does.
    pub fn and(self, right: impl Into<Self>) -> Self {
        self.binary(BinaryOperator::And, right)
    }

    /// Whether one of the two holds; `right` is evaluated only if this doesn't.
    pub fn or(self, right: impl Into<Self>) -> Self {
        self.binary(BinaryOperator::Or, right)
    }

    /// `then` where this holds, else `otherwise`.
    pub fn select(self, then: impl Into<Self>, otherwise: impl Into<Self>) -> Self {
        Self::Select { condition: Box::new(self), then: Box::new(then.into()), otherwise: Box::new(otherwise.into()) }
    }

    /// This number as an `element`.
    pub fn cast(self, element: ElementType) -> Self {
        Self::Cast(element, Box::new(self))
    }

    /// `intrinsic` of `arguments`, written as an operator if it is one.
    pub fn call(intrinsic: Intrinsic, arguments: impl IntoIterator<Item = Expression>) -> Self {
        let arguments: Vec<Self> = arguments.into_iter().collect();
        match (intrinsic.operator(), <[Self; 2]>::try_from(arguments)) {
            (Some(operator), Ok([left, right])) => left.binary(operator, right),
            (_, Ok(both)) => Self::Call(intrinsic, both.into()),
            (_, Err(arguments)) => Self::Call(intrinsic, arguments),
        }
    }

    /// Two numbers of type `element` under a reduction.
    pub fn combined(reduction: Reduction, element: ElementType, left: Self, right: Self) -> Self {
        let number = |value| Self::Constant(arithmetic::cast(Scalar::I64(value), element));
        match (reduction, reduction.operator()) {
            (Reduction::Custom(custom), _) => Self::of_formula(custom.formula(), &left, &right, element),
            (_, Some(operator)) if operator.is_logical() => {
                let both = left.not_equal(number(0)).binary(operator, right.not_equal(number(0)));
                both.select(number(1), number(0))
            }
            (_, Some(operator)) => left.binary(operator, right),
            (_, None) => right,
        }
    }

    /// A formula of two values.
    pub(crate) fn of_formula(formula: &Formula, left: &Self, right: &Self, element: ElementType) -> Self {
        let of = |formula: &Formula| Self::of_formula(formula, left, right, element);
        match formula {
            Formula::Left => left.clone(),
            Formula::Right => right.clone(),
            Formula::Number(number) => Self::Constant(arithmetic::cast(*number, element)),
            Formula::Unary(operator, operand) => Self::Unary(*operator, Box::new(of(operand))),
            Formula::Binary(operator, first, second) => of(first).binary(*operator, of(second)),
            Formula::Call(function, arguments) => Self::call(*function, arguments.iter().map(of)),
            Formula::Select(operands) => of(&operands[0]).select(of(&operands[1]), of(&operands[2])),
        }
    }

    /// Calls `visit` with each direct operand.
    pub fn for_each_operand<'a>(&'a self, mut visit: impl FnMut(&'a Expression)) {
        match self {
            Self::Constant(_) | Self::Bool(_) | Self::Variable(_) | Self::Low(..) | Self::High(..) => {}
            Self::Unary(_, operand) | Self::Cast(_, operand) => visit(operand),
            Self::Binary(_, left, right) => {
                visit(left);
                visit(right);
            }
            Self::Select { condition, then, otherwise } => {
                visit(condition);
                visit(then);
                visit(otherwise);
            }
            Self::Load { indices: operands, .. } | Self::Call(_, operands) => operands.iter().for_each(visit),
        }
    }
}

impl From<&Variable> for Expression {
    fn from(variable: &Variable) -> Self {
        variable.value()
    }
}

impl From<i64> for Expression {
    fn from(value: i64) -> Self {
        Self::index(value)
    }
}

impl From<Scalar> for Expression {
    fn from(value: Scalar) -> Self {
        Self::Constant(value)
    }
}

macro_rules! arithmetic {
    ($($trait:ident, $method:ident => $operator:ident;)*) => {$(
        impl<R: Into<Expression>> ops::$trait<R> for Expression {
            type Output = Expression;

            fn $method(self, right: R) -> Expression {
                self.binary(BinaryOperator::$operator, right)
            }
        }
    )*};
}

arithmetic! {
    Add, add => Add;
    Sub, sub => Subtract;
    Mul, mul => Multiply;
    Div, div => Divide;
    Rem, rem => Remainder;
}

impl ops::Neg for Expression {
    type Output = Self;

    fn neg(self) -> Self {
        Self::Unary(UnaryOperator::Negate, Box::new(self))
    }
}

impl ops::Not for Expression {
    type Output = Self;

    fn not(self) -> Self {
        Self::Unary(UnaryOperator::Not, Box::new(self))
    }
}
