//! Dense rows that are summed in blocks, each in registers.
//!
//! In `Y(i,k) = A(i,j) * X(j,k)` a row of the result is a sum of rows of `X`. A compiler keeps the sums of a block of
//! the row in registers, all along the row of `A`, if the block has a fixed length: what is loaded and stored for each
//! element of `A` is a row of `X` then, and not one of `Y` too.

use crate::concrete::{Statement, StatementNode, Unit};
use crate::notation::IndexVariable;
use crate::schedule::{Races, ScheduleError};

/// How many elements a block may have.
const LENGTHS: [i64; 3] = [32, 16, 8];

/// The statement with the loop over `innermost`, a dimension of the result, in blocks around the loops that reduce, if
/// these are directly around it, and its blocks on lanes.
pub(super) fn in_blocks(statement: &Statement, innermost: &IndexVariable) -> Option<Statement> {
    let (mut loops, mut node) = (Vec::new(), statement.body());
    while let StatementNode::Forall(outer, body) = node {
        loops.push(outer.variable.clone());
        node = body;
    }
    let StatementNode::Assign { target, operator: Some(_), value } = node else { return None };
    let is_kept = |variable: &IndexVariable| target.variables.contains(variable);
    let reducing: Vec<IndexVariable> = loops.iter().filter(|variable| !is_kept(variable)).cloned().collect();
    let is_nest = loops.ends_with(&[&reducing[..], std::slice::from_ref(innermost)].concat());
    if reducing.is_empty() || !is_nest || !is_kept(innermost) {
        return None;
    }
    let extent = statement.extent(innermost)?;
    let divides = LENGTHS.into_iter().find(|length| extent % length == 0);
    let length = divides.or_else(|| LENGTHS.into_iter().find(|length| *length <= extent))?;
    let fresh = |wish: &str| {
        let names = (0..).map(|number| format!("{innermost}{wish}{}", "_".repeat(number)));
        names.take(8).find(|name| !statement.is_taken(name))
    };
    let [block, inner, copy, sums] = [fresh("o")?, fresh("i")?, fresh("w")?, fresh("_sums")?];
    let made = || -> Result<Statement, ScheduleError> {
        let (inner, copy) = (IndexVariable::new(&inner), IndexVariable::new(&copy));
        let order = [IndexVariable::new(&block)].into_iter().chain(reducing).chain([inner.clone()]);
        statement
            .split(innermost.clone(), block.as_str(), inner.clone(), length)?
            .reorder(order)?
            .precompute(value.clone(), [inner.clone()], [copy.clone()], &sums)?
            .parallelize(copy, Unit::Vector, Races::Forbidden)?
            .parallelize(inner, Unit::Vector, Races::Forbidden)
    };
    made().ok()
}
