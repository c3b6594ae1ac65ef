//! Operands in blocks, as tensors that have a dimension for each level.
//!
//! A matrix in `(i,j) -> (i/2: D, j/4: C, i%2: D, j%4: D)` stores what a tensor of order four in `{D,C,D,D}` does. If
//! the loops over `i` and `j` are split into blocks of the same lengths, their variables are those of an access of that
//! tensor, and kernels go through blocks as they are stored. Without a schedule loops are split and ordered for that;
//! the loops of a schedule are taken as they are, if they fit. Else operands are converted.

use std::collections::BTreeMap;

use super::arrange::{Arranged, Renamed, fresh, nest};
use super::order::{edges, in_order, native};
use crate::concrete::{Relation, Site, Statement, StatementNode};
use crate::format::{Level, LevelExpression};
use crate::notation::{Access, Assignment, IndexVariable, TensorVariable};

/// The blocks of a variable: how long they are, the variable of their numbers, and that of the places in them.
#[derive(Clone)]
struct Blocks {
    length: i64,
    outer: IndexVariable,
    inner: IndexVariable,
}

/// An operand that is converted, but may be used as it is stored.
struct Operand<'a> {
    renamed: usize,
    /// As the assignment has it.
    stored: &'a TensorVariable,
    /// The tensor that has a dimension for each level.
    reshaped: TensorVariable,
    /// The accesses that read it.
    accesses: Vec<Access>,
}

/// A statement as it is arranged, with its loops split and ordered for operands in blocks, so that these are not
/// converted; none if there are none, or other operands would suffer.
pub(super) fn in_blocks(assignment: &Assignment, arranged: &Arranged) -> Option<Arranged> {
    let Arranged { statement, renamed } = arranged;
    let (loops, inside) = nest(statement.body());
    if !matches!(inside, StatementNode::Assign { .. }) {
        return None;
    }
    let mut lengths: BTreeMap<IndexVariable, i64> = BTreeMap::new();
    let mut operands = operands(assignment, arranged);
    operands.retain(|operand| {
        let mut own = lengths.clone();
        let fits = operand.blocks().all(|(variable, length)| {
            loops.contains(&variable) && *own.entry(variable.clone()).or_insert(length) == length
        });
        if fits {
            lengths = own;
        }
        fits
    });
    let is_split = |variable: &IndexVariable| lengths.contains_key(variable.base());
    let is_used = |access: &Access| operands.iter().any(|operand| operand.accesses.contains(access));
    let searches = |access: &Access| {
        !access.tensor.format().is_dense() && !is_used(access) && access.variables.iter().any(is_split)
    };
    // Of coordinates that are stored one by one, each block would have to be searched for.
    let is_searched = |operand: &Operand<'_>| operand.whole().any(|variable| is_split(&variable));
    if operands.is_empty() || accesses(statement).any(searches) || operands.iter().any(is_searched) {
        return None;
    }
    let (mut split, mut blocks): (_, BTreeMap<IndexVariable, Blocks>) = (statement.clone(), BTreeMap::new());
    for (variable, &length) in &lengths {
        let named =
            |suffix: &str| IndexVariable::new(&fresh(&format!("{variable}{suffix}"), &|name| statement.is_taken(name)));
        let (outer, inner) = (named("_block"), named("_in"));
        split = split.split(variable.clone(), outer.clone(), inner.clone(), length).ok()?;
        blocks.insert(variable.clone(), Blocks { length, outer, inner });
    }
    let Arranged { statement: split, renamed } =
        replaced(&split, renamed, &operands, &|variable| blocks.get(variable).cloned())?;
    let (wanted, _) = nest(split.body());
    let mut before: Vec<(IndexVariable, IndexVariable)> = Vec::new();
    for access in accesses(&split) {
        before.extend(edges(access, access.tensor.format(), &wanted));
        if operands.iter().any(|operand| operand.reshaped == access.tensor) {
            // As it is stored, dense levels too.
            before.extend(access.variables.windows(2).map(|pair| (pair[0].clone(), pair[1].clone())));
        }
    }
    let order = in_order(&wanted, &before, &|_| false);
    let mut first: Vec<IndexVariable> = Vec::new();
    for variable in order.iter().flat_map(|variable| split.ancestors(variable)) {
        if !first.contains(&variable) {
            first.push(variable);
        }
    }
    let split = split.reorder(order).ok().filter(|_| first == loops)?;
    is_in_order(&split, &operands).then_some(Arranged { statement: split, renamed })
}

/// A statement that is scheduled, with those operands as they are stored whose blocks its loops go through.
pub(super) fn as_scheduled(assignment: &Assignment, arranged: &Arranged) -> Option<Arranged> {
    let Arranged { statement, renamed } = arranged;
    let blocks = |variable: &IndexVariable| match statement.recovery(variable)? {
        Relation::Split { outer, inner, factor: length, .. } | Relation::Divide { outer, inner, length, .. } => {
            // Division may leave blocks at the end that have nothing, and are not stored.
            let count = (statement.extent(variable)? + length - 1) / (*length).max(1);
            let is_all = statement.extent(outer) == Some(count);
            is_all.then(|| Blocks { length: *length, outer: outer.clone(), inner: inner.clone() })
        }
        _ => None,
    };
    let mut fitting = operands(assignment, arranged);
    fitting.retain(|operand| {
        let found = replaced(statement, renamed, std::slice::from_ref(operand), &blocks);
        found.is_some_and(|made| is_in_order(&made.statement, std::slice::from_ref(operand)))
    });
    if fitting.is_empty() { None } else { replaced(statement, renamed, &fitting, &blocks) }
}

