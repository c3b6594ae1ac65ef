//! Which part of a tensor each point of each step is given.

use std::collections::HashMap;
use std::sync::Arc;

use maniple::space::{AnyPoint, Point};
use maniple::{Context, Error, FieldMask, LogicalPartition, Privilege as Held, Projection, Requirement, Target};

use super::error::DistributedError;
use super::operators::operator;
use super::tensor::Tensor;
use crate::plan::{Order, Plan, Privilege};
use crate::rectangle::Rectangle;

/// What is fetched of one tensor.
pub(super) struct Fetch {
    /// For each different table of the pieces that points are given.
    requirements: Vec<Requirement>,
    table_of_step: Vec<usize>,
}

impl Fetch {
    pub(super) fn new(cx: &Context, plan: &Plan, order: &Order, tensor: &Tensor) -> Result<Self, DistributedError> {
        let (name, element) = (tensor.variable().name(), tensor.variable().element());
        let (fixed, privilege) = plan.innermost_fetch(name);
        let privilege = match privilege {
            Privilege::Read => Held::Read,
            Privilege::ReadWrite => Held::ReadWrite,
            Privilege::Write => Held::Discard,
            Privilege::Reduce(reduction) => Held::Reduce(
                operator(reduction, element)
                    .ok_or_else(|| DistributedError::NoOperator { operator: format!("{reduction:?}") })?,
            ),
        };
        let rectangles = plan.rectangles(name, fixed);
        let (mut pieces, mut projections, mut table_of_step) = (Vec::new(), Vec::new(), Vec::new());
        let (mut numbers, mut known, mut tables) = (HashMap::new(), HashMap::new(), HashMap::new());
        for step in 0..order.steps() {
            let piece = |point| {
                let mut values = order.values(step, point);
                values.truncate(fixed.len());
                *known.entry(values).or_insert_with_key(|values| {
                    let parts = rectangles.parts(values);
                    let next = numbers.len() as i64;
                    *numbers.entry(parts.clone()).or_insert_with(|| {
                        pieces.push(parts);
                        next
                    })
                })
            };
            let table: Vec<i64> = (0..order.points()).map(piece).collect();
            let next = projections.len();
            let table = *tables.entry(table).or_insert_with_key(|table: &Vec<i64>| {
                projections.push(by_table(table.clone()));
                next
            });
            table_of_step.push(table);
        }
        let partition = partition(cx, tensor, &pieces)?;
        let requirement = |projection| {
            Requirement::new(Target::Partition(partition.clone(), projection), FieldMask::of(tensor.field()), privilege)
        };
        Ok(Self { requirements: projections.into_iter().map(requirement).collect(), table_of_step })
    }

    /// The number of the table of a step. Steps with the same ask for the same.
    pub(super) fn table(&self, step: i64) -> usize {
        self.table_of_step[step as usize]
    }

    /// What a launch asks for.
    pub(super) fn requirement(&self, table: usize) -> Requirement {
        self.requirements[table].clone()
    }
}

/// The piece of each point, by their numbers.
pub(super) fn by_table(table: Vec<i64>) -> Projection {
    Projection::Color(Arc::new(move |point: AnyPoint| Point([table[point.coords()[0] as usize]]).into()))
}

/// A partition of the tensor into pieces.
fn partition(cx: &Context, tensor: &Tensor, pieces: &[Vec<Rectangle>]) -> Result<LogicalPartition, DistributedError> {
    let pieces = pieces.iter().map(|parts| tensor.space(parts)).collect::<Result<Vec<_>, _>>()?;
    let partitioning = cx.index_partition(tensor.region().space(), pieces.len(), &pieces)?;
    Ok(tensor.region().partition(&partitioning).map_err(Error::from)?)
}
