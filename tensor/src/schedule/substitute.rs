//! Loops that a library computes.

use super::command::Command;
use super::error::{Reason, ScheduleError};
use super::select;
use crate::concrete::{Node, Statement, Substitution};
use crate::notation::IndexVariable;

impl Statement {
    /// Lets a library compute the loops over `variables`, which are directly inside of one another, and have nothing but an assignment
    /// inside.
    ///
    /// # Errors
    ///
    /// If the loops are not the innermost ones, something was decided about them already, or the library does not compute what they
    /// compute.
    pub fn substitute<V: Into<IndexVariable>>(
        &self,
        variables: impl IntoIterator<Item = V>,
        substitution: Substitution,
    ) -> Result<Self, ScheduleError> {
        let variables = variables.into_iter().map(Into::into).collect();
        Command::Substitute { variables, substitution }.apply(self)
    }
}

pub(super) fn apply(
    statement: &Statement,
    variables: &[IndexVariable],
    substitution: Substitution,
) -> Result<Statement, Reason> {
    let (nest, body) = select::nest(statement, variables)?;
    for variable in variables {
        select::find_plain(statement, variable)?;
    }
    let refuse = |found: String| Reason::NoMatch {
        substitution: format!("{substitution:?}"),
        found,
        wanted: "sums of products of two tensors, A += B * C",
    };
    match body {
        Node::Assign { target, operator, value } => {
            crate::lower::product::matches(target, *operator, value).map_err(refuse)?;
        }
        Node::Forall(inner, _) => return Err(refuse(format!("loops with a loop over {} inside", inner.variable))),
        Node::Where { workspace, .. } => return Err(refuse(format!("loops with the workspace {workspace} inside"))),
    }
    let outermost = nest[0].variable.clone();
    Ok(select::with_loop(statement, &outermost, |changed| changed.substitution = Some(substitution)))
}
