//! A loop in parts that begin at given points.

use super::error::Reason;
use super::{select, split};
use crate::concrete::{Relation, Statement};
use crate::notation::IndexVariable;

pub(super) fn apply(
    statement: &Statement,
    variable: &IndexVariable,
    outer: &IndexVariable,
    inner: &IndexVariable,
    points: &[i64],
) -> Result<Statement, Reason> {
    select::find_plain(statement, variable)?;
    select::check_new(statement, [outer.name(), inner.name()])?;
    let extent = statement.extents[variable];
    let ends: Vec<i64> = [0].into_iter().chain(points.iter().copied()).chain([extent]).collect();
    if points.is_empty() {
        return Err(Reason::Empty("points"));
    }
    if !ends.is_sorted_by(|before, point| before < point) {
        let points = points.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        return Err(Reason::Points { points, variable: variable.clone(), extent });
    }
    let longest = ends.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0);
    let (parent, points) = (variable.clone(), points.to_vec());
    let parts = points.len() as i64 + 1;
    let relation = Relation::SplitAt { parent, outer: outer.clone(), inner: inner.clone(), points, extent };
    Ok(split::in_two(statement, relation, [parts, longest]))
}
