//! Files of entries that tasks read in ranges: text in lines (`.mtx`, `.tns`) and arrays (`.npy`, `.npz`).

use std::fmt;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufReader, BufWriter, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use maniple_files::matrix_market::{self, Field, MatrixLayout, MatrixMarketHeader, Reader};
use maniple_files::npz::{Archive, unpack};
use maniple_files::tcs::Source;
use maniple_files::{ArrayText, Entries, EntryArrays, EntryText, Number, Order, Parallel, ReadError, tns};
use parking_lot::Mutex;

use super::error::DistributedError;
use super::lists::{Evidence, FileProblem};
use super::tcs::Counted;
use crate::element::ElementType;
use crate::notation::cast;
use crate::storage::{DynamicEntries, EntryList};
use crate::with_element;

/// A file of a tensor's entries, of which each node reads what its tasks list: a `.mtx` file, a `.tns` file, a `.npy`
/// file, or a `.npz` file of a sparse array. All nodes of a job open the same one.
///
/// Copies are the same file.
#[derive(Clone)]
pub struct EntryFile {
    name: Arc<str>,
    entries: EntryFileKind,
    dimensions: Arc<[i64]>,
    /// The bytes of the file.
    length: u64,
}

#[derive(Clone)]
enum EntryFileKind {
    /// A line for each entry.
    Text(Arc<EntryText<Counted>>),
    /// A line for each element.
    Matrix(Arc<ArrayText<Counted>>),
    Arrays(Arc<EntryArrays<Counted>>),
}

impl EntryFile {
    /// Opens a Matrix Market file, and reads its header; all of it if the matrix is dense, as nothing else tells where
    /// its elements are.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if it can't be read, or is no such file.
    pub fn matrix_market(path: &Path, parallel: &dyn Parallel) -> Result<Self, ReadError> {
        Self::matrix_market_of(&path.display().to_string(), File::open(path)?, parallel)
    }

    /// Opens a `.tns` file, and reads all of it, as nothing else tells the extents: those of the smallest tensor that
    /// has all entries.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if it can't be read, or is no such file of real numbers.
    pub fn tns(path: &Path, parallel: &dyn Parallel) -> Result<Self, ReadError> {
        Self::tns_of(&path.display().to_string(), File::open(path)?, parallel)
    }

    /// Opens a `.npy` file, and reads its header.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if it can't be read, or is no such file.
    pub fn npy(path: &Path) -> Result<Self, ReadError> {
        Self::npy_of(&path.display().to_string(), File::open(path)?)
    }

    /// Opens a `.npz` file of a sparse array, and reads the headers of its arrays. One whose arrays are compressed is
    /// first unpacked, in little memory, to a file that has no name in the folder for temporary ones. None if it [can't
    /// be read in parts](EntryArrays::npz) even so.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if it can't be read, or is no such file; or if it can't be unpacked.
    pub fn npz(path: &Path) -> Result<Option<Self>, ReadError> {
        Self::npz_of(&path.display().to_string(), File::open(path)?)
    }

    pub(crate) fn matrix_market_of(name: &str, source: File, parallel: &dyn Parallel) -> Result<Self, ReadError> {
        let header = *Reader::new(BufReader::new(&source))?.header();
        let source = Counted::new(source);
        let entries = match header.layout {
            MatrixLayout::Coordinate => EntryFileKind::Text(Arc::new(EntryText::matrix_market(source)?)),
            MatrixLayout::Array => EntryFileKind::Matrix(Arc::new(ArrayText::matrix_market(source, parallel)?)),
        };
        Self::new(name, entries, &[header.rows, header.columns])
    }

    pub(crate) fn tns_of(name: &str, source: File, parallel: &dyn Parallel) -> Result<Self, ReadError> {
        let text = EntryText::tns(Counted::new(source))?;
        let extents = text.extents(parallel)?;
        Self::new(name, EntryFileKind::Text(Arc::new(text)), &extents)
    }

    pub(crate) fn npy_of(name: &str, source: File) -> Result<Self, ReadError> {
        let arrays = EntryArrays::npy(Counted::new(source))?;
        let extents = arrays.shape().to_vec();
        Self::new(name, EntryFileKind::Arrays(Arc::new(arrays)), &extents)
    }

    pub(crate) fn npz_of(name: &str, mut source: File) -> Result<Option<Self>, ReadError> {
        if Archive::new(BufReader::new(&source))?.is_compressed() {
            let mut unpacked = tempfile::tempfile()?;
            let mut into = BufWriter::new(&mut unpacked);
            unpack(BufReader::new(source), &mut into)?;
            // Dropped, it would not tell of an error.
            into.flush()?;
            drop(into);
            source = unpacked;
        }
        let Some(arrays) = EntryArrays::npz(Counted::new(source))? else { return Ok(None) };
        let extents = arrays.shape().to_vec();
        Self::new(name, EntryFileKind::Arrays(Arc::new(arrays)), &extents).map(Some)
    }

