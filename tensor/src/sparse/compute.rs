//! Assignments that can be computed on tensors in memory.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::arrange::{Arranged, Renamed, arrange, arrange_converted, free_loops, on_grid, on_threads, order_of_result};
use super::calls::Loops;
use super::data::Data;
use super::entries::by_entries;
use super::error::SparseError;
use super::reshape::{as_scheduled, in_blocks};
use super::run::{ComputationRun, given};
use crate::concrete::Statement;
use crate::element::{Element, ElementType};
use crate::format::{Format, Level};
use crate::kernel::{Kernels, Scoped, Team};
use crate::loops::Reduction;
use crate::lower::{Appending, Output, adds_up, stored};
use crate::notation::{Assignment, DivisorError, Expression, IndexVariable, TensorVariable, is_divisor, is_fill};
use crate::schedule::{Command, Schedule, ScheduleError, has_positions};
use crate::storage::{DynamicTensor, SparseTensor};
use crate::with_element;

/// An assignment that can be computed on tensors of its formats.
#[derive(Debug)]
pub struct Computation<'a> {
    assignment: Cow<'a, Assignment>,
    /// The loops as schedules find them: without threads, where none were asked for.
    arranged: Arranged,
    loops: Loops,
    /// The operands that the loops as they run use under other names.
    used: Vec<Renamed>,
}

impl<'a> Computation<'a> {
    /// Of an assignment. The formats are those of its tensors.
    ///
    /// # Errors
    ///
    /// [`SparseError::Types`], if not all tensors have one type; [`SparseError::Parts`].
    pub fn new(assignment: &'a Assignment) -> Result<Self, SparseError> {
        let expected = assignment.element();
        for tensor in assignment.tensors() {
            if tensor.element() != expected {
                return Err(SparseError::Types { tensor: tensor.name().to_owned(), found: tensor.element(), expected });
            }
        }
        let adds_to_entries = |operator: Reduction, is_zero: bool| operator == Reduction::Sum && is_zero;
        Self::arranged(written_out(assignment, adds_to_entries)?, None)
    }

    /// Of an assignment that is written out, with its loops in an order, if one is given.
    fn arranged(assignment: Cow<'a, Assignment>, order: Option<&[IndexVariable]>) -> Result<Self, SparseError> {
        let arranged = arrange(&assignment, order);
        let run = in_blocks(&assignment, &arranged).unwrap_or_else(|| arranged.clone());
        Self::of(assignment, arranged, Arranged { statement: on_threads(&run.statement), ..run })
    }