/// The operands in blocks that could be used as they are.
fn operands<'a>(assignment: &'a Assignment, arranged: &Arranged) -> Vec<Operand<'a>> {
    let Arranged { statement, renamed } = arranged;
    let result = statement.result();
    if !result.format().is_dense() || !result.format().is_plain() {
        return Vec::new();
    }
    let tensors = assignment.right().accesses().into_iter().map(|access| &access.tensor);
    let tensors: Vec<&TensorVariable> = tensors.filter(|tensor| tensor.name() != result.name()).collect();
    let operand = |(number, own): (usize, &Renamed)| {
        let stored = *tensors.iter().find(|tensor| tensor.name() == own.of)?;
        let (format, extents) = stored.format().reshaped(stored.dimensions())?;
        let is_asked_for = |access: &Access| access.tensor.name() == own.name;
        let sites = statement.body().sites();
        let is_tested = |site: &Site<'_>| site.value.tests().iter().any(|(_, access)| is_asked_for(access));
        let is_of_positions = statement.positions().any(|positions| is_asked_for(&positions.access));
        // Without coordinates there are no places in blocks, over which loops may be the outermost.
        let is_empty = stored.dimensions().contains(&0);
        if is_empty || format.is_dense() || native(&format) != format || is_of_positions || sites.iter().any(is_tested)
        {
            return None;
        }
        let reshaped = TensorVariable::new(&own.name, stored.element(), extents).stored(format).filled(stored.fill());
        let accesses: Vec<Access> = accesses(statement).filter(|access| is_asked_for(access)).cloned().collect();
        Some(Operand { renamed: number, stored, reshaped, accesses })
    };
    renamed.iter().enumerate().filter_map(operand).collect()
}

impl Operand<'_> {
    fn expressions(&self) -> &[LevelExpression] {
        self.stored.format().expressions()
    }

    /// The variables of dimensions that are in blocks, and how long these are.
    fn blocks(&self) -> impl Iterator<Item = (IndexVariable, i64)> {
        self.accesses.iter().flat_map(|access| {
            self.expressions().iter().filter_map(|expression| match expression {
                LevelExpression::Block(mode, length) => Some((access.variables[*mode].clone(), *length)),
                _ => None,
            })
        })
    }

    /// The variables of dimensions whose coordinates are stored as they are.
    fn whole(&self) -> impl Iterator<Item = IndexVariable> {
        let levels = self.stored.format().levels();
        self.accesses.iter().flat_map(move |access| {
            self.expressions().iter().zip(levels).filter_map(|(expression, level)| match expression {
                LevelExpression::Mode(mode) if *level != Level::Dense => Some(access.variables[*mode].clone()),
                _ => None,
            })
        })
    }

    /// The access of the reshaped tensor, if its variables are in blocks as it is stored.
    fn access(&self, access: &Access, blocks: &dyn Fn(&IndexVariable) -> Option<Blocks>) -> Option<Access> {
        let of = |mode: usize, length: i64| blocks(&access.variables[mode]).filter(|blocks| blocks.length == length);
        let variable = |expression: &LevelExpression| match expression {
            LevelExpression::Block(mode, length) => of(*mode, *length).map(|blocks| blocks.outer),
            LevelExpression::Within(mode, length) => of(*mode, *length).map(|blocks| blocks.inner),
            LevelExpression::Mode(mode) => Some(access.variables[*mode].clone()),
            _ => None,
        };
        let variables = self.expressions().iter().map(variable).collect::<Option<Vec<_>>>()?;
        Some(Access { tensor: self.reshaped.clone(), variables, ..access.clone() })
    }
}

/// A statement that reads operands as they are stored; none if it has others blocks than one of them.
fn replaced(
    statement: &Statement,
    renamed: &[Renamed],
    operands: &[Operand<'_>],
    blocks: &dyn Fn(&IndexVariable) -> Option<Blocks>,
) -> Option<Arranged> {
    let mut others: Vec<(&Access, Access)> = Vec::new();
    for operand in operands {
        for access in &operand.accesses {
            others.push((access, operand.access(access, blocks)?));
        }
    }
    let other = |access: &Access| others.iter().find(|(own, _)| *own == access).map(|(_, other)| other.clone());
    let mut renamed = renamed.to_vec();
    operands.iter().for_each(|operand| renamed[operand.renamed].format = operand.stored.format().clone());
    Some(Arranged { statement: statement.with_accesses(&other), renamed })
}

/// Whether loops have the coordinates of each stored level of operands after those of the levels above.
fn is_in_order(statement: &Statement, operands: &[Operand<'_>]) -> bool {
    let loops = statement.body().loops();
    let place = |variable: &IndexVariable| {
        let places = statement.dependencies(variable).into_iter();
        let places = places.filter_map(|own| loops.iter().position(|outer| outer.variable == own));
        places.max()
    };
    let is_ordered = |access: &Access| {
        let levels: &[Level] = access.tensor.format().levels();
        (0..levels.len()).filter(|&level| levels[level] != Level::Dense).all(|level| {
            let (above, own) = access.variables.split_at(level);
            above.iter().all(|above| place(above) < place(&own[0]))
        })
    };
    let is_one = |access: &&Access| operands.iter().any(|operand| operand.reshaped == access.tensor);
    accesses(statement).filter(is_one).all(is_ordered)
}

/// The accesses that a statement reads.
fn accesses(statement: &Statement) -> impl Iterator<Item = &Access> {
    statement.body().sites().into_iter().flat_map(|site| site.value.accesses())
}
