//! How the loops of statements on sparse tensors run: as a schedule or a grid says, or as is chosen for what the operands store.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use maniple_tensor::choose::{Processors, SparseEstimate, choose_sparse};
use maniple_tensor::format::{Format, LevelExpression};
use maniple_tensor::notation::{Assignment, IndexVariable, TensorVariable};
use maniple_tensor::plan::Plan;
use maniple_tensor::program::Program;
use maniple_tensor::schedule::Schedule;
use maniple_tensor::sparse::{Computation, SparseError, stored_by_blocks};
use maniple_tensor::storage::{DynamicTensor, Parts, Statistics};

use super::options::Options;
use super::split::Split;
use super::tasks::Tasks;
use crate::error::{Error, Result};
use crate::options::place;

/// The loops of all statements.
pub(super) struct Loops<'p> {
    statements: &'p [Assignment],
    /// Those that are known; others are chosen when their operands are there.
    known: Vec<Option<Computation<'p>>>,
    /// Why they are others than a schedule or a grid says, of each statement.
    told: Vec<String>,
    schedules: BTreeMap<usize, Schedule>,
    grid: Vec<i64>,
    processors: Processors,
}

impl<'p> Loops<'p> {
    /// As schedules, by the number of the statement, or a grid say.
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub(super) fn new(
        program: &'p Program,
        schedules: &BTreeMap<usize, Schedule>,
        grid: &[i64],
        options: &Options,
    ) -> Result<Self> {
        let (statements, mut told) = (program.statements(), vec![String::new(); program.statements().len()]);
        let mut by_points: Vec<TensorVariable> = Vec::new();
        let asked = statements.iter().enumerate().map(|(number, statement)| {
            let computation = Computation::new(statement).map_err(usage)?;
            let schedule = schedules.get(&(number + 1));
            if schedule.is_none() && grid.is_empty() {
                return Ok(None);
            }
            let split = stored_by_blocks(statement, |variable| length_of(options, statement, variable));
            if let Some(by_blocks) = by_blocks(split, &computation, (schedule, &[])) {
                return Ok(Some(by_blocks));
            }
            let looped = in_loops(computation, schedule, grid).map_err(usage)?;
            let mut stored = stored_by_points(options, &looped);
            // An operand has blocks of one kind.
            let is_other = |own: &TensorVariable, known: &TensorVariable| own.name() == known.name() && own != known;
            stored.retain(|own| !by_points.iter().any(|known| is_other(own, known)));
            let Some(together) = by_blocks(stored, &looped, (schedule, grid)) else { return Ok(Some(looped)) };
            for operand in stored_otherwise(&together) {
                let (name, format) = (operand.name(), operand.format());
                // Writing to a string succeeds.
                let _ =
                    writeln!(told[number], "operand {name}: as {format}, so that what a point uses of it is together");
                by_points.push(operand);
            }
            Ok(Some(together))
        });
        let machine = options.runtime.machine();
        let threads = machine.processors_of(maniple::ProcessorKind::Cpu).count();
        let capacity = machine.memories().iter().map(|memory| memory.capacity).max();
        let memory = options.rates()?.memory * threads as f64;
        let known = asked.collect::<Result<_>>()?;
        Ok(Self {
            statements,
            known,
            told,
            schedules: schedules.clone(),
            grid: grid.to_vec(),
            processors: Processors { threads, memory, capacity },
        })
    }

    /// What statements do as tasks, if a loop of one is distributed. Then none is chosen.
    ///
    /// # Errors
    /// [`Error::Usage`] if they can't run as tasks.
    pub(super) fn tasks(&mut self) -> Result<Option<Tasks>> {
        let mut known = self.known.iter().flatten();
        if !known.any(|computation| computation.statement().spine().iter().any(|outer| outer.level().is_some())) {
            return Ok(None);
        }
        for number in 0..self.known.len() {
            let known = self.known[number].take();
            let (found, told) = self.assembled(number, known)?;
            self.known[number] = Some(found);
            self.told[number].push_str(&told);
        }
        let known = self.known.iter().flatten().zip(self.statements);
        Tasks::new(known.map(|(computation, statement)| (computation, &statement.left().tensor)))
    }

