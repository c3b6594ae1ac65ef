//! Loops of a statement, divided among the points of a launch.

use std::fmt::Write;

use crate::choose::grid_text;
use crate::format::{Format, LevelExpression};
use crate::notation::{Assignment, IndexVariable, TensorVariable};
use crate::plan::Plan;
use crate::schedule::Schedule;
use crate::sparse::{Computation, SparseError};

/// How the loops of a statement on tensors in levels are divided.
#[derive(Clone, Copy)]
pub(super) struct Division<'a> {
    /// The commands that divide them.
    pub(super) schedule: Option<&'a Schedule>,
    /// Without a schedule: over how many points each of the outermost loops is distributed.
    pub(super) grid: &'a [i64],
    /// The nodes that points run on.
    pub(super) nodes: usize,
    /// Whether a tensor stays stored as it is.
    pub(super) is_kept: &'a dyn Fn(&TensorVariable) -> bool,
}

/// A statement with divided loops, and why they or its operands are others than it asks for: lines for people to read.
pub(super) struct Divided<'p> {
    /// The statement with its loops.
    pub(super) computation: Computation<'p>,
    /// Lines that say why.
    pub(super) reasons: String,
}

impl Division<'_> {
    /// A statement with its loops divided, which reads operands by blocks where each point has its own part together
    /// then. `by_blocks` lists the operands of earlier statements that are stored so, and these are added to it.
    pub(super) fn of<'p>(
        &self,
        statement: &'p Assignment,
        by_blocks: &mut Vec<TensorVariable>,
    ) -> Result<Divided<'p>, SparseError> {
        let looped = self.in_loops(Computation::new(statement)?)?;
        let mut stored = self.stored_by_points(&looped);
        // An operand has blocks of one kind.
        let is_other = |own: &TensorVariable, known: &TensorVariable| own.name() == known.name() && own != known;
        stored.retain(|own| !by_blocks.iter().any(|known| is_other(own, known)));
        let mut reasons = String::new();
        let Some(together) = self.by_blocks(stored, &looped) else {
            return Ok(Divided { computation: looped, reasons });
        };
        for operand in stored_otherwise(&together) {
            let (name, format) = (operand.name(), operand.format());
            // Writing to a string succeeds.
            let _ = writeln!(reasons, "operand {name}: as {format}, so that what a point uses of it is together");
            by_blocks.push(operand);
        }
        Ok(Divided { computation: together, reasons })
    }

    /// A statement as points can compute it. If they cannot assemble its result with the loops that it has: with the
    /// old elements of the result as an operand, if it accumulates into them; with the result in another format, which
    /// it is then converted from; else with a loop over a dimension of the result outermost; else with one loop over
    /// all processors of the grid.
    pub(super) fn assembled<'p>(
        &self,
        statement: &'p Assignment,
        known: Option<Computation<'p>>,
    ) -> Result<Divided<'p>, SparseError> {
        let plain = Computation::new(statement)?.with_old_elements()?;
        let is_alone = known.is_none();
        let known = known.map_or_else(|| Computation::new(statement), Ok)?;
        let is_dense = known.statement().result().format().is_dense();
        if is_dense || Plan::new(known.statement()).is_ok() {
            let reasons = if is_dense { String::new() } else { self.reasons(statement, self.grid, None) };
            return Ok(Divided { computation: known, reasons });
        }
        let line = [self.grid.iter().fold(1_i64, |product, extent| product.saturating_mul(*extent))];
        let grids = [self.grid, &line].into_iter().take(self.grid.len().clamp(1, 2));
        let formats: Vec<Option<Format>> =
            std::iter::once(None).chain(plain.assembled().into_iter().map(Some)).collect();
        let orders = std::iter::once(None).chain(plain.by_result().into_iter().map(Some));
        for (grid, order) in grids.flat_map(|grid| orders.clone().map(move |order| (grid, order))) {
            let (schedule, nodes, is_kept) = (self.schedule, self.nodes, self.is_kept);
            let division = Division { schedule, grid, nodes, is_kept };
            let planned = |format: &Option<Format>| {
                let stored = match format {
                    None => plain.with_old_elements().ok()?,
                    Some(format) => plain.storing(format).ok()?,
                };
                let ordered = match &order {
                    None => stored,
                    Some(order) => stored.in_order(order).ok()?,
                };
                let looped = if is_alone { ordered } else { division.in_loops(ordered).ok()? };
                Plan::new(looped.statement()).is_ok().then_some(looped)
            };
            if let Some(computation) = formats.iter().find_map(planned) {
                let reasons = self.reasons(statement, grid, order.as_deref());
                return Ok(Divided { computation, reasons });
            }
        }
        // What is wrong with its own loops is said when they are planned.
        Ok(Divided { computation: known, reasons: String::new() })
    }

    /// A computation with the loops that the schedule, or the grid, makes of its own.
    fn in_loops<'c>(&self, computation: Computation<'c>) -> Result<Computation<'c>, SparseError> {
        if let Some(schedule) = self.schedule {
            return computation.scheduled(schedule);
        }
        // What would be converted may be gone through as it is.
        let by_entries = if computation.conversions().is_empty() { None } else { computation.by_entries()? };
        by_entries.unwrap_or(computation).on_grid(self.grid)
    }

    /// A computation in blocks, of operands that are stored by blocks. None if loops do not go through these as they
    /// are stored.
    pub(super) fn by_blocks<'c>(
        &self,
        mut stored: Vec<TensorVariable>,
        computation: &Computation<'_>,
    ) -> Option<Computation<'c>> {
        while !stored.is_empty() {
            let made = self.in_loops(computation.reading(&stored).ok()?).ok()?;
            let converted = made.conversions();
            if converted.is_empty() {
                return Some(made);
            }
            let before = stored.len();
            stored.retain(|tensor| !converted.iter().any(|(name, _)| name == tensor.name()));
            if stored.len() == before {
                return None;
            }
        }
        None
    }

    /// The operands that are better stored so that each point has its part together. On one node all see them where
    /// they are. What is kept stays as it is. Where there are many more blocks than nodes, where rows begin in each of
    /// them might take more than all entries.
    fn stored_by_points(&self, computation: &Computation<'_>) -> Vec<TensorVariable> {
        if self.nodes == 1 {
            return Vec::new();
        }
        let is_small = |tensor: &TensorVariable| {
            let (format, dimensions) = (tensor.format(), tensor.dimensions());
            let blocks = format.expressions().iter().filter_map(|expression| match *expression {
                LevelExpression::Block(mode, length) => Some((dimensions[mode] + length - 1) / length),
                _ => None,
            });
            let blocks = blocks.fold(1_i64, i64::saturating_mul);
            let rows = dimensions.iter().copied().fold(1_i64, i64::saturating_mul)
                / dimensions.iter().copied().max().unwrap_or(1).max(1);
            blocks <= 2 * self.nodes as i64 || rows.saturating_mul(blocks) <= FEW_ROWS
        };
        let mut stored = computation.stored_by_points();
        stored.retain(|tensor| !(self.is_kept)(tensor) && is_small(tensor));
        stored
    }

    /// Why loops are not those that a statement would have.
    fn reasons(&self, statement: &Assignment, grid: &[i64], order: Option<&[IndexVariable]>) -> String {
        let (result, mut text) = (&statement.left().tensor, String::new());
        // Writing to a string succeeds.
        if let Some(operator) = statement.accumulation() {
            let _ = writeln!(
                text,
                "result {result}: its old elements are an operand, and combined with new ones by {operator}"
            );
        }
        if let Some(order) = order {
            let order: Vec<&str> = order.iter().map(IndexVariable::name).collect();
            let _ =
                writeln!(text, "loops {}: in this order points have parts of {result} of their own", order.join(", "));
        }
        if *grid != *self.grid {
            let (extents, count) = (grid_text(self.grid), grid[0]);
            let why = format!("as points of several loops cannot assemble {result}");
            let _ = writeln!(text, "grid {extents}: one loop is distributed over its {count} processors, {why}");
        }
        text
    }
}

/// So many rows in all blocks are not too many, however few entries there may be.
const FEW_ROWS: i64 = 1 << 20;

/// The operands that loops know as tensors with a dimension for each level.
fn stored_otherwise(computation: &Computation<'_>) -> Vec<TensorVariable> {
    let operands = computation.run_loops().operands().iter();
    let stored = operands.map(|own| (own, computation.stored_as(own)));
    stored.filter(|(own, stored)| own.dimensions() != stored.dimensions()).map(|(_, stored)| stored).collect()
}

/// Whether several loops of a statement follow each other, as those of several sums do.
#[must_use]
pub fn has_no_loop_around(statement: &Assignment) -> bool {
    Computation::new(statement).is_ok_and(|computation| computation.statement().spine().is_empty())
}
