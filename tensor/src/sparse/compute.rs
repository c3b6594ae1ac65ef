//! Kernels run on tensors in memory.

use std::borrow::Cow;

use super::error::SparseError;
use super::kernel::{Made, Output, Plan};
use super::operand::{Operand, OperandLevel, is_narrow};
use crate::element::{Element, Scalar};
use crate::kernel::{Argument, Kernels, Scoped, Team, View};
use crate::level::{Array, LevelData, filled};
use crate::loops::Reduction;
use crate::notation::Assignment;
use crate::storage::{Duplicates, EntryList, SparseTensor, StorageError, pack};

/// An assignment that can be computed on tensors of its formats.
#[derive(Clone, Debug)]
pub struct Computation<'a> {
    assignment: &'a Assignment,
}

impl<'a> Computation<'a> {
    /// Of an assignment. The formats are those of its tensors.
    ///
    /// # Errors
    ///
    /// [`SparseError::Types`], if not all tensors have one type; [`SparseError::Fill`]; [`SparseError::Accumulation`].
    pub fn new(assignment: &'a Assignment) -> Result<Self, SparseError> {
        let expected = assignment.element();
        for tensor in assignment.tensors() {
            if tensor.element() != expected {
                return Err(SparseError::Types { tensor: tensor.name().to_owned(), found: tensor.element(), expected });
            }
        }
        let result = &assignment.left().tensor;
        if Reduction::Sum.identity(expected) != Some(result.fill()) && !Plan::new(assignment).is_dense {
            let (tensor, fill) = (result.name().to_owned(), format!("{:?}", result.fill()));
            return Err(SparseError::Fill { tensor, fill });
        }
        let is_sum = assignment.accumulation().is_none_or(|accumulation| accumulation == Reduction::Sum);
        if !is_sum && !Plan::new(assignment).is_dense {
            return Err(SparseError::Accumulation { tensor: result.name().to_owned() });
        }
        Ok(Self { assignment })
    }

    /// The formats in which operands are used that differ from those that they have: they are converted each time.
    pub fn conversions(&self) -> Vec<(String, crate::format::Format)> {
        let tensors = self.assignment.tensors();
        let plan = Plan::new(self.assignment);
        let is_other = |(name, format): &(&str, &crate::format::Format)| {
            !tensors.iter().any(|tensor| tensor.name() == *name && tensor.format() == *format)
        };
        plan.operands().filter(is_other).map(|(name, format)| (name.to_owned(), format.clone())).collect()
    }

    /// The loops, as text.
    ///
    /// # Errors
    ///
    /// [`SparseError::Merge`].
    pub fn loops(&self) -> Result<String, SparseError> {
        let plan = Plan::new(self.assignment);
        let narrow = vec![true; plan.operands().count()];
        let output = if plan.is_dense { Output::Dense } else { Output::Written };
        Ok(plan.kernel(&narrow, output)?.kernel.to_string())
    }

