//! A loop in a given number of blocks.

use super::error::Reason;
use super::{select, split};
use crate::concrete::{Relation, Statement};
use crate::notation::IndexVariable;

pub(super) fn apply(
    statement: &Statement,
    variable: &IndexVariable,
    outer: &IndexVariable,
    inner: &IndexVariable,
    pieces: i64,
) -> Result<Statement, Reason> {
    select::find_plain(statement, variable)?;
    select::check_new(statement, [outer.name(), inner.name()])?;
    select::check_positive("number of pieces", pieces)?;
    let length = split::blocks(statement.extents[variable], pieces);
    let relation =
        Relation::Divide { parent: variable.clone(), outer: outer.clone(), inner: inner.clone(), pieces, length };
    Ok(split::in_two(statement, relation, [pieces, length]))
}
