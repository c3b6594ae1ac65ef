//! One element by the definition, in double precision, with a bound of what rounding may have changed in it.
//!
//! This is running error analysis (Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd edition 2002, section
//! 3.3): next to each value goes a bound of how far the computed one can be from the exact one. A schedule may add the
//! terms of a sum in any order and in parts, in which each term goes through at most n - 1 additions, where n is the
//! number of terms that make up an element; the bound for that is g(n) = n u / (1 - n u) times the sum of absolute
//! values (section 4.2). u is the unit roundoff of the coarsest type that occurs. Products and quotients of complex
//! numbers have larger constants (section 3.6). Functions are taken to be right to 4 u (16 u for complex ones), as the
//! GNU C library documents for its own, and to pass on errors of arguments as they do where these are moved by so much.
//!
//! Infinities and NaNs have no error: they follow from exact operands by the rules of IEEE 754, whatever the order, or
//! else nothing is known of the value. Nothing is known either of what may overflow, or is divided by what may be zero.

use super::defined::{Load, complex};
use crate::element::{Complex, ElementType, Scalar};
use crate::notation::{
    Assignment, BinaryOperator, DivisionByZero, Expression, ExpressionValues, Intrinsic, Literal, Point, Reduction,
    Test, binary, call, cast, is_fill,
};

/// A value, and how far from the exact one a computed one can be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bounded {
    /// The value.
    pub(super) value: Complex<f64>,
    /// The bound; infinite if nothing is known of the value.
    pub(super) error: f64,
}

/// A bounded value, or none if an integer is divided by zero.
type BoundedResult = Result<Bounded, DivisionByZero>;

impl Bounded {
    const UNKNOWN: Self = Self { value: Complex { re: f64::NAN, im: f64::NAN }, error: f64::INFINITY };

    fn exact(value: impl Into<Complex<f64>>) -> Self {
        Self { value: value.into(), error: 0.0 }
    }

    /// The largest absolute value that it can have.
    fn size(self) -> f64 {
        self.value.norm() + self.error
    }

    fn is_known(self) -> bool {
        self.error < f64::INFINITY
    }

    fn is_exact(self) -> bool {
        self.error == 0.0
    }

    fn is_finite(self) -> bool {
        self.value.re.is_finite() && self.value.im.is_finite()
    }

    fn is_nan(self) -> bool {
        self.value.re.is_nan() || self.value.im.is_nan()
    }

    /// Whether it is zero, or surely not.
    fn has_known_sign(self) -> bool {
        self.is_exact() || self.value.norm() > self.error
    }
}

/// The constants of a statement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// The unit roundoff.
    unit: f64,
    /// The factor of sums.
    of_sums: f64,
    /// The errors of a product and of a quotient.
    of_products: f64,
    of_quotients: f64,
    of_functions: f64,
    /// The largest number, and the least above zero.
    largest: f64,
    least: f64,
    element: ElementType,
}

impl Bounds {
    /// Returns the constants of a statement.
    pub(super) fn new(assignment: &Assignment) -> Self {
        let single = f32::from_bits(1);
        let (unit, largest, least) = match is_single(assignment.element()) || has_single(assignment.right()) {
            true => (f64::from(f32::EPSILON) / 2.0, f64::from(f32::MAX), f64::from(single)),
            false => (f64::EPSILON / 2.0, f64::MAX, f64::from_bits(1)),
        };
        let many = terms(assignment.right(), assignment) + f64::from(u8::from(assignment.accumulates()));
        let (of_products, of_quotients, of_functions) = match assignment.element().is_complex() {
            true => (gamma(2.0, unit) * 2_f64.sqrt(), gamma(7.0, unit) * 2_f64.sqrt(), 16.0 * unit),
            false => (unit, unit, 4.0 * unit),
        };
        Self {
            unit,
            of_sums: gamma(many, unit),
            of_products,
            of_quotients,
            of_functions,
            largest,
            least,
            element: assignment.element(),
        }
    }

    /// The element of the result at these coordinates.
    ///
    /// # Errors
    ///
    /// If an integer is divided by zero.
    pub(super) fn element(&self, assignment: &Assignment, coordinates: &[i64], load: &Load<'_>) -> BoundedResult {
        let value = self.evaluate(assignment.right(), &mut Point::new(assignment, coordinates, load, &[]))?;
        let Some(operator) = assignment.accumulation() else { return Ok(value) };
        let old = Bounded::exact(complex(load(&assignment.left().tensor, coordinates)));
        self.reduction(operator, [Ok(old), Ok(value)].into_iter())
    }

    /// A finite value, unless it may overflow.
    fn settled(&self, value: Complex<f64>, error: f64) -> Bounded {
        let bounded = Bounded { value, error };
        if bounded.size() <= self.largest { bounded } else { Bounded::UNKNOWN }
    }

