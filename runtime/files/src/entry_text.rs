//! Text files of entries, read in parts.

use std::any::Any;
use std::io::BufReader;
use std::ops::Range;

use maniple_element::{ElementType, with_element};

use crate::error::{Problem, ReadError, entries};
use crate::line_offsets::{AT_ONCE, head, in_source, line_from, lines};
use crate::matrix_market::{MatrixLayout, MatrixMarketHeader, Reader};
use crate::number::Number;
use crate::parallel::{Parallel, each_share};
use crate::section::{Section, share};
use crate::tcs::Source;
use crate::tns;

/// A text file with a line for each entry of a sparse array: a Matrix Market file in the layout `coordinate`, or a
/// `.tns` file. Any number of parts of it can be read at the same time, each by itself: a part has the lines that begin
/// in its share of the bytes.
///
/// ```
/// use maniple_files::EntryText;
///
/// let text = b"%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 1 0.5\n2 1 1.5\n3 3 2.5\n".to_vec();
/// let text = EntryText::matrix_market(text)?;
/// let (mut found, mut listed) = (Vec::new(), 0);
/// for part in 0..4 {
///     listed += text.read_part::<f64>(part, 4, |at, value| found.push((at[0], at[1], value)))?;
/// }
/// text.check_listed(listed)?;
/// assert_eq!(found, [(0, 0, 0.5), (1, 0, 1.5), (0, 1, 1.5), (2, 2, 2.5)]);
/// # Ok::<(), maniple_files::ReadError>(())
/// ```
#[derive(Debug)]
pub struct EntryText<S> {
    source: S,
    kind: EntryTextKind,
    /// The range of the lines of entries in the file, in bytes.
    bytes: Range<u64>,
}

#[derive(Clone, Copy, Debug)]
enum EntryTextKind {
    Matrix(MatrixMarketHeader),
    /// Of so many dimensions.
    Tensor(usize),
}

/// The lines that begin in one of so many shares of the bytes of a text.
struct PartOfText<'a> {
    source: &'a dyn Source,
    kind: EntryTextKind,
    bytes: &'a Range<u64>,
    share: (u64, u64),
}

impl PartOfText<'_> {
    /// Visits entries by code that is compiled here, and not in each crate that reads.
    fn visit_any(&self, element: ElementType, visit: &mut dyn FnMut(&[u64], &dyn Any)) -> Result<u64, ReadError> {
        with_element!(element, T => self.visit(&mut |at, value: T| visit(at, &value)))
    }

    /// Visits entries as [`EntryText::read_part`] does.
    fn visit<T: Number>(&self, visit: &mut dyn FnMut(&[u64], T)) -> Result<u64, ReadError> {
        let from = |byte: u64| line_from(self.source, self.bytes, self.bytes.start + byte);
        let own = share(self.bytes.end - self.bytes.start, self.share.0, self.share.1);
        let bytes = from(own.start)?..from(own.end)?;
        let start = bytes.start;
        let source = BufReader::with_capacity(AT_ONCE, Section::new(self.source, bytes));
        let read = match &self.kind {
            EntryTextKind::Matrix(header) => {
                let mut reader = Reader::of_part(source, header);
                let mut each = || {
                    let mut listed = 0;
                    while let Some(entry) = reader.next_entry::<T>()? {
                        listed += 1;
                        visit(&[entry.row, entry.column], entry.value);
                        if let Some(mirrored) = entry.mirrored(header.symmetry) {
                            visit(&[mirrored.row, mirrored.column], mirrored.value);
                        }
                    }
                    Ok(listed)
                };
                each()
            }
            EntryTextKind::Tensor(order) => {
                let mut reader = tns::Reader::<_, T>::of_part(source, *order);
                let mut at = Vec::with_capacity(*order);
                let mut each = || {
                    let mut listed = 0;
                    while let Some(value) = reader.next_entry(&mut at)? {
                        listed += 1;
                        visit(&at, value);
                    }
                    Ok(listed)
                };
                each()
            }
        };
        read.map_err(|error| in_source(self.source, start, error))
    }
}

