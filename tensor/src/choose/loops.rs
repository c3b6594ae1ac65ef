//! Candidates that distribute loops.

use super::grids::{Distributed, promising};
use super::places::placements;
use crate::algorithms::Algorithm;
use crate::concrete::{Statement, Substitution, Unit};
use crate::cost::Rates;
use crate::notation::{Access, IndexVariable};
use crate::schedule::{Races, ScheduleError};

/// How many ways to distribute are looked at closely.
const CLOSELY: usize = 8;

/// Everything on one processor.
pub(super) fn on_one(statement: &Statement) -> (String, Algorithm) {
    let placements = placements(statement, &Vec::new());
    ("one processor".to_owned(), Algorithm { statement: leaf(statement.clone()), grid: vec![1], placements })
}

/// The most promising ways to distribute loops, at once and in steps.
pub(super) fn all(statement: &Statement, processors: usize, rates: &Rates) -> Vec<(String, Algorithm)> {
    let loops: Vec<IndexVariable> = statement.spine().iter().map(|outer| outer.variable.clone()).collect();
    let mut found = Vec::new();
    for distributed in promising(statement, &loops, processors, rates, CLOSELY) {
        let names: Vec<_> = distributed.iter().map(|(variable, _)| variable.name()).collect();
        let grid: Vec<String> = distributed.iter().map(|(_, pieces)| pieces.to_string()).collect();
        let name = format!("{} over {}", names.join(", "), grid.join(" x "));
        let algorithm = |scheduled| Algorithm {
            statement: scheduled,
            grid: distributed.iter().map(|(_, pieces)| *pieces).collect(),
            placements: placements(statement, &distributed),
        };
        if let Ok(scheduled) = at_once(statement, &loops, &distributed) {
            found.push((name.clone(), algorithm(leaf(scheduled))));
        }
        let steps = distributed.iter().map(|(_, pieces)| *pieces).max().unwrap_or(1);
        // The longest loop that stays, and not over the result: each step needs other parts of the operands.
        let inside = loops.iter().filter(|variable| !names.contains(&variable.name()));
        let inside = inside.filter(|variable| !is_free(statement, variable));
        let longest = inside.max_by_key(|variable| statement.extent(variable));
        for steps in [steps, 4 * steps] {
            if let Some(divided) = longest.filter(|divided| statement.extent(divided) >= Some(steps))
                && let Ok(scheduled) = in_steps(statement, &loops, &distributed, divided, steps)
            {
                found.push((format!("{name}, {divided} in {steps} steps"), algorithm(leaf(scheduled))));
            }
        }
    }
    found
}

/// All ways to distribute as many loops as a grid has dimensions over it, each tensor fetched at the launch.
pub(super) fn on_grid(statement: &Statement, grid: &[i64]) -> Vec<(String, Algorithm)> {
    let loops: Vec<IndexVariable> = statement.spine().iter().map(|outer| outer.variable.clone()).collect();
    let mut chosen: Vec<Distributed> = vec![Vec::new()];
    for &pieces in grid {
        let longer = |distributed: Distributed| {
            let free = loops.iter().filter(|variable| distributed.iter().all(|(taken, _)| taken != *variable));
            let add = |variable: &IndexVariable| [&distributed[..], &[(variable.clone(), pieces)]].concat();
            free.map(add).collect::<Vec<_>>()
        };
        chosen = chosen.into_iter().flat_map(longer).collect();
    }
    let algorithm = |distributed: Distributed| {
        let scheduled = at_once(statement, &loops, &distributed).ok()?;
        let names: Vec<_> = distributed.iter().map(|(variable, _)| variable.name()).collect();
        let extents: Vec<String> = grid.iter().map(ToString::to_string).collect();
        let placements = placements(statement, &distributed);
        let name = format!("{} over {}", names.join(", "), extents.join(" x "));
        Some((name, Algorithm { statement: leaf(scheduled), grid: grid.to_vec(), placements }))
    };
    chosen.into_iter().filter(|distributed| !distributed.is_empty()).filter_map(algorithm).collect()
}

/// Whether the result is indexed by a variable.
fn is_free(statement: &Statement, variable: &IndexVariable) -> bool {
    let sites = statement.body.sites();
    sites.iter().any(|site| site.target.tensor == *statement.result() && site.target.variables.contains(variable))
}

/// A name like `name`, which the statement does not have.
fn fresh(statement: &Statement, name: &IndexVariable, suffix: &str) -> IndexVariable {
    let mut name = format!("{name}{suffix}");
    while statement.is_taken(&name) {
        name.push('_');
    }
    IndexVariable::new(&name)
}