    /// The same assignment with the old elements of the result among the operands, if it accumulates into a result that
    /// is not dense: that of what the old element and the new value are together, with the loops that it has without a
    /// schedule. So points of a launch [assemble](crate::distributed::assemble) the result: the operand has another
    /// name, for which [`operand_of`](Self::operand_of) gives that of the result.
    ///
    /// # Errors
    ///
    /// [`SparseError::Notation`], [`SparseError::Parts`].
    pub fn with_old_elements(&self) -> Result<Computation<'static>, SparseError> {
        let assignment = Cow::Owned(written_out(&self.assignment, |_, _| false)?.into_owned());
        Computation::arranged(assignment, None)
    }

    /// The loops of the assignment that can be in any order, from the outermost.
    pub fn free_loops(&self) -> Vec<IndexVariable> {
        free_loops(&self.assignment)
    }

    /// The same assignment with these loops in this order, from the outermost: [all that are free](Self::free_loops),
    /// else they are not moved. Operands that have their levels in another order are converted each time.
    ///
    /// # Errors
    ///
    /// [`SparseError::Parts`].
    pub fn in_order(&self, order: &[IndexVariable]) -> Result<Self, SparseError> {
        Self::arranged(self.assignment.clone(), Some(order))
    }

    /// The same with its outermost loop on threads, and its innermost on lanes, as far as iterations write different
    /// elements, as it is without a schedule.
    ///
    /// # Errors
    ///
    /// [`SparseError::Parts`].
    pub fn on_threads(&self) -> Result<Self, SparseError> {
        let run = Arranged { statement: on_threads(&self.arranged.statement), ..self.arranged.clone() };
        Self::of(self.assignment.clone(), self.arranged.clone(), run)
    }

    /// The same assignment in a loop over the entries of its only operand that is not dense, without a conversion of
    /// it, if that is stored entry by entry, as `coo` is, and the assignment is a sum of products; none for others.
    /// Iterations that run at the same time add up elements of the result, where [other loops](Self::conversions) need
    /// a conversion each time.
    ///
    /// # Errors
    ///
    /// [`SparseError::Parts`].
    pub fn by_entries(&self) -> Result<Option<Self>, SparseError> {
        let Some(statement) = by_entries(&self.assignment) else { return Ok(None) };
        Self::alike(self.assignment.clone(), Arranged { statement, renamed: Vec::new() }).map(Some)
    }

    /// The same assignment with a result that is stored in another format, and the loops that it has without a
    /// schedule: where one is made of the other, as [on several nodes](crate::distributed::Tensor::converted).
    ///
    /// # Errors
    ///
    /// [`SparseError::Notation`] if the format has other dimensions, [`SparseError::Parts`].
    pub fn storing(&self, format: &Format) -> Result<Computation<'static>, SparseError> {
        let result = self.assignment.left().tensor.stored(format.clone());
        let assignment = self.assignment.with(&[result])?;
        Computation::arranged(Cow::Owned(assignment), None)
    }

    /// The same assignment with operands that are stored in other formats, and the loops that it has without a
    /// schedule.
    ///
    /// # Errors
    ///
    /// [`SparseError::Notation`] if they have other dimensions, [`SparseError::Parts`].
    pub fn reading(&self, operands: &[TensorVariable]) -> Result<Computation<'static>, SparseError> {
        Computation::arranged(Cow::Owned(self.assignment.with(operands)?), None)
    }

    /// The formats in which points of a launch may assemble the result, if not in its own: all levels compressed, with
    /// the dimension of the outermost loop first; and then others with another dimension first.
    pub fn assembled(&self) -> Vec<Format> {
        let (left, loops) = (self.assignment.left(), self.arranged.statement.body().loops());
        let place = |mode: &usize| {
            let is_of =
                |variable: &IndexVariable| self.arranged.statement.ancestors(variable).contains(&left.variables[*mode]);
            loops.iter().position(|outer| is_of(&outer.variable)).unwrap_or(usize::MAX)
        };
        let mut modes: Vec<usize> = (0..left.tensor.order()).collect();
        modes.sort_by_key(place);
        let first = |at: usize| {
            let others = modes.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, mode)| *mode);
            let order: Vec<usize> = [modes[at]].into_iter().chain(others).collect();
            Format::new(vec![Level::Compressed; order.len()], order)
        };
        (0..modes.len()).filter_map(|at| first(at).ok()).collect()
    }

    /// Orders of [the free loops](Self::free_loops) with one over a dimension of the result outermost, so that points
    /// of a launch may have parts of the result of their own; the dimension that the result stores outermost comes
    /// first. The other loops follow as they are.
    pub fn by_result(&self) -> Vec<Vec<IndexVariable>> {
        let (mut free, loops) = (self.free_loops(), self.arranged.statement.body().loops());
        free.sort_by_key(|own| loops.iter().position(|outer| outer.variable == *own).unwrap_or(usize::MAX));
        let first = |outermost: IndexVariable| {
            let others = free.iter().filter(|own| **own != outermost).cloned();
            std::iter::once(outermost.clone()).chain(others).collect()
        };
        order_of_result(&self.arranged.statement, &free).into_iter().map(first).collect()
    }

    pub(super) fn assignment(&self) -> &Assignment {
        &self.assignment
    }

    /// The loops as they run.
    pub fn run_loops(&self) -> &Statement {
        &self.loops.statement
    }

    /// The operand that the loops know under a name: its name in the assignment.
    pub fn operand_of<'n>(&'n self, name: &'n str) -> &'n str {
        self.used.iter().find(|renamed| renamed.name == name).map_or(name, |renamed| &renamed.of)
    }

    /// An operand of the loops as the assignment calls it, in the format in which it is used. Of one in blocks loops
    /// may know the tensor that has a dimension for each level.
    pub fn stored_as(&self, operand: &TensorVariable) -> TensorVariable {
        let is_run = self.loops.statement.operands().contains(operand);
        let all = if is_run { &self.used } else { &self.arranged.renamed };
        let Some(renamed) = all.iter().find(|renamed| renamed.name == operand.name()) else {
            return operand.clone();
        };
        let own = self.assignment.tensors().into_iter().find(|tensor| tensor.name() == renamed.of);
        own.map_or_else(|| operand.renamed(&renamed.of), |own| own.stored(renamed.format.clone()))
    }

    /// With loops that run as schedules find them.
    fn alike(assignment: Cow<'a, Assignment>, arranged: Arranged) -> Result<Self, SparseError> {
        Self::of(assignment, arranged.clone(), arranged)
    }

    /// A computation with loops as schedules find them, and as they run.
    fn of(assignment: Cow<'a, Assignment>, arranged: Arranged, run: Arranged) -> Result<Self, SparseError> {
        let Arranged { statement, renamed: used } = run;
        let appending = Appending::new(&statement);
        if appending.as_ref().is_some_and(|appending| !appending.once) && !adds_up(&statement) {
            return Err(SparseError::Parts { tensor: statement.result().name().to_owned() });
        }
        Ok(Self { assignment, arranged, loops: Loops::new(statement, appending), used })
    }

    /// The loops, which a schedule can change. Without a schedule, those of the outermost loop run on threads if they
    /// can.
    pub fn statement(&self) -> &Statement {
        &self.arranged.statement
    }

    /// The same with other loops, on threads only where the schedule says so. Operands whose positions the schedule
    /// goes through are converted each time if their levels have none that loops can go through, unless the loops are
    /// those of another schedule already.
    ///
    /// # Errors
    ///
    /// [`ScheduleError`] if a command is illegal, and [`SparseError::Parts`].
    pub fn scheduled(&self, schedule: &Schedule) -> Result<Self, SparseError> {
        let mut arranged = self.with_positions(schedule);
        let scheduled = schedule.apply(&arranged.statement);
        arranged.statement = scheduled.map_err(|error: ScheduleError| SparseError::Schedule(Box::new(error)))?;
        let fitting = as_scheduled(&self.assignment, &arranged);
        Self::alike(self.assignment.clone(), fitting.unwrap_or(arranged))
    }

    /// The loops, with operands in other formats if a schedule goes through positions that theirs have not.
    fn with_positions(&self, schedule: &Schedule) -> Arranged {
        let has_none = |name: &&String| {
            let operands = self.arranged.statement.operands();
            operands.iter().any(|operand| operand.name() == **name && !has_positions(operand.format()))
        };
        let of_loops = schedule.commands.iter().filter_map(|command| match command {
            Command::Pos { tensor, .. } => Some(tensor),
            _ => None,
        });
        let without: Vec<String> = of_loops.filter(has_none).cloned().collect();
        let is_own = || arrange(&self.assignment, None).statement == self.arranged.statement;
        match !without.is_empty() && is_own() {
            true => arrange_converted(&self.assignment, None, &without),
            false => self.arranged.clone(),
        }
    }

    /// The same with its outermost loops distributed over a grid of processors, in blocks of equal length, one loop for
    /// each of its extents, as far as there are loops around all others; and the first loop of a block on threads, if
    /// it can. No loop is cut into more blocks than it is long.
    ///
    /// # Errors
    ///
    /// [`ScheduleError`] if an extent of the grid is not positive.
    pub fn on_grid(&self, grid: &[i64]) -> Result<Self, SparseError> {
        let distributed = |arranged: Arranged| match on_grid(&arranged.statement, grid) {
            Ok(statement) => Ok(Arranged { statement, ..arranged }),
            Err(error) => Err(SparseError::Schedule(Box::new(error))),
        };
        let made = match in_blocks(&self.assignment, &self.arranged) {
            Some(blocked) => distributed(blocked)?,
            None => {
                let arranged = distributed(self.arranged.clone())?;
                as_scheduled(&self.assignment, &arranged).unwrap_or(arranged)
            }
        };
        Self::alike(self.assignment.clone(), made)
    }

    /// The formats in which operands are used that differ from those that they have: they are converted each time.
    pub fn conversions(&self) -> Vec<(String, Format)> {
        let tensors = self.assignment.tensors();
        let is_other = |renamed: &&Renamed| {
            !tensors.iter().any(|tensor| tensor.name() == renamed.of && *tensor.format() == renamed.format)
        };
        self.used.iter().filter(is_other).map(|renamed| (renamed.of.clone(), renamed.format.clone())).collect()
    }

    /// The operands as they are given.
    pub(super) fn operands(&self) -> Vec<TensorVariable> {
        self.assignment.right().accesses().into_iter().map(|access| access.tensor.clone()).collect()
    }

    /// The operands that the computation uses as they were before it, because its result has their name.
    pub fn kept(&self) -> Vec<String> {
        let result = self.assignment.left().tensor.name();
        let kept = self.arranged.renamed.iter().filter(|renamed| renamed.of == result);
        kept.map(|renamed| renamed.of.clone()).collect()
    }

    /// The kernel, as text.
    pub fn loops(&self) -> String {
        let output = match &self.loops.appending {
            None => Output::Elements,
            Some(Appending { pattern: Some(_), .. }) => Output::Beside,
            Some(_) => Output::Entries,
        };
        stored(&self.loops.statement, &|_, _, _| ElementType::I32, output).kernel.to_string()
    }

    /// The result for these operands, by name; in an accumulation the old result is among them. By threads of its own,
    /// as many as there are processors.
    ///
    /// # Errors
    ///
    /// [`SparseError::Missing`], [`SparseError::Extents`], [`SparseError::OtherFill`], or what goes wrong when tensors
    /// are stored and kernels run.
    pub fn run<T: Element>(&self, operands: &[(&str, &SparseTensor<T>)]) -> Result<SparseTensor<T>, SparseError> {
        let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
        self.run_by(operands, Kernels::shared(), &Scoped { threads })
    }

    /// The same by a team of the caller's, and kernels that are kept elsewhere.
    ///
    /// # Errors
    ///
    /// As of [`run`](Self::run).
    pub fn run_by<T: Element>(
        &self,
        operands: &[(&str, &SparseTensor<T>)],
        kernels: &Kernels,
        team: &dyn Team,
    ) -> Result<SparseTensor<T>, SparseError> {
        let run = self.prepared(operands, kernels, team)?;
        match &self.loops.appending {
            None => run.elements(operands),
            Some(appending) => run.made_by(appending, operands),
        }
    }

    /// [`run_by`](Self::run_by) on tensors whose element type is known at run time only.
    ///
    /// # Errors
    ///
    /// As of [`run`](Self::run); [`SparseError::Types`] if one has elements of another type than the assignment.
    pub fn run_dynamic(
        &self,
        operands: &[(&str, &DynamicTensor)],
        kernels: &Kernels,
        team: &dyn Team,
    ) -> Result<DynamicTensor, SparseError> {
        let expected = self.assignment.element();
        with_element!(expected, T => {
            let mut typed = Vec::new();
            for &(name, operand) in operands {
                let (tensor, found) = (name.to_owned(), operand.element());
                let operand = operand.downcast_ref::<T>();
                typed.push((name, operand.ok_or(SparseError::Types { tensor, found, expected })?));
            }
            self.run_by(&typed, kernels, team).map(DynamicTensor::from)
        })
    }

    /// [`run_by`](Self::run_by), into a tensor that has the result's format and extents: a dense one keeps its memory,
    /// and what it held is lost, unless the assignment accumulates into it.
    ///
    /// One that is not dense keeps its levels and its memory if these follow from the operands as they did: if it
    /// [shares the levels](SparseTensor::shares_levels) of the operand that has an element wherever the result has one;
    /// or if it is the result of the last call, into which rows were written, and all operands share the levels of
    /// those of that call. Then only elements are computed.
    ///
    /// # Errors
    ///
    /// As of [`run`](Self::run); [`SparseError::Extents`] and [`SparseError::OtherFormat`] if it is another tensor than
    /// the result. Then it is what it was; if a kernel fails, it holds anything.
    pub fn run_into<T: Element>(
        &self,
        operands: &[(&str, &SparseTensor<T>)],
        kernels: &Kernels,
        team: &dyn Team,
        result: &mut SparseTensor<T>,
    ) -> Result<(), SparseError> {
        let expected = &self.assignment.left().tensor;
        let name = || expected.name().to_owned();
        if result.dimensions() != expected.dimensions() {
            let (expected, found) = (expected.dimensions().to_vec(), result.dimensions().to_vec());
            return Err(SparseError::Extents { tensor: name(), expected, found });
        }
        if result.format() != expected.format() {
            let (expected, found) = (expected.format().clone(), result.format().clone());
            return Err(SparseError::OtherFormat { tensor: name(), expected, found });
        }
        if self.assignment.accumulates() {
            let old = result.clone();
            let operands: Vec<_> = operands.iter().copied().chain([(expected.name(), &old)]).collect();
            *result = self.run_by(&operands, kernels, team)?;
            return Ok(());
        }
        let run = self.prepared(operands, kernels, team)?;
        match &self.loops.appending {
            None => run.elements_into(result.values_mut(), false),
            Some(appending) => {
                if !run.same_levels(result)? {
                    *result = run.made_by(appending, operands)?;
                }
                Ok(())
            }
        }
    }

    /// A run on operands that are what the assignment says.
    fn prepared<'r, T: Element>(
        &'r self,
        operands: &[(&str, &'r SparseTensor<T>)],
        kernels: &'r Kernels,
        team: &'r dyn Team,
    ) -> Result<ComputationRun<'r, T>, SparseError> {
        let left = self.assignment.left();
        let old = self.assignment.accumulates().then_some(&left.tensor);
        let read = self.assignment.right().accesses().into_iter().map(|access| &access.tensor);
        for tensor in read.chain(old) {
            let (found, name) = (given(operands, tensor.name())?, || tensor.name().to_owned());
            if found.dimensions() != tensor.dimensions() {
                let (expected, found) = (tensor.dimensions().to_vec(), found.dimensions().to_vec());
                return Err(SparseError::Extents { tensor: name(), expected, found });
            }
            if !is_fill(found.fill().to_scalar(), tensor.fill()) {
                let (expected, found) = (tensor.fill(), found.fill().to_scalar());
                return Err(SparseError::OtherFill { tensor: name(), expected, found });
            }
        }
        for divisor in &self.loops.statement.divisors {
            check_divisor(divisor.name(), given(operands, divisor.name())?)?;
        }
        let mut data = BTreeMap::new();
        for operand in self.loops.statement.operands() {
            let (format, dimensions) = (operand.format(), operand.dimensions());
            let tensor = self.operand(operands, operand)?;
            data.insert(operand.name().to_owned(), Data { tensor, format, dimensions });
        }
        Ok(ComputationRun { loops: &self.loops, data, kernels, team })
    }

    /// An operand in the format in which it is used.
    fn operand<'t, T: Element>(
        &self,
        operands: &[(&str, &'t SparseTensor<T>)],
        tensor: &TensorVariable,
    ) -> Result<Cow<'t, SparseTensor<T>>, SparseError> {
        let stored = self.stored_as(tensor);
        let found = given(operands, stored.name())?;
        Ok(match found.format() == stored.format() {
            true => Cow::Borrowed(found),
            false => Cow::Owned(found.convert(stored.format())?),
        })
    }
}

