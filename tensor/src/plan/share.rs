//! Equal parts of what an operand stores, of which each point of a launch has one.
//!
//! A loop that was divided over the positions of an operand, and distributed, gives each point as many positions,
//! whatever rows these are in (*non-zero* partitions in Yadav, Aiken, Kjolstad, *SpDISTAL: compiling distributed sparse
//! tensor computations*, SC 2022). What a point needs of the levels around follows from what they store: the positions
//! above its own, which are next to each other too, and share at most their first and their last one with other points.

use super::space::Space;
use crate::concrete::{Positions, Relation, Statement};
use crate::format::Level;
use crate::notation::{Access, IndexVariable, TensorVariable};

/// Equal parts of the positions of a level of a tensor, and what goes with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shares {
    /// The position of the tensor among those of the [graph](super::Graph::tensors).
    pub tensor: usize,
    /// The level.
    pub level: usize,
    /// How many parts there are. All but the last ones have the same length: the number of positions over that of
    /// parts, rounded up.
    pub parts: i64,
    /// Of another tensor, which is dense: the dimension in which it is divided, by the coordinates of the outermost
    /// level.
    pub rows: Option<usize>,
}

/// A loop whose values are parts of positions.
struct SharedLoop<'a> {
    positions: &'a Positions,
    parts: i64,
    /// The number of the loop.
    by: usize,
}

impl<'a> SharedLoop<'a> {
    /// That among the loops over `fixed`; none if there is none, or the positions begin below those of other loops.
    fn find(statement: &'a Statement, fixed: &[IndexVariable]) -> Option<Self> {
        let divided = |relation: &'a Relation, positions: &'a Positions| match relation {
            Relation::Divide { parent, outer, pieces, .. } if *parent == positions.position => {
                let by = fixed.iter().position(|variable| variable == outer)?;
                Some(Self { positions, parts: *pieces, by })
            }
            _ => None,
        };
        let outermost = statement.positions().filter(|positions| positions.outermost == 0);
        let mut found = outermost.flat_map(|positions| {
            statement.relations().iter().filter_map(move |relation| divided(relation, positions))
        });
        found.next().filter(|shared| {
            let same = |access: &&Access| access.variables == shared.positions.access.variables;
            accesses(statement, &shared.positions.access.tensor).iter().all(same)
        })
    }
}

/// Whether the values of a loop, one of `fixed`, are parts of the positions of a level of an operand, which is the last
/// one of the result.
pub(super) fn is_by(statement: &Statement, fixed: &[IndexVariable], variable: &IndexVariable) -> bool {
    SharedLoop::find(statement, fixed).is_some_and(|SharedLoop { positions, by, .. }| {
        fixed[by] == *variable && positions.level + 1 == statement.result().format().rank()
    })
}

/// All accesses of a tensor.
fn accesses<'s>(statement: &'s Statement, tensor: &TensorVariable) -> Vec<&'s Access> {
    let sites = statement.body().sites();
    let read = sites.iter().flat_map(|site| site.value.accesses());
    let all = read.chain(sites.iter().map(|site| site.target));
    all.filter(|access| access.tensor.name() == tensor.name()).collect()
}

/// The parts of a space of a tensor that points are given where a loop over `fixed` goes through parts of positions.
pub(super) struct Share<'s> {
    /// The tensor whose positions these are, and the level.
    pub of: (&'s TensorVariable, usize),
    /// How many parts there are.
    pub parts: i64,
    /// The number of the loop whose values are the numbers of the parts.
    pub by: usize,
    /// As of [`Shares`].
    pub rows: Option<usize>,
}

impl<'s> Share<'s> {
    /// None if the loops say nothing of the space.
    pub(super) fn new(
        statement: &'s Statement,
        fixed: &[IndexVariable],
        variable: &TensorVariable,
        space: Space,
    ) -> Option<Self> {
        let SharedLoop { positions, parts, by } = SharedLoop::find(statement, fixed)?;
        let of = &positions.access.tensor;
        let rows = match space {
            Space::Elements => Some(row_of(&accesses(statement, variable), positions.variable(0))?),
            // The root is the only parent of the outermost level.
            Space::Offsets(0) => return None,
            // A result that has the operand's levels.
            Space::Positions(level) if variable == statement.result() && level == positions.level => None,
            Space::Words(_) => return None,
            Space::Offsets(_) | Space::Positions(_) if variable.name() != of.name() => return None,
            Space::Offsets(_) => None,
            Space::Positions(level) if of.format().levels()[level] == Level::Dense && level < positions.level => {
                return None;
            }
            Space::Positions(_) => None,
        };
        Some(Self { of: (of, positions.level), parts, by, rows })
    }
}

/// The dimension of a dense tensor that has a variable in all of its accesses.
fn row_of(accesses: &[&Access], variable: &IndexVariable) -> Option<usize> {
    let dimension = |access: &&Access| access.variables.iter().position(|other| other == variable);
    let first = accesses.first().and_then(dimension)?;
    accesses.iter().all(|access| access.variables[first] == *variable).then_some(first)
}