    /// The error of rounding beyond the unit roundoff, for numbers that are so small that they have fewer digits.
    fn underflow(&self, value: Complex<f64>) -> f64 {
        let few_digits = self.least * 2_f64.powi(60);
        if value.re.abs() > few_digits && (value.im == 0.0 || value.im.abs() > few_digits) { 0.0 } else { self.least }
    }

    fn sum(&self, left: Bounded, right: Bounded) -> Bounded {
        self.total([left, right])
    }

    /// The sum of terms, in any order.
    fn total(&self, terms: impl IntoIterator<Item = Bounded>) -> Bounded {
        let (mut value, mut error, mut size) = (Complex::new(0.0, 0.0), 0.0, 0.0);
        let mut infinite = None;
        for term in terms {
            if !term.is_known() {
                return Bounded::UNKNOWN;
            }
            if term.is_finite() {
                (value, error, size) = (value + term.value, error + term.error, size + term.size());
            } else {
                infinite = Some(infinite.map_or(term.value, |sum: Complex<f64>| sum + term.value));
            }
        }
        // Parts of the sum are not larger.
        let finite =
            if size <= self.largest { self.settled(value, error + self.of_sums * size) } else { Bounded::UNKNOWN };
        match infinite {
            Some(infinite) if finite.is_known() => self.special(infinite + finite.value, &[finite]),
            _ => finite,
        }
    }

    /// A value that has an infinity or NaN, whose finite part is as right as those of operands.
    fn special(&self, value: Complex<f64>, operands: &[Bounded]) -> Bounded {
        let error = if self.element.is_complex() { operands.iter().map(|operand| operand.error).sum() } else { 0.0 };
        Bounded { value, error }
    }

    /// `left operator right` as IEEE 754 has it, if that is known: an operand is infinite or NaN, or the divisor zero.
    fn by_rules(&self, operator: BinaryOperator, left: Bounded, right: Bounded) -> Bounded {
        let is_certain = match self.element.is_complex() {
            true => left.is_exact() && right.is_exact(),
            false => left.is_nan() || right.is_nan() || left.has_known_sign() && right.has_known_sign(),
        };
        let value = binary(operator, self.scalar(left.value), self.scalar(right.value));
        if is_certain && let Ok(value) = value { Bounded::exact(complex(value)) } else { Bounded::UNKNOWN }
    }

    fn product(&self, left: Bounded, right: Bounded) -> Bounded {
        if !left.is_known() || !right.is_known() {
            return Bounded::UNKNOWN;
        }
        if !left.is_finite() || !right.is_finite() {
            return self.by_rules(BinaryOperator::Multiply, left, right);
        }
        let value = left.value * right.value;
        if left == Bounded::exact(0.0) || right == Bounded::exact(0.0) {
            return Bounded::exact(value);
        }
        let moved = left.size() * right.size() - left.value.norm() * right.value.norm();
        let error = moved.max(0.0) + self.of_products * left.size() * right.size() + self.underflow(value);
        self.settled(value, error)
    }

    fn quotient(&self, left: Bounded, right: Bounded) -> Bounded {
        if !left.is_known() || !right.is_known() {
            return Bounded::UNKNOWN;
        }
        if !left.is_finite() || !right.is_finite() || right == Bounded::exact(0.0) {
            return self.by_rules(BinaryOperator::Divide, left, right);
        }
        let least = right.value.norm() - right.error;
        let value = binary(BinaryOperator::Divide, self.scalar(left.value), self.scalar(right.value)).map(complex);
        let Some(value) = value.ok().filter(|_| least > 0.0) else { return Bounded::UNKNOWN };
        let moved = (left.error + value.norm() * right.error) / least;
        self.settled(value, moved + self.of_quotients * (value.norm() + moved) + self.underflow(value))
    }