    /// A statement as points can compute it, if they cannot assemble its result with the loops that it has: with the old elements of the result as an operand, if it accumulates into them; with the
    /// result in another format, which it is then converted from; else with a loop over a dimension of the result outermost; else with one loop over all processors of the grid.
    fn assembled(&self, number: usize, known: Option<Computation<'p>>) -> Result<(Computation<'p>, String)> {
        let statement = &self.statements[number];
        let plain = Computation::new(statement).and_then(|own| own.with_old_elements()).map_err(usage)?;
        let is_alone = known.is_none();
        let known = known.map_or_else(|| Computation::new(statement).map_err(usage), Ok)?;
        if known.statement().result().format().is_dense() || Plan::new(known.statement()).is_ok() {
            let told = if known.statement().result().format().is_dense() {
                String::new()
            } else {
                self.told(statement, &self.grid, None)
            };
            return Ok((known, told));
        }
        let schedule = self.schedules.get(&(number + 1));
        let line = [self.grid.iter().fold(1_i64, |product, extent| product.saturating_mul(*extent))];
        let grids = [&self.grid[..], &line].into_iter().take(self.grid.len().clamp(1, 2));
        let formats: Vec<Option<Format>> =
            std::iter::once(None).chain(plain.assembled().into_iter().map(Some)).collect();
        let orders = std::iter::once(None).chain(plain.by_result().into_iter().map(Some));
        for (grid, order) in grids.flat_map(|grid| orders.clone().map(move |order| (grid, order))) {
            let planned = |format: &Option<Format>| {
                let stored = match format {
                    None => plain.with_old_elements().ok()?,
                    Some(format) => plain.storing(format).ok()?,
                };
                let ordered = match &order {
                    None => stored,
                    Some(order) => stored.in_order(order).ok()?,
                };
                let looped = if is_alone { ordered } else { in_loops(ordered, schedule, grid).ok()? };
                Plan::new(looped.statement()).is_ok().then_some(looped)
            };
            if let Some(found) = formats.iter().find_map(planned) {
                let told = self.told(statement, grid, order.as_deref());
                return Ok((found, told));
            }
        }
        // What is wrong with its own loops is said when they are planned.
        Ok((known, String::new()))
    }

    /// Why loops are not those that a statement would have.
    fn told(&self, statement: &Assignment, grid: &[i64], order: Option<&[IndexVariable]>) -> String {
        let (result, mut text) = (&statement.left().tensor, String::new());
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
        if *grid != self.grid {
            let extents: Vec<String> = self.grid.iter().map(i64::to_string).collect();
            let (extents, count) = (extents.join("x"), grid[0]);
            let why = format!("as points of several loops cannot assemble {result}");
            let _ = writeln!(text, "grid {extents}: one loop is distributed over its {count} processors, {why}");
        }
        text
    }

    /// Stores operands by blocks that loops go through so.
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub(super) fn store_by_blocks(&self, tensors: &mut BTreeMap<String, DynamicTensor>) -> Result<()> {
        for computation in self.known.iter().flatten() {
            for operand in computation.run_loops().operands() {
                let stored = computation.stored_as(operand);
                if let Some(tensor) = tensors.get_mut(stored.name())
                    && stored.dimensions() != operand.dimensions()
                    && tensor.format() != stored.format()
                {
                    *tensor = tensor.convert(stored.format()).map_err(|error| Error::Usage(error.to_string()))?;
                }
            }
        }
        Ok(())
    }

