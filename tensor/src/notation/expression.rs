//! Expressions and accesses.

use super::variable::{IndexVariable, TensorVariable, TextPlace};
use crate::element::{ElementType, Scalar};
use crate::loops::{BinaryOperator, Intrinsic, Reduction};

/// An element of a tensor, chosen by index variables: `B(i,k)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// The tensor.
    pub tensor: TensorVariable,
    /// One variable a dimension, or a part or shift of one.
    pub variables: Vec<IndexVariable>,
    /// The place at which the access is written.
    pub place: TextPlace,
}

/// A number in an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Literal {
    /// A whole number, which takes the type of what surrounds it.
    Integer(i64),
    /// A number with a fraction, which takes the type of what surrounds it.
    Real(f64),
    /// A number with a type. Checked assignments have no others.
    Typed(Scalar),
}

/// A test of an element, on something other than its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Test {
    /// Whether the tensor has an entry for it, which may be a zero that was given. Formats that keep all elements,
    /// dense ones and those of blocks and diagonals, have entries for those that differ from what the tensor is filled
    /// with.
    Stored,
    /// Whether it is what the tensor is filled with, stored or not.
    IsFill,
}

impl Test {
    /// The name in texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::IsFill => "isfill",
        }
    }

    /// The test that has this name in texts.
    pub(crate) fn named(name: &str) -> Option<Self> {
        [Self::Stored, Self::IsFill].into_iter().find(|test| test.name() == name)
    }
}

/// The right side of an assignment.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A number.
    Literal(Literal, TextPlace),
    /// The value of an index variable.
    Index(IndexVariable),
    /// An element of a tensor.
    Access(Access),
    /// A fact about an element of a tensor: `isfill(B(i,k))` is 1 or 0.
    Test(Test, Access),
    /// `-x`
    Negate(Box<Expression>),
    /// `x + y` and the like. A comparison that holds is 1, and else 0, in the type of what is compared; so are
    /// `x and y` and `x or y`, of numbers that are other than zero or not.
    Binary(BinaryOperator, Box<Expression>, Box<Expression>),
    /// A function.
    Call(Intrinsic, Vec<Expression>, TextPlace),
    /// `select(c, x, y)`: `x` where `c` is other than zero, else `y`.
    Select(Box<[Expression; 3]>, TextPlace),
    /// A value in another type: `f64(x)`.
    Cast(ElementType, Box<Expression>, TextPlace),
    /// All values of an expression over one variable, combined: `reduce(+, k, x)`.
    Reduce(Reduction, IndexVariable, Box<Expression>),
}

impl Expression {
    /// The place at which the expression is written.
    pub fn place(&self) -> TextPlace {
        match self {
            Self::Literal(_, place) | Self::Call(_, _, place) | Self::Cast(_, _, place) => *place,
            Self::Index(variable) => variable.place,
            Self::Select(_, place) => *place,
            Self::Access(access) | Self::Test(_, access) => access.place,
            Self::Negate(operand) | Self::Reduce(_, _, operand) => operand.place(),
            Self::Binary(_, left, right) => left.place().join(right.place()),
        }
    }

    /// The expressions that this one is made of.
    pub fn operands(&self) -> Vec<&Expression> {
        match self {
            Self::Literal(..) | Self::Index(_) | Self::Access(_) | Self::Test(..) => Vec::new(),
            Self::Negate(operand) | Self::Cast(_, operand, _) | Self::Reduce(_, _, operand) => vec![operand],
            Self::Binary(_, left, right) => vec![left, right],
            Self::Call(_, arguments, _) => arguments.iter().collect(),
            Self::Select(operands, _) => operands.iter().collect(),
        }
    }

    /// The same expression with `change` done to each of its operands.
    pub(crate) fn try_map<E>(&self, change: &mut dyn FnMut(&Expression) -> Result<Expression, E>) -> Result<Self, E> {
        Ok(match self {
            Self::Literal(..) | Self::Index(_) | Self::Access(_) | Self::Test(..) => self.clone(),
            Self::Negate(operand) => Self::Negate(Box::new(change(operand)?)),
            Self::Cast(element, operand, place) => Self::Cast(*element, Box::new(change(operand)?), *place),
            Self::Reduce(reduction, variable, operand) => {
                Self::Reduce(*reduction, variable.clone(), Box::new(change(operand)?))
            }
            Self::Binary(operator, left, right) => {
                Self::Binary(*operator, Box::new(change(left)?), Box::new(change(right)?))
            }
            Self::Select(operands, place) => {
                let [condition, then, otherwise] = &**operands;
                Self::Select(Box::new([change(condition)?, change(then)?, change(otherwise)?]), *place)
            }
            Self::Call(intrinsic, arguments, place) => {
                Self::Call(*intrinsic, arguments.iter().map(change).collect::<Result<_, E>>()?, *place)
            }
        })
    }

