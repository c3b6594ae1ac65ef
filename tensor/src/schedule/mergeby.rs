//! How a loop finds where all of several operands store something.

use super::error::Reason;
use super::{precompute, select, store};
use crate::concrete::{Merge, Statement, StatementNode};
use crate::format::{Format, Level};
use crate::lower;
use crate::notation::{Access, Expression, IndexVariable};

pub(super) fn apply(statement: &Statement, variable: &IndexVariable, merge: Merge) -> Result<Statement, Reason> {
    let (_, body) = select::find(statement, variable)?;
    let points = lower::lattice_points(statement, variable, body);
    let listed = |accesses: &[&Access]| accesses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match &points[..] {
        [point] if point.len() > 1 => match merge {
            Merge::TwoFinger | Merge::Gallop | Merge::Locate => {
                Ok(select::with_loop(statement, variable, |changed| changed.merge = merge))
            }
            Merge::Bitmap | Merge::Hash => {
                let kept = kept(statement, variable, point).ok_or_else(|| {
                    let is_alone = around(statement.body(), variable).is_none_or(|around| around.is_empty());
                    let names_it = point.iter().any(|access| access.variables.contains(variable));
                    let (variable, accesses) = (variable.clone(), listed(point));
                    match (is_alone, names_it) {
                        (true, _) => Reason::NothingAround { variable },
                        (false, false) => Reason::NotNamed { variable, accesses },
                        (false, true) => Reason::NothingKept { variable, accesses },
                    }
                })?;
                looked_up(statement, variable, kept, merge)
            }
        },
        [] => Err(Reason::NothingMerged { variable: variable.clone(), found: "nothing".to_owned() }),
        [point] => Err(Reason::NothingMerged { variable: variable.clone(), found: listed(point) }),
        [first, ..] => Err(Reason::United { variable: variable.clone(), accesses: listed(first) }),
    }
}

/// The access that has the same elements, along `variable`, in all iterations of the loop around the one over
/// `variable`: the first of those that stay for most loops.
fn kept<'a>(statement: &Statement, variable: &IndexVariable, point: &[&'a Access]) -> Option<&'a Access> {
    let around = around(statement.body(), variable)?;
    let depends = |access: &Access, outer: &IndexVariable| {
        access.variables.iter().any(|own| statement.dependencies(own).contains(outer))
    };
    let loops = |access: &Access| around.iter().rev().take_while(|outer| !depends(access, outer)).count();
    let is_row = |access: &&&Access| {
        let others = access.variables.iter().filter(|own| *own != variable);
        access.variables.contains(variable)
            && others
                .clone()
                .all(|own| statement.dependencies(own).iter().all(|own| own == variable || around.contains(own)))
            && !others.clone().any(|own| statement.dependencies(own).contains(variable))
    };
    let rows = point.iter().filter(is_row).map(|access| (loops(access), *access)).filter(|(count, _)| *count > 0);
    rows.rev().max_by_key(|(count, _)| *count).map(|(_, access)| access)
}

/// The variables of the loops around the one over `variable`, from the outermost.
fn around(node: &StatementNode, variable: &IndexVariable) -> Option<Vec<IndexVariable>> {
    match node {
        StatementNode::Forall(outer, _) if outer.variable == *variable => Some(Vec::new()),
        StatementNode::Forall(outer, body) => {
            let inside = around(body, variable)?;
            Some([vec![outer.variable.clone()], inside].concat())
        }
        StatementNode::Where { consumer, producer, .. } => {
            around(consumer, variable).or_else(|| around(producer, variable))
        }
        StatementNode::Assign { .. } => None,
    }
}

/// The statement with the elements of `access` along `variable` in a workspace, where the loop over `variable` looks
/// them up.
fn looked_up(
    statement: &Statement,
    variable: &IndexVariable,
    access: &Access,
    merge: Merge,
) -> Result<Statement, Reason> {
    let fresh = |wish: &str| {
        let names = std::iter::once(wish.to_owned()).chain((1..).map(|number| format!("{wish}_{number}")));
        names.into_iter().find(|name| !statement.is_taken(name)).unwrap_or_default()
    };
    let (workspace, copy) = (fresh("w"), fresh(&format!("{}w", variable.name())));
    let expression = Expression::Access(access.clone());
    let made = precompute::apply(
        statement,
        &expression,
        std::slice::from_ref(variable),
        &[IndexVariable::new(&copy)],
        &workspace,
    )?;
    let level = if merge == Merge::Hash { Level::Hashed } else { Level::Compressed };
    store::apply(&made, &workspace, &Format::of_workspace(level))
}
