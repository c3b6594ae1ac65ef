//! The meaning of assignments of sparse tensors: the oracle of all kernels.
//!
//! Tensors are [maps](SparseMap) from coordinates to elements, with a fill value for all other coordinates. An element
//! of the result is what [`notation::evaluate`](crate::notation::evaluate) gives for it, if each coordinate that is not
//! in a map has the fill value; products [leave out](crate::notation::Presence) what is not in a map. Formats,
//! schedules and the algebra of operators play no part: whether a coordinate that no operand has must be visited
//! follows from the values alone. Each part of an expression is a function of index variables that has one value at all
//! but some points; extents may be as large as they like.
//!
//! | in reading order | |
//! | --- | --- |
//! | `map` | tensors |
//! | `function` | functions of index variables |
//! | `verified` | results of kernels, compared with the oracle |
//! | `compared`, `bounded`, `defined` | elements of dense tensors, one by one, by the definition and what rounding does |

mod bounded;
mod compared;
mod defined;
mod error;
mod function;
mod map;
mod verified;

use std::collections::BTreeMap;

pub use compared::{Comparison, Elements, compare};
pub use defined::Load;
pub use error::OracleError;
pub use map::SparseMap;
pub use verified::{VerifyError, verify};

use crate::element::Scalar;
use crate::loops::Reduction;
use crate::notation::{
    Access, Assignment, Expression, IndexVariable, Literal, Presence, TensorVariable, Term, Test, background, cast,
    element_of, is_among, is_fill, is_zero, keeps_all, negate,
};
use function::{Function, MOST};

/// The result of `assignment` on `operands`, by name. With `+=` the result's old elements are among them. Its fill
/// value is that of all coordinates at which nothing differs.
///
/// # Errors
///
/// [`OracleError`] if operands are missing or do not fit, an integer is divided by zero, or there are more than ten
/// million points to visit.
pub fn evaluate(assignment: &Assignment, operands: &BTreeMap<String, SparseMap>) -> Result<SparseMap, OracleError> {
    let left = assignment.left();
    let divisors = assignment.checked_divisors();
    let evaluation = Evaluation { extents: assignment.extents(), operands, divisors: &divisors };
    let mut right = evaluation.function(assignment.right())?;
    if assignment.accumulates() {
        let old = evaluation.access(left)?;
        let operator = assignment.accumulation().unwrap_or(Reduction::Sum);
        let add = |old: Term, new: Term| old.combined(operator, new);
        right = old.join(&right, add).map_err(|_| large(assignment.right()))?;
    }
    let right = right.over(&left.variables, left.tensor.dimensions()).map_err(|_| large(assignment.right()))?;
    // Any value, if there is no point that has it.
    let any = Term::number(Scalar::I64(0));
    let fill = if right.has_background() { right.background? } else { right.background.unwrap_or(any) };
    let mut result = SparseMap::new(left.tensor.dimensions(), cast(fill.value, assignment.element()));
    for (point, term) in right.points {
        result.set(&point, term?.value);
    }
    Ok(result)
}

/// Evaluates assignments one after the other; the result of each replaces what was called so before.
///
/// # Errors
///
/// [`OracleError`] of the first that has no value.
pub fn run(assignments: &[Assignment], tensors: &mut BTreeMap<String, SparseMap>) -> Result<(), OracleError> {
    for assignment in assignments {
        let result = evaluate(assignment, tensors)?;
        tensors.insert(assignment.left().tensor.name().to_owned(), result);
    }
    Ok(())
}

fn large(expression: &Expression) -> OracleError {
    OracleError::Large { expression: expression.to_string(), most: MOST }
}

struct Evaluation<'a> {
    extents: &'a BTreeMap<IndexVariable, i64>,
    operands: &'a BTreeMap<String, SparseMap>,
    divisors: &'a [TensorVariable],
}