    fn function(&self, function: Intrinsic, arguments: &[Bounded]) -> BoundedResult {
        match (function, arguments) {
            // Of a real one the sign alone is another.
            (Intrinsic::Abs, [of]) if !self.element.is_complex() => {
                return Ok(Bounded { value: of.value.re.abs().into(), ..*of });
            }
            (Intrinsic::Conj, [of]) => return Ok(Bounded { value: of.value.conj(), ..*of }),
            (Intrinsic::Square, [of]) => return Ok(self.product(*of, *of)),
            (Intrinsic::Cube, [of]) => return Ok(self.product(self.product(*of, *of), *of)),
            (Intrinsic::Min | Intrinsic::Max, [a, b]) => return self.one_of(function, *a, *b),
            _ => {}
        }
        if !arguments.iter().all(|argument| argument.is_known()) {
            return Ok(Bounded::UNKNOWN);
        }
        let at = |moved: &[Complex<f64>]| -> Result<Complex<f64>, DivisionByZero> {
            let arguments: Vec<Scalar> = moved.iter().map(|value| self.scalar(*value)).collect();
            call(function, &arguments).map(complex)
        };
        let values: Vec<Complex<f64>> = arguments.iter().map(|argument| argument.value).collect();
        let value = at(&values)?;
        if !Bounded::exact(value).is_finite() {
            let is_certain = arguments.iter().all(|argument| argument.is_exact() || argument.is_nan());
            return Ok(if is_certain { Bounded::exact(value) } else { Bounded::UNKNOWN });
        }
        let mut error = 0_f64;
        for (number, argument) in arguments.iter().enumerate().filter(|(_, argument)| argument.error > 0.0) {
            let mut largest = 0_f64;
            for direction in [Complex::new(1.0, 0.0), Complex::new(-1.0, 0.0), Complex::i(), -Complex::i()] {
                if self.element.is_complex() || direction.im == 0.0 {
                    let mut moved = values.clone();
                    moved[number] += direction * argument.error;
                    let distance = (at(&moved)? - value).norm();
                    if !distance.is_finite() {
                        // Near the end of what the function is defined for.
                        return Ok(Bounded::UNKNOWN);
                    }
                    largest = largest.max(distance);
                }
            }
            error += largest;
        }
        Ok(self.settled(value, error + self.of_functions * (value.norm() + error) + self.underflow(value)))
    }

    /// The smaller or larger one: errors may make it the other.
    fn one_of(&self, function: Intrinsic, a: Bounded, b: Bounded) -> BoundedResult {
        let value = call(function, &[self.scalar(a.value), self.scalar(b.value)])?;
        let chosen = Bounded { value: complex(value), error: a.error.max(b.error) };
        Ok(match (a.is_known() && b.is_known(), chosen.is_finite()) {
            (false, _) => Bounded::UNKNOWN,
            (true, false) => Bounded { error: 0.0, ..chosen },
            // An infinite one was not chosen, and has no error.
            (true, true) => chosen,
        })
    }

    /// 1 or 0, if errors cannot make it the other.
    fn comparison(&self, operator: BinaryOperator, a: Bounded, b: Bounded) -> BoundedResult {
        let is_clear = a.is_exact() && b.is_exact() || (a.value - b.value).norm() > a.error + b.error;
        if !(a.is_known() && b.is_known() && is_clear) {
            return Ok(Bounded::UNKNOWN);
        }
        let holds = binary(operator, self.scalar(a.value), self.scalar(b.value))?;
        Ok(Bounded::exact(complex(holds)))
    }

    /// 1 or 0, if errors cannot make it the other: whether operands are other than zero.
    fn logical(&self, operator: BinaryOperator, a: Bounded, b: Bounded) -> Bounded {
        let truth = |operand: Bounded| {
            let is_clear = operand.is_known() && (operand.is_exact() || operand.value.norm() > operand.error);
            is_clear.then_some(operand.value != Complex::new(0.0, 0.0))
        };
        let decides = operator == BinaryOperator::Or;
        match (truth(a), truth(b)) {
            (Some(one), _) | (_, Some(one)) if one == decides => Bounded::exact(f64::from(decides)),
            (Some(_), Some(_)) => Bounded::exact(f64::from(!decides)),
            _ => Bounded::UNKNOWN,
        }
    }

    /// A value for a function: in double precision.
    fn scalar(&self, value: Complex<f64>) -> Scalar {
        if self.element.is_complex() { Scalar::C64(value) } else { Scalar::F64(value.re) }
    }

