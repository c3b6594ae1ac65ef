//! The privileges on the result.
//!
//! Between the points of a launch, parts of the result are disjoint if any two points differ in a block of one of its
//! dimensions. That holds if each of the launch's variables counts blocks of a dimension (or is one), all else that the
//! dimension depends on being known at the launch; or blocks of a loop that several dimensions were fused to. Where
//! that does not tell, the parts themselves do. Otherwise points may meet, and values are combined with the operator of
//! the assignment.

use super::share;
use super::step::Privilege;
use crate::bounds::{self, RectangleOf};
use crate::concrete::{Relation, Statement};
use crate::notation::{Access, IndexVariable};
use crate::rectangle::{self, Rectangle};

/// The privilege of each point of a launch over `variables` on the result, when `fixed`, which include them, have
/// values; none if points would write overlapping rectangles without an operator to combine values.
pub(super) fn of_launch(
    statement: &Statement,
    variables: &[IndexVariable],
    fixed: &[IndexVariable],
) -> Option<Privilege> {
    let apart = targets(statement)
        .into_iter()
        .all(|target| variables.iter().all(|variable| is_apart(statement, variable, &target.variables, fixed)));
    if apart {
        return Some(of_step(statement, fixed, false));
    }
    // One point is apart from all others, of which there are none.
    if variables.iter().all(|variable| statement.extents[variable] <= 1) {
        return Some(of_step(statement, fixed, false));
    }
    let whole = || are_disjoint(statement, variables, fixed).then(|| of_step(statement, fixed, false));
    statement.reduction().map(Privilege::Reduce).or_else(whole)
}

/// The same where elements of the result are stored at the positions of an operand: each of these is one point's, if
/// points have parts of the positions, or rows, which have these modes, of dense levels with one level below them.
pub(super) fn of_elements(
    statement: &Statement,
    modes: &[usize],
    variables: &[IndexVariable],
    fixed: &[IndexVariable],
) -> Option<Privilege> {
    let several: Vec<&IndexVariable> = several(statement, variables).collect();
    let has_parts = || matches!(several[..], [variable] if share::is_by(statement, fixed, variable));
    let has_rows = || {
        modes.len() + 1 == statement.result().format().rank() && of_rows(statement, modes, variables, fixed).is_some()
    };
    (several.is_empty() || has_parts() || has_rows()).then_some(Privilege::ReadWrite)
}

/// The same where rows of the result, which have these modes, are assembled: each is one point's.
pub(super) fn of_rows(
    statement: &Statement,
    modes: &[usize],
    variables: &[IndexVariable],
    fixed: &[IndexVariable],
) -> Option<Privilege> {
    let apart = targets(statement).into_iter().all(|target| {
        let rows: Vec<IndexVariable> = modes.iter().map(|&mode| target.variables[mode].clone()).collect();
        several(statement, variables).all(|variable| is_apart(statement, variable, &rows, fixed))
    });
    apart.then_some(Privilege::Write)
}

/// The variables of those loops that make more than one point.
fn several<'v>(statement: &'v Statement, variables: &'v [IndexVariable]) -> impl Iterator<Item = &'v IndexVariable> {
    variables.iter().filter(|variable| statement.extents[*variable] > 1)
}

/// More points are not looked at one by one.
const MOST_POINTS: i64 = 1 << 10;

/// Whether the parts of any two points of a launch are disjoint, where variables do not tell.
fn are_disjoint(statement: &Statement, variables: &[IndexVariable], fixed: &[IndexVariable]) -> bool {
    let count = |variables: &[IndexVariable]| {
        let extents = variables.iter().map(|variable| statement.extents[variable]);
        extents.fold(1, |product: i64, extent| product.saturating_mul(extent))
    };
    let all = count(fixed);
    if all > MOST_POINTS {
        return false;
    }
    let values = |mut number: i64| {
        let mut values = vec![0; fixed.len()];
        for (value, variable) in values.iter_mut().zip(fixed).rev() {
            (*value, number) = (number % statement.extents[variable], number / statement.extents[variable]);
        }
        values
    };
    let of = RectangleOf::new(statement, statement.inside(fixed), statement.result().name(), fixed);
    let parts: Vec<Vec<Rectangle>> = (0..all).map(|number| of.parts(&values(number))).collect();
    // Points of one launch follow one another.
    parts.chunks(count(variables).max(1) as usize).all(|launch| rectangle::are_disjoint(launch.iter().flatten()))
}

/// Whether the leaf inside of the loops over `fixed` makes elements of the result whole: all that is combined into one,
/// and in parts that have no others.
pub(super) fn is_made_whole(statement: &Statement, fixed: &[IndexVariable]) -> bool {
    targets(statement).into_iter().all(|target| {
        fixed.iter().all(|variable| is_apart(statement, variable, &target.variables, fixed))
            && target.variables.iter().all(|variable| bounds::is_exact_in_parts(statement, variable, fixed))
    })
}

/// The privilege on the result when `fixed` have values, and no other point uses the same part.
pub(super) fn of_step(statement: &Statement, fixed: &[IndexVariable], reduced: bool) -> Privilege {
    match statement.reduction() {
        Some(operator) if reduced => Privilege::Reduce(operator),
        Some(_) => Privilege::ReadWrite,
        None => {
            let reads = statement.operands().contains(statement.result());
            let all = targets(statement).into_iter().all(|target| {
                target.variables.iter().all(|variable| bounds::is_exact_in_parts(statement, variable, fixed))
            });
            if all && !reads { Privilege::Write } else { Privilege::ReadWrite }
        }
    }
}

/// The result's accesses that are assigned.
fn targets(statement: &Statement) -> Vec<&Access> {
    let sites = statement.body.sites();
    sites.into_iter().map(|site| site.target).filter(|target| target.tensor == *statement.result()).collect()
}

/// Whether points that differ in `variable` alone have disjoint intervals of one of `among`.
fn is_apart(statement: &Statement, variable: &IndexVariable, among: &[IndexVariable], fixed: &[IndexVariable]) -> bool {
    let known = |other: &IndexVariable| statement.dependencies(other).iter().all(|loops| fixed.contains(loops));
    among.contains(variable)
        || statement.relations().iter().any(|relation| {
            let keeps = match relation {
                Relation::Split { outer, inner, .. }
                | Relation::SplitAt { outer, inner, .. }
                | Relation::Divide { outer, inner, .. } => outer == variable || inner == variable && known(outer),
                Relation::Bound { bounded, .. } => bounded == variable,
                // A block that is rotated may wrap around, and is then a part of a rectangle that has more.
                Relation::Rotate { result, by, .. } => result == variable && known(result) && by.iter().all(known),
                // Different parts of it are different pairs: see `RectangleOf::parts`.
                Relation::Fuse { fused, .. } => fused == variable,
                // Parts of what is stored may be parts of one row; results are assigned whole, not in windows.
                Relation::Positions(_) | Relation::Window { .. } => false,
            };
            keeps && relation.parents().into_iter().all(|parent| is_apart(statement, parent, among, fixed))
        })
}
