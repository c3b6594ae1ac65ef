//! Which part of a tensor each point of each step is given.

use std::collections::HashMap;
use std::sync::Arc;

use maniple::space::{AnyPoint, Point};
use maniple::{Context, Error, FieldMask, LogicalPartition, Privilege as Held, Projection, Requirement, Target};

use super::error::DistributedError;
use super::operators::operator;
use super::tensor::Tensor;
use crate::bounds::Colors;
use crate::notation::IndexVariable;
use crate::plan::{Order, Plan, Privilege};

/// The colors of so many points are looked up in a table; those of more are computed where they are asked for.
const MOST_IN_TABLE: i64 = 1 << 12;

/// What is fetched of one tensor at one level of a plan.
pub(super) struct Fetch {
    partition: LogicalPartition,
    fields: FieldMask,
    privilege: Held,
    piece: Arc<PieceOf>,
    /// The positions of the sequences' variables on whose values pieces depend.
    sequences: Vec<usize>,
    /// For each different combination of their values, what launches ask for.
    requirements: HashMap<Vec<i64>, (usize, Requirement)>,
}

/// The color of a point's piece: of one of `colors`, or of the first, which has no elements.
struct PieceOf {
    order: Order,
    colors: Colors,
    /// The number of variables with values.
    depth: usize,
    /// Whether of all points with the same values the first alone fetches.
    by_the_first: bool,
}

impl PieceOf {
    fn color(&self, step: i64, point: i64) -> i64 {
        let values = self.order.values(step, point);
        let idle = self.by_the_first && values[self.depth..].iter().any(|value| *value != 0);
        if idle { 0 } else { self.colors.at(&values[..self.depth]) }
    }
}

impl Fetch {
    /// What leaves are given of a tensor.
    pub(super) fn new(cx: &Context, plan: &Plan, order: &Order, tensor: &Tensor) -> Result<Self, DistributedError> {
        let (fixed, privilege) = plan.innermost_fetch(tensor.variable().name());
        let privilege = match privilege {
            Privilege::Read => Held::Read,
            Privilege::ReadWrite => Held::ReadWrite,
            Privilege::Write => Held::Discard,
            Privilege::Reduce(reduction) => Held::Reduce(
                operator(reduction, tensor.variable().element())
                    .ok_or_else(|| DistributedError::NoOperator { operator: format!("{reduction:?}") })?,
            ),
        };
        Self::of(cx, (plan, order, tensor), (fixed, false), privilege)
    }

    /// What is fetched of a tensor before, at the steps around that say so: from the outermost. The first of the points that a part is for brings it to where it runs; the
    /// others are near, and take from there.
    pub(super) fn outer(
        cx: &Context,
        plan: &Plan,
        order: &Order,
        tensor: &Tensor,
    ) -> Result<Vec<Self>, DistributedError> {
        let fetches = plan.outer_fetches(tensor.variable().name()).into_iter();
        fetches.map(|fixed| Self::of(cx, (plan, order, tensor), (fixed, true), Held::Read)).collect()
    }

    fn of(
        cx: &Context,
        (plan, order, tensor): (&Plan, &Order, &Tensor),
        (fixed, by_the_first): (&[IndexVariable], bool),
        privilege: Held,
    ) -> Result<Self, DistributedError> {
        let colors = plan.rectangles(tensor.variable().name(), fixed).colors();
        let depends = colors.loops();
        let sequences = order.of_sequences().filter(|position| depends.contains(position)).collect();
        let partition = partition(cx, tensor, &colors)?;
        let piece = PieceOf { order: order.clone(), colors, depth: fixed.len(), by_the_first };
        let (fields, piece) = (FieldMask::of(tensor.field()), Arc::new(piece));
        Ok(Self { partition, fields, privilege, piece, sequences, requirements: HashMap::new() })
    }

    /// Whether something is fetched at this step that was not at the one before: for fetches at outer steps.
    pub(super) fn is_due(&self, step: i64) -> bool {
        self.piece.order.is_first(step, 0, self.piece.depth)
    }

    /// What a launch asks for at a step, with a number. Steps with the same ask for the same.
    pub(super) fn requirement(&mut self, step: i64) -> (usize, Requirement) {
        let (values, next) = (self.piece.order.values(step, 0), self.requirements.len());
        let values = self.sequences.iter().map(|&position| values[position]).collect();
        let requirement = self.requirements.entry(values).or_insert_with(|| {
            let piece = Arc::clone(&self.piece);
            let projection = by_color(piece.order.points(), move |point| piece.color(step, point));
            let target = Target::Partition(self.partition.clone(), projection);
            (next, Requirement::new(target, self.fields.clone(), self.privilege))
        });
        requirement.clone()
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
fn partition(cx: &Context, tensor: &Tensor, colors: &Colors) -> Result<LogicalPartition, DistributedError> {
    let pieces = (0..colors.count()).map(|color| tensor.space(&colors.parts(color)));
    let pieces = pieces.collect::<Result<Vec<_>, _>>()?;
    let partitioning = cx.index_partition(tensor.region().space(), pieces.len(), &pieces)?;
    Ok(tensor.region().partition(&partitioning).map_err(Error::from)?)
}