impl<S: Source> EntryText<S> {
    /// A Matrix Market file, of which the header is read.
    ///
    /// # Errors
    /// [`ReadError`] if the file has another format, its header makes no sense, or it has the layout
    /// [`MatrixLayout::Array`].
    pub fn matrix_market(source: S) -> Result<Self, ReadError> {
        let (header, bytes) = head(&source)?;
        if header.layout == MatrixLayout::Array {
            let reason =
                "the matrix is dense ('array'); the lines of a sparse one ('coordinate') have places".to_owned();
            return Err(ReadError::Line { line: 1, problem: Problem::Unsupported(reason) });
        }
        Ok(Self { source, kind: EntryTextKind::Matrix(header), bytes })
    }

    /// A `.tns` file, of which the first entry is read.
    ///
    /// # Errors
    /// [`ReadError`] if the file has no entries, or another format.
    pub fn tns(source: S) -> Result<Self, ReadError> {
        let length = source.length()?;
        let reader = tns::Reader::<_, f64>::new(BufReader::new(Section::new(&source, 0..length)))?;
        let order = reader.order();
        Ok(Self { source, kind: EntryTextKind::Tensor(order), bytes: 0..length })
    }

    /// The number of dimensions.
    pub fn order(&self) -> usize {
        match self.kind {
            EntryTextKind::Matrix(_) => 2,
            EntryTextKind::Tensor(order) => order,
        }
    }

    /// The header of a Matrix Market file, above its entries.
    pub fn header(&self) -> Option<&MatrixMarketHeader> {
        match &self.kind {
            EntryTextKind::Matrix(header) => Some(header),
            EntryTextKind::Tensor(_) => None,
        }
    }

    /// The bytes of the file.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Visits the entries of one of so many parts, and those that follow from them by symmetry, each right after the
    /// one that it follows from: with their coordinates, counted from 0. Gives how many the part lists; of all parts
    /// together they are [checked](Self::check_listed).
    ///
    /// # Errors
    /// [`ReadError`] if a line makes no sense, has not as many coordinates as the first one, or is outside of the
    /// matrix.
    pub fn read_part<T: Number>(
        &self,
        part: u64,
        parts: u64,
        mut visit: impl FnMut(&[u64], T),
    ) -> Result<u64, ReadError> {
        let lines = PartOfText { source: &self.source, kind: self.kind, bytes: &self.bytes, share: (part, parts) };
        let is_asked_for = "entries have elements of the type that is asked for";
        lines.visit_any(T::TYPE, &mut |at, value| visit(at, *value.downcast_ref().expect(is_asked_for)))
    }

    /// Checks how many entries all parts list.
    ///
    /// # Errors
    /// [`ReadError`] if a Matrix Market file says another number.
    pub fn check_listed(&self, listed: u64) -> Result<(), ReadError> {
        match &self.kind {
            EntryTextKind::Matrix(header) if header.entries != listed => {
                let (said, line) = (entries(header.entries), lines(&self.source, self.bytes.end)?.max(1));
                let problem = match listed < header.entries {
                    true => Problem::Truncated(format!("the file ends after {listed} of {said}")),
                    false => Problem::Malformed(format!("the file has {listed} entries, and says that it has {said}")),
                };
                Err(ReadError::Line { line, problem })
            }
            _ => Ok(()),
        }
    }

    /// The extents of the smallest array that has all entries; those that a Matrix Market file says. All of a `.tns`
    /// file is read.
    ///
    /// # Errors
    /// [`ReadError`] as of [`read_part`](Self::read_part).
    pub fn extents(&self, parallel: &dyn Parallel) -> Result<Vec<u64>, ReadError>
    where
        S: Sync,
    {
        let order = match &self.kind {
            EntryTextKind::Matrix(header) => return Ok(vec![header.rows, header.columns]),
            EntryTextKind::Tensor(order) => *order,
        };
        let extents = each_share(parallel, |part, parts| {
            let mut extents = vec![0_u64; order];
            let most = |(extent, at): (&mut u64, &u64)| *extent = (*extent).max(at.saturating_add(1));
            let read = self.read_part::<f64>(part, parts, |at, _| extents.iter_mut().zip(at).for_each(most));
            read.map(|_| extents)
        })?;
        let most = |all: Vec<u64>, one: Vec<u64>| all.into_iter().zip(one).map(|(all, one)| all.max(one)).collect();
        Ok(extents.into_iter().fold(vec![0; order], most))
    }
}