    /// The result for these operands, by name; in an accumulation the old result is among them. By threads of its own, as many as there are processors.
    ///
    /// # Errors
    ///
    /// [`SparseError::Missing`], [`SparseError::Extents`], [`SparseError::OtherFill`], or what goes wrong when tensors are stored and kernels run.
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
        let (plan, left) = (Plan::new(self.assignment), self.assignment.left());
        let given = |name: &str| {
            let found = operands.iter().find(|(given, _)| *given == name).map(|(_, tensor)| *tensor);
            found.ok_or_else(|| SparseError::Missing(name.to_owned()))
        };
        let old = self.assignment.accumulates().then_some(&left.tensor);
        let read = self.assignment.right().accesses().into_iter().map(|access| &access.tensor);
        for tensor in read.chain(old) {
            let (found, name) = (given(tensor.name())?, || tensor.name().to_owned());
            if found.dimensions() != tensor.dimensions() {
                let (expected, found) = (tensor.dimensions().to_vec(), found.dimensions().to_vec());
                return Err(SparseError::Extents { tensor: name(), expected, found });
            }
            if found.fill().to_scalar() != tensor.fill() {
                let (expected, found) = (tensor.fill(), found.fill().to_scalar());
                return Err(SparseError::OtherFill { tensor: name(), expected, found });
            }
        }
        let stored = plan.operands().map(|(name, format)| {
            let tensor = given(name)?;
            Ok(if tensor.format() == format { Cow::Borrowed(tensor) } else { Cow::Owned(tensor.convert(format)?) })
        });
        let stored = stored.collect::<Result<Vec<_>, SparseError>>()?;
        let narrow: Vec<bool> = stored.iter().map(|tensor| tensor.levels().iter().all(is_narrow)).collect();
        let data: Vec<Data<'_, T>> =
            stored.iter().zip(&narrow).map(|(tensor, &narrow)| Data::new(tensor, narrow)).collect();
        let dimensions = left.tensor.dimensions();
        let zero: T = of_scalar(Reduction::Sum.identity(T::TYPE)).expect("elements of all types have a sum");
        let call = |made: &Made, outputs: Vec<Argument<'_>>| {
            let mut arguments = Vec::new();
            for (operand, data) in made.operands.iter().zip(&data) {
                data.arguments(operand, &mut arguments)?;
            }
            let extents = self.assignment.extents();
            arguments.extend(made.extents.iter().map(|variable| Argument::Scalar(Scalar::I64(extents[variable]))));
            arguments.extend(outputs);
            let executable = kernels.get(&made.kernel)?;
            // SAFETY: the kernel was made for these operands, whose levels have been checked: positions and coordinates are within the components, and iterations of the outermost loop change
            // elements of their own.
            unsafe { executable.call(&mut arguments, team) }.map_err(SparseError::from)
        };
        if plan.is_dense {
            let initial = plan.reduction().and_then(|reduction| of_scalar(reduction.identity(T::TYPE))).unwrap_or(zero);
            let count =
                dimensions.iter().try_fold(1_i64, |count, &extent| count.checked_mul(extent)).unwrap_or(i64::MAX);
            let count = count.max(0) as usize;
            let mut values = match self.assignment.accumulates() {
                true => given(left.tensor.name())?.convert(left.tensor.format())?.values().to_vec(),
                false => room(initial, count)?,
            };
            let made = plan.kernel(&narrow, Output::Dense)?;
            let view = View::dense_mut(&mut values, &[count as i64])?;
            call(&made, vec![Argument::View(view)])?;
            return Ok(SparseTensor::from_components(left.tensor.format(), dimensions, zero, Vec::new(), values)?);
        }
        let mut entries = self.written(&plan, &narrow, zero, &call)?;
        if self.assignment.accumulates() {
            let old = given(left.tensor.name())?;
            old.for_each(|coordinates, value| entries.push(coordinates, value));
        }
        Ok(pack(left.tensor.format(), dimensions, zero, entries, Duplicates::Sum)?.tensor)
    }

    /// What is computed, entry by entry: first counted, then written.
    fn written<T: Element>(
        &self,
        plan: &Plan<'_>,
        narrow: &[bool],
        zero: T,
        call: &Call<'_>,
    ) -> Result<EntryList<T>, SparseError> {
        let counted = plan.kernel(narrow, Output::Counted)?;
        let extent = counted.gathers.as_ref().map(|gathered| self.assignment.extents()[gathered]);
        let length = extent.unwrap_or(0).max(0) as usize;
        let mut row = (room(zero, length)?, room(0, length)?, room(0, length)?);
        let mut count = [0_i64];
        let mut outputs = vec![Argument::View(View::dense_mut(&mut count, &[1])?)];
        if counted.gathers.is_some() {
            outputs.extend(row_views(&mut row)?);
        }
        call(&counted, outputs)?;
        let total = count[0] as usize;
        let rank = self.assignment.left().variables.len();
        let mut entries = EntryList::new(rank);
        for coordinates in &mut entries.coordinates {
            *coordinates = room(0, total)?;
        }
        entries.values = room(zero, total)?;
        let made = plan.kernel(narrow, Output::Written)?;
        let mut outputs = vec![Argument::View(View::dense_mut(&mut count, &[1])?)];
        for coordinates in &mut entries.coordinates {
            outputs.push(Argument::View(View::dense_mut(coordinates, &[total as i64])?));
        }
        outputs.push(Argument::View(View::dense_mut(&mut entries.values, &[total as i64])?));
        if made.gathers.is_some() {
            row.1.fill(0);
            outputs.extend(row_views(&mut row)?);
        }
        call(&made, outputs)?;
        Ok(entries)
    }
}