    /// The loops of a statement, which are chosen the first time.
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub(super) fn of(&mut self, number: usize, tensors: &BTreeMap<String, DynamicTensor>) -> Result<&Computation<'p>> {
        let chosen = match self.known[number].take() {
            Some(known) => known,
            None => {
                let statement = &self.statements[number];
                let choice = choose_sparse(statement, &statistics(statement, tensors), &self.processors);
                choice.map_err(usage)?.into_best().computation
            }
        };
        Ok(self.known[number].insert(chosen))
    }

    /// How statements run on these tensors, with what they would cost otherwise, as text. Tensors that are not there count as dense.
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub(super) fn explain(&mut self, tensors: &BTreeMap<String, DynamicTensor>) -> Result<String> {
        let mut text = String::new();
        for (number, statement) in self.statements.iter().enumerate() {
            let choice = match &self.known[number] {
                Some(_) => None,
                None => {
                    Some(choose_sparse(statement, &statistics(statement, tensors), &self.processors).map_err(usage)?)
                }
            };
            let mut candidates = String::new();
            if let Some(choice) = choice {
                candidates = choice.explain();
                let best = choice.into_best();
                let SparseEstimate { memory, converting, .. } = best.estimate;
                let _ = writeln!(
                    candidates,
                    "at most {:.1} MB of memory; {:.1} ms of conversions",
                    memory / 1e6,
                    converting * 1e3
                );
                self.known[number] = Some(best.computation);
            }
            let told = self.told[number].clone();
            let computation = self.of(number, tensors)?;
            // Writing to a string succeeds.
            let _ = writeln!(text, "{statement}\n{}", computation.statement());
            for tensor in statement.tensors() {
                let Some(stored) = tensors.get(tensor.name()) else { continue };
                let (format, elements, bytes) = (stored.format(), stored.count(), stored.bytes());
                let _ = writeln!(text, "operand {}: {elements} elements as {format}, {bytes} bytes", tensor.name());
            }
            let (made, declared) = (computation.statement().result(), &statement.left().tensor);
            let explained = told + &computation.explain();
            let converted = match made.format() == declared.format() {
                true => String::new(),
                false => format!("result {made}: it is converted to {} by tasks, block by block\n", declared.format()),
            };
            let _ = writeln!(text, "{explained}{converted}{candidates}\n{}", computation.loops());
        }
        Ok(text)
    }

    /// The parts that the outermost loop of a statement makes of a tensor, if it runs in parts: those of a grid, or of threads.
    pub(super) fn parts(&self, number: usize, name: &str, tensors: &BTreeMap<String, DynamicTensor>) -> Option<Parts> {
        let computation = self.known.get(number)?.as_ref()?;
        let (statement, assignment) = (computation.run_loops(), &self.statements[number]);
        let outer = &statement.spine().first()?.variable.clone();
        let variable = statement.ancestors(outer).into_iter().next()?;
        let left = assignment.left();
        let accesses = assignment.right().accesses();
        let access = [left].into_iter().chain(accesses.iter().copied()).find(|access| access.tensor.name() == name)?;
        let mode = access.variables.iter().position(|own| *own == variable)?;
        let extent = assignment.extents().get(&variable).copied()?;
        if *outer != variable {
            // Blocks of equal length.
            let blocks = statement.extent(outer)?.max(1);
            let length = (extent + blocks - 1) / blocks;
            return Some(Parts { mode, starts: (0..blocks).map(|block| block * length).collect() });
        }
        let threads = self.processors.threads as i64;
        if statement.spine().first()?.is_plain() || threads < 2 {
            return None;
        }
        // Rows are shared so that each thread has as many elements of the first operand that is stored by rows.
        let weighted = accesses.iter().find(|access| {
            access.variables.first() == Some(&variable)
                && !access.tensor.format().is_dense()
                && access.tensor.order() > 1
        });
        let counts = weighted.and_then(|access| tensors.get(access.tensor.name())).map(|stored| {
            let mut counts = vec![0_i64; extent.max(0) as usize + 1];
            stored.for_each(&mut |at, _| counts[at[0] as usize + 1] += 1);
            for row in 1..counts.len() {
                counts[row] += counts[row - 1];
            }
            counts
        });
        let start = |part: i64| match &counts {
            Some(counts) => {
                let total = counts[counts.len() - 1];
                counts.partition_point(|&before| before < total * part / threads) as i64
            }
            None => extent * part / threads,
        };
        Some(Parts { mode, starts: (0..threads).map(start).collect() })
    }
}

