//! Absent operands, which have no entry, and which products leave out.
//!
//! An operand in levels has an entry for an element or not, as [`Test::Stored`] tells. A value that is made of such
//! elements without entry and of numbers alone is *absent*. If one operand of an operator is absent, and annihilates
//! the other one, the result is what it is, and absent, even where the rules of IEEE 754 give something else: zero
//! times what is infinite or NaN. So loops need not visit what is not stored. Everything else is computed with what
//! tensors are filled with.

use super::arithmetic::{self, DivisionByZero, call, cast, is_fill, is_zero, negate, reduce};
use super::expression::{Access, Expression, Literal, Test, element_of};
use super::variable::{IndexVariable, TensorVariable};
use crate::element::{Element, ElementType, Scalar};
use crate::loops::{BinaryOperator, Intrinsic, Reduction};

/// The origin of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Presence {
    /// Numbers of the statement.
    Number,
    /// Elements of operands in levels that have no entry for them, and numbers.
    Absent,
    /// Other elements, or index variables.
    Present,
}

/// A value, and what it was made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term {
    /// The value.
    pub value: Scalar,
    /// The origin of the value.
    pub presence: Presence,
}

/// A term, or none if an integer was divided by zero.
pub type TermResult = Result<Term, DivisionByZero>;

/// Whether a tensor has entries: it is stored in levels that are not all dense, or in blocks.
pub fn has_entries(tensor: &TensorVariable) -> bool {
    !(tensor.format().is_dense() && tensor.format().is_plain())
}

/// Whether a tensor cannot tell an element that was given from one that was not, and so has entries for those that
/// differ from what it is filled with.
pub fn keeps_all(tensor: &TensorVariable) -> bool {
    tensor.format().levels().last().is_none_or(|level| level.kind().capabilities().full)
}

/// Whether a tensor in levels stores elements for which it has no entry, between others.
pub fn is_padded(tensor: &TensorVariable) -> bool {
    has_entries(tensor) && keeps_all(tensor)
}

impl Term {
    /// A number of the statement.
    pub fn number(value: Scalar) -> Self {
        Self { value, presence: Presence::Number }
    }

    /// The value of an index variable, and the like.
    pub fn present(value: Scalar) -> Self {
        Self { value, presence: Presence::Present }
    }

    /// An element without entry.
    pub fn absent(value: Scalar) -> Self {
        Self { value, presence: Presence::Absent }
    }

    /// An element of a tensor, given whether something is stored for it.
    pub fn element(tensor: &TensorVariable, value: Scalar, is_stored: bool) -> Self {
        let is_entry = is_stored && !(is_padded(tensor) && is_fill(value, tensor.fill()));
        if is_entry || !has_entries(tensor) { Self::present(value) } else { Self::absent(value) }
    }

    /// The same with another value.
    #[must_use]
    pub fn map(self, change: impl FnOnce(Scalar) -> Scalar) -> Self {
        Self { value: change(self.value), ..self }
    }

    fn is_absent(self) -> bool {
        self.presence == Presence::Absent
    }

    /// `left operator right`. Of a division, `is_checked` says that divisors which give something else than zero for
    /// zero are refused.
    ///
    /// # Errors
    ///
    /// If an integer is divided by zero.
    pub fn binary(operator: BinaryOperator, left: Self, right: Self, is_checked: bool) -> TermResult {
        if let Some(made) = Self::annihilated(operator, Some(left), Some(right)) {
            return Ok(made);
        }
        let made = Self {
            value: arithmetic::binary(operator, left.value, right.value)?,
            presence: left.presence.max(right.presence),
        };
        let is_left_out = is_checked && left.is_absent() && is_zero(left.value) && is_zero(made.value);
        // It keeps its sign.
        Ok(if is_left_out { left } else { made })
    }

    /// An old element and a new value, combined by the operator of a reduction.
    ///
    /// # Errors
    ///
    /// None: no such operator divides.
    pub fn combined(self, reduction: Reduction, new: Self) -> TermResult {
        match reduction.operator() {
            Some(operator) => Self::binary(operator, self, new, false),
            None => Ok(Self::present(reduce(reduction, self.value, new.value))),
        }
    }

