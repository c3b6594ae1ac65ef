//! Results assembled in blocks of the coordinates of their outermost level, whatever levels are below.
//!
//! A first launch counts what each point computes. Where there is room for it, a second one writes it, as coordinates
//! and elements in any order, and tells how many positions each level gets for them. There is room for all of these
//! then, and a third launch writes what the levels store: see [packing](super::packing).

use std::sync::Arc;

use maniple::space::Rect;
use maniple::task::TaskDefinition;
use maniple::{Privilege, Requirement, Target};

use super::assemble::Assembly;
use super::error::DistributedError;
use super::fields::{index_type, updated, widened};
use super::kept::Kept;
use super::leaf::{Kernel, MadeViews};
use super::packing::{
    Block, Blocks, EntryFields, Intervals, KeptBlocks, Measured, Packing, all_measured, measured, without_entries,
};
use super::tensor::Tensor;
use crate::lower::Output;
use crate::notation::TensorVariable;

impl Assembly<'_> {
    pub(super) async fn run_in_blocks(&self) -> Result<Tensor, DistributedError> {
        let (result, blocks, cx) = (self.launching.plan.statement.result(), &self.blocks, self.blocks.cx);
        let (coordinates, index): (Intervals, _) = (self.tiled(result).into(), index_type(self.is_narrow));
        let counting = self.counting(self.kernel(Output::Counts, index)?, Arc::clone(&coordinates));
        let totals = self.in_steps(&counting, &|_| Vec::new()).await?;
        let (of_entries, total) = blocks.intervals(&totals);
        if total == 0 {
            return without_entries(cx, result);
        }
        let (entries, room) = EntryFields::with_room(cx, result, total, index)?;
        let of_blocks = blocks.partition(&room, &of_entries)?;
        let given = |blocks: &Blocks<'_>| {
            let target = Target::Partition(of_blocks.clone(), blocks.projection());
            vec![Requirement::new(target, entries.mask(), Privilege::Discard)]
        };
        let written = EntryFields { requirement: self.launching.fetches.len(), ..entries.clone() };
        let kernel = self.kernel(Output::Entries, index)?;
        let kept = Kept::new(cx);
        let writing = self.writing(kernel, written, Arc::clone(&coordinates), Arc::clone(&kept));
        let positions = all_measured(self.in_steps::<Measured>(&writing, &given).await?, result)?;
        let packing = Packing { blocks, variable: result, coordinates, entries, of_blocks, kept };
        let made = packing.stored(positions).await?;
        cx.destroy_region(&room.region)?;
        Ok(made)
    }

    /// The blocks of all colors, of which those that have coordinates have those before them too that no point
    /// computes, up to the block before, and the last one all that are left.
    fn tiled(&self, result: &TensorVariable) -> Vec<(i64, i64)> {
        let parts = &self.blocks.parts;
        let mut blocks = vec![(0, 0); parts.len()];
        let (mut end, mut last) = (0, None);
        for color in self.blocks.in_order() {
            if parts[color].0 < parts[color].1 {
                blocks[color] = (end, parts[color].1);
                (end, last) = (parts[color].1, Some(color));
            }
        }
        if let (Some(last), Some(&outermost)) = (last, result.format().order().first()) {
            blocks[last].1 = result.dimensions()[outermost];
        }
        blocks
    }

    /// The task that counts what a point computes.
    fn counting(&self, kernel: Kernel, blocks: Intervals) -> Arc<TaskDefinition> {
        let (leaf, color) = (self.leaf(kernel), self.color());
        self.task("count", move |call| {
            let (first, end) = blocks[color(call)?];
            let mut next = [0_i64];
            if first < end {
                leaf(call, MadeViews { next: Some(updated(&mut next, Rect::from(0..1))?), ..MadeViews::default() })?;
            }
            Ok(next[0])
        })
    }

    /// The task that writes what a point computes, and gives how many positions each level has for it.
    fn writing(
        &self,
        kernel: Kernel,
        entries: EntryFields,
        blocks: Intervals,
        kept: Arc<KeptBlocks>,
    ) -> Arc<TaskDefinition> {
        let (leaf, color) = (self.leaf(kernel), self.color());
        let result = self.launching.plan.statement.result().clone();
        self.task("compute", move |call| {
            let number = color(call)?;
            let rows = blocks[number];
            if rows.0 == rows.1 {
                return Ok(Ok(vec![0_i64; result.format().rank()]));
            }
            let block = Block { variable: &result, rows, least: &[] };
            let Some(own) = entries.of_values().only(call)? else {
                let packed = block.packed_of(vec![Vec::new(); result.order()], &[]);
                return Ok(measured(&kept, number as i64, &[], packed));
            };
            let coordinates = entries.of_coordinates().map(|field| field.write(call));
            let (mut coordinates, mut values) =
                (coordinates.collect::<maniple::Result<Vec<_>>>()?, entries.of_values().write(call)?);
            let mut coordinates: Vec<_> = coordinates.iter_mut().map(|all| all.row(own)).collect();
            let (mut values, mut next) = (values.row(own), [own.lo[0]]);
            let written = coordinates.iter_mut().map(|coordinates| coordinates.argument().map(Some));
            let made = MadeViews {
                next: Some(updated(&mut next, Rect::from(0..1))?),
                coordinates: written.collect::<maniple::Result<_>>()?,
                values: Some(values.argument()?),
            };
            leaf(call, made)?;
            let coordinates = coordinates.iter().map(|coordinates| widened(coordinates.bytes(), entries.index));
            let packed = block.packed_of(coordinates.collect(), values.bytes());
            Ok(measured(&kept, number as i64, &[], packed))
        })
    }
}
