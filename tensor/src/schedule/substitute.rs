//! Loops that a library computes.

use super::error::Reason;
use super::select;
use crate::concrete::{Node, Statement, Substitution};
use crate::lower::{khatri_rao, product};
use crate::notation::IndexVariable;

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
