//! Runs of kernels on tensors in memory, and what is kept from one to the next.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::calls::{Assembled, Calls, Loops, Shared, WrittenMemory, all_of};
use super::data::{Data, Operand, strides, whole};
use super::error::SparseError;
use crate::element::{Element, ElementType};
use crate::kernel::{Kernels, Team, View};
use crate::level::filled;
use crate::loops::Reduction;
use crate::lower::{Appending, Output};
use crate::notation::{Access, TensorVariable};
use crate::storage::{Coordinates, Duplicates, EntryList, Segments, SparseTensor, StorageError, pack};

pub(super) fn given<'t, T>(
    operands: &[(&str, &'t SparseTensor<T>)],
    name: &str,
) -> Result<&'t SparseTensor<T>, SparseError> {
    let found = operands.iter().find(|(given, _)| *given == name).map(|(_, tensor)| *tensor);
    found.ok_or_else(|| SparseError::Missing(name.to_owned()))
}

/// A run of a computation.
pub(super) struct ComputationRun<'r, T: Element> {
    pub(super) loops: &'r Loops,
    /// The operands, by the names that the statement gives them.
    pub(super) data: BTreeMap<String, Data<'r, T>>,
    pub(super) kernels: &'r Kernels,
    pub(super) team: &'r dyn Team,
}