    /// The result of an operator if one operand is absent and annihilates the other, which need not be known.
    fn annihilated(operator: BinaryOperator, left: Option<Self>, right: Option<Self>) -> Option<Self> {
        let by = |one: Option<Self>, other: Option<Self>| {
            let one = one.filter(|one| one.is_absent())?;
            let zero = annihilator(operator, one.value)?;
            // Infinities of both signs have no sum.
            let opposes =
                |other: Self| other.is_absent() && annihilator(operator, other.value).is_some_and(|own| own != zero);
            (!other.is_some_and(opposes)).then_some(Self::absent(zero))
        };
        by(left, right).or_else(|| by(right, left))
    }

    /// A function of arguments. Of a remainder, `is_checked` is as of [`binary`](Self::binary).
    ///
    /// # Errors
    ///
    /// If an integer is divided by zero.
    pub fn call(function: Intrinsic, arguments: &[Self], is_checked: bool) -> TermResult {
        if let (Some(operator), [left, right]) = (function.operator(), arguments) {
            return Self::binary(operator, *left, *right, is_checked);
        }
        let values: Vec<Scalar> = arguments.iter().map(|argument| argument.value).collect();
        let presence = arguments.iter().map(|argument| argument.presence).max().unwrap_or(Presence::Number);
        Ok(Self { value: call(function, &values)?, presence })
    }

    /// `then` if the condition is other than zero, else `otherwise`.
    pub fn select(condition: Self, then: Self, otherwise: Self) -> Self {
        let chosen = if is_zero(condition.value) { otherwise } else { then };
        let is_either = then.value == otherwise.value
            && then.presence != Presence::Present
            && otherwise.presence != Presence::Present;
        let presence =
            if is_either { then.presence.max(otherwise.presence) } else { chosen.presence.max(condition.presence) };
        Self { presence, ..chosen }
    }

    /// The result of a reduction: absent, if it is the identity, and the operand is absent and has that value where no
    /// operand in levels has an entry, as `background` says.
    pub fn reduced(value: Scalar, reduction: Reduction, background: Option<Self>) -> Self {
        let identity = reduction.identity(value.element_type());
        let is_absent = identity == Some(value) && background.is_some_and(|of| of.is_absent() && of.value == value);
        if is_absent { Self::absent(value) } else { Self::present(value) }
    }
}

/// `value`, if an operator gives it whatever the other operand is; of floats an infinite summand, too.
pub fn annihilator(operator: BinaryOperator, value: Scalar) -> Option<Scalar> {
    let is_infinite = match value {
        Scalar::F32(value) => value.is_infinite(),
        Scalar::F64(value) => value.is_infinite(),
        _ => false,
    };
    if operator == BinaryOperator::Add {
        return is_infinite.then_some(value);
    }
    let own = operator.properties().annihilator?.of(value.element_type())?;
    (own == value).then_some(own)
}

/// Whether operands that are infinite or NaN withstand what annihilates others.
pub fn is_inexact(element: ElementType) -> bool {
    !element.is_integer()
}

/// The values of expressions where no operand in levels has an entry.
pub struct Backgrounds<'b> {
    /// Of an element; nothing if it may be anything.
    pub element: &'b dyn Fn(&Access) -> Option<Term>,
    /// Whether a divisor is checked: zero divided by it is zero.
    pub is_checked: &'b dyn Fn(&Expression) -> bool,
}

