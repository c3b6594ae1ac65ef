//! The loops of a statement on what is stored, where none are given: their order, workspaces, threads, and which
//! operands have to be converted.

use super::blocks::in_blocks;
use super::order::{compressed, edges, in_order, native};
use crate::concrete::{Loop, Statement, StatementNode, Unit};
use crate::format::{Format, Level};
use crate::lower::{Appending, adds_up};
use crate::notation::{Access, Assignment, IndexVariable, TensorVariable};
use crate::schedule::{Races, ScheduleError};

/// Rows that have more columns are gathered in hash tables, which are as large as what is gathered: of others each
/// thread has a place for each column.
const MOST_PLACES: i64 = 1 << 24;

/// An operand in another format than it has, or as it was before it is changed; under another name, if its own is used
/// too.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Renamed {
    pub(super) name: String,
    pub(super) of: String,
    pub(super) format: Format,
}

/// A statement, and the operands that it uses under other names.
#[derive(Clone, Debug)]
pub(super) struct Arranged {
    pub(super) statement: Statement,
    pub(super) renamed: Vec<Renamed>,
}

/// A statement whose loops follow what is stored, or are in a given order from the outermost.
pub(super) fn arrange(assignment: &Assignment, order: Option<&[IndexVariable]>) -> Arranged {
    arrange_converted(assignment, order, &[])
}

/// The same with these operands in compressed levels, through whose positions loops can go.
pub(super) fn arrange_converted(
    assignment: &Assignment,
    order: Option<&[IndexVariable]>,
    converted: &[String],
) -> Arranged {
    let arranged = in_loops(Statement::new(assignment), order, converted);
    let is_once = Appending::new(&arranged.statement).is_none_or(|appending| appending.once);
    if is_once || adds_up(&arranged.statement) {
        return arranged;
    }
    in_loops(Statement::with_scalars(assignment), order, converted)
}

/// The loops of an assignment that can be in any order, from the outermost.
pub(super) fn free_loops(assignment: &Assignment) -> Vec<IndexVariable> {
    nest(&Statement::new(assignment).body).0
}

fn in_loops(mut statement: Statement, given: Option<&[IndexVariable]>, in_compressed: &[String]) -> Arranged {
    let mut renamed = Vec::new();
    let (nest, inside) = nest(&statement.body);
    let result = statement.result().clone();
    let accesses: Vec<Access> = inside
        .sites()
        .iter()
        .flat_map(|site| site.value.accesses())
        .filter(|access| !is_made_here(&statement, access))
        .cloned()
        .collect();
    let used_as = |access: &Access| match in_compressed.iter().any(|name| name == access.tensor.name()) {
        true => compressed(access.tensor.format()),
        false => native(access.tensor.format()),
    };
    let formats: Vec<Format> = accesses.iter().map(used_as).collect();
    let first_of_result = order_of_result(&statement, &nest);
    let before: Vec<(IndexVariable, IndexVariable)> =
        accesses.iter().zip(&formats).flat_map(|(access, format)| edges(access, format, &nest)).collect();
    let is_sparse = |variable: &IndexVariable| {
        let mut sparse = accesses.iter().zip(&formats).filter(|(_, format)| !format.is_dense());
        sparse.any(|(access, _)| access.variables.iter().any(|own| own.base() == variable))
    };
    let wanted: Vec<IndexVariable> = first_of_result
        .iter()
        .chain(nest.iter().filter(|variable| !first_of_result.contains(variable)))
        .cloned()
        .collect();
    let order = match given {
        Some(given) => given.to_vec(),
        None => in_order(&wanted, &before, &is_sparse),
    };
    let place = |variable: &IndexVariable| order.iter().position(|other| other == variable);
    let mut used: Vec<(Access, Format)> = Vec::new();
    for (access, mut format) in accesses.into_iter().zip(formats) {
        if edges(&access, &format, &nest).iter().any(|(first, then)| place(first) > place(then)) {
            format = converted(&format, |mode| place(access.variables[mode].base()));
        }
        if !used.iter().any(|(other, _)| *other == access) {
            used.push((access, format));
        }
    }
    let is_other = |(access, format): &(Access, Format)| {
        *format != *access.tensor.format() || access.tensor.name() == result.name()
    };
    let as_they_are: Vec<String> =
        used.iter().filter(|own| !is_other(own)).map(|(access, _)| access.tensor.name().to_owned()).collect();
    let mut replaced: Vec<(Access, TensorVariable)> = Vec::new();
    for (access, format) in used.into_iter().filter(is_other) {
        let own = access.tensor.name();
        let known = renamed.iter().find(|known: &&Renamed| known.of == own && known.format == format);
        let name = known.map(|known| known.name.clone()).unwrap_or_else(|| {
            let is_new = |name: &str| !renamed.iter().any(|renamed| renamed.name == name);
            // What is used in one format alone keeps its name.
            let keeps = own != result.name() && is_new(own) && !as_they_are.iter().any(|name| name == own);
            let taken = |name: &str| !(keeps && name == own) && (statement.is_taken(name) || !is_new(name));
            let name = fresh(own, &taken);
            renamed.push(Renamed { name: name.clone(), of: own.to_owned(), format: format.clone() });
            name
        });
        let tensor = access.tensor.renamed(&name).stored(format);
        replaced.push((access, tensor));
    }
    statement = statement.with_tensors(&|access| {
        let found = replaced.iter().find(|(other, _)| *other == *access);
        found.map(|(_, tensor)| tensor.clone())
    });
    statement.body = reordered(statement.body.clone(), &order);
    Arranged { statement: gathered(statement), renamed }
}