/// The loops distributed, each tensor fetched at the launch.
fn at_once(
    statement: &Statement,
    loops: &[IndexVariable],
    distributed: &Distributed,
) -> Result<Statement, ScheduleError> {
    let (targets, grid): (Vec<IndexVariable>, Vec<i64>) = distributed.iter().cloned().unzip();
    let outer: Vec<_> = targets.iter().map(|target| fresh(statement, target, "o")).collect();
    let inner: Vec<_> = targets.iter().map(|target| fresh(statement, target, "i")).collect();
    let rest = loops.iter().filter(|variable| !targets.contains(variable));
    let order: Vec<IndexVariable> = targets.iter().chain(rest).cloned().collect();
    let distributed = statement.reorder(order)?.distribute(targets, outer.clone(), inner, &grid)?;
    let tensors: Vec<&str> = statement.tensors().into_iter().map(|tensor| tensor.name()).collect();
    // What is distributed is not empty.
    distributed.communicate(tensors, outer[outer.len() - 1].clone())
}

/// The same, but operands are fetched in steps over a divided loop.
fn in_steps(
    statement: &Statement,
    loops: &[IndexVariable],
    distributed: &Distributed,
    divided: &IndexVariable,
    steps: i64,
) -> Result<Statement, ScheduleError> {
    let (targets, grid): (Vec<IndexVariable>, Vec<i64>) = distributed.iter().cloned().unzip();
    let outer: Vec<_> = targets.iter().map(|target| fresh(statement, target, "o")).collect();
    let inner: Vec<_> = targets.iter().map(|target| fresh(statement, target, "i")).collect();
    let (step, within) = (fresh(statement, divided, "o"), fresh(statement, divided, "i"));
    let rest: Vec<_> =
        loops.iter().filter(|variable| !targets.contains(variable) && *variable != divided).cloned().collect();
    let mut order = targets.clone();
    order.push(divided.clone());
    order.extend(rest.iter().cloned());
    let mut nest = vec![step.clone()];
    nest.extend(inner.iter().chain(&rest).cloned());
    nest.push(within.clone());
    let operands: Vec<&str> = statement.tensors().into_iter().skip(1).map(|tensor| tensor.name()).collect();
    statement
        .reorder(order)?
        .distribute(targets, outer.clone(), inner, &grid)?
        .divide(divided.clone(), step.clone(), within, steps)?
        .reorder(nest)?
        .communicate([statement.result().name()], outer[outer.len() - 1].clone())?
        .communicate(operands, step)
}

/// The statement with the loops below its launches and steps left to a library, if they compute products. Otherwise
/// these loops are in the order in which tensors are stored, and the innermost one runs through neighbours in memory,
/// in vectors.
fn leaf(statement: Statement) -> Statement {
    let mut plain: Vec<IndexVariable> =
        statement.spine().iter().filter(|outer| outer.is_plain()).map(|outer| outer.variable.clone()).collect();
    if let Ok(substituted) = statement.substitute(plain.clone(), Substitution::GEMM) {
        return substituted;
    }
    // Of loops that are equally good, the inner one stays inside.
    let Some(best) = (0..plain.len()).max_by_key(|position| side_by_side(&statement, &plain[*position])) else {
        return statement;
    };
    let last = plain.remove(best);
    plain.sort_by(|one, other| depth(&statement, one).total_cmp(&depth(&statement, other)));
    plain.push(last.clone());
    // Loops as they are can always run.
    let ordered = statement.reorder(plain).unwrap_or(statement);
    let vector = ordered.parallelize(last.clone(), Unit::Vector, Races::Forbidden);
    vector.or_else(|_| ordered.parallelize(last, Unit::Vector, Races::Reduced)).unwrap_or(ordered)
}

/// For each access that a loop is for: the level at which its tensor stores the loop's dimension, the innermost if
/// there are several, and the number of levels.
fn levels(statement: &Statement, variable: &IndexVariable) -> Vec<(usize, usize)> {
    let original = statement.ancestors(variable);
    let level = |access: &Access| {
        let format = access.tensor.format();
        let innermost = format.order().iter().rposition(|&mode| original.contains(&access.variables[mode]))?;
        Some((innermost, format.order().len()))
    };
    let sites = statement.body.sites();
    sites.iter().flat_map(|site| std::iter::once(site.target).chain(site.value.accesses())).filter_map(level).collect()
}

/// How many more accesses run through neighbours in memory in a loop than jump.
fn side_by_side(statement: &Statement, variable: &IndexVariable) -> i64 {
    let levels = levels(statement, variable);
    levels.into_iter().map(|(level, count)| if level + 1 == count { 1 } else { -1 }).sum()
}

/// How deep inside a loop belongs, so that tensors are used as they are stored: minus the mean number of levels below
/// its own.
fn depth(statement: &Statement, variable: &IndexVariable) -> f64 {
    let levels = levels(statement, variable);
    let below: usize = levels.iter().map(|(level, count)| count - level - 1).sum();
    -(below as f64) / levels.len().max(1) as f64
}
