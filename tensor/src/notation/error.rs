//! Mistakes in assignments, and their places.

use std::fmt;
use std::sync::Arc;

use super::variable::{IndexVariable, Span, TextPlace};
use crate::element::ElementType;
use crate::format::FormatError;
use crate::loops::{BinaryOperator, Intrinsic, Reduction};

/// A mistake in an assignment. If it came from a text, the message points at the place.
#[derive(Clone, Debug, PartialEq)]
pub struct NotationError {
    /// The kind of mistake.
    pub kind: NotationErrorKind,
    place: TextPlace,
    text: Option<Arc<str>>,
}

/// A kind of mistake in an assignment.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NotationErrorKind {
    /// The text does not follow the grammar.
    #[error("expected {expected}, found {found}")]
    Syntax {
        /// The words that could have been here.
        expected: &'static str,
        /// The word that is here.
        found: String,
    },
    /// A number is too large.
    #[error("the number {0} is too large")]
    NumberTooLarge(String),
    /// Expressions in parentheses are nested too deeply.
    #[error("the expression is nested more than {0} deep; split it into several assignments")]
    TooDeep(usize),
    /// A part of a dimension that it does not have.
    #[error(
        "{access} takes a part of a dimension with {extent} coordinates: parts are written i(low,high) or i(low,high,step), from 0 up to the extent, with a step of at least 1"
    )]
    Window {
        /// The access.
        access: String,
        /// The extent of the dimension.
        extent: i64,
    },
    /// The result is assigned in part.
    #[error("{0} is assigned in part, which would leave other elements unassigned; take parts of operands")]
    WindowOnLeft(String),
    /// A name is used that was not declared.
    #[error("no tensor is called {name}; there are {known}")]
    UnknownTensor {
        /// The name.
        name: String,
        /// The names that would do.
        known: String,
    },
    /// An index variable has no extent.
    #[error("index variable {0} has no extent: no tensor is indexed by it")]
    UnknownVariable(String),
    /// A function is called that does not exist.
    #[error("there is no function {name}; {}", suggestion(name))]
    UnknownFunction {
        /// The name.
        name: String,
    },
    /// A function has a wrong number of arguments.
    #[error("{intrinsic} takes {}, not {found}", counted(intrinsic.arity(), "argument"))]
    WrongArity {
        /// The function.
        intrinsic: Intrinsic,
        /// The number of its arguments.
        found: usize,
    },
    /// A `select` has a wrong number of arguments.
    #[error("select takes a condition and two values, not {found} arguments")]
    SelectArity {
        /// The number of its arguments.
        found: usize,
    },
    /// A mask has a variable that is summed over, and the sum is combined with what was there by something else than
    /// addition.
    #[error(
        "the mask {mask} has a variable that is not on the left, and masks the terms of a sum; assign the sum to a tensor of its own with `=`, and combine that"
    )]
    SummedMask {
        /// The mask.
        mask: String,
    },
    /// Something other than an element is asked for a fact about it, or is a mask.
    #[error("{asking} takes an element of a tensor, such as {example}")]
    NoElement {
        /// The part of the assignment that takes an element.
        asking: &'static str,
        /// An element that could be there.
        example: &'static str,
    },
    /// Old values are combined with new ones by an operator whose identity changes some.
    #[error(
        "old values are combined with new ones by +, -, *, min and max; for {0}, write the old value on the right too"
    )]
    Accumulation(Reduction),
    /// A function is not defined for a type.
    #[error("{intrinsic} is not defined for {element}")]
    NotDefined {
        /// The function.
        intrinsic: Intrinsic,
        /// The type.
        element: ElementType,
    },
    /// A tensor cannot be stored as it says.
    #[error("{tensor} cannot be stored: {error}")]
    Format {
        /// The tensor.
        tensor: String,
        /// Why not.
        error: FormatError,
    },
    /// An operator makes no number of operands of a type.
    #[error("{operator} makes no number of two that are {element}")]
    OperatorNotDefined {
        /// The operator.
        operator: BinaryOperator,
        /// The type.
        element: ElementType,
    },
    /// A reduction is not defined for a type.
    #[error("a reduction with {reduction} is not defined for {element}")]
    ReductionNotDefined {
        /// The operator.
        reduction: Reduction,
        /// The type.
        element: ElementType,
    },
    /// A name that can't be written.
    #[error("{0:?} is no name: names have letters, digits and _, and begin with no digit")]
    NoName(String),
    /// A dimension with a negative extent.
    #[error("dimension {dimension} of {tensor} has the negative extent {extent}")]
    NegativeExtent {
        /// The tensor.
        tensor: String,
        /// The dimension, counted from zero.
        dimension: usize,
        /// Its extent.
        extent: i64,
    },
    /// An access has too few or too many variables.
    #[error("{tensor} has {}, but {}", counted(*order, "dimension"), counted(*found, "index variable"))]
    WrongOrder {
        /// The tensor.
        tensor: String,
        /// The number of its dimensions.
        order: usize,
        /// The number of variables.
        found: usize,
    },
    /// A tensor is accessed with different numbers of variables.
    #[error(
        "{tensor} has another number of dimensions in {first} than in {second}; use as many index variables in both, or two names"
    )]
    TwoOrders {
        /// The tensor.
        tensor: String,
        /// How it was accessed first.
        first: String,
        /// How it is accessed at the place of the error.
        second: String,
    },
    /// Two tensors have one name.
    #[error("two tensors are called {0}; give one of them another name")]
    TwoTensors(String),
    /// A tensor and an index variable have one name.
    #[error("both a tensor and an index variable are called {0}; give one of them another name")]
    TensorAndVariable(String),
    /// A variable has two extents.
    #[error("index variable {variable} has extent {first} in {first_access}, and {second} in {second_access}")]
    TwoExtents {
        /// The variable.
        variable: IndexVariable,
        /// Its extent where it was used first.
        first: i64,
        /// That access.
        first_access: String,
        /// Its extent at the place of the error.
        second: i64,
        /// That access.
        second_access: String,
    },
    /// Two types meet.
    #[error("expected {expected}, found {found}; cast it, as in {}(...)", expected.name())]
    TypeMismatch {
        /// The type of the surroundings.
        expected: ElementType,
        /// The type here.
        found: ElementType,
    },
    /// A complex number is cast to a real or an integer.
    #[error("{from} can't be cast to {to}: the imaginary part would be lost")]
    ComplexCast {
        /// The type of the number.
        from: ElementType,
        /// The other type.
        to: ElementType,
    },
    /// A number has no value in a type.
    #[error("{literal} is no {element}")]
    NotRepresentable {
        /// The number.
        literal: String,
        /// The type.
        element: ElementType,
    },
    /// The result is read at other coordinates than it is written.
    #[error("{read} is read while {written} is written; they must have the same index variables")]
    ResultRead {
        /// The access on the right.
        read: String,
        /// The access on the left.
        written: String,
    },
    /// The result's access has a variable twice.
    #[error("{variable} occurs twice in {access}, which would leave other elements unassigned; use two variables")]
    RepeatedOnLeft {
        /// The variable.
        variable: IndexVariable,
        /// The access.
        access: String,
    },
    /// A reduction's variable is used outside of it.
    #[error("{0} is reduced over here, but used outside of the reduction too; give one of them another name")]
    BoundTwice(IndexVariable),
}

fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// The function that a name is nearly that of.
fn near_function(name: &str) -> Option<&'static str> {
    let lower = name.to_lowercase();
    let names = Intrinsic::ALL.iter().map(|intrinsic| intrinsic.name());
    // A name is taken for another one if a third of its letters are wrong, at most.
    let near = names.map(|known| (distance(&lower, known), known)).min().filter(|(far, known)| 3 * far <= known.len());
    // Or it is spelt out.
    let shorter = || Intrinsic::ALL.iter().map(|intrinsic| intrinsic.name()).find(|known| lower.starts_with(known));
    near.map(|(_, known)| known).or_else(shorter)
}

/// Whether a name is nearly that of a function.
pub(super) fn is_nearly_function(name: &str) -> bool {
    near_function(name).is_some()
}

/// Advice for a function that does not exist.
fn suggestion(name: &str) -> String {
    match near_function(name) {
        Some(known) => format!("did you mean {known}?"),
        None => {
            let known: Vec<&str> = Intrinsic::ALL.iter().map(|intrinsic| intrinsic.name()).collect();
            format!(
                "there are {}, select, stored, isfill and reduce; tensors are indexed by variables, shifts by whole numbers such as i+1 and i-1, and parts such as i(0,8) and i(0,8,2)",
                known.join(", ")
            )
        }
    }
}

/// How many letters must be put in, taken out or replaced to make one word of another (Levenshtein 1966).
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (number, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], number + 1);
        for (place, wanted) in other.chars().enumerate() {
            let replaced = diagonal + usize::from(letter != wanted);
            diagonal = row[place + 1];
            row[place + 1] = replaced.min(diagonal + 1).min(row[place] + 1);
        }
    }
    row[other.chars().count()]
}

impl NotationErrorKind {
    /// This mistake at `place`.
    pub(crate) fn at(self, place: TextPlace) -> NotationError {
        NotationError { kind: self, place, text: None }
    }
}

impl NotationError {
    /// The part of the text that is wrong, if there is a text.
    pub fn span(&self) -> Option<Span> {
        self.place.0
    }

    /// The same error, whose places are in `text`.
    pub(crate) fn within(mut self, text: &str) -> Self {
        self.text = Some(text.into());
        self
    }
}

impl fmt::Display for NotationError {
    /// Writes what is wrong; below it, if it came from a text, the line of the text and `^` under the place.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.kind)?;
        let (Some(text), Some(Span { start, end })) = (&self.text, self.place.0) else { return Ok(()) };
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
        let indent = text[line_start..start].chars().count();
        let width = text[start..end.min(line_end)].chars().count().max(1);
        let line = text[line_start..line_end].replace('\t', " ");
        write!(formatter, "\n  {line}\n  {:indent$}{:^<width$}", "", "")
    }
}

impl std::error::Error for NotationError {}
