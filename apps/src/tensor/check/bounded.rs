//! One element by the definition, in double precision, with a bound of what rounding may have changed in it.
//!
//! This is running error analysis (Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd edition 2002, section 3.3): next to each value goes a bound of how far the computed one can
//! be from the exact one. A schedule may add the terms of a sum in any order and in parts, in which each term goes through at most n - 1 additions, where n is the number of terms that make up an element; the
//! bound for that is g(n) = n u / (1 - n u) times the sum of absolute values (section 4.2). u is the unit roundoff of the coarsest type that occurs. Products
//! and quotients of complex numbers have larger constants (section 3.6). Functions are taken to be right to 4 u (16 u for complex ones), as the GNU C library
//! documents for its own, and to pass on errors of arguments as they do where these are moved by so much.

use maniple_tensor::element::{Complex, ElementType, Scalar};
use maniple_tensor::notation::{Assignment, BinaryOperator, Expression, Intrinsic, Literal, Reduction, call};

use super::reference::{Point, index};
use super::{Load, complex};

/// A value, and how far from the exact one a computed one can be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounded {
    /// The value.
    pub value: Complex<f64>,
    /// The bound.
    pub error: f64,
}

impl Bounded {
    fn exact(value: impl Into<Complex<f64>>) -> Self {
        Self { value: value.into(), error: 0.0 }
    }

    /// The largest absolute value that it can have.
    fn size(self) -> f64 {
        self.value.norm() + self.error
    }
}

/// The constants of a statement.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The unit roundoff.
    unit: f64,
    /// The factor of sums.
    of_sums: f64,
    /// The errors of a product and of a quotient.
    of_products: f64,
    of_quotients: f64,
    of_functions: f64,
    element: ElementType,
}

impl Bounds {
    /// Those of a statement.
    #[must_use]
    pub fn new(assignment: &Assignment) -> Self {
        let unit = match is_single(assignment.element()) || has_single(assignment.right()) {
            true => f64::from(f32::EPSILON) / 2.0,
            false => f64::EPSILON / 2.0,
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
            element: assignment.element(),
        }
    }

    /// The element of the result at these coordinates.
    ///
    /// # Errors
    /// If an integer is divided by zero.
    pub fn element(&self, assignment: &Assignment, coordinates: &[i64], load: &Load<'_>) -> Result<Bounded, String> {
        let left = assignment.left();
        let mut point = left.variables.iter().cloned().zip(coordinates.iter().copied()).collect();
        let value = self.evaluate(assignment.right(), assignment, &mut point, load)?;
        Ok(match assignment.accumulates() {
            true => self.sum(Bounded::exact(complex(load(&left.tensor, coordinates))), value),
            false => value,
        })
    }

    fn sum(&self, left: Bounded, right: Bounded) -> Bounded {
        let error = left.error + right.error + self.of_sums * (left.size() + right.size());
        Bounded { value: left.value + right.value, error }
    }

    fn product(&self, left: Bounded, right: Bounded) -> Bounded {
        let value = left.value * right.value;
        let moved = left.size() * right.size() - left.value.norm() * right.value.norm();
        Bounded { value, error: moved.max(0.0) + self.of_products * left.size() * right.size() }
    }

    fn quotient(&self, left: Bounded, right: Bounded) -> Bounded {
        let value = left.value / right.value;
        let least = right.value.norm() - right.error;
        if least <= 0.0 {
            return Bounded { value, error: f64::INFINITY };
        }
        let moved = (left.error + value.norm() * right.error) / least;
        Bounded { value, error: moved + self.of_quotients * (value.norm() + moved) }
    }

