//! All commands, as data.

use std::fmt;

use super::error::{Reason, ScheduleError};
use super::parallelize::Races;
use super::{
    bound, chunk, communicate, distribute, divide, fuse, mergeby, parallelize, pos, precompute, reorder, rotate, split,
    split_at, store, substitute, unroll, validate,
};
use crate::concrete::{Merge, Statement, Substitution, Unit};
use crate::format::Format;
use crate::notation::{Expression, IndexVariable};

/// A change of a statement that keeps what it computes. See the method of [`Statement`] of the same name.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // The fields are the parameters of the methods, which are documented.
pub enum Command {
    Split {
        variable: IndexVariable,
        outer: IndexVariable,
        inner: IndexVariable,
        factor: i64,
    },
    SplitAt {
        variable: IndexVariable,
        outer: IndexVariable,
        inner: IndexVariable,
        points: Vec<i64>,
    },
    Divide {
        variable: IndexVariable,
        outer: IndexVariable,
        inner: IndexVariable,
        pieces: i64,
    },
    Fuse {
        outer: IndexVariable,
        inner: IndexVariable,
        fused: IndexVariable,
    },
    Bound {
        variable: IndexVariable,
        bounded: IndexVariable,
        extent: i64,
    },
    Pos {
        variable: IndexVariable,
        position: IndexVariable,
        tensor: String,
    },
    MergeBy {
        variable: IndexVariable,
        merge: Merge,
    },
    Reorder {
        order: Vec<IndexVariable>,
    },
    Precompute {
        expression: Box<Expression>,
        variables: Vec<IndexVariable>,
        workspace_variables: Vec<IndexVariable>,
        workspace: String,
    },
    Store {
        workspace: String,
        format: Format,
    },
    Unroll {
        variable: IndexVariable,
        factor: u32,
    },
    Chunk {
        variable: IndexVariable,
        length: i64,
    },
    Parallelize {
        variable: IndexVariable,
        unit: Unit,
        races: Races,
    },
    Distribute {
        targets: Vec<IndexVariable>,
        outer: Vec<IndexVariable>,
        inner: Vec<IndexVariable>,
        grid: Vec<i64>,
    },
    DistributeLoops {
        variables: Vec<IndexVariable>,
    },
    Communicate {
        tensors: Vec<String>,
        variable: IndexVariable,
    },
    Rotate {
        target: IndexVariable,
        by: Vec<IndexVariable>,
        result: IndexVariable,
    },
    Substitute {
        variables: Vec<IndexVariable>,
        substitution: Substitution,
    },
}

impl Command {
    /// The statement that the command makes of `statement`.
    ///
    /// # Errors
    ///
    /// If the command is illegal for this statement.
    pub fn apply(&self, statement: &Statement) -> Result<Statement, ScheduleError> {
        let changed = match self {
            Self::Split { variable, outer, inner, factor } => split::apply(statement, variable, outer, inner, *factor),
            Self::SplitAt { variable, outer, inner, points } => {
                split_at::apply(statement, variable, outer, inner, points)
            }
            Self::Divide { variable, outer, inner, pieces } => {
                divide::apply(statement, variable, outer, inner, *pieces)
            }
            Self::Fuse { outer, inner, fused } => fuse::apply(statement, outer, inner, fused),
            Self::Bound { variable, bounded, extent } => bound::apply(statement, variable, bounded, *extent),
            Self::Pos { variable, position, tensor } => pos::apply(statement, variable, position, tensor),
            Self::MergeBy { variable, merge } => mergeby::apply(statement, variable, *merge),
            Self::Reorder { order } => reorder::apply(statement, order),
            Self::Precompute { expression, variables, workspace_variables, workspace } => {
                precompute::apply(statement, expression, variables, workspace_variables, workspace)
            }
            Self::Store { workspace, format } => store::apply(statement, workspace, format),
            Self::Unroll { variable, factor } => unroll::apply(statement, variable, *factor),
            Self::Chunk { variable, length } => chunk::apply(statement, variable, *length),
            Self::Parallelize { variable, unit, races } => parallelize::apply(statement, variable, *unit, *races),
            Self::Distribute { targets, outer, inner, grid } => {
                distribute::apply(statement, targets, outer, inner, grid)
            }
            Self::DistributeLoops { variables } => distribute::apply_to_loops(statement, variables),
            Self::Communicate { tensors, variable } => communicate::apply(statement, tensors, variable),
            Self::Rotate { target, by, result } => rotate::apply(statement, target, by, result),
            Self::Substitute { variables, substitution } => substitute::apply(statement, variables, substitution),
        };
        changed
            .and_then(|changed| validate::check(&changed).map(|()| changed))
            .map_err(|reason: Reason| ScheduleError { command: self.to_string(), reason })
    }
}