    fn new(name: &str, entries: EntryFileKind, extents: &[u64]) -> Result<Self, ReadError> {
        // What is beyond is found outside of the extents when it is read.
        let dimensions = extents.iter().map(|&extent| i64::try_from(extent).unwrap_or(i64::MAX)).collect();
        let mut file = Self { name: name.into(), entries, dimensions, length: 0 };
        file.length = file.source().length()?;
        Ok(file)
    }

    /// The name of the file in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The header above the entries of a Matrix Market file; none of other files.
    pub fn header(&self) -> Option<&MatrixMarketHeader> {
        match &self.entries {
            EntryFileKind::Text(text) => text.header(),
            EntryFileKind::Matrix(text) => Some(text.header()),
            EntryFileKind::Arrays(_) => None,
        }
    }

    /// The extents of the tensor.
    pub fn dimensions(&self) -> &[i64] {
        &self.dimensions
    }

    /// The same file as one of a tensor of so many dimensions, if all others after these have an extent of 1: that of a
    /// vector, of a matrix with one column. None otherwise.
    pub fn with_order(&self, order: usize) -> Option<Self> {
        let (kept, others) = self.dimensions.split_at_checked(order)?;
        others.iter().all(|extent| *extent == 1).then(|| Self { dimensions: kept.into(), ..self.clone() })
    }

    /// Whether the file tells the extents: a `.tns` file has entries alone.
    pub fn tells_extents(&self) -> bool {
        !matches!(self.entries, EntryFileKind::Text(_)) || self.header().is_some()
    }

    /// The same file as one of a tensor of these extents, if it does not tell its own, and all entries are within them.
    /// None otherwise.
    pub fn with_extents(&self, extents: &[i64]) -> Option<Self> {
        let is_within = extents.len() == self.dimensions.len()
            && extents.iter().zip(&*self.dimensions).all(|(extent, least)| extent >= least);
        (!self.tells_extents() && is_within).then(|| Self { dimensions: extents.into(), ..self.clone() })
    }

    /// The type of the elements; none of text, whose numbers may be read as any.
    pub fn number(&self) -> Option<ElementType> {
        match &self.entries {
            EntryFileKind::Text(_) | EntryFileKind::Matrix(_) => None,
            EntryFileKind::Arrays(arrays) => Some(arrays.number()),
        }
    }

    /// How many bytes of it this node has read, each time that it did.
    pub fn bytes_read(&self) -> u64 {
        self.source().bytes_read()
    }

    /// The type that holds all elements.
    pub fn element(&self) -> ElementType {
        self.number().unwrap_or_else(|| self.field().number())
    }

    /// Whether the elements can be read as those of a type without any other between: all others are converted.
    pub fn has(&self, element: ElementType) -> bool {
        self.number().map_or_else(|| self.field().is_kept_by(element), |number| number == element)
    }

    /// The field of text.
    fn field(&self) -> Field {
        self.header().map_or(Field::Real, |header| header.field)
    }

    /// In which order the file has all elements, if it has.
    pub(crate) fn order(&self) -> Option<Order> {
        match &self.entries {
            EntryFileKind::Text(_) => None,
            EntryFileKind::Matrix(text) => text.order(),
            EntryFileKind::Arrays(arrays) => arrays.order(),
        }
    }

    /// Reads elements of a file that has [all in an order](Self::order): those from the first one named on.
    pub(super) fn read_elements<T: Number>(&self, elements: Range<u64>) -> Result<Vec<T>, FileProblem> {
        let read = match &self.entries {
            EntryFileKind::Text(_) => return Err("it lists entries, and not all elements".to_owned().into()),
            EntryFileKind::Matrix(text) => text.read_elements(elements),
            EntryFileKind::Arrays(arrays) => arrays.read_elements(elements),
        };
        read.map_err(|error| told(&error))
    }

    /// Visits the entries of one of so many parts, with their coordinates.
    pub(super) fn read_part<T: Number>(
        &self,
        part: u64,
        parts: u64,
        visit: &mut dyn FnMut(&[u64], T),
    ) -> Result<Evidence, FileProblem> {
        let read = match &self.entries {
            EntryFileKind::Text(text) => text.read_part(part, parts, visit).map(|listed| (listed, Vec::new())),
            EntryFileKind::Matrix(text) => text.read_part(part, parts, visit).map(|()| (0, Vec::new())),
            EntryFileKind::Arrays(arrays) => arrays.read_part(part, parts, visit).map(|checksums| (0, checksums)),
        };
        read.map_err(|error| told(&error))
    }