impl<T: Element> ComputationRun<'_, T> {
    /// Calls of kernels, whatever the type of elements.
    fn calls(&self) -> Calls<'_> {
        let mut operands = BTreeMap::new();
        // They come in order; `collect` would sort them, by code of its own for each type of elements.
        operands.extend(self.data.iter().map(|(name, data)| (&**name, data as &dyn Operand)));
        Calls { loops: self.loops, operands, kernels: self.kernels, team: self.team }
    }

    /// Calls the kernel that gives `output`.
    fn call(&self, output: Output, written: WrittenMemory<'_>) -> Result<(), SparseError> {
        self.calls().call(output, written)
    }

    /// A dense result.
    pub(super) fn elements(&self, operands: &[(&str, &SparseTensor<T>)]) -> Result<SparseTensor<T>, SparseError> {
        let statement = &self.loops.statement;
        let result = statement.result();
        let (format, dimensions) = (result.format(), result.dimensions());
        let count = dimensions.iter().try_fold(1_i64, |count, &extent| count.checked_mul(extent)).unwrap_or(i64::MAX);
        let mut values = match statement.accumulates() {
            true => given(operands, result.name())?.convert(format)?.values().to_vec(),
            false => zeros(count.max(0) as usize)?,
        };
        self.elements_into(&mut values, true)?;
        Ok(SparseTensor::from_components(format, dimensions, fill(result), Vec::new(), values)?)
    }

    /// The elements of a dense result, which accumulations have the old values of. `zeroed` says that others are zero.
    pub(super) fn elements_into(&self, values: &mut [T], zeroed: bool) -> Result<(), SparseError> {
        let statement = &self.loops.statement;
        let result = statement.result();
        let initial = statement.initial().and_then(T::from_scalar).unwrap_or(fill(result));
        let overwrites = self.calls().made(Output::Elements, &|_| ElementType::I32).overwrites;
        if !(statement.accumulates() || overwrites || zeroed && initial == zero()) {
            values.fill(initial);
        }
        let view = View::update(values, &whole(result.dimensions()), &strides(result.format(), result.dimensions()))?;
        self.call(Output::Elements, WrittenMemory::Elements(view))
    }

    /// A result that is not dense.
    pub(super) fn made_by(
        &self,
        appending: &Appending,
        operands: &[(&str, &SparseTensor<T>)],
    ) -> Result<SparseTensor<T>, SparseError> {
        match &appending.pattern {
            Some(access) => self.beside(access),
            None => self.appended(appending, operands),
        }
    }

    /// A result with the levels of an operand.
    fn beside(&self, access: &Access) -> Result<SparseTensor<T>, SparseError> {
        let (result, operand) = (self.loops.statement.result(), &self.data[access.tensor.name()].tensor);
        let last = operand.levels().get(result.format().rank() - 1);
        let mut values = room(fill(result), last.map_or(1, |last| last.positions))?;
        self.call(Output::Beside, WrittenMemory::Beside(all_of(&mut values)?))?;
        let made = operand.with_levels_of(result.format(), result.dimensions(), fill(result), values);
        let result = Arc::clone(made.shared_levels());
        *self.loops.assembled.lock() = self.levels().map(|operands| Assembled { operands, result, in_order: true });
        Ok(made)
    }

    /// Computes the elements of a result whose levels are those that it has, if that is known; tells whether it is.
    pub(super) fn same_levels(&self, result: &mut SparseTensor<T>) -> Result<bool, SparseError> {
        let appending = self.loops.appending.as_ref();
        let pattern = appending.and_then(|appending| appending.pattern.as_ref());
        let is_shared = pattern.is_some_and(|access| self.data[access.tensor.name()].tensor.shares_levels(result));
        let levels = Arc::clone(result.shared_levels());
        let in_order = match &*self.loops.assembled.lock() {
            Some(Assembled { operands, result, in_order }) if Arc::ptr_eq(result, &levels) => {
                let own = self.levels();
                let is_same = own.is_some_and(|own| own.iter().zip(operands).all(|(own, old)| is_same(own, old)));
                is_same.then_some(*in_order)
            }
            _ => None,
        };
        if pattern.is_some() {
            if is_shared || in_order.is_some() {
                result.values_mut().fill(fill(self.loops.statement.result()));
                self.call(Output::Beside, WrittenMemory::Beside(all_of(result.values_mut())?))?;
            }
            return Ok(is_shared || in_order.is_some());
        }
        let (Some(in_order), Some(last)) = (in_order, levels.last()) else { return Ok(false) };
        let pos = last.component("pos");
        let mut next = zeros::<i64>(last.parents)?;
        next.iter_mut().enumerate().for_each(|(parent, next)| *next = pos.get(parent));
        let values = all_of(result.values_mut())?;
        let written = WrittenMemory::Again { next: &mut next, levels: last, values };
        if !in_order && !self.calls().made(Output::Again, &|what| written.type_of(what)).follows {
            return Ok(false);
        }
        self.call(Output::Again, written)?;
        Ok(true)
    }

    /// The levels of all operands; none if some are converted for each run.
    fn levels(&self) -> Option<Vec<Shared>> {
        let shared = |data: &Data<'_, T>| match &data.tensor {
            Cow::Borrowed(tensor) => Some(Arc::clone(tensor.shared_levels())),
            Cow::Owned(_) => None,
        };
        self.data.values().map(shared).collect()
    }

    /// A result that is appended to: first its elements are counted, then they are written.
    fn appended(
        &self,
        appending: &Appending,
        operands: &[(&str, &SparseTensor<T>)],
    ) -> Result<SparseTensor<T>, SparseError> {
        let result = self.loops.statement.result();
        let (format, dimensions) = (result.format(), result.dimensions());
        let fill = fill(result);
        let parents = appending.parents.iter().map(|&mode| dimensions[mode]);
        let parents = parents.fold(1_i64, |parents, extent| parents.saturating_mul(extent)).max(0) as usize;
        let mut next = zeros::<i64>(parents)?;
        self.call(Output::Counts, WrittenMemory::Counts(&mut next))?;
        let mut total = 0;
        for count in &mut next {
            (*count, total) = (total, total + *count);
        }
        let mut starts = room(total, parents + 1)?;
        starts[..parents].copy_from_slice(&next);
        let total = total as usize;
        let is_narrow = appending.in_place
            && i32::try_from(total).is_ok()
            && dimensions.iter().all(|&extent| i32::try_from(extent).is_ok());
        let coordinates = appending.coordinates.iter().map(|_| {
            Ok::<_, SparseError>(if is_narrow {
                Coordinates::Narrow(zeros(total)?)
            } else {
                Coordinates::Wide(zeros(total)?)
            })
        });
        let mut coordinates = coordinates.collect::<Result<Vec<_>, _>>()?;
        let mut values = zeros::<T>(total)?;
        let (all, stored) = (&mut coordinates, all_of(&mut values)?);
        self.call(Output::Entries, WrittenMemory::Entries { next: &mut next, coordinates: all, values: stored })?;
        drop(next);
        if appending.in_place {
            let coordinates = coordinates.remove(0);
            let segments = Segments { starts, coordinates, values };
            let (made, in_order) = segments.into_tensor(format, dimensions, fill, self.team)?;
            let assembled = self.levels().map(|operands| {
                let result = Arc::clone(made.shared_levels());
                Assembled { operands, result, in_order }
            });
            *self.loops.assembled.lock() = assembled;
            return Ok(made);
        }
        let mut entries = EntryList::new(dimensions.len());
        entries.values = values;
        for (to, coordinates) in entries.coordinates.iter_mut().zip(coordinates) {
            if let Coordinates::Wide(coordinates) = coordinates {
                *to = coordinates;
            }
        }
        if self.loops.statement.accumulates() {
            given(operands, result.name())?.for_each(|coordinates, value| entries.push(coordinates, value));
        }
        Ok(pack(format, dimensions, fill, entries, Duplicates::Sum)?.tensor)
    }
}

/// Whether levels are the same, which is looked at only if that takes no time.
fn is_same(levels: &Shared, others: &Shared) -> bool {
    let are_dense = |levels: &Shared| levels.iter().all(|level| level.components.is_empty());
    Arc::ptr_eq(levels, others) || are_dense(levels) && are_dense(others)
}

fn fill<T: Element>(tensor: &TensorVariable) -> T {
    T::from_scalar(tensor.fill()).expect("fill values have the type of their tensors")
}

fn zero<T: Element>() -> T {
    Reduction::Sum.identity(T::TYPE).and_then(T::from_scalar).expect("elements of all types have a sum")
}

/// `count` zeros; an error as of [`room`].
fn zeros<N: bytemuck::Zeroable + Clone>(count: usize) -> Result<Vec<N>, SparseError> {
    room(N::zeroed(), count)
}

/// `count` times `value`; an error says how much memory that is, if there is not enough.
fn room<N: Clone>(value: N, count: usize) -> Result<Vec<N>, SparseError> {
    let memory = |_| StorageError::Memory(count as u128 * size_of::<N>() as u128);
    Ok(filled(value, count).map_err(memory)?)
}