/// What is known of the operands of a statement.
fn statistics(statement: &Assignment, tensors: &BTreeMap<String, DynamicTensor>) -> BTreeMap<String, Arc<Statistics>> {
    let known = statement.tensors().into_iter().filter_map(|tensor| {
        let stored = tensors.get(tensor.name()).filter(|stored| !stored.format().is_dense())?;
        Some((tensor.name().to_owned(), stored.statistics().clone()))
    });
    known.collect()
}

/// How long the blocks are into which a variable is split, if it is and they have one length.
fn length_of(options: &Options, assignment: &Assignment, variable: &IndexVariable) -> Option<i64> {
    let (_, split) = options.split.iter().find(|(name, _)| name == variable.name())?;
    match split {
        Split::Ranges(count) if *count > 1 => {
            let extent = *assignment.extents().get(variable)?;
            (extent > *count).then(|| (extent + count - 1) / count)
        }
        _ => None,
    }
}

/// So many rows in all blocks are not too many, however few entries there may be.
const FEW_ROWS: i64 = 1 << 20;

/// The operands that are better stored so that each point has its part together. On one node all see them where they are. What is placed stays as it is. Where there are many more blocks than nodes, where
/// rows begin in each of them might take more than all entries.
fn stored_by_points(options: &Options, computation: &Computation<'_>) -> Vec<TensorVariable> {
    let nodes = place().nodes as i64;
    if nodes == 1 {
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
        blocks <= 2 * nodes || rows.saturating_mul(blocks) <= FEW_ROWS
    };
    let is_placed = |tensor: &TensorVariable| options.place.iter().any(|(name, _)| name == tensor.name());
    let mut stored = computation.stored_by_points();
    stored.retain(|tensor| !is_placed(tensor) && is_small(tensor));
    stored
}

/// The operands that loops know as tensors with a dimension for each level.
fn stored_otherwise(computation: &Computation<'_>) -> Vec<TensorVariable> {
    let operands = computation.run_loops().operands().iter();
    let stored = operands.map(|own| (own, computation.stored_as(own)));
    stored.filter(|(own, stored)| own.dimensions() != stored.dimensions()).map(|(_, stored)| stored).collect()
}

/// A computation in blocks, of operands that are stored by blocks; none if loops do not go through these as they are stored.
fn by_blocks<'c>(
    mut stored: Vec<TensorVariable>,
    computation: &Computation<'_>,
    (schedule, grid): (Option<&Schedule>, &[i64]),
) -> Option<Computation<'c>> {
    while !stored.is_empty() {
        let made = in_loops(computation.reading(&stored).ok()?, schedule, grid).ok()?;
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

/// A computation with the loops that a schedule, or a grid, makes of its own.
fn in_loops<'c>(
    computation: Computation<'c>,
    schedule: Option<&Schedule>,
    grid: &[i64],
) -> std::result::Result<Computation<'c>, SparseError> {
    if let Some(schedule) = schedule {
        return computation.scheduled(schedule);
    }
    // What would be converted may be gone through as it is.
    let by_entries = if computation.conversions().is_empty() { None } else { computation.by_entries()? };
    match by_entries {
        Some(entries) => entries.on_grid(grid),
        None => computation.on_grid(grid),
    }
}

pub(super) fn usage(error: SparseError) -> Error {
    Error::Usage(error.to_string())
}
