//! Runs of kernels on tensors in memory, and what is kept from one to the next.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::data::{Data, Numbers, strides, whole};
use super::error::SparseError;
use crate::concrete::Statement;
use crate::element::{Element, ElementType, Scalar};
use crate::format::Level;
use crate::kernel::{Argument, Kernels, Team, View};
use crate::level::{LevelData, filled};
use crate::loops::Reduction;
use crate::lower::{Appending, NumberTypes, Output, Slot, StoredKernel, stored};
use crate::notation::{Access, TensorVariable};
use crate::storage::{Coordinates, Duplicates, EntryList, Segments, SparseTensor, StorageError, pack};

/// What a kernel gives, and the types of the positions and coordinates that it reads and writes.
type Variant = (Output, Vec<ElementType>);

/// The loops of a statement, and what is known of its kernels and results.
#[derive(Debug)]
pub(super) struct Loops {
    /// The loops as they run.
    pub(super) statement: Statement,
    pub(super) appending: Option<Appending>,
    /// The kernels so far.
    made: Mutex<BTreeMap<Variant, Arc<StoredKernel>>>,
    /// The levels of the last result that was appended.
    assembled: Mutex<Option<Assembled>>,
}

/// The levels of a result, which follow from those of the operands alone.
#[derive(Debug)]
struct Assembled {
    operands: Vec<Shared>,
    result: Shared,
    /// Whether elements were written in the order of their coordinates.
    in_order: bool,
}

/// The levels of a tensor.
type Shared = Arc<Vec<LevelData>>;

impl Loops {
    pub(super) fn new(statement: Statement, appending: Option<Appending>) -> Self {
        Self { statement, appending, made: Mutex::default(), assembled: Mutex::default() }
    }

    /// The kernel for operands whose numbers have these types, which is made once.
    fn kernel(&self, output: Output, types: NumberTypes<'_>) -> Arc<StoredKernel> {
        let tensors = self.statement.tensors().into_iter().filter(|tensor| !tensor.format().is_dense());
        let levels =
            tensors.flat_map(|tensor| (0..tensor.format().levels().len()).map(move |level| (tensor.name(), level)));
        let all =
            levels.flat_map(|(name, level)| ["pos", "used", "crd"].map(|what| types(name, level, what))).collect();
        let mut made = self.made.lock();
        let key = (output, all);
        if let Some(kernel) = made.get(&key) {
            return kernel.clone();
        }
        let kernel = Arc::new(stored(&self.statement, types, output));
        made.insert(key, kernel.clone());
        kernel
    }
}

pub(super) fn given<'t, T>(
    operands: &[(&str, &'t SparseTensor<T>)],
    name: &str,
) -> Result<&'t SparseTensor<T>, SparseError> {
    let found = operands.iter().find(|(given, _)| *given == name).map(|(_, tensor)| *tensor);
    found.ok_or_else(|| SparseError::Missing(name.to_owned()))
}

/// A run of a computation.
pub(super) struct Run<'r, T: Element> {
    pub(super) loops: &'r Loops,
    /// The operands, by the names that the statement gives them.
    pub(super) data: BTreeMap<String, Data<'r, T>>,
    pub(super) kernels: &'r Kernels,
    pub(super) team: &'r dyn Team,
}