    fn evaluate(&self, expression: &Expression, point: &mut Point<'_>) -> BoundedResult {
        let mut value = |operand: &Expression| self.evaluate(operand, point);
        Ok(match expression {
            Expression::Literal(Literal::Typed(scalar), _) => Bounded::exact(complex(*scalar)),
            Expression::Literal(Literal::Integer(number), _) => Bounded::exact(*number as f64),
            Expression::Literal(Literal::Real(number), _) => Bounded::exact(*number),
            Expression::Index(variable) => Bounded::exact(point.index(variable) as f64),
            Expression::Access(access) => Bounded::exact(complex(point.load(access))),
            Expression::Test(test, access) => {
                let element = value(&Expression::Access(access.clone()))?;
                let is_fill = is_fill(self.scalar(element.value), self.scalar(complex(access.tensor.fill())));
                if element.is_known() {
                    Bounded::exact(f64::from(is_fill == (*test == Test::IsFill)))
                } else {
                    Bounded::UNKNOWN
                }
            }
            Expression::Negate(operand) => {
                let operand = value(operand)?;
                Bounded { value: -operand.value, ..operand }
            }
            Expression::Binary(operator, left, right) => {
                let (left, right) = (value(left)?, value(right)?);
                match operator {
                    BinaryOperator::Add => self.sum(left, right),
                    BinaryOperator::Subtract => self.sum(left, Bounded { value: -right.value, ..right }),
                    BinaryOperator::Multiply => self.product(left, right),
                    BinaryOperator::Divide => self.quotient(left, right),
                    BinaryOperator::Minimum => self.one_of(Intrinsic::Min, left, right)?,
                    BinaryOperator::Maximum => self.one_of(Intrinsic::Max, left, right)?,
                    logical if logical.is_logical() => self.logical(*logical, left, right),
                    comparison if comparison.is_comparison() => self.comparison(*comparison, left, right)?,
                    other => self.by_rules(*other, left, right),
                }
            }
            Expression::Select(operands, _) => {
                let [condition, then, otherwise] = [&operands[0], &operands[1], &operands[2]].map(value);
                let (condition, then, otherwise) = (condition?, then?, otherwise?);
                match condition.is_exact() {
                    true if condition.value == Complex::new(0.0, 0.0) => otherwise,
                    true => then,
                    // Rounding may make it the other.
                    false => Bounded::UNKNOWN,
                }
            }
            Expression::Call(function, arguments, _) => {
                let arguments: Vec<Bounded> = arguments.iter().map(value).collect::<Result<_, _>>()?;
                self.function(*function, &arguments)?
            }
            Expression::Cast(element, operand, _) => {
                let operand = value(operand)?;
                match element.is_integer() && operand.is_known() {
                    true if operand.is_exact() => Bounded::exact(complex(cast(self.scalar(operand.value), *element))),
                    // Rounded down or up, if it is near to a whole number.
                    true if operand.is_finite() => self.settled(operand.value.re.trunc().into(), operand.error + 1.0),
                    true => Bounded::UNKNOWN,
                    false if operand.is_known() && operand.is_finite() => self.settled(
                        operand.value,
                        operand.error + self.unit * operand.size() + self.underflow(operand.value),
                    ),
                    false => operand,
                }
            }
            Expression::Reduce(reduction, variable, operand) => {
                let extent = point.extent(variable);
                let next = |number: i64| {
                    point.set_index(variable, number);
                    self.evaluate(operand, point)
                };
                self.reduction(*reduction, (0..extent).map(next))?
            }
        })
    }

    fn reduction(&self, reduction: Reduction, mut terms: impl Iterator<Item = BoundedResult>) -> BoundedResult {
        if reduction == Reduction::Sum {
            return Ok(self.total(terms.collect::<Result<Vec<_>, _>>()?));
        }
        let logical = reduction.operator().filter(|operator| operator.is_logical());
        if let (Some(operator), Some(identity)) = (logical, reduction.identity(self.element)) {
            let start = Bounded::exact(complex(identity));
            return terms.try_fold(start, |total, term| Ok(self.logical(operator, total, term?)));
        }
        let Some(first) = terms.next() else {
            let identity = reduction.identity(self.element).map_or(Complex::new(f64::NAN, 0.0), complex);
            return Ok(Bounded::exact(identity));
        };
        terms.try_fold(first?, |total, term| {
            let term = term?;
            match reduction {
                Reduction::Minimum => self.one_of(Intrinsic::Min, total, term),
                Reduction::Maximum => self.one_of(Intrinsic::Max, total, term),
                // Texts have no users' reductions.
                _ => Ok(self.product(total, term)),
            }
        })
    }
}

fn gamma(count: f64, unit: f64) -> f64 {
    let product = count * unit;
    if product < 1.0 { product / (1.0 - product) } else { f64::INFINITY }
}

/// How many terms may be added up to one element.
fn terms(expression: &Expression, assignment: &Assignment) -> f64 {
    let inside = || expression.operands().into_iter().map(|operand| terms(operand, assignment));
    match expression {
        Expression::Reduce(Reduction::Sum, variable, operand) => {
            assignment.extents()[variable] as f64 * terms(operand, assignment)
        }
        Expression::Binary(BinaryOperator::Add | BinaryOperator::Subtract, ..) => inside().sum(),
        _ => inside().fold(1.0, f64::max),
    }
}

fn is_single(element: ElementType) -> bool {
    matches!(element, ElementType::F32 | ElementType::C32)
}

fn has_single(expression: &Expression) -> bool {
    matches!(expression, Expression::Cast(element, ..) if is_single(*element))
        || expression.operands().into_iter().any(has_single)
}