/// `count` times `value`; an error says how much memory that is, if there is not enough.
fn room<N: Clone>(value: N, count: usize) -> Result<Vec<N>, SparseError> {
    let memory = |_| StorageError::Memory(count as u128 * size_of::<N>() as u128);
    Ok(filled(value, count).map_err(memory)?)
}

/// Runs a kernel with these outputs.
type Call<'c> = dyn Fn(&Made, Vec<Argument<'_>>) -> Result<(), SparseError> + 'c;

/// The row in which values are gathered, for one run of a kernel.
fn row_views<T: Element>(row: &mut (Vec<T>, Vec<i64>, Vec<i64>)) -> Result<[Argument<'_>; 3], SparseError> {
    let length = [row.0.len() as i64];
    Ok([
        Argument::View(View::dense_mut(&mut row.0, &length)?),
        Argument::View(View::dense_mut(&mut row.1, &length)?),
        Argument::View(View::dense_mut(&mut row.2, &length)?),
    ])
}

/// A number of the table of operators as an element.
fn of_scalar<T: Element>(scalar: Option<Scalar>) -> Option<T> {
    scalar.and_then(T::from_scalar)
}

/// The components of an operand in the widths that kernels have.
struct Data<'a, T> {
    tensor: &'a SparseTensor<T>,
    levels: Vec<Vec<Numbers<'a>>>,
}

enum Numbers<'a> {
    Narrow(Cow<'a, [i32]>),
    Wide(Cow<'a, [i64]>),
}

impl<'a, T: Element> Data<'a, T> {
    fn new(tensor: &'a SparseTensor<T>, narrow: bool) -> Self {
        let numbers = |level: &'a LevelData| {
            let components = level.components.iter().map(|component| &component.array);
            components.map(|array| Numbers::of(array, narrow)).collect()
        };
        Self { tensor, levels: tensor.levels().iter().map(numbers).collect() }
    }

    fn arguments<'b>(&'b self, operand: &Operand, arguments: &mut Vec<Argument<'b>>) -> Result<(), SparseError> {
        for (level, (data, numbers)) in operand.levels.iter().zip(self.tensor.levels().iter().zip(&self.levels)) {
            match level {
                OperandLevel::Dense(_) => arguments.push(Argument::Scalar(Scalar::I64(data.extent() as i64))),
                OperandLevel::Compressed { .. } => {
                    for numbers in numbers {
                        arguments.push(Argument::View(numbers.view()?));
                    }
                }
            }
        }
        let values = self.tensor.values();
        arguments.push(Argument::View(View::dense(values, &[values.len() as i64])?));
        Ok(())
    }
}

impl<'a> Numbers<'a> {
    fn of(array: &'a Array, narrow: bool) -> Self {
        let all = || (0..array.len()).map(|place| array.get(place));
        match array {
            Array::I32(numbers) if narrow => Self::Narrow(Cow::Borrowed(numbers)),
            Array::I64(numbers) => Self::Wide(Cow::Borrowed(numbers)),
            _ if narrow => Self::Narrow(all().map(|number| number as i32).collect()),
            _ => Self::Wide(all().collect()),
        }
    }

    fn view(&self) -> Result<View<'_>, SparseError> {
        Ok(match self {
            Self::Narrow(numbers) => View::dense(numbers, &[numbers.len() as i64])?,
            Self::Wide(numbers) => View::dense(numbers, &[numbers.len() as i64])?,
        })
    }
}
