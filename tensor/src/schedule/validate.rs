//! Rules for every statement, whichever commands made it.

use super::error::Reason;
use super::pos;
use super::select::describe;
use crate::concrete::{Execution, Loop, Statement, StatementNode, Unit};
use crate::notation::IndexVariable;

/// All rules that concern several loops at once.
pub(super) fn check(statement: &Statement) -> Result<(), Reason> {
    launches_are_whole(statement)?;
    communicated_once(statement)?;
    pos::check(statement)?;
    surroundings(&statement.body, &mut Vec::new(), None)
}

/// Loops of one level are directly inside of one another.
fn launches_are_whole(statement: &Statement) -> Result<(), Reason> {
    let loops = statement.body.loops();
    for (position, first) in loops.iter().enumerate() {
        let Some(level) = first.level() else { continue };
        let Some(last) = loops.iter().rposition(|outer| outer.level() == Some(level)) else { continue };
        let between = loops[position..last].iter().find(|outer| outer.level() != Some(level));
        if let Some(between) = between {
            return Err(Reason::SplitLaunch {
                first: first.variable.clone(),
                second: loops[last].variable.clone(),
                between: between.variable.clone(),
            });
        }
    }
    Ok(())
}

/// Within one launch, and outside of all launches, each tensor is fetched once.
fn communicated_once(statement: &Statement) -> Result<(), Reason> {
    let mut here: Vec<(&str, &IndexVariable)> = Vec::new();
    let mut launch = None;
    for outer in statement.body.loops() {
        if outer.level().is_some() && outer.level() != launch {
            launch = outer.level();
            here.clear();
        }
        for tensor in &outer.communicate {
            if let Some((_, first)) = here.iter().find(|(other, _)| other == tensor) {
                let (first, second) = ((*first).clone(), outer.variable.clone());
                return Err(Reason::CommunicatedTwice { tensor: tensor.clone(), first, second });
            }
            here.push((tensor, &outer.variable));
        }
    }
    Ok(())
}

/// Checks that each loop is allowed by the loops and workspaces around it.
fn surroundings<'a>(
    node: &'a StatementNode,
    around: &mut Vec<&'a Loop>,
    workspace: Option<(&str, &'static str)>,
) -> Result<(), Reason> {
    match node {
        StatementNode::Assign { .. } => Ok(()),
        StatementNode::Where { workspace: made, consumer, producer } => {
            let inside = "distribute or communicate around the workspace, not inside of its computation";
            let beside = "distribute or communicate around the workspace, not where it is used";
            surroundings(consumer, around, Some((made.name(), beside)))?;
            surroundings(producer, around, Some((made.name(), inside)))
        }
        StatementNode::Forall(this, body) => {
            let variable = || this.variable.clone();
            if let Execution::Parallel(unit) = this.execution
                && let Some((outer, outer_unit)) = around.iter().find_map(|outer| match outer.execution {
                    Execution::Parallel(outer_unit) if (outer_unit, unit) != (Unit::Threads, Unit::Vector) => {
                        Some((outer.variable.clone(), outer_unit))
                    }
                    _ => None,
                })
            {
                return Err(Reason::NestedParallel { variable: variable(), unit, outer, outer_unit });
            }
            let moves = this.level().is_some() || !this.communicate.is_empty();
            if moves && let Some((workspace, advice)) = workspace {
                let tag = if this.level().is_some() { "distributed" } else { "communicating" };
                let workspace = workspace.to_owned();
                return Err(Reason::InsideWorkspace { variable: variable(), tag, workspace, advice });
            }
            let leaf = around.iter().find(|outer| {
                matches!(outer.execution, Execution::Parallel(_)) || outer.unroll > 1 || outer.substitution.is_some()
            });
            if moves && let Some(outer) = leaf {
                let (outer, tag) = (outer.variable.clone(), describe(outer));
                return Err(match this.level() {
                    Some(_) => Reason::DistributedInside { variable: variable(), outer, tag },
                    None => Reason::CommunicatesInside { variable: variable(), outer, tag },
                });
            }
            around.push(this);
            surroundings(body, around, workspace)?;
            around.pop();
            Ok(())
        }
    }
}

/// Each element that is assigned inside of the loop over `variable` belongs to one of its iterations.
pub(super) fn check_races(statement: &Statement, variable: &IndexVariable, body: &StatementNode) -> Result<(), Reason> {
    let private = body.workspaces();
    for site in body.sites() {
        let target = site.target;
        if private.contains(&&target.tensor) || statement.separates(variable, &target.variables) {
            continue;
        }
        let missing: Vec<_> = statement
            .ancestors(variable)
            .into_iter()
            .filter(|ancestor| !target.variables.contains(ancestor))
            .map(|ancestor| ancestor.name().to_owned())
            .collect();
        let missing = if missing.is_empty() { variable.name().to_owned() } else { missing.join(", ") };
        return Err(Reason::Race { variable: variable.clone(), tensor: target.tensor.name().to_owned(), missing });
    }
    Ok(())
}