    fn function(&self, function: Intrinsic, arguments: &[Bounded]) -> Result<Bounded, String> {
        match (function, arguments) {
            (Intrinsic::Abs, [of]) => {
                return Ok(Bounded { value: of.value.norm().into(), error: of.error + self.of_functions * of.size() });
            }
            (Intrinsic::Conj, [of]) => return Ok(Bounded { value: of.value.conj(), ..*of }),
            (Intrinsic::Square, [of]) => return Ok(self.product(*of, *of)),
            (Intrinsic::Cube, [of]) => return Ok(self.product(self.product(*of, *of), *of)),
            (Intrinsic::Min, [a, b]) => return Ok(self.one_of(*a, *b, a.value.re < b.value.re)),
            (Intrinsic::Max, [a, b]) => return Ok(self.one_of(*a, *b, a.value.re > b.value.re)),
            _ => {}
        }
        let at = |moved: &[Complex<f64>]| -> Result<Complex<f64>, String> {
            let arguments: Vec<Scalar> = moved.iter().map(|value| self.scalar(*value)).collect();
            call(function, &arguments).map(complex).map_err(|error| error.to_string())
        };
        let values: Vec<Complex<f64>> = arguments.iter().map(|argument| argument.value).collect();
        let value = at(&values)?;
        let mut error = 0_f64;
        for (number, argument) in arguments.iter().enumerate().filter(|(_, argument)| argument.error > 0.0) {
            let mut largest = 0_f64;
            for direction in [Complex::new(1.0, 0.0), Complex::new(-1.0, 0.0), Complex::i(), -Complex::i()] {
                if self.element.is_complex() || direction.im == 0.0 {
                    let mut moved = values.clone();
                    moved[number] += direction * argument.error;
                    // Beyond the end of what the function is defined for there is nothing to compare with.
                    largest = largest.max((at(&moved)? - value).norm());
                }
            }
            error += largest;
        }
        Ok(Bounded { value, error: error + self.of_functions * (value.norm() + error) })
    }

    /// The smaller or larger one: errors may make it the other.
    fn one_of(&self, a: Bounded, b: Bounded, is_first: bool) -> Bounded {
        Bounded { value: if is_first { a.value } else { b.value }, error: a.error.max(b.error) }
    }

    /// A value for a function: in double precision.
    fn scalar(&self, value: Complex<f64>) -> Scalar {
        if self.element.is_complex() { Scalar::C64(value) } else { Scalar::F64(value.re) }
    }

    fn evaluate(
        &self,
        expression: &Expression,
        assignment: &Assignment,
        point: &mut Point,
        load: &Load<'_>,
    ) -> Result<Bounded, String> {
        let mut value = |operand: &Expression| self.evaluate(operand, assignment, point, load);
        Ok(match expression {
            Expression::Literal(Literal::Typed(scalar), _) => Bounded::exact(complex(*scalar)),
            Expression::Literal(Literal::Integer(number), _) => Bounded::exact(*number as f64),
            Expression::Literal(Literal::Real(number), _) => Bounded::exact(*number),
            Expression::Index(variable) => Bounded::exact(index(variable, point) as f64),
            Expression::Access(access) => {
                let mut coordinates = [0; 4];
                for (coordinate, variable) in coordinates.iter_mut().zip(&access.variables) {
                    *coordinate = index(variable, point);
                }
                Bounded::exact(complex(load(&access.tensor, &coordinates[..access.variables.len()])))
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
                }
            }
            Expression::Call(function, arguments, _) => {
                let arguments: Vec<Bounded> = arguments.iter().map(value).collect::<Result<_, _>>()?;
                self.function(*function, &arguments)?
            }
            Expression::Cast(_, operand, _) => {
                let operand = value(operand)?;
                Bounded { error: operand.error + self.unit * operand.size(), ..operand }
            }
            Expression::Reduce(reduction, variable, operand) => {
                point.push((variable.clone(), 0));
                let next = |number: i64| {
                    if let Some(last) = point.last_mut() {
                        last.1 = number;
                    }
                    self.evaluate(operand, assignment, point, load)
                };
                let total = self.reduction(*reduction, (0..assignment.extents()[variable]).map(next))?;
                point.pop();
                total
            }
        })
    }

    fn reduction(
        &self,
        reduction: Reduction,
        mut terms: impl Iterator<Item = Result<Bounded, String>>,
    ) -> Result<Bounded, String> {
        if reduction == Reduction::Sum {
            let (mut value, mut error, mut size) = (Complex::new(0.0, 0.0), 0.0, 0.0);
            for term in terms {
                let term = term?;
                (value, error, size) = (value + term.value, error + term.error, size + term.size());
            }
            return Ok(Bounded { value, error: error + self.of_sums * size });
        }
        let Some(first) = terms.next() else {
            let identity = reduction.identity(self.element).map_or(Complex::new(f64::NAN, 0.0), complex);
            return Ok(Bounded::exact(identity));
        };
        terms.try_fold(first?, |total, term| {
            let term = term?;
            Ok(match reduction {
                Reduction::Minimum => self.one_of(total, term, total.value.re < term.value.re),
                Reduction::Maximum => self.one_of(total, term, total.value.re > term.value.re),
                Reduction::Product | Reduction::Sum => self.product(total, term),
            })
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