impl Evaluation<'_> {
    /// The value of a checked expression, as a function of its variables.
    fn function(&self, expression: &Expression) -> Result<Function, OracleError> {
        let large = |_| large(expression);
        Ok(match expression {
            Expression::Literal(literal, _) => Function::constant(Ok(Term::number(match *literal {
                Literal::Typed(scalar) => scalar,
                Literal::Integer(value) => Scalar::I64(value),
                Literal::Real(value) => Scalar::F64(value),
            }))),
            Expression::Index(variable) => {
                let extent = self.extents[variable];
                if extent as u64 > MOST {
                    return Err(large(function::Large));
                }
                let at = |value| Ok(Term::present(Scalar::I64(value)));
                Function {
                    variables: vec![variable.clone()],
                    extents: vec![extent],
                    points: (0..extent).map(|value| (vec![value], at(value))).collect(),
                    ..Function::constant(at(0))
                }
            }
            Expression::Access(access) => self.access(access)?,
            Expression::Test(Test::IsFill, access) => {
                let truth = |value| Scalar::I64(is_fill(value, access.tensor.fill()).into());
                self.access(access)?.map(|term| Ok(term.map(truth)))
            }
            Expression::Test(Test::Stored, access) => {
                let is_entry = |value| !(keeps_all(&access.tensor) && is_fill(value, access.tensor.fill()));
                let truth = |value| Scalar::I64(is_entry(value).into());
                let mut function = self.access(access)?.map(|term| Ok(term.map(truth)));
                function.background = function.background.map(|term| term.map(|_| Scalar::I64(0)));
                function
            }
            Expression::Negate(operand) => self.function(operand)?.map(|term| Ok(term.map(negate))),
            Expression::Cast(element, operand, _) => {
                self.function(operand)?.map(|term| Ok(term.map(|value| cast(value, *element))))
            }
            Expression::Binary(operator, left, right) => {
                let is_checked = operator.divides() && is_among(right, self.divisors);
                let (left, right) = (self.function(left)?, self.function(right)?);
                left.join(&right, |left, right| Term::binary(*operator, left, right, is_checked)).map_err(large)?
            }
            Expression::Select(operands, _) => {
                let [condition, then, otherwise] = &**operands;
                let condition = self.function(condition)?;
                let (then, otherwise) = (self.function(then)?, self.function(otherwise)?);
                // Of each of the two, what is not chosen is as good as a number that the other one has.
                let unchosen = Term::number(cast(Scalar::I32(0), element_of(expression)));
                let chosen = |of: &Function, when: bool| {
                    let choose = |condition: Term, value: Term| {
                        let presence = value.presence.max(condition.presence);
                        Ok(if is_zero(condition.value) == when { unchosen } else { Term { presence, ..value } })
                    };
                    condition.join(of, choose).map_err(large)
                };
                let either = |then: Term, otherwise: Term| Ok(Term::select(Term::present(then.value), then, otherwise));
                let either = then.join(&otherwise, either).map_err(large)?;
                let (then, otherwise) = (chosen(&then, true)?, chosen(&otherwise, false)?);
                // At a point one of them is the number.
                let both = |then: Term, otherwise: Term| Ok(if then == unchosen { otherwise } else { then });
                let chosen = then.join(&otherwise, both).map_err(large)?;
                let known = |chosen: Term, either: Term| match either.presence {
                    Presence::Present => Ok(chosen),
                    presence => Ok(Term { presence, ..chosen }),
                };
                chosen.join(&either, known).map_err(large)?
            }
            Expression::Call(function, arguments, _) => {
                let is_checked = arguments.last().is_some_and(|last| is_among(last, self.divisors));
                let arguments: Vec<_> =
                    arguments.iter().map(|argument| self.function(argument)).collect::<Result<_, _>>()?;
                let call = |arguments: &[Term]| Term::call(*function, arguments, is_checked);
                match <[Function; 1]>::try_from(arguments) {
                    Ok([argument]) => argument.map(|term| call(&[term])),
                    // Functions have one argument or two.
                    Err(arguments) => {
                        arguments[0].join(&arguments[1], |left, right| call(&[left, right])).map_err(large)?
                    }
                }
            }
            Expression::Reduce(reduction, variable, operand) => {
                let of_none = background(operand, &|divisor| is_among(divisor, self.divisors));
                let function = self.function(operand)?;
                let (extent, element) = (self.extents[variable], element_of(operand));
                function.reduce(*reduction, variable, extent, element, of_none).map_err(large)?
            }
        })
    }

    fn access(&self, access: &Access) -> Result<Function, OracleError> {
        let tensor = &access.tensor;
        let map = self.operands.get(tensor.name()).ok_or_else(|| OracleError::Missing(tensor.name().into()))?;
        if map.element() != tensor.element() || map.dimensions() != tensor.dimensions() {
            return Err(OracleError::Mismatch {
                tensor: tensor.name().into(),
                expected: tensor.element(),
                extents: tensor.dimensions().to_vec(),
                found: map.element(),
                found_extents: map.dimensions().to_vec(),
            });
        }
        // A variable that is there several times chooses the entries that have one coordinate in all its dimensions.
        let term = |value, is_stored| Ok(Term::element(tensor, value, is_stored));
        let mut function = Function::constant(term(map.fill(), false));
        for variable in access.variables.iter().map(IndexVariable::base) {
            if !function.variables.contains(variable) {
                function.variables.push(variable.clone());
                function.extents.push(self.extents[variable]);
            }
        }
        for (coordinates, &value) in map.entries() {
            // The values of variables at which the entry is read: none, if it is in no part that is taken, or a shift
            // takes it beyond the end.
            let values = access.variables.iter().zip(coordinates).map(|(variable, &coordinate)| {
                let value = variable.window().map_or(Some(coordinate), |window| window.value(coordinate))?;
                (value < self.extents[variable.base()]).then_some((variable.base(), value))
            });
            let Some(values) = values.collect::<Option<Vec<_>>>() else { continue };
            let value_of =
                |variable: &IndexVariable| values.iter().find(|(own, _)| *own == variable).map(|(_, value)| *value);
            if values.iter().all(|(variable, value)| value_of(variable) == Some(*value)) {
                function.points.insert(function.variables.iter().filter_map(value_of).collect(), term(value, true));
            }
        }
        Ok(function)
    }
}
