//! How the loops of statements on sparse tensors run: as a schedule or a grid says, or as is chosen for what the
//! operands store.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use super::ComputeError;
use super::division::Division;
use super::planned::{Planned, Statements};
use crate::choose::{Processors, SparseEstimate, choose_sparse};
use crate::kernel::{Kernels, Scoped};
use crate::notation::{Assignment, IndexVariable, TensorVariable};
use crate::schedule::Schedule;
use crate::sparse::{Computation, SparseError, stored_by_blocks};
use crate::storage::{DynamicTensor, Parts, Statistics, StorageError};

/// The wishes of the user for loops.
#[derive(Clone, Copy)]
pub struct LoopWishes<'a> {
    /// The schedules of statements, by their numbers from 1.
    pub schedules: &'a BTreeMap<usize, Schedule>,
    /// The points over which each of the outermost loops of other statements is distributed.
    pub grid: &'a [i64],
    /// The nodes that points run on.
    pub nodes: usize,
    /// Tells whether a tensor stays stored as it is.
    pub is_kept: &'a dyn Fn(&TensorVariable) -> bool,
    /// The length of the blocks into which a schedule splits a variable of a statement, if it does.
    pub length: &'a dyn Fn(&Assignment, &IndexVariable) -> Option<i64>,
}

/// The loops of all statements.
pub struct Loops<'p> {
    statements: &'p [Assignment],
    /// The computations that are known; others are chosen when their operands are there.
    known: Vec<Option<Computation<'p>>>,
    /// For each statement, the reasons why they are others than a schedule or a grid says.
    told: Vec<String>,
    wishes: LoopWishes<'p>,
    processors: Processors,
}

impl<'p> Loops<'p> {
    /// The loops of statements on some processors, as schedules or a grid say.
    ///
    /// # Errors
    ///
    /// [`SparseError`] if a statement or its schedule can't be.
    pub fn new(
        statements: &'p [Assignment],
        wishes: LoopWishes<'p>,
        processors: Processors,
    ) -> Result<Self, SparseError> {
        let mut told = vec![String::new(); statements.len()];
        let mut by_points: Vec<TensorVariable> = Vec::new();
        let asked = statements.iter().enumerate().map(|(number, statement)| {
            let computation = Computation::new(statement)?;
            let division = Self::division(&wishes, number, wishes.is_kept);
            if division.schedule.is_none() && wishes.grid.is_empty() {
                return Ok(None);
            }
            let split = stored_by_blocks(statement, |variable| (wishes.length)(statement, variable));
            // Splitting is a schedule of its own.
            let whole = Division { grid: &[], ..division };
            if let Some(by_blocks) = whole.by_blocks(split, &computation) {
                return Ok(Some(by_blocks));
            }
            let divided = division.of(statement, &mut by_points)?;
            told[number].push_str(&divided.reasons);
            Ok(Some(divided.computation))
        });
        let known = asked.collect::<Result<_, SparseError>>()?;
        Ok(Self { statements, known, told, wishes, processors })
    }

    fn division(wishes: &LoopWishes<'p>, number: usize, is_kept: &'p dyn Fn(&TensorVariable) -> bool) -> Division<'p> {
        Division { schedule: wishes.schedules.get(&(number + 1)), grid: wishes.grid, nodes: wishes.nodes, is_kept }
    }

    /// Whether a loop is distributed, so that statements run as tasks.
    #[must_use]
    pub fn are_distributed(&self) -> bool {
        let mut known = self.known.iter().flatten();
        known.any(|computation| computation.statement().spine().iter().any(|outer| outer.level().is_some()))
    }

    /// Returns the statements as tasks. No loops are chosen by the contents of operands then.
    ///
    /// # Errors
    ///
    /// [`ComputeError`] if they can't run as tasks.
    pub fn planned(&mut self) -> Result<Statements, ComputeError> {
        let mut planned = Vec::new();
        for (number, statement) in self.statements.iter().enumerate() {
            let known = self.known[number].take();
            let divided = Self::division(&self.wishes, number, &|_| true).assembled(statement, known)?;
            self.told[number].push_str(&divided.reasons);
            planned.push(Planned::new(self.known[number].insert(divided.computation), &statement.left().tensor)?);
        }
        Ok(Statements::new(planned))
    }

    /// Stores operands by blocks that loops go through so.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn store_by_blocks(&self, tensors: &mut BTreeMap<String, DynamicTensor>) -> Result<(), StorageError> {
        for computation in self.known.iter().flatten() {
            for operand in computation.run_loops().operands() {
                let stored = computation.stored_as(operand);
                if let Some(tensor) = tensors.get_mut(stored.name())
                    && stored.dimensions() != operand.dimensions()
                    && tensor.format() != stored.format()
                {
                    *tensor = tensor.convert(stored.format())?;
                }
            }
        }
        Ok(())
    }

    /// The loops of a statement, which are chosen the first time.
    fn of(
        &mut self,
        number: usize,
        tensors: &BTreeMap<String, DynamicTensor>,
    ) -> Result<&Computation<'p>, SparseError> {
        let chosen = match self.known[number].take() {
            Some(known) => known,
            None => {
                let statement = &self.statements[number];
                choose_sparse(statement, &statistics(statement, tensors), &self.processors)?.into_best().computation
            }
        };
        Ok(self.known[number].insert(chosen))
    }

    /// Computes all statements on this node, each result in the place of what was called so before. `check` is called
    /// after each of them.
    ///
    /// # Errors
    ///
    /// [`SparseError`], or what `check` refuses.
    pub fn run<E: From<SparseError>>(
        &mut self,
        tensors: &mut BTreeMap<String, DynamicTensor>,
        check: impl Fn(&BTreeMap<String, DynamicTensor>) -> Result<(), E>,
    ) -> Result<(), E> {
        let team = Scoped { threads: self.processors.threads };
        for (number, statement) in self.statements.iter().enumerate() {
            // The first time, what is known of operands says how loops run.
            let computation = self.of(number, tensors)?;
            let operands: Vec<_> = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
            let result = computation.run_dynamic(&operands, Kernels::shared(), &team)?;
            tensors.insert(statement.left().tensor.name().to_owned(), result);
            check(tensors)?;
        }
        Ok(())
    }

    /// Explains how statements run on these tensors, with what they would cost otherwise. Tensors that are not there
    /// count as dense.
    ///
    /// # Errors
    ///
    /// [`SparseError`].
    pub fn explain(&mut self, tensors: &BTreeMap<String, DynamicTensor>) -> Result<String, SparseError> {
        let mut text = String::new();
        for (number, statement) in self.statements.iter().enumerate() {
            let mut candidates = String::new();
            if self.known[number].is_none() {
                let choice = choose_sparse(statement, &statistics(statement, tensors), &self.processors)?;
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
    #[must_use]
    pub fn parts(&self, number: usize, name: &str, tensors: &BTreeMap<String, DynamicTensor>) -> Option<Parts> {
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
