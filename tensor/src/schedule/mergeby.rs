//! How a loop finds where all of several operands store something.

use super::error::Reason;
use super::select;
use crate::concrete::{Merge, Statement};
use crate::lower;
use crate::notation::{Access, IndexVariable};

pub(super) fn apply(statement: &Statement, variable: &IndexVariable, merge: Merge) -> Result<Statement, Reason> {
    let (_, body) = select::find(statement, variable)?;
    let points = lower::lattice_points(statement, variable, body);
    let listed = |accesses: &[&Access]| accesses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match &points[..] {
        [point] if point.len() > 1 => Ok(select::with_loop(statement, variable, |changed| changed.merge = merge)),
        [] => Err(Reason::NothingMerged { variable: variable.clone(), found: "nothing".to_owned() }),
        [point] => Err(Reason::NothingMerged { variable: variable.clone(), found: listed(point) }),
        [first, ..] => Err(Reason::United { variable: variable.clone(), accesses: listed(first) }),
    }
}
