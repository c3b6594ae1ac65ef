//! Sparse tensors in `.tcs` files.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use maniple_files::ReadError;
use maniple_files::tcs::{Arrays, ConvertError, EntryProblem, Level, Survey, TcsLevelKind, Tensor, TextFile, Width};

use super::contents::{Contents, StoredElement, zero};
use super::error::{FileError, InputError};
use crate::distributed::TcsFile;
use crate::element::{Element, ElementType};
use crate::format::{self, Format};
use crate::level::{self, Array, Component, LevelData};
use crate::storage::{DynamicTensor, EntryList, SparseTensor, StorageError};
use crate::with_element;

/// The levels of a format, if `.tcs` files have such levels.
pub(super) fn levels(format: &Format) -> Option<(Vec<TcsLevelKind>, Vec<usize>)> {
    let kind = |level: &format::Level| match level {
        format::Level::Dense => Some(TcsLevelKind::Dense),
        format::Level::Compressed => Some(TcsLevelKind::Sparse),
        _ => None,
    };
    let kinds: Option<Vec<TcsLevelKind>> = format.levels().iter().map(kind).collect();
    let is_sorted = format.properties().iter().all(|properties| properties.unique && properties.ordered);
    kinds.filter(|_| format.is_plain() && is_sorted).map(|kinds| (kinds, format.order().to_vec()))
}

fn format(levels: &[Level]) -> Result<Format, format::FormatError> {
    let kind = |level: &Level| if level.is_sparse() { format::Level::Compressed } else { format::Level::Dense };
    let kinds: Vec<format::Level> = levels.iter().map(kind).collect();
    Format::new(kinds, levels.iter().map(|level| level.mode).collect::<Vec<_>>())
}

/// The format of a file where nothing else is said: compressed rows of a matrix, otherwise compressed levels.
pub(super) fn usual(order: usize) -> Result<Format, format::FormatError> {
    let first = if order == 2 { format::Level::Dense } else { format::Level::Compressed };
    let kinds: Vec<format::Level> =
        (0..order).map(|level| if level == 0 { first } else { format::Level::Compressed }).collect();
    Format::new(kinds, (0..order).collect::<Vec<_>>())
}

/// How the tensor of a file is stored, in words.
pub(super) fn described(file: &TcsFile) -> String {
    let (header, format) = (file.header(), file.format());
    let stored = format.map_or_else(|error| error.to_string(), |format| format.to_string());
    let part = |level: &Level| {
        let split = level.split.as_ref()?;
        Some(format!(
            "; range {} of {} of dimension {}: {} to {}",
            split.index, split.count, level.mode, split.range.start, split.range.end
        ))
    };
    let parts: String = header.levels.iter().filter_map(part).collect();
    let piece = if header.is_piece { "; a piece" } else { "" };
    format!("{stored}, {} bytes for each position and coordinate{piece}{parts}", header.width.bytes())
}

/// The entries of a file, with elements of its own type.
pub(super) fn read(file: &TcsFile) -> Result<Contents, ReadError> {
    with_element!(file.element(), T => listed::<T>(file))
}

fn listed<T: StoredElement>(file: &TcsFile) -> Result<Contents, ReadError> {
    let tensor = Tensor::<T>::read(file.source())?;
    let dimensions: Vec<i64> = tensor.extents().iter().map(|&extent| extent as i64).collect();
    let mut entries = EntryList::new(dimensions.len());
    let mut signed = vec![0; dimensions.len()];
    tensor.for_each(|at, value| {
        signed.iter_mut().zip(at).for_each(|(signed, &at)| *signed = at as i64);
        entries.push(&signed, value);
    });
    Ok(Contents { dimensions, fill: zero(<T as Element>::TYPE), entries: entries.into() })
}

/// The tensor of a file, with the arrays that the file has; none if its elements are of another type, or coordinates do
/// not begin at 0.
pub(super) fn whole(
    file: &TcsFile,
    element: ElementType,
) -> Result<Option<Result<DynamicTensor, StorageError>>, ReadError> {
    if file.element() != element || file.header().levels.iter().any(|level| level.range.start > 0) {
        return Ok(None);
    }
    let source = file.source();
    with_element!(element, T => Tensor::<T>::read(source).map(|tensor| Some(of_file(tensor).map(DynamicTensor::from))))
}

fn of_file<T: StoredElement>(tensor: Tensor<T>) -> Result<SparseTensor<T>, StorageError> {
    let (format, extents) = (format(&tensor.levels)?, tensor.extents());
    let dimensions: Vec<i64> = extents.iter().map(|&extent| extent as i64).collect();
    let components = |(level, Arrays { pos, idx }): (&Level, Arrays)| match level.kind {
        TcsLevelKind::Dense => Vec::new(),
        TcsLevelKind::Sparse => {
            let (count, greatest) = (idx.len() as i64, (level.extent() as i64 - 1).max(0));
            vec![
                Component { name: "pos", array: narrow(pos, &[level::Width::I32, level::Width::I64], count) },
                Component { name: "crd", array: narrow(idx, &level::Width::ALL, greatest) },
            ]
        }
    };
    let components = tensor.levels.iter().zip(tensor.arrays).map(components).collect();
    SparseTensor::from_components(&format, &dimensions, T::zeroed(), components, tensor.values)
}

