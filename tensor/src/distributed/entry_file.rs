//! Tensors read from files of entries by tasks: text in lines (`.mtx`, `.tns`) and arrays (`.npy`, `.npz`), in ranges.
//!
//! Each task reads the entries of its range twice: to count them, and to list them. No node has all of the tensor. All elements of a dense tensor are read once.

use std::fmt;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;

use maniple::task::LeafCall;
use maniple::{Context, FieldValue, Requirement};
use maniple_files::matrix_market::Header;
use maniple_files::tcs::Source;
use maniple_files::{EntryArrays, EntryText, Number, NumberType, Parallel, ReadError};

use super::error::DistributedError;
use super::levels::Index;
use super::lists::{Lists, Wrong, check_packed, is_packed_by_tasks, packed, tasks_for};
use super::rows::blocks_for;
use super::tcs::{Counted, file_order};
use super::tensor::Tensor;
use crate::element::Element;
use crate::format::Format;
use crate::notation::TensorVariable;
use crate::rectangle::Rectangle;
use crate::with_element;

/// A file of a tensor's entries, of which each node reads what its tasks list: a `.mtx` file of a sparse matrix, a `.tns` file, a `.npy` file, or a `.npz` file of a sparse array that is not
/// compressed. All nodes of a job open the same one.
///
/// Copies are the same file.
#[derive(Clone)]
pub struct EntryFile {
    name: Arc<str>,
    entries: Kind,
    dimensions: Arc<[i64]>,
    /// The bytes of the file.
    length: u64,
}

#[derive(Clone)]
enum Kind {
    Text(Arc<EntryText<Counted>>),
    Arrays(Arc<EntryArrays<Counted>>),
}

impl EntryFile {
    /// Opens a Matrix Market file, and reads its header.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if it can't be read, or is no such file of a sparse matrix.
    pub fn matrix_market(path: &Path) -> Result<Self, ReadError> {
        let text = EntryText::matrix_market(Counted::new(File::open(path)?))?;
        let extents = text.header().map_or([0, 0], |header| [header.rows, header.columns]);
        Self::new(path, Kind::Text(Arc::new(text)), &extents)
    }

    /// Opens a `.tns` file, and reads all of it, as nothing else tells the extents: those of the smallest tensor that has all entries.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if it can't be read, or is no such file of real numbers.
    pub fn tns(path: &Path, parallel: &dyn Parallel) -> Result<Self, ReadError> {
        let text = EntryText::tns(Counted::new(File::open(path)?))?;
        let extents = text.extents(parallel)?;
        Self::new(path, Kind::Text(Arc::new(text)), &extents)
    }

    /// Opens a `.npy` file, and reads its header.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if it can't be read, or is no such file.
    pub fn npy(path: &Path) -> Result<Self, ReadError> {
        let arrays = EntryArrays::npy(Counted::new(File::open(path)?))?;
        let extents = arrays.shape().to_vec();
        Self::new(path, Kind::Arrays(Arc::new(arrays)), &extents)
    }

    /// Opens a `.npz` file of a sparse array, and reads the headers of its arrays; none if it [can't be read in parts](EntryArrays::npz).
    ///
    /// # Errors
    ///
    /// [`ReadError`] if it can't be read, or is no such file.
    pub fn npz(path: &Path) -> Result<Option<Self>, ReadError> {
        let Some(arrays) = EntryArrays::npz(Counted::new(File::open(path)?))? else { return Ok(None) };
        let extents = arrays.shape().to_vec();
        Self::new(path, Kind::Arrays(Arc::new(arrays)), &extents).map(Some)
    }

    fn new(path: &Path, entries: Kind, extents: &[u64]) -> Result<Self, ReadError> {
        // What is beyond is found outside of the extents when it is read.
        let dimensions = extents.iter().map(|&extent| i64::try_from(extent).unwrap_or(i64::MAX)).collect();
        let mut file = Self { name: path.display().to_string().into(), entries, dimensions, length: 0 };
        file.length = file.source().length()?;
        Ok(file)
    }

    /// What messages call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What a Matrix Market file says above its entries.
    pub fn header(&self) -> Option<&Header> {
        match &self.entries {
            Kind::Text(text) => text.header(),
            Kind::Arrays(_) => None,
        }
    }

    /// The extents of the tensor.
    pub fn dimensions(&self) -> &[i64] {
        &self.dimensions
    }

    /// The type of the elements; none of text, whose numbers may be read as any.
    pub fn number(&self) -> Option<NumberType> {
        match &self.entries {
            Kind::Text(_) => None,
            Kind::Arrays(arrays) => Some(arrays.number()),
        }
    }

    /// How many bytes of it this node has read, each time that it did.
    pub fn bytes_read(&self) -> u64 {
        self.source().bytes_read()
    }

    /// Whether tasks can read it as a tensor in a format: one whose [entries they pack](is_packed_by_tasks), or a dense one that has all elements of a `.npy` file in the order of the file.
    pub fn fits(&self, format: &Format) -> bool {
        match &self.entries {
            Kind::Arrays(arrays) if format.is_dense() => {
                let order = file_order(format);
                // A line has no other order.
                order.is_some() && arrays.order().is_some() && (order == arrays.order() || format.order().len() == 1)
            }
            _ => is_packed_by_tasks(format),
        }
    }

