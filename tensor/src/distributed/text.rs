//! Tensors read from text by tasks: `.mtx` and `.tns` files, in ranges of bytes.
//!
//! Each task reads the lines that begin in its range, twice: to count their entries, and to list them. No node reads all of the file, or has all of the tensor.

use std::fmt;
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;
use std::sync::Arc;

use maniple::task::LeafCall;
use maniple::{Context, FieldValue, Requirement};
use maniple_files::matrix_market::Header;
use maniple_files::tcs::Source;
use maniple_files::{EntryText, Number, ReadError};

use super::error::DistributedError;
use super::levels::Index;
use super::lists::{Listed, Lists, check_packed, packed, tasks_for};
use super::tcs::Counted;
use super::tensor::Tensor;
use crate::element::Element;
use crate::notation::TensorVariable;
use crate::with_element;

/// A `.mtx` file of a sparse matrix, or a `.tns` file, of which each node reads what its tasks list. All nodes of a job open the same one.
///
/// Copies are the same file.
#[derive(Clone)]
pub struct TextFile {
    name: Arc<str>,
    text: Arc<EntryText<Counted>>,
    dimensions: Arc<[i64]>,
}

impl TextFile {
    /// Opens a Matrix Market file, and reads its header.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if it can't be read, or is no such file of a sparse matrix.
    pub fn matrix_market(path: &Path) -> Result<Self, ReadError> {
        let text = EntryText::matrix_market(Counted::new(File::open(path)?))?;
        let extents = text.header().map_or([0, 0], |header| [header.rows as i64, header.columns as i64]);
        Ok(Self { name: path.display().to_string().into(), text: Arc::new(text), dimensions: extents.into() })
    }

    /// Opens a `.tns` file, and reads all of it, as nothing else tells the extents: those of the smallest tensor that has all entries.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if it can't be read, or is no such file of real numbers.
    pub fn tns(path: &Path) -> Result<Self, ReadError> {
        let text = EntryText::tns(Counted::new(File::open(path)?))?;
        let mut extents = vec![0_i64; text.order()];
        // What is beyond is found outside of the extents when it is read.
        let most =
            |extent: &mut i64, at: u64| *extent = (*extent).max(i64::try_from(at).unwrap_or(0).saturating_add(1));
        text.read_part::<f64>((0, 1), |at, _| extents.iter_mut().zip(at).for_each(|(extent, &at)| most(extent, at)))?;
        Ok(Self { name: path.display().to_string().into(), text: Arc::new(text), dimensions: extents.into() })
    }

    /// What messages call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What a Matrix Market file says above its entries.
    pub fn header(&self) -> Option<&Header> {
        self.text.header()
    }

    /// The extents of the tensor.
    pub fn dimensions(&self) -> &[i64] {
        &self.dimensions
    }

    /// How many bytes of it this node has read, each time that it did.
    pub fn bytes_read(&self) -> u64 {
        self.text.source().bytes_read()
    }

    /// A number that is another one for most other files: of the length, the extents, and bytes here and there.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if it can't be read.
    pub fn digest(&self) -> Result<u64, ReadError> {
        let source = self.text.source();
        let length = source.length()?;
        let mut sample = vec![0; length.min(SAMPLE) as usize];
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(length);
        self.dimensions.iter().for_each(|&extent| hasher.write_i64(extent));
        for number in 0..SAMPLES {
            let offset = u128::from(length - sample.len() as u64) * u128::from(number) / u128::from(SAMPLES - 1);
            source.read_at(offset as u64, &mut sample)?;
            hasher.write(&sample);
        }
        Ok(hasher.finish())
    }

    fn wrong(&self, (line, reason): (Option<u64>, String)) -> DistributedError {
        let name = line.map_or_else(|| self.name.to_string(), |line| format!("{}:{line}", self.name));
        DistributedError::File { name, reason, is_input: true }
    }
}

/// What a reader says, by line if it knows one.
fn told(error: &ReadError) -> (Option<u64>, String) {
    match error {
        ReadError::Line { line, problem } => (Some(*line), problem.to_string()),
        other => (None, other.to_string()),
    }
}

/// A digest is of so many places of a file, with so many bytes each.
const SAMPLES: u64 = 32;
const SAMPLE: u64 = 4 << 10;

impl fmt::Debug for TextFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextFile")
            .field("name", &self.name)
            .field("dimensions", &self.dimensions)
            .finish_non_exhaustive()
    }
}

impl Tensor {
    /// The tensor that statements call `variable`, with the entries of a text file: those at the same place are added in the order of the file. Each node reads the ranges of bytes that are dealt
    /// to it, twice, and packs the blocks that are. Waits until all is read. With the bytes that each node has read.
    ///
    /// # Errors
    ///
    /// [`DistributedError::Shape`] if the file has other extents; [`DistributedError::Dense`] and [`DistributedError::Stored`] if the tensor is stored as
    /// [tasks do not pack it](super::is_packed_by_tasks); [`DistributedError::File`] if the file can't be read, is wrong, has elements that do not fit those of the tensor, or is another one on
    /// another node; [`DistributedError::Runtime`].
    pub async fn read_text(
        cx: &Context,
        variable: &TensorVariable,
        file: &TextFile,
    ) -> Result<(Self, Vec<u64>), DistributedError> {
        if *variable.dimensions() != *file.dimensions {
            let describe = |dimensions: &[i64]| format!("extents {dimensions:?}");
            let (expected, found) = (describe(variable.dimensions()), describe(&file.dimensions));
            return Err(DistributedError::Shape { tensor: variable.name().to_owned(), expected, found });
        }
        check_packed(variable)?;
        let before = file.bytes_read();
        let digest = file.digest().map_err(|error| file.wrong(told(&error)))?;
        let digests = cx.per_node(digest).all().await?;
        if let Some(node) = digests.iter().position(|digest| *digest != digests[0]) {
            let reason = format!("it is not the same on node {node} as on node 0: all nodes must have the same file");
            return Err(file.wrong((None, reason)));
        }
        let is_narrow = file.dimensions.iter().all(|extent| i32::try_from(*extent).is_ok());
        let tensor = with_element!(variable.element(), T => match is_narrow {
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
    file: &TextFile,
) -> Result<Tensor, DistributedError> {
    let length = file.text.source().length().map_err(|error| file.wrong((None, error.to_string())))?;
    let tasks = tasks_for(cx, length as usize);
    packed::<N, T, _>(cx, variable, (Lines { file: file.clone(), parts: tasks }, tasks)).await
}

/// A file in so many parts.
struct Lines {
    file: TextFile,
    parts: i64,
}

impl<T: Number> Lists<T> for Lines {
    fn parts(&self) -> i64 {
        self.parts
    }

    fn requirements(&self) -> &[Requirement] {
        &[]
    }

    fn for_each(&self, call: &LeafCall<'_>, mut visit: impl FnMut(&[i64], T)) -> maniple::Result<Listed> {
        let part = (call.point().coords()[0] as u64, self.parts as u64);
        let (mut signed, mut outside) = (vec![0; self.file.dimensions.len()], None);
        let read = self.file.text.read_part::<T>(part, |at, value| {
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

    fn check(&self, counted: Listed) -> Result<(), DistributedError> {
        let listed = counted.map_err(|reason| self.file.wrong(reason))?;
        self.file.text.check_listed(listed).map_err(|error| self.file.wrong(told(&error)))
    }
}
