//! Calls of kernels on tensors in memory, compiled once for elements of all types.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::data::{Numbers, Operand};
use super::error::SparseError;
use crate::concrete::Statement;
use crate::element::{Element, ElementType, Scalar};
use crate::format::Level;
use crate::kernel::{Argument, Kernels, Team, View};
use crate::level::LevelData;
use crate::lower::{Appending, NumberTypes, Output, Slot, StoredKernel, stored};
use crate::storage::Coordinates;

/// The output of a kernel, and the types of the positions and coordinates that it reads and writes.
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
    pub(super) assembled: Mutex<Option<Assembled>>,
}

/// The levels of a result, which follow from those of the operands alone.
#[derive(Debug)]
pub(super) struct Assembled {
    pub(super) operands: Vec<Shared>,
    pub(super) result: Shared,
    /// Whether elements were written in the order of their coordinates.
    pub(super) in_order: bool,
}

/// The levels of a tensor.
pub(super) type Shared = Arc<Vec<LevelData>>;

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

/// The memory that a kernel writes to.
pub(super) enum WrittenMemory<'w> {
    Elements(View<'w>),
    Counts(&'w mut [i64]),
    Again { next: &'w mut [i64], levels: &'w LevelData, values: View<'w> },
    Beside(View<'w>),
    Entries { next: &'w mut [i64], coordinates: &'w mut [Coordinates], values: View<'w> },
}

impl WrittenMemory<'_> {
    /// The type of the numbers of a component of the result's last level.
    pub(super) fn type_of(&self, what: &str) -> ElementType {
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

/// The kernels of a statement, with operands.
pub(super) struct Calls<'c> {
    pub(super) loops: &'c Loops,
    /// The operands, by the names that the statement gives them.
    pub(super) operands: BTreeMap<&'c str, &'c dyn Operand>,
    pub(super) kernels: &'c Kernels,
    pub(super) team: &'c dyn Team,
}

impl Calls<'_> {
    /// The kernel that gives `output`, for a result whose last level has numbers of the types that `of_result` gives
    /// for `pos` and `crd`.
    pub(super) fn made(&self, output: Output, of_result: &dyn Fn(&str) -> ElementType) -> Arc<StoredKernel> {
        let result = self.loops.statement.result().name();
        let component = |name: &str, level: usize, what: &str| {
            let level = self.operands.get(name)?.levels().get(level)?;
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
    pub(super) fn call(&self, output: Output, mut written: WrittenMemory<'_>) -> Result<(), SparseError> {
        let made = self.made(output, &|what| written.type_of(what));
        let numbers = |name: &str, level: usize, component: &str| {
            Numbers::of(self.operands[name].levels()[level].component(component))
        };
        let numbers = made.slots.iter().map(|slot| match slot {
            Slot::Positions(name, level) => {
                let kind = self.operands[&**name].format().levels()[*level];
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
            WrittenMemory::Elements(view) => elements = Some(view),
            WrittenMemory::Counts(counts) => next = Some(&mut **counts),
            WrittenMemory::Beside(stored) => values = Some(stored),
            WrittenMemory::Again { next: to, levels, values: stored } => {
                (next, values) = (Some(&mut **to), Some(stored));
                known = ["pos", "crd"].map(|what| Some(Numbers::of(levels.component(what))));
            }
            WrittenMemory::Entries { next: to, coordinates: all, values: stored } => {
                (next, values) = (Some(&mut **to), Some(stored));
                coordinates = all.iter_mut().map(Some).collect();
            }
        }
        let mut coordinates = coordinates.into_iter();
        let extents = &self.loops.statement;
        let mut arguments = Vec::with_capacity(made.slots.len());
        for (slot, numbers) in made.slots.iter().zip(&numbers) {
            arguments.push(match slot {
                Slot::Elements(name) => match self.operands.get(&**name) {
                    Some(data) => Argument::View(data.elements()?),
                    None => match elements.take() {
                        Some(view) => Argument::View(view.part_mut(&view_bounds(view))),
                        None => return Err(SparseError::Missing(name.clone())),
                    },
                },
                Slot::Extent(name, level) => {
                    Argument::Scalar(Scalar::I64(self.operands[&**name].levels()[*level].extent() as i64))
                }
                Slot::Slots(name, level) => {
                    let level = &self.operands[&**name].levels()[*level];
                    Argument::Scalar(Scalar::I64(level.positions.checked_div(level.parents).unwrap_or(0) as i64))
                }
                Slot::Positions(..) | Slot::Coordinates(..) | Slot::Bits(..) => match numbers {
                    Some(numbers) => Argument::View(numbers.view()?),
                    None => unreachable!("each such slot has numbers"),
                },
                Slot::Values(name) => match self.operands.get(&**name) {
                    Some(data) => Argument::View(data.values()?),
                    None => Argument::View(given(values.take())?),
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
                Slot::ResultValues => Argument::View(given(values.take())?),
                Slot::Size(variable) => Argument::Scalar(Scalar::I64(extents.extent(variable).unwrap_or(0))),
                Slot::Fixed(_) | Slot::Count(..) => {
                    unreachable!("no loops are around the kernel of a whole statement")
                }
                Slot::Chunks => Argument::Scalar(Scalar::I64(self.team.size() as i64)),
            });
        }
        let executable = self.kernels.get(&made.kernel)?;
        // SAFETY: the kernel was made for these operands, whose levels have been checked: positions and coordinates are
        // within the components. What is written fits what was counted by the same loops, and iterations that run at
        // the same time write below different parents, or elements of their own.
        unsafe { executable.call(&mut arguments, self.team) }.map_err(SparseError::from)
    }
}

/// All that is written to, once.
fn given<'w>(view: Option<&'w mut View<'_>>) -> Result<View<'w>, SparseError> {
    match view {
        Some(view) => Ok(view.part_mut(&view_bounds(view))),
        None => all_of::<i64>(&mut []),
    }
}

fn view_bounds(view: &View<'_>) -> Vec<(i64, i64)> {
    view.dimensions().iter().map(|dimension| (dimension.low, dimension.high)).collect()
}

/// Numbers or elements that are written to, one after the other.
pub(super) fn all_of<N: Element>(numbers: &mut [N]) -> Result<View<'_>, SparseError> {
    let extent = numbers.len() as i64;
    Ok(View::dense_mut(numbers, &[extent])?)
}
