//! Data at the coordinates that pieces of a level name: elements of a vector, rows of a matrix.

use std::ops::Range;
use std::sync::Arc;

use maniple::space::{AnyRect, AnySpace, Rect};
use maniple::task::{Codec, LeafCall, TaskDefinition, TaskOptions, Value};
use maniple::{
    Context, Error, FieldId, FieldMask, FieldValue, LogicalPartition, Privilege, Relation, Requirement, Target,
    TaskLauncher,
};

use super::error::DistributedError;
use super::fetch::{by_color, positions};
use super::shares::Interval;
use super::tensor::Tensor;
use crate::element::ElementType;
use crate::lower::Slot;
use crate::plan::Space;
use crate::rectangle::Rectangle;

/// Pieces of a level, whose coordinates name something.
pub(super) struct Named<'a> {
    /// The tensor and its level.
    pub(super) of: (&'a Tensor, Space),
    /// The pieces.
    pub(super) positions: &'a LogicalPartition,
    /// Their numbers: those before have nothing.
    pub(super) colors: Range<i64>,
}

impl Named<'_> {
    /// A partition of a space of a tensor into what is at the coordinates, in a dimension, that each piece names.
    pub(super) async fn pieces(
        &self,
        cx: &Context,
        tensor: &Tensor,
        space: Space,
        dimension: usize,
    ) -> Result<LogicalPartition, DistributedError> {
        let crd = self.of.0.component(&Slot::Coordinates(String::new(), self.level()));
        let region = tensor.part(space);
        if space == Space::Elements && tensor.variable().order() == 1 {
            return Ok(cx.logical_image(region, self.positions, Relation::Point(crd.field)).await?);
        }
        let extents = tensor.variable().dimensions();
        let rows = match crd.element {
            ElementType::I32 => self.rows::<i32>(cx, crd.field, extents[dimension]).await?,
            _ => self.rows::<i64>(cx, crd.field, extents[dimension]).await?,
        };
        let of_rows = |rows: &Vec<Interval>| match space {
            Space::Elements => {
                let of_run = |run: &Interval| {
                    let bounds = extents.iter().enumerate();
                    Rectangle::new(bounds.map(|(own, &extent)| if own == dimension { *run } else { (0, extent) }))
                };
                tensor.space(&rows.iter().map(of_run).collect::<Vec<_>>())
            }
            // One more ends the last row of a run.
            _ => Ok(positions(rows.iter().map(|(first, end)| (*first, end + 1)))),
        };
        let nothing = vec![Vec::new(); self.colors.start as usize];
        let pieces = nothing.iter().chain(&rows).map(of_rows).collect::<Result<Vec<AnySpace>, _>>()?;
        let partitioning = cx.index_partition(region.space(), pieces.len(), &pieces)?;
        Ok(region.partition(&partitioning).map_err(Error::from)?)
    }

    fn level(&self) -> usize {
        match self.of.1 {
            Space::Positions(level) | Space::Offsets(level) | Space::Words(level) => level,
            Space::Elements => 0,
        }
    }

    /// The coordinates that each piece names, of so many that there are, in runs: a task for each piece finds them.
    async fn rows<N: FieldValue + Copy + Into<i64>>(
        &self,
        cx: &Context,
        field: FieldId,
        extent: i64,
    ) -> Result<Vec<Vec<Interval>>, DistributedError> {
        let find = move |call: &LeafCall<'_>| {
            let numbers = call.read::<N, 1>(0, field)?;
            let mut rows: Vec<i64> = Vec::new();
            for rect in numbers.space().rects() {
                rows.extend(numbers.span(*rect).iter().map(|&number| number.into()));
            }
            rows.retain(|row| (0..extent).contains(row));
            rows.sort_unstable();
            rows.dedup();
            let runs = rows.chunk_by(|one, next| one + 1 == *next);
            Ok(Value::new(runs.map(|run| (run[0], run[run.len() - 1] + 1)).collect::<Vec<Interval>>()))
        };
        let task = TaskDefinition::new("find the rows that are named").codec(Codec::of::<Vec<Interval>>());
        let task = Arc::new(task.leaf(TaskOptions::default(), find));
        let target = Target::Partition(self.positions.clone(), by_color(self.colors.end, |color| color));
        let launcher =
            TaskLauncher::new(&task).requirement(Requirement::new(target, FieldMask::of(field), Privilege::Read));
        let domain = AnyRect::from(Rect::<1>::from(self.colors.clone()));
        Ok(cx.index_launch(domain, launcher.typed::<Vec<Interval>>()).all().await?)
    }
}
