//! The operands of statements on sparse tensors: from files, from generators, or random ones.

use maniple_tensor::distributed::{TcsFile, as_element, is_packed_by_tasks};
use maniple_tensor::element::{ElementType, Scalar};
use maniple_tensor::format::Level;
use maniple_tensor::generate::Generator;
use maniple_tensor::notation::{TensorVariable, cast, is_fill, is_zero};
use maniple_tensor::storage::{Duplicates, DynamicEntries, DynamicTensor, EntryList, StorageError};

use super::files::{Contents, FileByTasks, SparseFile, no_imaginary_parts, zero};
use super::options::Options;
use super::values;
use crate::error::{Error, Result};
use crate::input::InputError;
use crate::options::place;

/// A tensor of a file, as far as the file was read.
pub(super) enum Given {
    /// A file that tasks can read, of which no more was read than tells the extents.
    ByTasks(FileByTasks, SparseFile),
    /// All that a file has.
    All(Read),
    /// The entries of a file that does not tell its extents, which are larger than their coordinates; and not the
    /// number of dimensions, if it has none.
    Listed(Read),
}

/// A tensor, or entries, as read from a file.
pub(super) enum Read {
    /// A tensor as the file stores it.
    Stored(DynamicTensor),
    /// Entries, and the value of all other elements.
    Entries(DynamicEntries, Scalar),
}

impl Given {
    /// Makes it that of a tensor of so many dimensions, if all others after these have an extent of 1, as of a vector
    /// in a file of a matrix. Whether it is.
    pub(super) fn take_order(&mut self, order: usize) -> bool {
        match self {
            Self::ByTasks(FileByTasks::Levels(_), _) | Self::All(Read::Stored(_)) => return false,
            Self::ByTasks(FileByTasks::Entries(file), _) => match file.with_order(order) {
                Some(of_order) => *file = of_order,
                None => return false,
            },
            Self::All(read) | Self::Listed(read) => read.take_order(order),
        }
        true
    }

    /// Whether the file tells the extents.
    pub(super) fn tells_extents(&self) -> bool {
        match self {
            Self::ByTasks(FileByTasks::Entries(file), _) => file.tells_extents(),
            Self::ByTasks(FileByTasks::Levels(_), _) | Self::All(_) => true,
            Self::Listed(_) => false,
        }
    }

    /// Makes a file without entries, which tells nothing of dimensions, that of a tensor of so many. Whether it is one.
    pub(super) fn take_empty(&mut self, order: usize) -> bool {
        match self {
            Self::Listed(Read::Entries(entries, _)) if entries.is_empty() => {
                *entries = DynamicEntries::new(entries.element(), order);
            }
            _ => return false,
        }
        true
    }

    /// Gives a file that does not tell them its extents, which are no smaller than those of its entries.
    pub(super) fn take_extents(&mut self, extents: &[i64]) {
        if let Self::ByTasks(FileByTasks::Entries(file), _) = self
            && let Some(extended) = file.with_extents(extents)
        {
            *file = extended;
        }
    }

    /// The value of the elements that a file does not store; `None` if that is zero, or tasks read the file.
    pub(super) fn fill(&self) -> Option<Scalar> {
        let fill = match self {
            Self::All(Read::Entries(_, fill)) | Self::Listed(Read::Entries(_, fill)) => *fill,
            Self::All(Read::Stored(stored)) | Self::Listed(Read::Stored(stored)) => stored.fill(),
            Self::ByTasks(..) => return None,
        };
        (!is_zero(fill)).then_some(fill)
    }
}

impl Read {
    /// Leaves out coordinates after the first ones, where entries have more.
    fn take_order(&mut self, order: usize) {
        if let Self::Entries(entries, _) = self {
            entries.truncate(order);
        }
    }
}

/// Reads the entries of the file of an operand, and the extents; of a file that tasks can read, the extents alone.
pub(super) fn read_as(element: ElementType, name: &str, file: SparseFile) -> Result<(Vec<i64>, Given)> {
    if file.is_without_entries()? {
        return Ok((Vec::new(), Given::Listed(Read::Entries(DynamicEntries::new(element, 0), zero(element)))));
    }
    let is_real = |own: ElementType| element.is_complex() || !own.is_complex();
    match file.levels()? {
        Some(levels) if levels.is_whole() && is_loaded(&levels, element) => {
            return Ok((levels.dimensions(), Given::ByTasks(FileByTasks::Levels(levels), file)));
        }
        None if place().nodes > 1 => {
            if let Some(entries) = file.entries()?.filter(|entries| is_real(entries.element())) {
                return Ok((entries.dimensions().to_vec(), Given::ByTasks(FileByTasks::Entries(entries), file)));
            }
        }
        _ => {}
    }
    let given = if file.tells_extents() { Given::All } else { Given::Listed };
    read_all(element, name, &file).map(|(dimensions, read)| (dimensions, given(read)))
}

/// Whether tasks load a file: one with elements of the type that is computed with, or on several nodes, those that
/// tasks make of others.
fn is_loaded(levels: &TcsFile, wanted: ElementType) -> bool {
    let own = levels.element();
    let is_cast = || levels.format().is_ok_and(|format| is_packed_by_tasks(&format));
    own == wanted || place().nodes > 1 && (wanted.is_complex() || !own.is_complex()) && is_cast()
}