/// The statement with its outermost loop on threads, where iterations write different elements or all combine values
/// into the only one, and its innermost on lanes if nothing sparse has its variable, where they do so or combine values
/// into a register.
pub(super) fn on_threads(statement: &Statement) -> Statement {
    let spine: Vec<IndexVariable> = statement.spine().iter().map(|outer| outer.variable.clone()).collect();
    let parallel = |statement: &Statement, variable: &IndexVariable, unit, is_reduced: bool| {
        let made = statement.parallelize(variable.clone(), unit, Races::Forbidden);
        match is_reduced {
            true => made.or_else(|_| statement.parallelize(variable.clone(), unit, Races::Reduced)),
            false => made,
        }
        .unwrap_or_else(|_| statement.clone())
    };
    let is_scalar = statement.result().order() == 0;
    let mut made = match spine.first() {
        Some(outermost) => parallel(statement, outermost, Unit::Threads, is_scalar),
        None => return statement.clone(),
    };
    let sites = made.body().sites();
    let is_dense = |variable: &IndexVariable| {
        let mut accesses = sites.iter().flat_map(|site| site.value.accesses());
        accesses.all(|access| {
            access.tensor.format().is_dense() || access.variables.iter().all(|own| own.base() != variable)
        })
    };
    if let [_, .., innermost] = &spine[..]
        && is_dense(innermost)
        && Appending::new(&made).is_none_or(|appending| appending.pattern.is_some())
    {
        made = in_blocks(&made, innermost).unwrap_or_else(|| parallel(&made, innermost, Unit::Vector, true));
    }
    made
}

/// The statement with its outermost loops distributed over a grid, as far as there are loops, in no more blocks than a
/// loop is long; and the first loop inside of that on threads, where iterations write different elements.
pub(super) fn on_grid(statement: &Statement, grid: &[i64]) -> Result<Statement, ScheduleError> {
    let targets: Vec<IndexVariable> =
        statement.spine().iter().take(grid.len()).map(|outer| outer.variable.clone()).collect();
    if targets.is_empty() {
        return Ok(statement.clone());
    }
    let extent = |variable| statement.extent(variable).unwrap_or(1).max(1);
    let grid: Vec<i64> = grid.iter().zip(&targets).map(|(&blocks, target)| blocks.min(extent(target))).collect();
    let named = |suffix: &str| -> Vec<IndexVariable> {
        let taken = |name: &str| statement.is_taken(name);
        targets.iter().map(|variable| IndexVariable::new(&fresh(&format!("{variable}{suffix}"), &taken))).collect()
    };
    let (outer, inner) = (named("o"), named("i"));
    let distributed = statement.distribute(targets.clone(), outer, inner.clone(), &grid)?;
    let Some(first) = inner.first() else { return Ok(distributed) };
    Ok(distributed.parallelize(first.clone(), Unit::Threads, Races::Forbidden).unwrap_or(distributed))
}

/// Whether an access is of a workspace.
fn is_made_here(statement: &Statement, access: &Access) -> bool {
    statement.body.workspaces().iter().any(|workspace| workspace.name() == access.tensor.name())
}

/// The variables of the loops directly inside of one another from here on, and what is inside of them.
pub(super) fn nest(node: &StatementNode) -> (Vec<IndexVariable>, &StatementNode) {
    let (mut variables, mut node) = (Vec::new(), node);
    while let StatementNode::Forall(outer, body) = node {
        variables.push(outer.variable.clone());
        node = body;
    }
    (variables, node)
}

