//! The operands of statements on sparse tensors: from files, from generators, or random ones.

use std::collections::BTreeMap;

use maniple_tensor::distributed::{as_element, is_packed_by_tasks};
use maniple_tensor::element::{ElementType, Scalar};
use maniple_tensor::files::{Contents, FileInParts, InputError, Opened};
use maniple_tensor::generate::{Generator, RandomElements};
use maniple_tensor::notation::{TensorVariable, has_entries, is_fill};
use maniple_tensor::storage::{Duplicates, DynamicEntries, DynamicTensor, StorageError};

use super::options::TensorOptions;
use crate::error::{Error, Result};
use crate::options::place;

/// The files of operands, each opened once, by their names.
pub(super) type Inputs = BTreeMap<String, Opened>;

/// Opens all files that are read. Of several nodes, each reads its parts of those that it can read in parts.
///
/// # Errors
/// [`Error::Usage`] if two are of one operand, [`Error::Input`] if one can't be read.
pub(super) fn open(options: &TensorOptions) -> Result<Inputs> {
    let mut inputs = Inputs::new();
    for (name, named) in &options.input {
        let has_parts = place().nodes > 1;
        let named = if has_parts { named.clone() } else { named.clone().spooled()? };
        let file = named.open(has_parts)?;
        if inputs.insert(name.clone(), file).is_some() {
            return Err(Error::Usage(format!("--input says twice what {name} is")));
        }
    }
    Ok(inputs)
}

/// Checks that the file tells how it stores the operand of this name, or has all of its elements, where no format
/// is given.
///
/// # Errors
/// [`Error::Input`] if it has the entries of a sparse tensor.
pub(super) fn check_named(name: &str, file: &Opened) -> Result<()> {
    if !file.is_list() {
        return Ok(());
    }
    let format = match (file.is_without_entries(), file.dimensions().len()) {
        (true, _) => "coo".to_owned(),
        (false, 1) => "{C}".to_owned(),
        (false, 2) => "csr".to_owned(),
        (false, order) => format!("csf:{order}"),
    };
    let quoted = if format.contains('{') { "'" } else { "" };
    let option = format!("--format {quoted}{name}={format}{quoted}");
    let reason = format!("the tensor is sparse: say how to store it, such as {option}");
    Err(InputError::unsuitable(file.name(), reason).into())
}

/// The file as tasks read it for a computation with elements of a type, if they do: each node parts of it, or on
/// one node the levels as they are.
pub(super) fn parts(file: &Opened, element: ElementType) -> Option<&FileInParts> {
    let has_nodes = place().nodes > 1;
    let is_real = |own: ElementType| element.is_complex() || !own.is_complex();
    file.parts().filter(|file| match file {
        FileInParts::Levels(levels) => {
            let own = levels.element();
            let is_cast = || levels.format().is_ok_and(|format| is_packed_by_tasks(&format));
            levels.is_whole() && (own == element || has_nodes && is_real(own) && is_cast())
        }
        FileInParts::Entries(entries) => has_nodes && is_real(entries.element()),
    })
}

/// Reads all entries of the file of an operand, as elements of the type that is computed with.
fn read_all(wanted: ElementType, name: &str, file: Opened) -> Result<DynamicEntries> {
    let own = file.element();
    if file.has(wanted) {
        return Ok(file.read(wanted)?.entries);
    }
    if own.is_complex() && !wanted.is_complex() {
        return Err(InputError::unsuitable(file.name(), no_imaginary_parts(own, wanted)).into());
    }
    let Contents { fill, entries, .. } = file.read(own)?;
    let refused = |number: Scalar| {
        let problem = format!("{name} has the element {number}, which is no {}", wanted.name());
        Error::Usage(format!("{problem}: leave --type out, or take another one"))
    };
    as_element(fill, wanted).ok_or_else(|| refused(fill))?;
    entries.cast(wanted, &|number| as_element(number, wanted)).map_err(refused)
}

/// The elements of a tensor: those that were read, that a generator makes, or random ones; where it is sparse, of every
/// hundredth.
pub(super) fn operand(
    options: &TensorOptions,
    tensor: &TensorVariable,
    given: Option<Opened>,
) -> Result<DynamicTensor> {
    let (format, dimensions, seed) = (tensor.format(), tensor.dimensions(), options.runtime.seed);
    let refused = |error: StorageError| Error::Usage(format!("{tensor}: {error}"));
    let is_generated = options.generate.iter().any(|(name, _)| name == tensor.name());
    let entries = match given {
        Some(file) => match file.stored(tensor.element())? {
            Some(stored) if is_fill(stored.fill(), tensor.fill()) => return stored.convert(format).map_err(refused),
            Some(stored) => stored.entries(),
            None => read_all(tensor.element(), tensor.name(), file)?,
        },
        None if !has_entries(tensor) && !is_generated => {
            let count = dimensions.iter().try_fold(1_i64, |count, &extent| count.checked_mul(extent));
            if count.is_none_or(|count| count > MOST_ELEMENTS) {
                let problem = format!(
                    "{tensor} of extents {dimensions:?} is too large for a dense tensor, of which each node makes all"
                );
                return Err(Error::Usage(format!("{problem}: give it a sparse format, or take a smaller --size")));
            }
            return RandomElements::new(seed, tensor).tensor(tensor).map_err(refused);
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

/// The message of the error that complex elements would lose their imaginary parts.
pub(super) fn no_imaginary_parts(own: ElementType, wanted: ElementType) -> String {
    let (own, wanted) = (own.name(), wanted.name());
    format!("its elements are {own}, and {wanted} has no imaginary parts: say --type {own}")
}

/// Returns the generator of a sparse tensor of which no file has the entries, and its seed.
pub(super) fn generator(options: &TensorOptions, tensor: &TensorVariable) -> Result<(Generator, u64)> {
    let kind = options.generate.iter().find(|(name, _)| name == tensor.name()).map(|(_, kind)| kind.clone());
    let kind = kind.map_or_else(|| "uniform:0.01".parse(), Ok).map_err(|error| Error::Usage(format!("{error}")))?;
    kind.check(tensor.dimensions()).map_err(|error| Error::Usage(format!("--generate: {error}")))?;
    // By its name, too: a sum of two equal patterns would show nothing.
    Ok((kind, RandomElements::new(options.runtime.seed, tensor).key()))
}

/// More elements of a dense tensor than this are not made on one node.
pub(crate) const MOST_ELEMENTS: i64 = 1 << 28;
