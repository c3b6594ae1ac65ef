//! Loops that a library computes.

use super::error::Reason;
use super::select;
use crate::concrete::{Statement, StatementNode, Substitution};
use crate::notation::IndexVariable;
use crate::substitute::{self, Nest};

pub(super) fn apply(
    statement: &Statement,
    variables: &[IndexVariable],
    substitution: &Substitution,
) -> Result<Statement, Reason> {
    let (nest, body) = select::nest(statement, variables)?;
    for variable in variables {
        select::find_plain(statement, variable)?;
    }
    let library = substitute::find(substitution)
        .ok_or_else(|| Reason::NoLibrary { name: substitution.to_string(), known: substitute::names().join(", ") })?;
    let refuse = |found: String| Reason::NoMatch {
        substitution: substitution.to_string(),
        found,
        wanted: library.computes().to_owned(),
    };
    // Functions are given views of elements alone.
    if let Some(tensor) = statement.tensors().into_iter().find(|tensor| !tensor.format().is_dense()) {
        return Err(refuse(format!("loops over what {} stores as {}", tensor.name(), tensor.format())));
    }
    if let StatementNode::Forall(inner, _) = body {
        return Err(refuse(format!("loops with a loop over {} inside", inner.variable)));
    }
    let outermost = &nest[0].variable;
    let around = statement.body.loops_around(outermost).unwrap_or_default();
    if let Some(node) = statement.body.subtree(outermost) {
        library.find(&Nest { statement, node, fixed: &around }).map_err(refuse)?;
    }
    Ok(select::with_loop(statement, outermost, |changed| changed.substitution = Some(substitution.clone())))
}