/// Checks that zero divided by any element of a tensor is zero.
fn check_divisor<T: Element>(name: &str, tensor: &SparseTensor<T>) -> Result<(), SparseError> {
    let Some(place) = tensor.values().iter().position(|element| !is_divisor(*element)) else { return Ok(()) };
    let element = tensor.values()[place].to_scalar();
    let (mut coordinates, mut rest) = (vec![0; tensor.dimensions().len()], place as i64);
    for &mode in tensor.format().order().iter().rev() {
        let extent = tensor.dimensions()[mode].max(1);
        (coordinates[mode], rest) = (rest % extent, rest / extent);
    }
    Err(DivisorError { tensor: name.to_owned(), coordinates, element }.into())
}

/// An accumulation into a tensor that is not dense, as the assignment of what the old element and the new value are
/// together; unless `is_kept` says of the operator, and of whether elements are zero where nothing is stored, that it
/// stays what it is.
fn written_out(
    assignment: &Assignment,
    is_kept: impl Fn(Reduction, bool) -> bool,
) -> Result<Cow<'_, Assignment>, SparseError> {
    let (left, right) = (assignment.left(), assignment.right());
    let is_zero = Reduction::Sum.identity(assignment.element()) == Some(left.tensor.fill());
    let Some(operator) = assignment.accumulation() else { return Ok(Cow::Borrowed(assignment)) };
    if left.tensor.format().is_dense() && left.tensor.format().is_plain() || is_kept(operator, is_zero) {
        return Ok(Cow::Borrowed(assignment));
    }
    let old = Box::new(Expression::Access(left.clone()));
    let both = operator.operator().map(|operator| Expression::Binary(operator, old, Box::new(right.clone())));
    // Checked assignments accumulate by operators alone.
    Ok(match both {
        Some(both) => Cow::Owned(Assignment::new(left.clone(), false, both)?),
        None => Cow::Borrowed(assignment),
    })
}
