//! The operands of statements on sparse tensors: from files, from generators, or random ones.

use std::path::Path;

use maniple_tensor::distributed::{TcsFile, element_that_is, is_packed_by_tasks};
use maniple_tensor::element::{Element, ElementType, Scalar};
use maniple_tensor::format::Level;
use maniple_tensor::generate::Generator;
use maniple_tensor::notation::{TensorVariable, cast};
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, pack};

use super::files::{Contents, FileByTasks, SparseFile, Stored};
use super::options::Options;
use super::values::{self, Values};
use crate::error::{Error, Result};
use crate::input::InputError;
use crate::options::place;

/// What is known of a tensor that a file has.
pub(super) enum Given<T> {
    /// A file that tasks can read, of which no more was read than tells the extents.
    ByTasks(FileByTasks, SparseFile),
    /// All that a file has.
    All(Read<T>),
}

/// What was read from a file: elements of the type that is computed with, or numbers that are to be converted to it.
pub(super) enum Read<T> {
    /// A tensor as a file stores it.
    Stored(SparseTensor<T>),
    Own(EntryList<T>),
    Numbers(EntryList<f64>),
}

impl<T: Copy> Given<T> {
    /// Makes it that of a tensor of so many dimensions, if all others after these have an extent of 1, as of a vector in a file of a matrix. Whether it is.
    pub(super) fn take_order(&mut self, order: usize) -> bool {
        match self {
            Self::ByTasks(FileByTasks::Levels(_), _) | Self::All(Read::Stored(_)) => return false,
            Self::ByTasks(FileByTasks::Entries(file), _) => match file.with_order(order) {
                Some(of_order) => *file = of_order,
                None => return false,
            },
            Self::All(read) => read.take_order(order),
        }
        true
    }
}

impl<T: Copy> Read<T> {
    /// Leaves out coordinates after the first ones, where entries have more.
    fn take_order(&mut self, order: usize) {
        fn taken<T: Copy>(entries: &mut EntryList<T>, order: usize) {
            let (mut coordinates, values) = std::mem::replace(entries, EntryList::new(order)).into_parts();
            coordinates.truncate(order);
            *entries = EntryList::of(coordinates, values);
        }
        match self {
            Self::Stored(_) => {}
            Self::Own(entries) => taken(entries, order),
            Self::Numbers(entries) => taken(entries, order),
        }
    }
}

/// Reads the entries of a file, exactly if the file has the type that is asked for, and the extents; of a file that tasks can read, the extents alone.
pub(super) fn read_as<T: Stored>(path: &Path) -> Result<(Vec<i64>, Given<T>)> {
    let file = SparseFile::of(path)?;
    let is_real = |element: ElementType| <T as Element>::TYPE.is_complex() || !element.is_complex();
    match file.levels()? {
        Some(levels) if levels.is_whole() && is_loaded::<T>(&levels) => {
            return Ok((levels.dimensions(), Given::ByTasks(FileByTasks::Levels(levels), file)));
        }
        None if place().nodes > 1 => {
            if let Some(entries) = file.entries()?.filter(|entries| is_real(entries.element())) {
                return Ok((entries.dimensions().to_vec(), Given::ByTasks(FileByTasks::Entries(entries), file)));
            }
        }
        _ => {}
    }
    read_all(&file).map(|(dimensions, read)| (dimensions, Given::All(read)))
}

/// Whether tasks load a file: one with elements of the type that is computed with, or on several nodes, those that tasks make of others.
fn is_loaded<T: Stored>(levels: &TcsFile) -> bool {
    let (own, wanted) = (levels.element(), <T as Element>::TYPE);
    let is_cast = || levels.format().is_ok_and(|format| is_packed_by_tasks(&format));
    own == wanted || place().nodes > 1 && (wanted.is_complex() || !own.is_complex()) && is_cast()
}

/// Whether the numbers of a file can be read as elements of a type: of text as any of the same kind, of integers also as floats.
fn is_typed<T: Stored>(file: &SparseFile) -> Result<bool> {
    let (own, wanted) = (file.element()?, <T as Element>::TYPE);
    Ok(match own {
        _ if own == wanted => true,
        ElementType::I64 if file.is_text() => !wanted.is_complex() && wanted != ElementType::Bool,
        ElementType::F64 if file.is_text() => wanted == ElementType::F32,
        _ => false,
    })
}

/// Reads all entries of a file.
fn read_all<T: Stored>(file: &SparseFile) -> Result<(Vec<i64>, Read<T>)> {
    let path = file.path();
    if !is_typed::<T>(file)? {
        return read(path).map(|(dimensions, entries)| (dimensions, Read::Numbers(entries)));
    }
    if let Some(stored) = file.stored()? {
        return Ok((stored.dimensions().to_vec(), Read::Stored(stored)));
    }
    let Contents { dimensions, fill, entries } = file.read::<T>()?;
    check_fill(path, fill != zero(), &format!("{fill:?}"))?;
    Ok((dimensions, Read::Own(entries)))
}

fn check_fill(path: &Path, is_other: bool, fill: &str) -> Result<()> {
    match is_other {
        false => Ok(()),
        true => {
            let reason = format!("what is not stored is {fill}, and must be 0 in a statement");
            Err(InputError::Unsuitable { name: path.display().to_string(), reason }.into())
        }
    }
}

