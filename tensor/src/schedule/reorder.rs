//! The order of loops.

use super::error::Reason;
use super::select;
use crate::concrete::{Loop, Statement};
use crate::notation::IndexVariable;

pub(super) fn apply(statement: &Statement, order: &[IndexVariable]) -> Result<Statement, Reason> {
    let (nest, innermost) = select::nest(statement, order)?;
    let ordered: Vec<Loop> = order
        .iter()
        .filter_map(|variable| nest.iter().find(|outer| outer.variable == *variable))
        .map(|outer| (*outer).clone())
        .collect();
    let reordered = innermost.clone().in_loops(ordered.into_iter());
    let outermost = nest[0].variable.clone();
    let mut changed = statement.clone();
    changed.body = changed.body.replace(&outermost, &mut |_, _| reordered.clone());
    Ok(changed)
}