impl Backgrounds<'_> {
    /// The value of an expression; none if it is not known.
    pub fn of(&self, expression: &Expression) -> Option<Term> {
        let of = |operand: &Expression| self.of(operand);
        match expression {
            Expression::Literal(Literal::Typed(scalar), _) => Some(Term::number(*scalar)),
            Expression::Literal(Literal::Integer(value), _) => Some(Term::number(Scalar::I64(*value))),
            Expression::Literal(Literal::Real(value), _) => Some(Term::number(Scalar::F64(*value))),
            Expression::Index(_) => None,
            Expression::Access(access) => (self.element)(access),
            Expression::Test(test, access) => {
                let is_absent = (self.element)(access).is_some_and(|term| term.is_absent());
                is_absent.then(|| Term::absent(Scalar::I64(i64::from(*test == Test::IsFill))))
            }
            Expression::Negate(operand) => of(operand).map(|term| term.map(negate)),
            Expression::Cast(element, operand, _) => of(operand).map(|term| term.map(|value| cast(value, *element))),
            Expression::Binary(operator, left, right) => self.binary(*operator, left, right),
            Expression::Call(function, arguments, _) => match (function.operator(), &arguments[..]) {
                (Some(operator), [left, right]) => self.binary(operator, left, right),
                _ => Term::call(*function, &arguments.iter().map(of).collect::<Option<Vec<_>>>()?, false).ok(),
            },
            Expression::Select(operands, _) => {
                let [condition, then, otherwise] = &**operands;
                match of(condition) {
                    Some(condition) => {
                        let chosen = of(if is_zero(condition.value) { otherwise } else { then })?;
                        Some(Term { presence: chosen.presence.max(condition.presence), ..chosen })
                    }
                    None => {
                        let (then, otherwise) = (of(then)?, of(otherwise)?);
                        (then.value == otherwise.value).then(|| Term::select(then, then, otherwise))
                    }
                }
            }
            Expression::Reduce(reduction, _, operand) => {
                let (term, identity) = (of(operand)?, reduction.identity(element_of(operand))?);
                (term.value == identity).then_some(term)
            }
        }
    }

    fn binary(&self, operator: BinaryOperator, left: &Expression, right: &Expression) -> Option<Term> {
        let is_checked = operator.divides() && (self.is_checked)(right);
        let (one, other) = (self.of(left), self.of(right));
        match (one, other) {
            (Some(one), Some(other)) => Term::binary(operator, one, other, is_checked).ok(),
            (Some(one), None) if is_checked && one.is_absent() && is_zero(one.value) => Some(one),
            _ => Term::annihilated(operator, one, other),
        }
    }
}

/// The value of an expression where no operand in levels has an entry, whatever dense operands are.
pub fn background(expression: &Expression, is_checked: &dyn Fn(&Expression) -> bool) -> Option<Term> {
    let element = |access: &Access| has_entries(&access.tensor).then(|| Term::absent(access.tensor.fill()));
    Backgrounds { element: &element, is_checked }.of(expression)
}

/// Whether a divisor is an element of one of some tensors.
pub(crate) fn is_among(divisor: &Expression, tensors: &[TensorVariable]) -> bool {
    matches!(divisor, Expression::Access(access) if tensors.iter().any(|tensor| tensor.name() == access.tensor.name()))
}

/// The dense operands by which an expression divides what is zero where no operand in levels has an entry, if quotients
/// need not be zero there, and `is_wanted` says of the variables of a quotient that loops are to go through what is
/// stored all the same.
pub(crate) fn divisors(
    expression: &Expression,
    result: &TensorVariable,
    is_wanted: &dyn Fn(&[IndexVariable]) -> bool,
) -> Vec<TensorVariable> {
    fn collect(
        expression: &Expression,
        result: &TensorVariable,
        is_wanted: &dyn Fn(&[IndexVariable]) -> bool,
        found: &mut Vec<TensorVariable>,
    ) {
        expression.operands().into_iter().for_each(|operand| collect(operand, result, is_wanted, found));
        let (left, right) = match expression {
            Expression::Binary(operator, left, right) if operator.divides() => (&**left, &**right),
            Expression::Call(function, arguments, _) if function.operator().is_some_and(BinaryOperator::divides) => {
                let [left, right] = &arguments[..] else { return };
                (left, right)
            }
            _ => return,
        };
        let Expression::Access(divisor) = right else { return };
        let is_plain = !has_entries(&divisor.tensor)
            && divisor.tensor.name() != result.name()
            && divisor.variables.iter().all(|variable| variable.window().is_none());
        let of_left = background(left, &|divisor| is_among(divisor, found));
        let is_zero = of_left.is_some_and(|term| term.is_absent() && is_zero(term.value));
        if is_plain && is_zero && is_wanted(&expression.variables()) && !found.contains(&divisor.tensor) {
            found.push(divisor.tensor.clone());
        }
    }
    let mut found = Vec::new();
    collect(expression, result, is_wanted, &mut found);
    found
}

/// Something is divided by an element that does not give zero for zero, where loops go through what is stored.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "{tensor}{coordinates:?} is {element}, and zero divided by that is not zero: the quotients would have to be computed where nothing is stored. Write a product with 1 / {tensor}, which leaves these out, or put \
     another value in the place of such elements first"
)]
pub struct DivisorError {
    /// The divisor.
    pub tensor: String,
    /// The coordinates of the element.
    pub coordinates: Vec<i64>,
    /// The element.
    pub element: Scalar,
}

/// Whether zero divided by an element is zero.
#[allow(clippy::eq_op)] // only a NaN differs from itself
pub(crate) fn is_divisor<T: Element>(element: T) -> bool {
    element == element && element != T::zeroed()
}