    /// The same expression with `change` done to each of its operands.
    pub(crate) fn map(&self, change: &mut dyn FnMut(&Expression) -> Expression) -> Self {
        match self.try_map(&mut |operand| Ok::<_, std::convert::Infallible>(change(operand))) {
            Ok(expression) => expression,
            Err(never) => match never {},
        }
    }

    /// The accesses in the expression, from left to right.
    pub fn accesses(&self) -> Vec<&Access> {
        match self {
            Self::Access(access) | Self::Test(_, access) => vec![access],
            _ => self.operands().into_iter().flat_map(Expression::accesses).collect(),
        }
    }

    /// The tests of elements in the expression, from left to right.
    pub fn tests(&self) -> Vec<(Test, &Access)> {
        match self {
            Self::Test(test, access) => vec![(*test, access)],
            _ => self.operands().into_iter().flat_map(Expression::tests).collect(),
        }
    }

    /// The index variables that the expression uses and does not reduce over, in the order in which they appear.
    pub fn variables(&self) -> Vec<IndexVariable> {
        let mut found = Vec::new();
        self.find_variables(&mut found);
        found
    }

    fn find_variables(&self, found: &mut Vec<IndexVariable>) {
        let mut add = |variable: &IndexVariable| {
            if !found.contains(variable) {
                found.push(variable.clone());
            }
        };
        match self {
            Self::Index(variable) => add(variable),
            Self::Access(access) | Self::Test(_, access) => access.variables.iter().for_each(add),
            Self::Reduce(_, bound, operand) => {
                let mut inner = Vec::new();
                operand.find_variables(&mut inner);
                inner.iter().filter(|variable| variable.base() != bound).for_each(add);
            }
            _ => self.operands().into_iter().for_each(|operand| operand.find_variables(found)),
        }
    }

    /// The same expression with other tensors in those accesses for which `other` gives one.
    pub(crate) fn with_tensors(&self, other: &dyn Fn(&Access) -> Option<TensorVariable>) -> Self {
        self.with_accesses(&|access| Some(Access { tensor: other(access)?, ..access.clone() }))
    }

    /// The same expression with other accesses in the place of those for which `other` gives one.
    pub(crate) fn with_accesses(&self, other: &dyn Fn(&Access) -> Option<Access>) -> Self {
        let replaced = |access: &Access| other(access).unwrap_or_else(|| access.clone());
        match self {
            Self::Access(access) => Self::Access(replaced(access)),
            Self::Test(test, access) => Self::Test(*test, replaced(access)),
            _ => self.map(&mut |operand| operand.with_accesses(other)),
        }
    }

    /// The same expression with other variables: each is replaced by what `rename` gives for it.
    pub(crate) fn rename(&self, rename: &dyn Fn(&IndexVariable) -> IndexVariable) -> Self {
        match self {
            Self::Index(variable) => Self::Index(rename(variable)),
            Self::Access(access) => Self::Access(access.rename(rename)),
            Self::Test(test, access) => Self::Test(*test, access.rename(rename)),
            Self::Reduce(reduction, variable, operand) => {
                Self::Reduce(*reduction, rename(variable), Box::new(operand.rename(rename)))
            }
            _ => self.map(&mut |operand| operand.rename(rename)),
        }
    }
}

impl Access {
    /// The same access with other variables.
    pub(crate) fn rename(&self, rename: &dyn Fn(&IndexVariable) -> IndexVariable) -> Self {
        Self { variables: self.variables.iter().map(|variable| variable.rename(rename)).collect(), ..self.clone() }
    }
}

/// The type of a checked expression.
pub(crate) fn element_of(expression: &Expression) -> ElementType {
    match expression {
        Expression::Literal(Literal::Typed(scalar), _) => scalar.element_type(),
        Expression::Literal(Literal::Integer(_), _) | Expression::Index(_) | Expression::Test(..) => ElementType::I64,
        Expression::Literal(Literal::Real(_), _) => ElementType::F64,
        Expression::Access(access) => access.tensor.element(),
        Expression::Cast(element, ..) => *element,
        Expression::Select(operands, _) => element_of(&operands[1]),
        Expression::Negate(operand) | Expression::Binary(_, operand, _) | Expression::Reduce(_, _, operand) => {
            element_of(operand)
        }
        // Checked calls have arguments.
        Expression::Call(_, arguments, _) => arguments.first().map_or(ElementType::F64, element_of),
    }
}
