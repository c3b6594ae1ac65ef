//! Functions that commands have in common: finding loops, and making names.

use super::error::Reason;
use crate::concrete::{Execution, Loop, Merge, Statement, StatementNode};
use crate::notation::{IndexVariable, is_name};

/// The loop over `variable` and its body.
pub(super) fn find<'a>(
    statement: &'a Statement,
    variable: &IndexVariable,
) -> Result<(&'a Loop, &'a StatementNode), Reason> {
    statement.body.find(variable).ok_or_else(|| match statement.recovery(variable) {
        Some(relation) => Reason::Derived { variable: variable.clone(), relation: relation.to_string() },
        None => {
            let loops: Vec<_> = statement.body.loops().iter().map(|outer| outer.variable.name()).collect();
            let loops = if loops.is_empty() { "nothing".into() } else { loops.join(", ") };
            Reason::NoLoop { variable: variable.clone(), loops }
        }
    })
}

/// The loop over `variable`, which nothing was decided about so far.
pub(super) fn find_plain<'a>(
    statement: &'a Statement,
    variable: &IndexVariable,
) -> Result<(&'a Loop, &'a StatementNode), Reason> {
    let found = find(statement, variable)?;
    if found.0.is_plain() {
        return Ok(found);
    }
    Err(Reason::Tagged { variable: variable.clone(), tag: describe(found.0) })
}

/// A description of a loop that is not plain.
pub(super) fn describe(outer: &Loop) -> String {
    match outer.execution {
        Execution::Distributed { .. } => "distributed".into(),
        Execution::Parallel(unit) => format!("parallel on {unit}"),
        Execution::Serial if outer.unroll > 1 => "unrolled".into(),
        Execution::Serial if outer.substitution.is_some() => "substituted".into(),
        Execution::Serial if !outer.communicate.is_empty() => format!("communicating {}", outer.communicate.join(", ")),
        Execution::Serial if outer.merge != Merge::default() => format!("merged by {}", outer.merge),
        Execution::Serial => "serial".into(),
    }
}

/// Names that a command makes are new, and differ from one another.
pub(super) fn check_new<'a>(statement: &Statement, names: impl IntoIterator<Item = &'a str>) -> Result<(), Reason> {
    let mut seen = Vec::new();
    for name in names {
        if !is_name(name) {
            return Err(Reason::NoName(name.into()));
        }
        if statement.is_taken(name) {
            return Err(Reason::Taken(name.into()));
        }
        if seen.contains(&name) {
            return Err(Reason::Twice(name.into()));
        }
        seen.push(name);
    }
    Ok(())
}

/// The list of `what` has something in it, and nothing twice.
pub(super) fn check_list<T: PartialEq + ToString>(what: &'static str, list: &[T]) -> Result<(), Reason> {
    if list.is_empty() {
        return Err(Reason::Empty(what));
    }
    match list.iter().enumerate().find(|(position, item)| list[..*position].contains(item)) {
        Some((_, item)) => Err(Reason::Twice(item.to_string())),
        None => Ok(()),
    }
}

/// `value` is at least 1.
pub(super) fn check_positive(what: &'static str, value: i64) -> Result<(), Reason> {
    if value < 1 { Err(Reason::NotPositive { what, value }) } else { Ok(()) }
}

/// The loops over `variables`, which are directly inside of one another in some order, and what is inside of them all.
/// The loops are given from the outside to the inside.
pub(super) fn nest<'a>(
    statement: &'a Statement,
    variables: &[IndexVariable],
) -> Result<(Vec<&'a Loop>, &'a StatementNode), Reason> {
    check_list("variables", variables)?;
    for variable in variables {
        find(statement, variable)?;
    }
    let loops = statement.body.loops();
    let first = loops.iter().find(|outer| variables.contains(&outer.variable)).map(|outer| &outer.variable);
    let (mut next, mut body) = find(statement, first.unwrap_or(&variables[0]))?;
    let mut found = vec![next];
    while found.len() < variables.len() {
        let between = match body {
            StatementNode::Forall(inner, deeper) => {
                let between = &next.variable;
                (next, body) = (inner, deeper);
                if variables.contains(&next.variable) {
                    found.push(next);
                    continue;
                }
                format!("{} is directly inside of {between}", next.variable)
            }
            StatementNode::Where { workspace, .. } => {
                format!("the workspace {workspace} is made inside of {}", next.variable)
            }
            StatementNode::Assign { target, .. } => {
                format!("the assignment to {target} is inside of {}", next.variable)
            }
        };
        let listed: Vec<_> = variables.iter().map(IndexVariable::name).collect();
        return Err(Reason::NotContiguous { listed: listed.join(", "), between });
    }
    Ok((found, body))
}

/// The same statement with a changed loop over `variable`.
pub(super) fn with_loop(statement: &Statement, variable: &IndexVariable, change: impl Fn(&mut Loop)) -> Statement {
    let mut changed = statement.clone();
    changed.body = changed.body.replace(variable, &mut |mut outer, body| {
        change(&mut outer);
        StatementNode::Forall(outer, Box::new(body))
    });
    changed
}
