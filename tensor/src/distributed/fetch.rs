//! Which part of a tensor each point of each step is given.

use std::collections::HashMap;
use std::sync::Arc;

use maniple::space::{AnyPoint, Point};
use maniple::{Context, Error, FieldMask, LogicalPartition, Privilege as Held, Projection, Requirement, Target};

use super::error::DistributedError;
use super::operators::operator;
use super::tensor::Tensor;
use crate::bounds::Colors;
use crate::element::ElementType;
use crate::plan::{Fetch, Launching, Order, Privilege};

/// The colors of so many points are looked up in a table; those of more are computed where they are asked for.
const MOST_IN_TABLE: i64 = 1 << 12;

/// What the points of a launch are given of one tensor, at all steps.
pub(super) struct Fetching {
    partition: LogicalPartition,
    fields: FieldMask,
    element: ElementType,
    order: Arc<Order>,
    fetch: Fetch,
    /// The positions of the sequences' variables on whose values pieces depend.
    sequences: Vec<usize>,
    /// For each different combination of their values, and what is done, what launches ask for.
    requirements: HashMap<(Vec<i64>, Privilege), (usize, Requirement)>,
}

impl Fetching {
    pub(super) fn new(launching: &Launching, fetch: &Fetch, (tensor, partition): (&Tensor, &LogicalPartition)) -> Self {
        let (depends, order) = (fetch.colors.loops(), Arc::clone(&launching.order));
        let sequences = order.sequences().map(|(position, _)| position);
        let sequences = sequences.filter(|position| depends.contains(position)).collect();
        let (fields, element) = (FieldMask::of(tensor.field()), tensor.variable().element());
        let (partition, fetch) = (partition.clone(), fetch.clone());
        Self { partition, fields, element, order, fetch, sequences, requirements: HashMap::new() }
    }

    /// What a launch asks for at a step, with a number. Steps with the same ask for the same.
    ///
    /// # Errors
    ///
    /// [`DistributedError::NoOperator`].
    pub(super) fn requirement(&mut self, step: i64) -> Result<(usize, Requirement), DistributedError> {
        let (values, privilege) = (self.order.values(step, 0), self.fetch.privilege(&self.order, step));
        let key = (self.sequences.iter().map(|&position| values[position]).collect(), privilege);
        if let Some(known) = self.requirements.get(&key) {
            return Ok(known.clone());
        }
        let held = match privilege {
            Privilege::Read => Held::Read,
            Privilege::ReadWrite => Held::ReadWrite,
            Privilege::Write => Held::Discard,
            Privilege::Reduce(reduction) => Held::Reduce(
                operator(reduction, self.element)
                    .ok_or_else(|| DistributedError::NoOperator { operator: format!("{reduction:?}") })?,
            ),
        };
        let (order, fetch) = (Arc::clone(&self.order), self.fetch.clone());
        let projection = by_color(self.order.points(), move |point| fetch.color(&order, (step, point)));
        let target = Target::Partition(self.partition.clone(), projection);
        let requirement = (self.requirements.len(), Requirement::new(target, self.fields.clone(), held));
        self.requirements.insert(key, requirement.clone());
        Ok(requirement)
    }
}

/// The piece of each of so many points.
pub(super) fn by_color(points: i64, color: impl Fn(i64) -> i64 + Send + Sync + 'static) -> Projection {
    let color: Box<dyn Fn(i64) -> i64 + Send + Sync> = if points <= MOST_IN_TABLE {
        let table: Vec<i64> = (0..points).map(color).collect();
        Box::new(move |point| table[point as usize])
    } else {
        Box::new(color)
    };
    Projection::Color(Arc::new(move |point: AnyPoint| Point([color(point[0])]).into()))
}

/// A partition of the tensor into the pieces of all colors.
pub(super) fn partition(cx: &Context, tensor: &Tensor, colors: &Colors) -> Result<LogicalPartition, DistributedError> {
    let pieces = (0..colors.count()).map(|color| tensor.space(&colors.parts(color)));
    let pieces = pieces.collect::<Result<Vec<_>, _>>()?;
    let partitioning = cx.index_partition(tensor.region().space(), pieces.len(), &pieces)?;
    Ok(tensor.region().partition(&partitioning).map_err(Error::from)?)
}
