//! Errors of placements.

use std::ops::Range;

/// Text that is no placement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}\n  {text}\n  {}{}", " ".repeat(self.column()), "^".repeat(self.width()))]
pub struct ParseError {
    /// The whole text.
    pub text: String,
    /// Which bytes of it are wrong.
    pub span: Range<usize>,
    /// The kind of error.
    pub kind: ParseErrorKind,
}

impl ParseError {
    fn column(&self) -> usize {
        self.text.get(..self.span.start).map_or(0, |before| before.chars().count())
    }

    fn width(&self) -> usize {
        self.text.get(self.span.clone()).map_or(0, |part| part.chars().count()).max(1)
    }
}

/// A kind of error in a placement's text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseErrorKind {
    /// No arrow.
    #[error("expected `->` between the tensor's dimensions and the grid's")]
    Arrow,
    /// Something that is neither name, number, nor `*`.
    #[error("expected a name, a number, `*` or `cyclic(name)`")]
    Item,
    /// A number or star on the left.
    #[error("expected a name: the left side names the tensor's dimensions")]
    Name,
    /// A name twice on one side.
    #[error("`{0}` occurs twice on this side: take two names")]
    Duplicate(String),
    /// A name of no dimension on the right.
    #[error(
        "`{name}` is no dimension of the tensor, which are {known}: name one of these, or write `*` for a copy at each index of the grid's dimension"
    )]
    Unknown {
        /// The name.
        name: String,
        /// The dimensions.
        known: String,
    },
    /// Cyclic over what is not a dimension of the tensor.
    #[error("`{0}` is no dimension of the tensor, so it cannot be dealt out")]
    Cyclic(String),
    /// Not a number of indices.
    #[error("expected a number of indices, at least 1, and not too large")]
    Number,
    /// A `~` without a dimension after it.
    #[error("expected a dimension of the tensor after `~`, or the name before `:` that stands for all of them")]
    NonZero,
    /// Something other than one new name before a `:`.
    #[error("expected one name before `:`, of no dimension: it stands for all that is stored, as in `xy -> f : ~f`")]
    Fused,
}

/// A placement does not fit tensor and machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// A statement for each level.
    #[error(
        "`{placement}` has {statements} statements, and the machine {machine} has {levels} levels: give one for each, separated by `;`"
    )]
    Levels {
        /// The placement.
        placement: String,
        /// How many statements it has.
        statements: usize,
        /// The machine.
        machine: String,
        /// How many levels it has.
        levels: usize,
    },
    /// A name for each dimension of the tensor.
    #[error("`{statement}` names {names} dimensions, and the tensor has {dimensions}")]
    Tensor {
        /// The statement.
        statement: String,
        /// How many dimensions it names.
        names: usize,
        /// How many there are.
        dimensions: usize,
    },
    /// Something for each dimension of the grid.
    #[error("`{statement}` says something about {along} dimensions of the grid, and the grid {grid} has {dimensions}")]
    Grid {
        /// The statement.
        statement: String,
        /// About how many dimensions it says something.
        along: usize,
        /// The grid.
        grid: String,
        /// How many it has.
        dimensions: usize,
    },
    /// A face of the grid.
    #[error(
        "`{statement}` keeps the tensor at index {index} of dimension {dimension} of the grid, which has indices below {extent}"
    )]
    Fixed {
        /// The statement.
        statement: String,
        /// The index.
        index: usize,
        /// The grid's dimension.
        dimension: usize,
        /// Its extent.
        extent: usize,
    },
    /// A statement made by hand cuts what is not there, or twice.
    #[error("`{statement}` cuts dimension {dimension} of the tensor, which is not there or cut already")]
    Partition {
        /// The statement.
        statement: String,
        /// The tensor's dimension.
        dimension: usize,
    },
    /// Parts of what is stored, of a tensor that is dense.
    #[error(
        "`{statement}` cuts what is stored into parts with as many elements each, which are no rectangles of a dense tensor: cut one of its dimensions"
    )]
    Entries {
        /// The statement.
        statement: String,
    },
    /// Blocks of no index.
    #[error("`{statement}` deals out blocks of 0 indices; the least is 1")]
    Block {
        /// The statement.
        statement: String,
    },
}
