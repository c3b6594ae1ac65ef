//! Loops over what an operand stores, position by position.

use super::error::Reason;
use super::select;
use crate::concrete::{Loop, Positions, Relation, Statement, StatementNode};
use crate::format::{Format, Level};
use crate::lower;
use crate::notation::{Access, IndexVariable};

pub(super) fn apply(
    statement: &Statement,
    variable: &IndexVariable,
    position: &IndexVariable,
    tensor: &str,
) -> Result<Statement, Reason> {
    let (_, body) = select::find_plain(statement, variable)?;
    select::check_new(statement, [position.name()])?;
    let fused = fused(statement, variable)?;
    let positions = |(access, outermost): (Access, usize)| {
        let (parent, position, level) = (variable.clone(), position.clone(), outermost + fused.len() - 1);
        Positions { parent, position, access, outermost, level }
    };
    let positions = positions(found(statement, &fused, tensor)?);
    check_level(&positions, variable)?;
    if let Some(target) = lower::acts_without(statement, body, &positions.access) {
        let (target, access) = (target.to_string(), positions.access.to_string());
        return Err(Reason::ActsWithout { target, access });
    }
    let mut changed = statement.clone();
    // Where everything is stored there are as many positions as coordinates.
    changed.extents.insert(position.clone(), statement.extents[variable]);
    changed.relations.push(Relation::Positions(positions));
    changed.body = changed
        .body
        .replace(variable, &mut |_, body| StatementNode::Forall(Loop::new(position.clone()), Box::new(body)));
    Ok(changed)
}

/// The variables of the assignment that were fused to `variable`, from the outermost.
fn fused(statement: &Statement, variable: &IndexVariable) -> Result<Vec<IndexVariable>, Reason> {
    match statement.relations.iter().find(|relation| relation.children().contains(&variable)) {
        None => Ok(vec![variable.clone()]),
        Some(Relation::Fuse { outer, inner, .. }) => Ok([fused(statement, outer)?, fused(statement, inner)?].concat()),
        Some(relation) => Err(Reason::PartOfLevel { variable: variable.clone(), relation: relation.to_string() }),
    }
}

/// The access of `tensor` that has `variables` at consecutive levels, and the first of these levels.
fn found(statement: &Statement, variables: &[IndexVariable], tensor: &str) -> Result<(Access, usize), Reason> {
    let name = || tensor.to_owned();
    if statement.result().name() == tensor {
        return Err(Reason::PositionsOfResult { tensor: name() });
    }
    if statement.body.workspaces().iter().any(|workspace| workspace.name() == tensor) {
        return Err(Reason::PositionsOfWorkspace { workspace: name() });
    }
    let sites = statement.body.sites();
    let mut accesses: Vec<&Access> = Vec::new();
    for access in sites.iter().flat_map(|site| site.value.accesses()).filter(|access| access.tensor.name() == tensor) {
        if accesses.iter().all(|other| other.variables != access.variables) {
            accesses.push(access);
        }
    }
    let Some(first) = accesses.first() else {
        let tensors: Vec<&str> = statement.operands().iter().map(|tensor| tensor.name()).collect();
        return Err(Reason::NoTensor { tensor: name(), tensors: tensors.join(", ") });
    };
    let format = first.tensor.format();
    if !has_positions(format) {
        return Err(Reason::NoPositions { tensor: name(), format: format.clone() });
    }
    let outermost = |access: &Access| {
        let levels: Vec<&IndexVariable> = format.order().iter().map(|&mode| &access.variables[mode]).collect();
        levels.windows(variables.len()).position(|levels| levels.iter().copied().eq(variables))
    };
    let fitting: Vec<(&Access, usize)> =
        accesses.iter().filter_map(|access| Some((*access, outermost(access)?))).collect();
    match fitting[..] {
        [(access, outermost)] => Ok((access.clone(), outermost)),
        [] => {
            Err(Reason::NoLevels { variables: listed(variables), accesses: listed(&accesses), format: format.clone() })
        }
        _ => Err(Reason::SeveralAccesses { variables: listed(variables), accesses: listed(&accesses) }),
    }
}

/// Whether levels are of whole dimensions, dense or compressed, with each coordinate once and in order, and segments of
/// positions follow one another; or of entries.
pub(crate) fn has_positions(format: &Format) -> bool {
    let is_segmented = |(level, properties): (&Level, &crate::format::Properties)| match level {
        Level::Dense => true,
        Level::Compressed => properties.ordered && properties.unique && !properties.ranges,
        _ => false,
    };
    format.is_plain() && format.levels().iter().zip(format.properties()).all(is_segmented) || is_of_entries(format)
}

/// Whether a tensor is stored entry by entry: the coordinates of the outermost level with repetitions, and one of each
/// other level for each.
pub(crate) fn is_of_entries(format: &Format) -> bool {
    let first = format.properties().first().is_some_and(|first| !first.unique && !first.ranges);
    let others = format.levels().iter().skip(1).all(|level| *level == Level::Singleton);
    format.is_plain() && format.levels().first() == Some(&Level::Compressed) && first && others
}

fn check_level(positions: &Positions, variable: &IndexVariable) -> Result<(), Reason> {
    let (tensor, format) = (&positions.access.tensor, positions.access.tensor.format().clone());
    let (variable, name) = (variable.clone(), tensor.name().to_owned());
    if is_of_entries(&format) {
        let are_all = positions.outermost == 0 && positions.level + 1 == format.rank();
        return if are_all { Ok(()) } else { Err(Reason::EntryLevels { variable, tensor: name, format }) };
    }
    if format.levels()[positions.level] != Level::Compressed {
        return Err(Reason::DenseLevel { variable, tensor: name, format });
    }
    Ok(())
}

fn listed<T: ToString>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

/// The loops over positions are inside of those that tell where the positions begin.
pub(super) fn check(statement: &Statement) -> Result<(), Reason> {
    for positions in statement.positions() {
        for outer in statement.body.loops() {
            if !statement.descends(&outer.variable, &positions.position) {
                continue;
            }
            let around = statement.body.loops_around(&outer.variable).unwrap_or_default();
            let is_known = |variable: &&IndexVariable| {
                statement.dependencies(variable).iter().all(|dependency| around.contains(dependency))
            };
            if let Some(above) = positions.above().find(|variable| !is_known(variable)) {
                let (variable, above) = (outer.variable.clone(), above.clone());
                return Err(Reason::PositionsOutside { variable, access: positions.access.to_string(), above });
            }
        }
    }
    Ok(())
}

/// Whether a variable is a part of positions, of which there are as many as are stored.
pub(super) fn is_part(statement: &Statement, variable: &IndexVariable) -> Option<String> {
    let mut positions = statement.positions();
    positions
        .find(|positions| statement.descends(variable, &positions.position))
        .map(|positions| positions.access.to_string())
}
