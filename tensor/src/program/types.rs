//! The type in which NumPy computes what a program says.

use super::Program;
use crate::element::ElementType;
use crate::notation::{Assignment, Expression, NotationErrorKind, Test};

impl Program {
    /// The type in which NumPy 2 computes what a text says of arrays of a type: where there are integers, fractions and
    /// functions that make some ask for floats of 64 bits, and numbers among truth values for integers. Numbers in the
    /// text are weak.
    #[must_use]
    pub fn promoted(text: &str, element: ElementType) -> ElementType {
        if !element.is_integer() {
            return element;
        }
        let extents: Vec<_> = Self::index_variables(text).into_iter().map(|variable| (variable, 1)).collect();
        let read = |element| Self::parse_with_extents(text, element, &extents);
        let is_wide = |wider: &ElementType| read(*wider).is_ok();
        match read(element) {
            Ok(program) if element == ElementType::Bool && program.statements().iter().any(has_numbers) => {
                ElementType::I64
            }
            Ok(_) => element,
            // An integer that does not fit is refused, as NumPy refuses it.
            Err(error) => match error.kind {
                NotationErrorKind::NotRepresentable { literal, .. }
                    if element != ElementType::Bool && literal.parse::<i64>().is_ok() =>
                {
                    element
                }
                NotationErrorKind::NotRepresentable { .. }
                | NotationErrorKind::NotDefined { .. }
                | NotationErrorKind::OperatorNotDefined { .. } => {
                    [ElementType::I64, ElementType::F64].into_iter().find(is_wide).unwrap_or(element)
                }
                // Other mistakes are told when the program is read with its tensors.
                _ => element,
            },
        }
    }
}

/// Whether there are numbers on the right, or index variables that stand for numbers.
fn has_numbers(statement: &Assignment) -> bool {
    fn has(expression: &Expression) -> bool {
        match expression {
            Expression::Literal(..) | Expression::Index(_) => true,
            // What masks leave out is no number of the program's.
            Expression::Select(operands, _) if matches!(operands[0], Expression::Test(Test::Stored, _)) => {
                has(&operands[1])
            }
            other => other.operands().into_iter().any(has),
        }
    }
    has(statement.right())
}
