//! How the loops of statements on sparse tensors run: as a schedule or a grid says, or as is chosen for what the
//! operands store.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use maniple_tensor::choose::{Processors, SparseEstimate, choose_sparse};
use maniple_tensor::compute::Division;
use maniple_tensor::notation::{Assignment, IndexVariable, TensorVariable};
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
    /// The computations that are known; others are chosen when their operands are there.
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
            let is_kept = |tensor: &TensorVariable| is_placed(options, tensor);
            let division = Division { schedule, grid, nodes: place().nodes, is_kept: &is_kept };
            let split = stored_by_blocks(statement, |variable| length_of(options, statement, variable));
            // Splitting is a schedule of its own.
            let whole = Division { grid: &[], ..division };
            if let Some(by_blocks) = whole.by_blocks(split, &computation) {
                return Ok(Some(by_blocks));
            }
            let divided = division.of(statement, &mut by_points).map_err(usage)?;
            told[number].push_str(&divided.reasons);
            Ok(Some(divided.computation))
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

    /// Returns the statements as tasks, if a loop of one is distributed. Then no loops are chosen by the contents of
    /// operands.
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
            let schedule = self.schedules.get(&(number + 1));
            let division = Division { schedule, grid: &self.grid, nodes: place().nodes, is_kept: &|_| true };
            let divided = division.assembled(&self.statements[number], known).map_err(usage)?;
            self.known[number] = Some(divided.computation);
            self.told[number].push_str(&divided.reasons);
        }
        let known = self.known.iter().flatten().zip(self.statements);
        Tasks::new(known.map(|(computation, statement)| (computation, &statement.left().tensor)))
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

    /// How statements run on these tensors, with what they would cost otherwise, as text. Tensors that are not there
    /// count as dense.
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

    /// The parts that the outermost loop of a statement makes of a tensor, if it runs in parts: those of a grid, or of
    /// threads.
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

/// Returns the statistics of the sparse operands of a statement, by name.
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

/// Whether it is said where a tensor lies.
fn is_placed(options: &Options, tensor: &TensorVariable) -> bool {
    options.place.iter().any(|(name, _)| name == tensor.name())
}

pub(super) fn usage(error: SparseError) -> Error {
    Error::Usage(error.to_string())
}
