//! Loops that a library computes.

use super::command::Command;
use super::error::{Reason, ScheduleError};
use super::select;
use crate::concrete::{Node, Statement, Substitution};
use crate::lower::{khatri_rao, product};
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
        wanted: "sums of products of two tensors, A += B * C, or MTTKRP",
    };
    if let Node::Forall(inner, _) = body {
        return Err(refuse(format!("loops with a loop over {} inside", inner.variable)));
    }
    let outermost = &nest[0].variable;
    let around = statement.body.loops_around(outermost).unwrap_or_default();
    if let Some(all) = statement.body.subtree(outermost)
        && khatri_rao::find(statement, all, &around).is_none()
    {
        product::find(statement, all, &around).map_err(refuse)?;
    }
    Ok(select::with_loop(statement, outermost, |changed| changed.substitution = Some(substitution)))
}