    /// A number that is another one for most other files: of the length, the extents, the type of elements, and bytes here and there, which are all of a small file.
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
            Kind::Text(text) => text.source(),
            Kind::Arrays(arrays) => arrays.source(),
        }
    }

    fn wrong(&self, (line, reason): Wrong) -> DistributedError {
        let name = line.map_or_else(|| self.name.to_string(), |line| format!("{}:{line}", self.name));
        DistributedError::File { name, reason, is_input: true }
    }
}

/// What a reader says, by line if it knows one.
fn told(error: &ReadError) -> Wrong {
    match error {
        ReadError::Line { line, problem } => (Some(*line), problem.to_string()),
        ReadError::Byte { problem, .. } => (None, problem.to_string()),
        other @ ReadError::Io(_) => (None, other.to_string()),
    }
}

/// A digest is of so many places of a file, with so many bytes each.
const SAMPLES: u64 = 64;
const SAMPLE: u64 = 4 << 10;

/// So many elements of a dense tensor are read at once, if rows are shorter.
const READ_AT_ONCE: i64 = 1 << 15;

impl fmt::Debug for EntryFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EntryFile")
            .field("name", &self.name)
            .field("dimensions", &self.dimensions)
            .finish_non_exhaustive()
    }
}

impl Tensor {
    /// The tensor that statements call `variable`, with the entries of a file: those at the same place are added in the order of the file. Each node reads the ranges that are dealt to it, twice, and
    /// packs the blocks that are; of a dense tensor it reads once the blocks that are its. Waits until all is read. With the bytes that each node has read.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Shape`] if the file has other extents; [`DistributedError::Dense`] and [`DistributedError::Stored`] if the tensor is stored as [the file does not fit](EntryFile::fits);
    /// [`DistributedError::File`] if the file can't be read, is wrong, has elements that are not those of the tensor, or is another one on another node; [`DistributedError::Runtime`].
    pub async fn read_entries(
        cx: &Context,
        variable: &TensorVariable,
        file: &EntryFile,
    ) -> Result<(Self, Vec<u64>), DistributedError> {
        if *variable.dimensions() != *file.dimensions {
            let describe = |dimensions: &[i64]| format!("extents {dimensions:?}");
            let (expected, found) = (describe(variable.dimensions()), describe(&file.dimensions));
            return Err(DistributedError::Shape { tensor: variable.name().to_owned(), expected, found });
        }
        let is_dense = variable.format().is_dense() && file.fits(variable.format());
        if !is_dense {
            check_packed(variable)?;
        }
        // What one node can't read, all must know of.
        let digests = cx.per_node(file.digest().map_err(|error| told(&error))).all().await?;
        let digests: Vec<u64> =
            digests.into_iter().collect::<Result<_, _>>().map_err(|wrong: Wrong| file.wrong(wrong))?;
        if let Some(node) = digests.iter().position(|digest| *digest != digests[0]) {
            let reason = format!("it is not the same on node {node} as on node 0: all nodes must have the same file");
            return Err(file.wrong((None, reason)));
        }
        let before = file.bytes_read();
        let is_narrow = file.dimensions.iter().all(|extent| i32::try_from(*extent).is_ok());
        let tensor = with_element!(variable.element(), T => match is_narrow {
            _ if is_dense => read_dense::<T>(cx, variable, file).await,
            true => read::<i32, T>(cx, variable, file).await,
            false => read::<i64, T>(cx, variable, file).await,
        })?;
        let bytes = cx.per_node(file.bytes_read() - before).all().await?;
        Ok((tensor, bytes))
    }
}

async fn read<N: Index, T: Element + FieldValue + Number>(
    cx: &Context,
    variable: &TensorVariable,
    file: &EntryFile,
) -> Result<Tensor, DistributedError> {
    let parts = tasks_for(cx, file.length as usize);
    let (file, name) = (file.clone(), Arc::clone(&file.name));
    match file.entries.clone() {
        Kind::Text(text) => packed::<N, T, _>(cx, variable, (Lines { file, text, parts }, parts)).await,
        Kind::Arrays(arrays) if arrays.number() == <T as Number>::TYPE => {
            packed::<N, T, _>(cx, variable, (Ranges { file, arrays, parts }, parts)).await
        }
        Kind::Arrays(arrays) => Err(other_elements::<T>(&name, arrays.number())),
    }
}

fn other_elements<T: Number>(name: &str, found: NumberType) -> DistributedError {
    let reason = format!("its elements are {found}, and those of the tensor {}", T::TYPE);
    DistributedError::File { name: name.to_owned(), reason, is_input: true }
}