/// Reads all entries of the file of an operand, as elements of the type that is computed with.
fn read_all(wanted: ElementType, name: &str, file: &SparseFile) -> Result<(Vec<i64>, Read)> {
    if file.is_kept_by(wanted)? {
        if let Some(stored) = file.stored(wanted)? {
            return Ok((stored.dimensions().to_vec(), Read::Stored(stored)));
        }
        let Contents { dimensions, fill, entries } = file.read(wanted)?;
        return Ok((dimensions, Read::Entries(entries, fill)));
    }
    let own = file.element()?;
    if own.is_complex() && !wanted.is_complex() {
        let reason = no_imaginary_parts(own, wanted);
        return Err(InputError::Unsuitable { name: file.path().display().to_string(), reason }.into());
    }
    let Contents { dimensions, fill, entries } = file.read(own)?;
    let refused = |number: Scalar| {
        let problem = format!("{name} has the element {number}, which is no {wanted}");
        Error::Usage(format!("{problem}: leave --type out, or take another one"))
    };
    let entries = entries.cast(wanted, &|number| as_element(number, wanted)).map_err(refused)?;
    Ok((dimensions, Read::Entries(entries, as_element(fill, wanted).ok_or_else(|| refused(fill))?)))
}

/// Reads the entries of a file whose other elements are zero, and the extents.
pub(crate) fn read(file: &SparseFile) -> Result<(Vec<i64>, EntryList<f64>)> {
    let Contents { dimensions, fill, entries } = file.read(ElementType::F64)?;
    if !is_zero(fill) {
        let reason = format!("what is not stored is {fill}, and must be 0 here");
        return Err(InputError::Unsuitable { name: file.path().display().to_string(), reason }.into());
    }
    Ok((dimensions, entries.downcast().expect("entries have the type that was asked for")))
}

/// The elements of a tensor: those that were read, that a generator makes, or random ones; where it is sparse, of every
/// hundredth.
pub(super) fn operand(options: &Options, tensor: &TensorVariable, given: Option<Given>) -> Result<DynamicTensor> {
    let (format, dimensions, seed) = (tensor.format(), tensor.dimensions(), options.runtime.seed);
    let refused = |error: StorageError| Error::Usage(format!("{tensor}: {error}"));
    let is_generated = options.generate.iter().any(|(name, _)| name == tensor.name());
    let is_dense = format.is_plain() && format.levels().iter().all(|level| *level == Level::Dense);
    let given = match given {
        Some(Given::ByTasks(_, file)) => {
            let mut read = read_all(tensor.element(), tensor.name(), &file)?.1;
            read.take_order(dimensions.len());
            Some(read)
        }
        Some(Given::All(read) | Given::Listed(read)) => Some(read),
        None => None,
    };
    let entries = match given {
        Some(Read::Stored(stored)) if !is_fill(stored.fill(), tensor.fill()) => stored.entries(),
        Some(Read::Stored(stored)) => {
            return stored.convert(format).map_err(refused);
        }
        Some(Read::Entries(entries, _)) => entries,
        None if is_dense && !is_generated => {
            let count = dimensions.iter().try_fold(1_i64, |count, &extent| count.checked_mul(extent));
            if count.is_none_or(|count| count > MOST_ELEMENTS) {
                let problem = format!(
                    "{tensor} of extents {dimensions:?} is too large for a dense tensor, of which each node makes all"
                );
                return Err(Error::Usage(format!("{problem}: give it a sparse format, or take a smaller --size")));
            }
            return values::random(seed, tensor).map_err(refused);
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
            let made = kind.dynamic_rows(tensor.element(), dimensions, rows, seed);
            made.map_err(|error| Error::Usage(format!("--generate: {error}")))?
        }
    };
    let packed = entries.pack(format, dimensions, tensor.fill(), Duplicates::Sum);
    Ok(packed.map_err(refused)?.0)
}

/// Returns the generator of a sparse tensor of which no file has the entries, and its seed.
pub(super) fn generator(options: &Options, tensor: &TensorVariable) -> Result<(Generator, u64)> {
    let kind = options.generate.iter().find(|(name, _)| name == tensor.name()).map(|(_, kind)| kind.clone());
    let kind = kind.map_or_else(|| "uniform:0.01".parse(), Ok).map_err(|error| Error::Usage(format!("{error}")))?;
    kind.check(tensor.dimensions()).map_err(|error| Error::Usage(format!("--generate: {error}")))?;
    // By its name, too: a sum of two equal patterns would show nothing.
    Ok((kind, values::key(options.runtime.seed, tensor)))
}

/// More elements of a dense tensor than this are not made on one node.
pub(crate) const MOST_ELEMENTS: i64 = 1 << 28;

/// The real part of an element.
pub(super) fn number(scalar: Scalar) -> f64 {
    match cast(scalar, ElementType::C64) {
        Scalar::C64(value) => value.re,
        _ => f64::NAN,
    }
}