/// Reads the entries of a file, and the extents.
pub(crate) fn read(path: &Path) -> Result<(Vec<i64>, EntryList<f64>)> {
    let Contents { dimensions, fill, entries } = SparseFile::of(path)?.read::<f64>()?;
    check_fill(path, fill != 0.0, &fill.to_string())?;
    Ok((dimensions, entries))
}

/// The elements of a tensor: those that were read, that a generator makes, or random ones; where it is sparse, of every hundredth.
pub(super) fn operand<T: Stored>(
    options: &Options,
    tensor: &TensorVariable,
    given: Option<Given<T>>,
) -> Result<SparseTensor<T>> {
    let (format, dimensions, seed) = (tensor.format(), tensor.dimensions(), options.runtime.seed);
    let is_generated = options.generate.iter().any(|(name, _)| name == tensor.name());
    let is_dense = format.is_plain() && format.levels().iter().all(|level| *level == Level::Dense);
    let given = match given {
        Some(Given::ByTasks(_, file)) => {
            let mut read = read_all(&file)?.1;
            read.take_order(dimensions.len());
            Some(read)
        }
        Some(Given::All(read)) => Some(read),
        None => None,
    };
    let entries = match given {
        Some(Read::Stored(stored)) if stored.format() == format => return Ok(stored),
        Some(Read::Stored(stored)) => {
            return stored.convert(format).map_err(|error| Error::Usage(format!("{tensor}: {error}")));
        }
        Some(Read::Own(entries)) => entries,
        Some(Read::Numbers(entries)) => {
            let exact = |value: f64| element_that_is::<T>(Scalar::F64(value));
            if let Some((_, value)) = entries.iter().find(|(_, value)| exact(*value).is_none()) {
                let problem = format!("{tensor} has the element {value:?}, which is no {}", <T as Element>::TYPE);
                return Err(Error::Usage(format!("{problem}: leave --type out, or take another one")));
            }
            entries.map(|value| exact(value).unwrap_or_else(zero))
        }
        None if is_dense && !is_generated => {
            let count = dimensions.iter().try_fold(1_i64, |count, &extent| count.checked_mul(extent));
            if count.is_none_or(|count| count > MOST_ELEMENTS) {
                let problem = format!(
                    "{tensor} of extents {dimensions:?} is too large for a dense tensor, of which each node makes all"
                );
                return Err(Error::Usage(format!("{problem}: give it a sparse format, or take a smaller --size")));
            }
            let values = Values::random(seed, tensor);
            let mut entries = EntryList::new(dimensions.len());
            let mut at = vec![0; dimensions.len()];
            for _ in 0..dimensions.iter().product::<i64>() {
                if let Some(value) = T::from_scalar(values.get(tensor, &at)) {
                    entries.push(&at, value);
                }
                let mut dimension = at.len();
                while dimension > 0 {
                    dimension -= 1;
                    at[dimension] += 1;
                    if at[dimension] < dimensions[dimension] {
                        break;
                    }
                    at[dimension] = 0;
                }
            }
            entries
        }
        None => {
            let (kind, seed) = generator(options, tensor)?;
            if kind.most_entries(dimensions) > MOST_ELEMENTS as f64 {
                let problem = format!(
                    "{kind} of extents {dimensions:?} has too many elements for {tensor}, of which each node makes all"
                );
                return Err(Error::Usage(format!(
                    "{problem}: take a smaller --size, or --generate {tensor}=uniform:DENSITY"
                )));
            }
            let rows = 0..dimensions.first().copied().unwrap_or(1);
            kind.rows(dimensions, rows, seed).map_err(|error| Error::Usage(format!("--generate: {error}")))?
        }
    };
    let packed = pack(format, dimensions, zero(), entries, Duplicates::Sum);
    Ok(packed.map_err(|error| Error::Usage(format!("{tensor}: {error}")))?.tensor)
}

/// What makes a sparse tensor of which no file has the entries, and from which seed.
pub(super) fn generator(options: &Options, tensor: &TensorVariable) -> Result<(Generator, u64)> {
    let kind = options.generate.iter().find(|(name, _)| name == tensor.name()).map(|(_, kind)| kind.clone());
    let kind = kind.map_or_else(|| "uniform:0.01".parse(), Ok).map_err(|error| Error::Usage(format!("{error}")))?;
    kind.check(tensor.dimensions()).map_err(|error| Error::Usage(format!("--generate: {error}")))?;
    // By its name, too: a sum of two equal patterns would show nothing.
    Ok((kind, values::key(options.runtime.seed, tensor)))
}

/// More elements of a dense tensor than this are not made on one node.
pub(crate) const MOST_ELEMENTS: i64 = 1 << 28;

pub(super) fn zero<T: Element>() -> T {
    of_number(0.0).expect("all types have a zero")
}

/// A number in a type; integers are rounded towards zero.
pub(super) fn of_number<T: Element>(number: f64) -> Option<T> {
    T::from_scalar(cast(Scalar::F64(number), T::TYPE))
}

/// The real part of an element.
pub(super) fn number(scalar: Scalar) -> f64 {
    match cast(scalar, ElementType::C64) {
        Scalar::C64(value) => value.re,
        _ => f64::NAN,
    }
}
