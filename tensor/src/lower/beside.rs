//! Results that have elements exactly where one operand has some, or something below: these have its levels, or the
//! outer ones, and each element is stored at the operand's position.
//!
//! Nothing is counted and no coordinate is written, and iterations that differ in the operand's position write
//! different elements, whatever levels there are (*structure sharing* in Kjolstad et al., *The tensor algebra
//! compiler*, OOPSLA 2017, section 7, where results of sampled products and of products with vectors have it).

use super::leaf::Lowering;
use super::storage::{Storage, StoragePlace, is_sparse};
use super::support::{GivenAccesses, Support};
use crate::concrete::Statement;
use crate::format::Level;
use crate::loops::{Expression, Statement as Step};
use crate::notation::{Access, IndexVariable, TensorVariable};

/// The access of the only operand that is not dense, given whether no element is written twice, if the result of a
/// statement has elements where this has some, at the same levels or at the outer ones of them.
pub(super) fn pattern(statement: &Statement, once: bool) -> Option<Access> {
    let sites = statement.body.sites();
    let result = statement.result();
    let mut of_result = sites.iter().filter(|site| site.target.tensor == *result);
    let (site, None) = (of_result.next()?, of_result.next()) else { return None };
    let has_identity = site.operator.is_none_or(|operator| operator.identity(result.element()).is_some());
    if !once || statement.accumulates() || !has_identity {
        return None;
    }
    let stored = |tensor: &TensorVariable| is_sparse(tensor) && tensor != result;
    if statement.body.workspaces().into_iter().any(stored) {
        return None;
    }
    let mut accesses = sites.iter().flat_map(|site| site.value.accesses()).filter(|access| stored(&access.tensor));
    let access = accesses.next()?;
    if accesses.any(|other| other.tensor != access.tensor || other.variables != access.variables) {
        return None;
    }
    let (own, of, rank) = (result.format(), access.tensor.format(), result.format().rank());
    let has_same_levels = has_levels_of(&access.tensor)
        && own.is_plain()
        && own.levels().last() == Some(&Level::Compressed)
        && of.levels().starts_with(own.levels())
        && of.properties().starts_with(own.properties())
        && levels(access).take(rank).eq(levels(site.target))
        // Of parts of dimensions, not all that is stored is visited; a diagonal is a part of it, too.
        && access.variables.iter().all(|variable| variable.window().is_none())
        && levels(access).enumerate().all(|(level, own)| levels(access).take(level).all(|above| above != own));
    (has_same_levels && !acts_without(statement, access)).then(|| access.clone())
}

/// The variable of each level.
fn levels(access: &Access) -> impl Iterator<Item = &IndexVariable> {
    access.tensor.format().order().iter().map(|&mode| &access.variables[mode])
}

/// Whether a tensor has dense and compressed levels of whole dimensions.
fn has_levels_of(tensor: &TensorVariable) -> bool {
    let format = tensor.format();
    let is_one = |level: &Level| matches!(level, Level::Dense | Level::Compressed);
    format.is_plain()
        && format.levels().iter().all(is_one)
        && format.properties().iter().all(|level| level.unique && level.ordered && !level.ranges)
}

/// Whether the result may change where `access` stores nothing.
fn acts_without(statement: &Statement, access: &Access) -> bool {
    let mut lowering = Lowering::new(statement, &[]);
    lowering.append_result();
    lowering.visit_all(&|_| true);
    let Some(visit) = lowering.visit(access) else { return true };
    lowering.places[visit] = StoragePlace::Absent;
    lowering.effect(&statement.body, &mut GivenAccesses::default()) != Support::Never
}

impl Lowering<'_> {
    /// Stores an element of the result at the position of an operand's.
    pub(super) fn store_beside(&self, target: &Access, value: Expression) -> Step {
        let Some(Storage::Beside(values, access)) = self.storage.get(target.tensor.name()) else {
            return Step::nothing();
        };
        let rank = target.tensor.format().rank();
        let place = self.visit(access).map(|visit| match &self.places[visit] {
            StoragePlace::Element(_, place) => &**place,
            place => place,
        });
        match place {
            Some(StoragePlace::Level(level, position)) if *level == rank => {
                Step::store(values, [position.clone()], value)
            }
            Some(StoragePlace::Maybe(level, position, is_stored)) if *level == rank => {
                Step::when(is_stored.value().equal(1), Step::store(values, [position.clone()], value))
            }
            // Nothing is stored where the operand has nothing, and sums over its inner levels are complete where these
            // end.
            _ => Step::nothing(),
        }
    }
}
