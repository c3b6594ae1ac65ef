//! Tensors that a text makes by the way: each has the extents that its accesses need.

use std::collections::BTreeMap;

use super::error::{NotationError, NotationErrorKind as Kind};
use super::expression::{Access, Expression};
use super::variable::{IndexVariable, TensorVariable};
use crate::element::ElementType;
use crate::loops::Reduction;

/// A statement as it was read, which is not checked yet.
pub(super) struct Statement {
    pub left: Access,
    pub accumulation: Option<Reduction>,
    pub masks: Vec<Access>,
    pub right: Expression,
}

impl Statement {
    fn accesses(&self) -> impl Iterator<Item = &Access> {
        std::iter::once(&self.left).chain(&self.masks).chain(self.right.accesses())
    }
}

/// The furthest coordinate before which a part of a dimension ends; 0 if there is no part.
pub(super) fn furthest(statements: &[Statement]) -> i64 {
    let accesses = statements.iter().flat_map(Statement::accesses);
    let windows = accesses.flat_map(|access| &access.variables).filter_map(IndexVariable::window);
    windows.filter_map(|window| window.end).max().unwrap_or(0)
}

/// Gives all tensors the extents that their accesses need, where index variables have `extents`, or as many values as
/// the parts of dimensions have that they go through. A dimension is as long as the variable that runs over it; if only
/// parts and shifts are taken of it, as far as these reach.
///
/// # Errors
///
/// [`NotationErrorKind::TwoOrders`](Kind::TwoOrders).
pub(super) fn with_extents(
    statements: &[Statement],
    element: ElementType,
    extents: &[(IndexVariable, i64)],
) -> Result<Vec<Statement>, NotationError> {
    let tensors = Tensors::of(statements, extents)?;
    let sized = |access: &Access| {
        let dimensions = tensors.dimensions.get(access.tensor.name()).map(|dimensions| {
            dimensions.iter().map(|dimension| dimension.whole.unwrap_or(dimension.furthest)).collect::<Vec<_>>()
        });
        let tensor = TensorVariable::new(access.tensor.name(), element, dimensions.unwrap_or_default());
        Access { tensor, ..access.clone() }
    };
    let sized_statement = |statement: &Statement| Statement {
        left: sized(&statement.left),
        accumulation: statement.accumulation,
        masks: statement.masks.iter().map(sized).collect(),
        right: statement.right.with_accesses(&|access| Some(sized(access))),
    };
    Ok(statements.iter().map(sized_statement).collect())
}

/// The facts that accesses tell of a dimension.
#[derive(Clone, Default)]
struct Dimension {
    /// The extent of the first variable that runs over all of it.
    whole: Option<i64>,
    /// How far parts and shifts reach.
    furthest: i64,
}

/// The facts that are known of the tensors, by name.
struct Tensors<'s> {
    first: BTreeMap<&'s str, &'s Access>,
    dimensions: BTreeMap<&'s str, Vec<Dimension>>,
}

impl<'s> Tensors<'s> {
    fn of(statements: &'s [Statement], extents: &[(IndexVariable, i64)]) -> Result<Self, NotationError> {
        let accesses = || statements.iter().flat_map(Statement::accesses);
        let mut known: BTreeMap<&str, i64> =
            extents.iter().map(|(variable, extent)| (variable.name(), *extent)).collect();
        let mut said = BTreeMap::new();
        for window in accesses().flat_map(|access| &access.variables).filter_map(IndexVariable::window) {
            if let Some(extent) = window.extent() {
                said.entry(window.of.name()).or_insert(extent);
            }
        }
        known.extend(said);
        let mut tensors = Self { first: BTreeMap::new(), dimensions: BTreeMap::new() };
        for access in accesses() {
            tensors.add(access, &known)?;
        }
        Ok(tensors)
    }

    fn add(&mut self, access: &'s Access, known: &BTreeMap<&str, i64>) -> Result<(), NotationError> {
        let (name, order) = (access.tensor.name(), access.variables.len());
        let first = *self.first.entry(name).or_insert(access);
        if first.variables.len() != order {
            let (first, second) = (first.to_string(), access.to_string());
            return Err(Kind::TwoOrders { tensor: name.into(), first, second }.at(access.place));
        }
        let dimensions = self.dimensions.entry(name).or_insert_with(|| vec![Dimension::default(); order]);
        for (dimension, variable) in dimensions.iter_mut().zip(&access.variables) {
            let extent = known.get(variable.base().name()).copied().unwrap_or_default();
            match variable.window() {
                None => _ = dimension.whole.get_or_insert(extent),
                Some(window) => dimension.furthest = dimension.furthest.max(window.end.unwrap_or(extent)),
            }
        }
        Ok(())
    }
}
