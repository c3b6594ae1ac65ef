//! In which type a program computes: that of `--type`, or that in which NumPy computes with what the files have.

use maniple_tensor::element::ElementType;
use maniple_tensor::notation::{Assignment, Expression, IndexVariable, NotationErrorKind, Test};
use maniple_tensor::program::Program;

use super::options::Options;

/// The type of all tensors of which `--type` does not say another one. Of files it is the one that NumPy
/// [promotes](ElementType::common) their types to; a file that `--type` says the type of has that one. Numbers in the
/// program are weak, as in NumPy 2.
pub(super) fn of_program<'f>(
    options: &Options,
    (text, variables): (&str, &[String]),
    files: impl IntoIterator<Item = (&'f str, ElementType)>,
) -> ElementType {
    let said = |name: Option<&str>| options.element.iter().rev().find(|(known, _)| known.as_deref() == name);
    if let Some((_, element)) = said(None) {
        return *element;
    }
    let own = |(name, element): (&'f str, ElementType)| said(Some(name)).map_or(element, |(_, element)| *element);
    match files.into_iter().map(own).reduce(ElementType::common) {
        Some(element) => with_numbers((text, variables), element),
        None => ElementType::F64,
    }
}

/// The type in which NumPy computes what a program says of arrays of a type: where there are integers, fractions and
/// functions that make some ask for floats of 64 bits, and numbers among truth values for integers.
fn with_numbers((text, variables): (&str, &[String]), element: ElementType) -> ElementType {
    if !element.is_integer() {
        return element;
    }
    let extents: Vec<_> = variables.iter().map(|name| (IndexVariable::new(name), 1)).collect();
    let read = |element| Program::parse_with_extents(text, element, &extents);
    let is_defined = |element| read(element).is_ok();
    match read(element) {
        Ok(program) if element == ElementType::Bool && program.statements().iter().any(has_numbers) => ElementType::I64,
        Ok(_) => element,
        // An integer that does not fit is refused, as NumPy refuses it.
        Err(error) => match error.kind {
            NotationErrorKind::NotRepresentable { literal, .. }
                if element != ElementType::Bool && is_whole(&literal) =>
            {
                element
            }
            NotationErrorKind::NotRepresentable { .. }
            | NotationErrorKind::NotDefined { .. }
            | NotationErrorKind::OperatorNotDefined { .. } => {
                let wider = [ElementType::I64, ElementType::F64].into_iter().find(|wider| is_defined(*wider));
                wider.unwrap_or(element)
            }
            // Other mistakes are told when the program is read with its tensors.
            _ => element,
        },
    }
}

fn is_whole(literal: &str) -> bool {
    literal.parse::<i64>().is_ok()
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