/// Reads all elements, in the order of the file.
async fn read_dense<T: Element + FieldValue + Number>(
    cx: &Context,
    variable: &TensorVariable,
    file: &EntryFile,
) -> Result<Tensor, DistributedError> {
    let tensor = Tensor::new(cx, variable)?;
    let Kind::Arrays(arrays) = &file.entries else {
        return Err(DistributedError::Dense { tensor: variable.name().to_owned() });
    };
    if arrays.number() != <T as Number>::TYPE {
        return Err(other_elements::<T>(&file.name, arrays.number()));
    }
    let dimensions = variable.dimensions().to_vec();
    // Blocks of the dimension that varies slowest lie side by side in the file.
    let (outer, strides) = (variable.format().order()[0], tensor.modes().strides(&dimensions));
    let bytes = dimensions.iter().product::<i64>() as usize * size_of::<T>();
    let block = (dimensions[outer] as u64).div_ceil(blocks_for(cx, bytes) as u64).max(1) as i64;
    let piece = |first: i64| {
        let bounds = dimensions.iter().enumerate().map(|(mode, &extent)| match mode == outer {
            true => (first, (first + block).min(extent)),
            false => (0, extent),
        });
        Rectangle::new(bounds)
    };
    let pieces: Vec<Rectangle> = (0..dimensions[outer]).step_by(block as usize).map(piece).collect();
    let (arrays, extent) = (Arc::clone(arrays), dimensions[outer]);
    let read = move |window: &mut (i64, Vec<T>), at: &[i64], into: &mut [T]| {
        let place = at.iter().zip(&strides).map(|(at, stride)| at * stride).sum::<i64>();
        let end = ((at[outer] / block + 1) * block).min(extent) * strides[outer];
        let wanted = place..place + into.len() as i64;
        if wanted.start < window.0 || wanted.end > window.0 + window.1.len() as i64 {
            let last = (place + READ_AT_ONCE.max(into.len() as i64)).min(end);
            let elements = arrays.read_elements::<T>(place as u64..last as u64);
            *window = (place, elements.map_err(|error| told(&error))?);
        }
        into.copy_from_slice(&window.1[(place - window.0) as usize..][..into.len()]);
        Ok(())
    };
    if let Some(launched) = tensor.put(cx, &pieces, read)? {
        let done = launched.all().await?;
        done.into_iter().collect::<Result<(), _>>().map_err(|wrong| file.wrong(wrong))?;
    }
    Ok(tensor)
}

/// Text in so many parts.
struct Lines {
    file: EntryFile,
    text: Arc<EntryText<Counted>>,
    parts: i64,
}

impl<T: Number> Lists<T> for Lines {
    /// How many entries are listed.
    type Evidence = u64;

    fn parts(&self) -> i64 {
        self.parts
    }

    fn requirements(&self) -> &[Requirement] {
        &[]
    }

    fn for_each(&self, call: &LeafCall<'_>, mut visit: impl FnMut(&[i64], T)) -> maniple::Result<Result<u64, Wrong>> {
        let part = (call.point().coords()[0] as u64, self.parts as u64);
        let (mut signed, mut outside) = (vec![0; self.file.dimensions.len()], None);
        let read = self.text.read_part::<T>(part, |at, value| {
            signed.iter_mut().zip(at).for_each(|(signed, &at)| *signed = at as i64);
            match at.iter().zip(&*self.file.dimensions).all(|(at, &extent)| *at < extent as u64) {
                true => visit(&signed, value),
                false => outside = outside.take().or_else(|| Some(signed.clone())),
            }
        });
        Ok(match (read, outside) {
            (Err(error), _) => Err(told(&error)),
            (_, Some(at)) => Err((None, format!("an entry, at {at:?}, is outside of {:?}", self.file.dimensions))),
            (Ok(listed), None) => Ok(listed),
        })
    }

    fn check(&self, all: &[u64]) -> Result<(), Wrong> {
        self.text.check_listed(all.iter().sum()).map_err(|error| told(&error))
    }

    fn error(&self, wrong: Wrong) -> DistributedError {
        self.file.wrong(wrong)
    }
}

/// Arrays in so many parts.
struct Ranges {
    file: EntryFile,
    arrays: Arc<EntryArrays<Counted>>,
    parts: i64,
}

impl<T: Number> Lists<T> for Ranges {
    /// The checksums of arrays.
    type Evidence = Vec<(u32, u64)>;

    fn parts(&self) -> i64 {
        self.parts
    }

    fn requirements(&self) -> &[Requirement] {
        &[]
    }

    fn for_each(
        &self,
        call: &LeafCall<'_>,
        mut visit: impl FnMut(&[i64], T),
    ) -> maniple::Result<Result<Self::Evidence, Wrong>> {
        let part = (call.point().coords()[0] as u64, self.parts as u64);
        let mut signed = vec![0; self.file.dimensions.len()];
        let read = self.arrays.read_part::<T>(part, |at, value| {
            signed.iter_mut().zip(at).for_each(|(signed, &at)| *signed = at as i64);
            visit(&signed, value);
        });
        Ok(read.map_err(|error| told(&error)))
    }

    fn check(&self, all: &[Self::Evidence]) -> Result<(), Wrong> {
        self.arrays.check_read(all).map_err(|error| told(&error))
    }

    fn error(&self, wrong: Wrong) -> DistributedError {
        self.file.wrong(wrong)
    }
}