/// The loops over the result's variables, in the order of its levels.
pub(super) fn order_of_result(statement: &Statement, nest: &[IndexVariable]) -> Vec<IndexVariable> {
    let sites = statement.body.sites();
    let site = sites.iter().find(|site| site.target.tensor == *statement.result());
    let Some(target) = site.map(|site| site.target) else { return Vec::new() };
    let format = target.tensor.format();
    let modes: Vec<usize> = if format.is_plain() { format.order().to_vec() } else { (0..format.rank()).collect() };
    modes.iter().map(|&mode| target.variables[mode].clone()).filter(|variable| nest.contains(variable)).collect()
}

/// The nest of a statement in an order, and those inside of it each in one that levels allow.
fn reordered(node: StatementNode, order: &[IndexVariable]) -> StatementNode {
    let mut loops: Vec<Loop> = Vec::new();
    let mut node = node;
    while let StatementNode::Forall(outer, body) = node {
        loops.push(outer);
        node = *body;
    }
    let place = |outer: &Loop| order.iter().position(|variable| *variable == outer.variable);
    loops.sort_by_key(place);
    let inside = match node {
        StatementNode::Where { workspace, consumer, producer } => {
            let [consumer, producer] = [consumer, producer].map(|node| {
                let (variables, inside) = nest(&node);
                let accesses: Vec<Access> =
                    inside.sites().iter().flat_map(|site| site.value.accesses()).cloned().collect();
                let before: Vec<_> =
                    accesses.iter().flat_map(|access| edges(access, access.tensor.format(), &variables)).collect();
                let is_sparse = |variable: &IndexVariable| {
                    accesses
                        .iter()
                        .filter(|access| !access.tensor.format().is_dense())
                        .any(|access| access.variables.iter().any(|own| own.base() == variable))
                };
                Box::new(reordered(*node, &in_order(&variables, &before, &is_sparse)))
            });
            StatementNode::Where { workspace, consumer, producer }
        }
        other => other,
    };
    inside.in_loops(loops.into_iter())
}

/// The same, with a workspace for the rows of a result that is appended to where a loop that reduces is around that of
/// one of its variables (Kjolstad et al., CGO 2019).
fn gathered(statement: Statement) -> Statement {
    let Some(appending) = Appending::new(&statement) else { return statement };
    let (variables, inside) = nest(&statement.body);
    let StatementNode::Assign { target, value, .. } = inside else { return statement };
    let is_kept = |variable: &&IndexVariable| target.variables.contains(variable);
    let first = variables.iter().position(|variable| !is_kept(&variable)).unwrap_or(variables.len());
    let kept: Vec<&IndexVariable> = variables[first..].iter().filter(is_kept).collect();
    let ([gathered], false) = (&kept[..], appending.once) else { return statement };
    let taken = |name: &str| statement.is_taken(name);
    let (row, copy) = (fresh("w", &taken), fresh(gathered.name(), &taken));
    let made = statement.precompute(value.clone(), [(*gathered).clone()], [IndexVariable::new(&copy)], &row);
    let Ok(made) = made else { return statement };
    let is_large = statement.extent(gathered).is_some_and(|extent| extent > MOST_PLACES);
    let list = if is_large { "{H}" } else { "{C~o}" };
    list.parse().ok().and_then(|list| made.store(&row, list).ok()).unwrap_or(made)
}

pub(super) fn fresh(wish: &str, is_taken: &dyn Fn(&str) -> bool) -> String {
    let names = std::iter::once(wish.to_owned()).chain((1..).map(|number| format!("{wish}_{number}")));
    names.into_iter().find(|name| !is_taken(name)).unwrap_or_default()
}

/// A format with the levels of another one, in the order that `place` gives modes.
fn converted(format: &Format, place: impl Fn(usize) -> Option<usize>) -> Format {
    let mut modes: Vec<usize> = (0..format.rank()).collect();
    modes.sort_by_key(|&mode| place(mode));
    let kind = |mode: &usize| match format.level_of(*mode).map(|level| format.levels()[level]) {
        Some(Level::Dense) => Level::Dense,
        _ => Level::Compressed,
    };
    let mut levels: Vec<Level> = modes.iter().map(kind).collect();
    // A dense level below a compressed one would store all that is between; the first is found at once.
    levels[1..].fill(Level::Compressed);
    if format.levels().first() == Some(&Level::Dense) {
        levels[0] = Level::Dense;
    }
    Format::new(levels, modes).unwrap_or_else(|_| Format::dense(format.rank()))
}