/// What a kernel writes.
enum Written<'w, T> {
    Elements(View<'w>),
    Counts(&'w mut [i64]),
    Again { next: &'w mut [i64], levels: &'w LevelData, values: &'w mut [T] },
    Beside(&'w mut [T]),
    Entries { next: &'w mut [i64], coordinates: &'w mut [Coordinates], values: &'w mut [T] },
}

impl<T> Written<'_, T> {
    /// The type of the numbers of a component of the result's last level.
    fn type_of(&self, what: &str) -> ElementType {
        match self {
            Self::Again { levels, .. } => Numbers::type_of(levels.component(what)),
            Self::Entries { coordinates, .. } => match coordinates.first() {
                Some(Coordinates::Wide(_)) => ElementType::I64,
                Some(Coordinates::Narrow(_)) | None => ElementType::I32,
            },
            Self::Elements(_) | Self::Counts(_) | Self::Beside(_) => ElementType::I32,
        }
    }
}

impl<T: Element> Run<'_, T> {
    /// The kernel that gives `output`, for a result whose last level has numbers of the types that `of_result` gives for `pos` and `crd`.
    fn made(&self, output: Output, of_result: &dyn Fn(&str) -> ElementType) -> Arc<StoredKernel> {
        let result = self.loops.statement.result().name();
        let component = |name: &str, level: usize, what: &str| {
            let level = self.data.get(name)?.tensor.levels().get(level)?;
            level.components.iter().find(|component| component.name == what).map(|component| &component.array)
        };
        self.loops.kernel(output, &|name, level, what| match name == result {
            // Results have no slots.
            true if what == "used" => ElementType::I32,
            true => of_result(what),
            false => component(name, level, what).map_or(ElementType::I32, Numbers::type_of),
        })
    }

    /// Calls the kernel that gives `output`.
    fn call(&self, output: Output, mut written: Written<'_, T>) -> Result<(), SparseError> {
        let made = self.made(output, &|what| written.type_of(what));
        let numbers = |name: &str, level: usize, component: &str| self.data[name].numbers(level, component);
        let numbers = made.slots.iter().map(|slot| match slot {
            Slot::Positions(name, level) => {
                let kind = self.data[name].tensor.format().levels()[*level];
                Some(numbers(name, *level, if kind == Level::Counter { "used" } else { "pos" }))
            }
            Slot::Coordinates(name, level) => Some(numbers(name, *level, "crd")),
            Slot::Bits(name, level) => Some(numbers(name, *level, "bits")),
            _ => None,
        });
        let numbers: Vec<Option<Numbers<'_>>> = numbers.collect();
        let (mut elements, mut next, mut coordinates, mut values) = (None, None, Vec::new(), None);
        let mut known = [None, None];
        match &mut written {
            Written::Elements(view) => elements = Some(view),
            Written::Counts(counts) => next = Some(&mut **counts),
            Written::Beside(stored) => values = Some(&mut **stored),
            Written::Again { next: to, levels, values: stored } => {
                (next, values) = (Some(&mut **to), Some(&mut **stored));
                known = ["pos", "crd"].map(|what| Some(Numbers::of(levels.component(what))));
            }
            Written::Entries { next: to, coordinates: all, values: stored } => {
                (next, values) = (Some(&mut **to), Some(&mut **stored));
                coordinates = all.iter_mut().map(Some).collect();
            }
        }
        let mut coordinates = coordinates.into_iter();
        let extents = &self.loops.statement;
        let mut arguments = Vec::with_capacity(made.slots.len());
        for (slot, numbers) in made.slots.iter().zip(&numbers) {
            arguments.push(match slot {
                Slot::Elements(name) => match self.data.get(name) {
                    Some(data) => Argument::View(data.elements()?),
                    None => match elements.take() {
                        Some(view) => Argument::View(view.part_mut(&view_bounds(view))),
                        None => return Err(SparseError::Missing(name.clone())),
                    },
                },
                Slot::Extent(name, level) => {
                    Argument::Scalar(Scalar::I64(self.data[name].tensor.levels()[*level].extent() as i64))
                }
                Slot::Slots(name, level) => {
                    let level = &self.data[name].tensor.levels()[*level];
                    Argument::Scalar(Scalar::I64(level.positions.checked_div(level.parents).unwrap_or(0) as i64))
                }
                Slot::Positions(..) | Slot::Coordinates(..) | Slot::Bits(..) => match numbers {
                    Some(numbers) => Argument::View(numbers.view()?),
                    None => unreachable!("each such slot has numbers"),
                },
                Slot::Values(name) => match self.data.get(name) {
                    Some(data) => {
                        let values = data.tensor.values();
                        Argument::View(View::dense(values, &[values.len() as i64])?)
                    }
                    None => Argument::View(all_of(values.take().unwrap_or_default())?),
                },
                Slot::KnownPositions | Slot::KnownCoordinates => {
                    let numbers = &known[usize::from(*slot == Slot::KnownCoordinates)];
                    match numbers {
                        Some(numbers) => Argument::View(numbers.view()?),
                        None => unreachable!("only what is written again is known"),
                    }
                }
                Slot::Next => Argument::View(all_of(next.take().unwrap_or_default())?),
                Slot::ResultCoordinates(_) => match coordinates.next().flatten() {
                    Some(Coordinates::Narrow(numbers)) => Argument::View(all_of(numbers)?),
                    Some(Coordinates::Wide(numbers)) => Argument::View(all_of(numbers)?),
                    None => Argument::View(all_of::<i64>(&mut [])?),
                },
                Slot::ResultValues => Argument::View(all_of(values.take().unwrap_or_default())?),
                Slot::Size(variable) => Argument::Scalar(Scalar::I64(extents.extent(variable).unwrap_or(0))),
                Slot::Fixed(_) | Slot::Count(..) => {
                    unreachable!("no loops are around the kernel of a whole statement")
                }
                Slot::Chunks => Argument::Scalar(Scalar::I64(self.team.size() as i64)),
            });
        }
        let executable = self.kernels.get(&made.kernel)?;
        // SAFETY: the kernel was made for these operands, whose levels have been checked: positions and coordinates are within the components. What is written fits what was counted by the
        // same loops, and iterations that run at the same time write below different parents, or elements of their own.
        unsafe { executable.call(&mut arguments, self.team) }.map_err(SparseError::from)
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
        let overwrites = self.made(Output::Elements, &|_| ElementType::I32).overwrites;
        if !(statement.accumulates() || overwrites || zeroed && initial == zero()) {
            values.fill(initial);
        }
        let view = View::update(values, &whole(result.dimensions()), &strides(result.format(), result.dimensions()))?;
        self.call(Output::Elements, Written::Elements(view))
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
        self.call(Output::Beside, Written::Beside(&mut values))?;
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
                self.call(Output::Beside, Written::Beside(result.values_mut()))?;
            }
            return Ok(is_shared || in_order.is_some());
        }
        let (Some(in_order), Some(last)) = (in_order, levels.last()) else { return Ok(false) };
        let pos = last.component("pos");
        let mut next = zeros::<i64>(last.parents)?;
        next.iter_mut().enumerate().for_each(|(parent, next)| *next = pos.get(parent));
        let written = Written::Again { next: &mut next, levels: last, values: result.values_mut() };
        if !in_order && !self.made(Output::Again, &|what| written.type_of(what)).follows {
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
        self.call(Output::Counts, Written::Counts(&mut next))?;
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
        let (all, stored) = (&mut coordinates, &mut values);
        self.call(Output::Entries, Written::Entries { next: &mut next, coordinates: all, values: stored })?;
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

fn view_bounds(view: &View<'_>) -> Vec<(i64, i64)> {
    view.dimensions().iter().map(|dimension| (dimension.low, dimension.high)).collect()
}

fn all_of<N: Element>(numbers: &mut [N]) -> Result<View<'_>, SparseError> {
    let extent = numbers.len() as i64;
    Ok(View::dense_mut(numbers, &[extent])?)
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