/// Commands, one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schedule {
    /// The commands, in their order.
    pub commands: Vec<Command>,
}

impl Schedule {
    /// The statement that all commands make of `statement`.
    ///
    /// # Errors
    ///
    /// If one of them is illegal.
    pub fn apply(&self, statement: &Statement) -> Result<Statement, ScheduleError> {
        apply(statement, &self.commands)
    }
}

/// The statement that all `commands`, one after the other, make of `statement`.
///
/// # Errors
///
/// If one of them is illegal.
pub fn apply<'a>(
    statement: &Statement,
    commands: impl IntoIterator<Item = &'a Command>,
) -> Result<Statement, ScheduleError> {
    commands.into_iter().try_fold(statement.clone(), |statement, command| command.apply(&statement))
}

/// Several things in braces, one without.
struct Group<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for Group<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.0 {
            return only.fmt(formatter);
        }
        formatter.write_str("{")?;
        for (position, item) in self.0.iter().enumerate() {
            write!(formatter, "{}{item}", if position > 0 { ", " } else { "" })?;
        }
        formatter.write_str("}")
    }
}

impl fmt::Display for Command {
    /// Writes the command as the literature does: `distribute({i, j}, {io, jo}, {ii, ji}, {2, 2})`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Split { variable, outer, inner, factor } => {
                write!(formatter, "split({variable}, {outer}, {inner}, {factor})")
            }
            Self::SplitAt { variable, outer, inner, points } => {
                write!(formatter, "split_at({variable}, {outer}, {inner}, {})", Group(points))
            }
            Self::Divide { variable, outer, inner, pieces } => {
                write!(formatter, "divide({variable}, {outer}, {inner}, {pieces})")
            }
            Self::Fuse { outer, inner, fused } => write!(formatter, "fuse({outer}, {inner}, {fused})"),
            Self::Bound { variable, bounded, extent } => write!(formatter, "bound({variable}, {bounded}, {extent})"),
            Self::Pos { variable, position, tensor } => write!(formatter, "pos({variable}, {position}, {tensor})"),
            Self::MergeBy { variable, merge } => write!(formatter, "mergeby({variable}, {merge})"),
            Self::Reorder { order } => write!(formatter, "reorder({})", Group(order)),
            Self::Precompute { expression, variables, workspace_variables, workspace } => {
                let (variables, inside) = (Group(variables), Group(workspace_variables));
                write!(formatter, "precompute({expression}, {variables}, {inside}, {workspace})")
            }
            Self::Store { workspace, format } => write!(formatter, "store({workspace}, {format})"),
            Self::Chunk { variable, length } => write!(formatter, "chunk({variable}, {length})"),
            Self::Unroll { variable, factor } => write!(formatter, "unroll({variable}, {factor})"),
            Self::Parallelize { variable, unit, races } => {
                let races = if *races == Races::Reduced { ", reduced" } else { "" };
                write!(formatter, "parallelize({variable}, {unit}{races})")
            }
            Self::Distribute { targets, outer, inner, grid } => {
                write!(formatter, "distribute({}, {}, {}, {})", Group(targets), Group(outer), Group(inner), Group(grid))
            }
            Self::DistributeLoops { variables } => write!(formatter, "distribute({})", Group(variables)),
            Self::Communicate { tensors, variable } => {
                write!(formatter, "communicate({}, {variable})", Group(tensors))
            }
            Self::Rotate { target, by, result } => write!(formatter, "rotate({target}, {}, {result})", Group(by)),
            Self::Substitute { variables, substitution } => {
                write!(formatter, "substitute({}, {substitution})", Group(variables))
            }
        }
    }
}