/// Numbers from 0 to `greatest`, as narrow as packing stores them.
fn narrow(numbers: Vec<i64>, widths: &[level::Width], greatest: i64) -> Array {
    match level::Width::narrowest(widths, 0, greatest) {
        level::Width::U8 => Array::U8(numbers.into_iter().map(|number| number as u8).collect()),
        level::Width::I16 => Array::I16(numbers.into_iter().map(|number| number as i16).collect()),
        level::Width::I32 => Array::I32(numbers.into_iter().map(|number| number as i32).collect()),
        level::Width::I64 => Array::I64(numbers),
    }
}

/// Writes a tensor as files have it: in its format if it has dense and compressed levels alone, otherwise with
/// compressed levels.
pub(super) fn store(tensor: &DynamicTensor, width: Width, into: &mut impl Write) -> io::Result<()> {
    let rank = tensor.dimensions().len();
    let (kinds, order) =
        levels(tensor.format()).unwrap_or_else(|| (vec![TcsLevelKind::Sparse; rank], (0..rank).collect()));
    let levels: Vec<Level> = kinds
        .iter()
        .zip(&order)
        .map(|(&kind, &mode)| Level::new(kind, mode, tensor.dimensions()[mode] as u64))
        .collect();
    let plain = format(&levels).map_err(io::Error::other)?;
    let is_stored_so = tensor.format().levels() == plain.levels()
        && tensor.format().properties().iter().all(|properties| !properties.ranges);
    let tensor = match is_stored_so {
        true => tensor.clone(),
        false => tensor.convert(&plain).map_err(io::Error::other)?,
    };
    let arrays = |(level, kind): (&LevelData, &TcsLevelKind)| {
        let numbers = |name: &str| {
            let array = level.component(name);
            let mut numbers = vec![0; array.len()];
            array.read(0, &mut numbers);
            numbers
        };
        match kind {
            TcsLevelKind::Dense => Arrays::default(),
            TcsLevelKind::Sparse => Arrays { pos: numbers("pos"), idx: numbers("crd") },
        }
    };
    let arrays = tensor.levels().iter().zip(&kinds).map(arrays).collect();
    with_element!(tensor.element(), T => {
        let values = tensor.values::<T>().unwrap_or_default().to_vec();
        Tensor { levels, arrays, values }.write(width, into)
    })
}

/// The error that the user sees for an error of the conversion of a text file, which has this name in messages.
pub(super) fn text_error(text: &TextFile<'_>, name: &Path, error: ConvertError, to: &Path) -> FileError {
    let line = |line, reason| InputError::line(name, line, reason).into();
    match error {
        ConvertError::Read(error) => InputError::read(name, error).into(),
        ConvertError::Entry { line, problem: EntryProblem::Unsorted { found, order, .. } } if text.is_half() => {
            let found = found.iter().map(|at| (at + 1).to_string()).collect::<Vec<_>>().join(", ");
            let order = if order == [0, 1] { "rows" } else { "columns" };
            let why = "the matrix is symmetric, and the file has one half of it: the entries of the other half";
            let reason = format!("{why}, such as ({found}), are not in the order of {order}");
            FileError::Unsorted { file: name.to_owned(), line, reason, is_half: true }
        }
        ConvertError::Entry { line, problem: problem @ EntryProblem::Unsorted { .. } } => {
            let reason = problem.to_string();
            FileError::Unsorted { file: name.to_owned(), line, reason, is_half: false }
        }
        ConvertError::Entry { line: number, problem } => line(number, problem.to_string()),
        ConvertError::Write(source) => FileError::Write { path: to.to_owned(), source },
        other => InputError::unsuitable(name, other.to_string()).into(),
    }
}

/// Takes the room on the disk, so that a file that is too large is refused before it is written.
pub(super) fn reserve(into: &File, found: &Survey) -> Result<(), ConvertError> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{FallocateFlags, fallocate, fstatvfs};
        use rustix::io::Errno;
        let bytes = found.header.bytes();
        let refused = |error: Errno| {
            let error = io::Error::from(error);
            let reason = format!(
                "it would have {bytes} bytes ({error}); levels C take less than D where few coordinates are there"
            );
            Err(ConvertError::Write(io::Error::new(error.kind(), reason)))
        };
        // The system finds out only when it has taken all that others may need.
        if fstatvfs(into).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < bytes) {
            return refused(Errno::NOSPC);
        }
        match fallocate(into, FallocateFlags::empty(), 0, bytes) {
            // Some file systems cannot; then it turns out later.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(error) => return refused(error),
        }
    }
    let _ = (into, found);
    Ok(())
}