    /// All entries, with elements of a type: those of text may be read as any that [has them](Self::has), and those of
    /// arrays are cast.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the file can't be read, or is wrong.
    pub fn entries(&self, element: ElementType, parallel: &dyn Parallel) -> Result<DynamicEntries, ReadError> {
        let mut entries = match &self.entries {
            EntryFileKind::Text(_) | EntryFileKind::Matrix(_) => {
                let mut text = vec![0; self.length as usize];
                self.source().read_at(0, &mut text)?;
                with_element!(element, T => self.listed_in::<T>(&text, parallel))?
            }
            EntryFileKind::Arrays(arrays) => with_element!(self.element(), T => listed::<T>(arrays, parallel))?,
        };
        entries.truncate(self.dimensions.len());
        let cast = entries.cast(element, &|number| Some(cast(number, element)));
        Ok(cast.expect("numbers of all types are cast to all types"))
    }

    fn listed_in<T: Number>(&self, text: &[u8], parallel: &dyn Parallel) -> Result<DynamicEntries, ReadError> {
        let Entries { coordinates, values } = match self.header() {
            Some(_) => matrix_market::read_entries::<T>(text, parallel)?.1,
            None => tns::read_entries::<T>(text, 1, None, parallel)?.1,
        };
        Ok(EntryList::of(coordinates, values).into())
    }

    /// Checks what tells of all parts, in their order.
    pub(super) fn check(&self, all: &[Evidence]) -> Result<(), FileProblem> {
        let checked = match &self.entries {
            EntryFileKind::Text(text) => text.check_listed(all.iter().map(|(listed, _)| listed).sum()),
            EntryFileKind::Matrix(_) => Ok(()),
            EntryFileKind::Arrays(arrays) => {
                arrays.check_read(&all.iter().map(|(_, checksums)| checksums.clone()).collect::<Vec<_>>())
            }
        };
        checked.map_err(|error| told(&error))
    }

    /// The bytes of the file.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// A number that is another one for most other files: of the length, the extents, the type of elements, and bytes
    /// here and there, which are all of a small file.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if it can't be read.
    pub fn digest(&self) -> Result<u64, ReadError> {
        let (source, length) = (self.source(), self.length);
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(length);
        (&self.dimensions, self.number()).hash(&mut hasher);
        let (samples, size) = if length <= SAMPLES * SAMPLE { (1, length) } else { (SAMPLES, SAMPLE) };
        let mut sample = vec![0; size as usize];
        for number in 0..samples {
            let offset = u128::from(length - size) * u128::from(number) / u128::from((samples - 1).max(1));
            source.read_at(offset as u64, &mut sample)?;
            hasher.write(&sample);
        }
        Ok(hasher.finish())
    }

    fn source(&self) -> &Counted {
        match &self.entries {
            EntryFileKind::Text(text) => text.source(),
            EntryFileKind::Matrix(text) => text.source(),
            EntryFileKind::Arrays(arrays) => arrays.source(),
        }
    }

    pub(super) fn wrong(&self, FileProblem { line, reason }: FileProblem) -> DistributedError {
        let name = line.map_or_else(|| self.name.to_string(), |line| format!("{}:{line}", self.name));
        DistributedError::File { name, reason, is_input: true }
    }
}

/// All entries of a file of arrays.
fn listed<T: Number>(arrays: &EntryArrays<Counted>, parallel: &dyn Parallel) -> Result<DynamicEntries, ReadError> {
    let parts = parallel.parts().max(1);
    let read: Vec<Mutex<Option<_>>> = (0..parts).map(|_| Mutex::new(None)).collect();
    parallel.run(parts, &|part| {
        let mut list = EntryList::<T>::new(arrays.shape().len());
        let mut signed = vec![0; arrays.shape().len()];
        let checksums = arrays.read_part(part as u64, parts as u64, &mut |at: &[u64], value: T| {
            signed.iter_mut().zip(at).for_each(|(signed, &at)| *signed = at as i64);
            list.push(&signed, value);
        });
        *read[part].lock() = Some(checksums.map(|checksums| (list, checksums)));
    });
    let unread = || ReadError::from(io::Error::other("a part of the file was not read"));
    let (mut lists, mut checksums) = (Vec::new(), Vec::new());
    for part in read {
        let (list, checksum) = part.into_inner().ok_or_else(unread)??;
        lists.push(list);
        checksums.push(checksum);
    }
    arrays.check_read(&checksums)?;
    let all = EntryList::concatenated(arrays.shape().len(), lists);
    Ok(all.map_err(|error| io::Error::new(io::ErrorKind::OutOfMemory, error))?.into())
}

/// The problem that a reader reports, with the line if the reader knows it.
pub(super) fn told(error: &ReadError) -> FileProblem {
    match error {
        ReadError::Line { line, problem } => FileProblem { line: Some(*line), reason: problem.to_string() },
        ReadError::Byte { problem, .. } => problem.to_string().into(),
        other @ ReadError::Io(_) => other.to_string().into(),
    }
}

/// A digest is of so many places of a file, with so many bytes each.
const SAMPLES: u64 = 64;
const SAMPLE: u64 = 4 << 10;

impl fmt::Debug for EntryFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EntryFile")
            .field("name", &self.name)
            .field("dimensions", &self.dimensions)
            .finish_non_exhaustive()
    }
}
