//! Arrays in binary, read in parts.

use std::io::{self, BufReader, Read};
use std::ops::Range;

use crc32fast::Hasher;
use maniple_element::ElementType;

use crate::dense::Order;
use crate::error::{Problem, ReadError};
use crate::npy::{NpyHeader, read_elements};
use crate::npz::{
    Archive, ArchiveLayout, Form, Lengths, Member, apart, apart_from_each_other, ascending, check_ends, coordinates_of,
    integers, malformed, named, within,
};
use crate::number::Number;
use crate::section::{Section, share};
use crate::tcs::Source;

/// A dense array in a `.npy` file, or a sparse array in a `.npz` file whose arrays are stored as they are. Any number
/// of parts of it can be read at the same time, each by itself.
///
/// ```
/// use std::io::Cursor;
///
/// use maniple_files::EntryArrays;
/// use maniple_files::npz::{Compression, Sparse, Structure, ArrayValues};
///
/// let rows = Structure::Compressed { rows: vec![0], starts: vec![0, 1, 3], columns: vec![2, 0, 1] };
/// let matrix = Sparse::new(vec![2, 3], rows, ArrayValues::F64(vec![0.5, 1.5, 2.5]), None)?;
/// let mut file = Cursor::new(Vec::new());
/// matrix.write(&mut file, Compression::None)?;
///
/// let arrays = EntryArrays::npz(file.into_inner())?.expect("the arrays are not packed");
/// let (mut found, mut read) = (Vec::new(), Vec::new());
/// for part in 0..2 {
///     read.push(arrays.read_part::<f64>(part, 2, |at, value| found.push((at[0], at[1], value)))?);
/// }
/// arrays.check_read(&read)?;
/// assert_eq!(found, [(0, 2, 0.5), (1, 0, 1.5), (1, 1, 2.5)]);
/// # Ok::<(), maniple_files::ReadError>(())
/// ```
#[derive(Debug)]
pub struct EntryArrays<S> {
    source: S,
    shape: Vec<u64>,
    entries: ArrayEntries,
    /// The elements.
    values: Numbers,
    files: Vec<Checked>,
}

/// The places of the elements.
#[derive(Debug)]
enum ArrayEntries {
    /// Everywhere.
    All(Order),
    /// As the form of a sparse array says.
    Sparse {
        form: Form,
        /// For each row, the number of its first element or block.
        starts: Option<Numbers>,
        /// Coordinates of each dimension, or columns.
        indices: Vec<Numbers>,
        offsets: Vec<i64>,
    },
}

/// Numbers in a file.
#[derive(Debug)]
struct Numbers {
    /// The name in messages; none for a file that has no other numbers.
    name: Option<&'static str>,
    /// The offset of the first.
    begin: u64,
    /// Their type, and how many there are, along one dimension.
    header: NpyHeader,
}

/// A file in an archive.
#[derive(Debug)]
struct Checked {
    name: &'static str,
    checksum: u32,
    /// Of what comes before its numbers.
    head: Hasher,
    /// The number of what is read of it, among all that a part reads: one after the other.
    pieces: Range<usize>,
}

/// The checksum (CRC-32) of bytes that follow each other, and how many these are.
type Piece = (u32, u64);

/// So many entries are read at once.
const AT_ONCE: u64 = 1 << 14;

impl<S: Source> EntryArrays<S> {
    /// The dense array in a `.npy` file, of which the header is read.
    ///
    /// # Errors
    /// [`ReadError`] if the file has another format, or ends before its last element.
    pub fn npy(source: S) -> Result<Self, ReadError> {
        let length = source.length()?;
        let header = NpyHeader::read(&mut Section::new(&source, 0..length))?;
        if header.start.checked_add(header.bytes()).is_none_or(|end| end > length) {
            let (extents, found) = (header.extents(), length.saturating_sub(header.start));
            let reason = format!("it says that it has {extents} elements, but has only {found} bytes of them");
            return Err(ReadError::Byte { byte: length, problem: Problem::Truncated(reason) });
        }
        let (shape, entries) = (header.shape.clone(), ArrayEntries::All(header.order));
        let values = Numbers { name: None, begin: header.start, header: in_line(&header, header.count()) };
        Ok(Self { source, shape, entries, values, files: Vec::new() })
    }

    /// The sparse array in a `.npz` file, of which the list of arrays is read, their headers, and the offsets of
    /// diagonals; none if it can't be read in parts, as one of its arrays is compressed, is stored by columns, or has a
    /// fill value other than zero.
    ///
    /// # Errors
    /// [`ReadError`] if the file has another format, holds other arrays, or they do not fit together.
    pub fn npz(source: S) -> Result<Option<Self>, ReadError> {
        let length = source.length()?;
        let mut archive = Archive::new(BufReader::new(Section::new(&source, 0..length)))?;
        let ArchiveLayout { shape, form, indices: names } = ArchiveLayout::read(&mut archive)?;
        let mut files = Vec::new();
        let mut pieces = 0;
        // The numbers of an array in so many pieces that follow each other.
        let mut located = |name: &'static str, count: usize| {
            let Some(Member { bytes, checksum }) = archive.member(name)? else { return Ok(None) };
            let mut head = Hashed { source: Section::new(&source, bytes.clone()), hasher: Hasher::new() };
            let header = NpyHeader::read(&mut head).map_err(|error| named(name, error))?;
            let begin = bytes.start + header.start;
            if begin.checked_add(header.bytes()) != Some(bytes.end) || bytes.end > length {
                let (found, expected) = (bytes.end.saturating_sub(begin), header.bytes());
                let reason = format!("it has {found} bytes of elements, and its header says {expected}");
                return Err(named(name, ReadError::Byte { byte: begin, problem: Problem::Malformed(reason) }));
            }
            if header.order == Order::Columns && header.shape.len() > 1 {
                return Ok(None);
            }
            let all = header.count() / count.max(1) as u64;
            let numbers = |piece: usize| Numbers {
                name: Some(name),
                begin: begin + piece as u64 * all * header.stored_size() as u64,
                header: in_line(&header, all),
            };
            files.push(Checked { name, checksum, head: head.hasher, pieces: pieces..pieces + count });
            pieces += count;
            Ok(Some((0..count).map(numbers).collect::<Vec<_>>()))
        };
        let Some(values) = located("data", 1)?.and_then(|mut all| all.pop()) else { return Ok(None) };
        let (mut starts, mut indices) = (None, Vec::new());
        if !matches!(form, Form::Diagonals { .. }) {
            for &name in names {
                let count = if name == "coords" { shape.len() } else { 1 };
                let Some(all) = located(name, count)? else { return Ok(None) };
                indices.extend(all);
            }
        }
        if matches!(form, Form::Compressed { .. } | Form::Blocks { .. }) {
            let Some(all) = located("indptr", 1)? else { return Ok(None) };
            starts = all.into_iter().next();
        }
        let fill = archive.array("fill_value")?;
        let is_usual = |fill: &crate::npz::Array| {
            fill.values.number() == Some(values.header.number) && fill.values.len() == 1 && fill.values.is_zero(0)
        };
        if !fill.as_ref().is_none_or(is_usual) {
            return Ok(None);
        }
        let offsets = match form {
            Form::Diagonals { .. } => integers(&mut archive, names[0])?.1,
            _ => Vec::new(),
        };
        let count = |numbers: &Numbers| numbers.header.count();
        let mut of_indices: Vec<u64> = indices.iter().map(count).collect();
        if matches!(form, Form::Diagonals { .. }) {
            of_indices.push(offsets.len() as u64);
        }
        let lengths = Lengths { starts: starts.as_ref().map_or(0, count), indices: of_indices, values: count(&values) };
        form.check(&shape, &lengths).map_err(malformed)?;
        apart_from_each_other(&offsets).map_err(malformed)?;
        drop(archive);
        let found =
            Self { source, shape, entries: ArrayEntries::Sparse { form, starts, indices, offsets }, values, files };
        found.check_rows()?;
        Ok(Some(found))
    }

    /// The extent of each dimension.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The type of the elements.
    pub fn number(&self) -> ElementType {
        self.values.header.number
    }

    /// The order of the elements of a dense array; none of a sparse one.
    pub fn order(&self) -> Option<Order> {
        match self.entries {
            ArrayEntries::All(order) => Some(order),
            ArrayEntries::Sparse { .. } => None,
        }
    }

    /// The bytes of the file.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Reads elements, those from the first one named on, in the order of the file.
    ///
    /// # Errors
    /// [`ReadError`] if there are not so many, or they have another type.
    pub fn read_elements<T: Number>(&self, elements: Range<u64>) -> Result<Vec<T>, ReadError> {
        let count = self.values.header.count();
        match elements.end.checked_sub(elements.start).filter(|_| elements.end <= count) {
            Some(wanted) => self.reader(&self.values, &elements).numbers::<T>(wanted),
            None => Err(malformed(format!("there are {count} elements, and those of {elements:?} are not among them"))),
        }
    }

    /// Visits the entries of one of so many parts, with their coordinates, counted from 0. Zeros of dense arrays, of
    /// blocks and of diagonals are no entries, nor is what a diagonal has outside of the matrix. Gives the checksums
    /// and lengths of what was read, which are to be [checked](Self::check_read).
    ///
    /// # Errors
    /// [`ReadError`] if an index leads outside, rows do not ascend, or the elements have another type.
    pub fn read_part<T: Number>(
        &self,
        part: u64,
        parts: u64,
        visit: impl FnMut(&[u64], T),
    ) -> Result<Vec<(u32, u64)>, ReadError> {
        self.visit_part(part, parts, &mut Visiting { read: Vec::new(), visit })
    }

    /// [`read_part`](Self::read_part) for elements of all types.
    fn visit_part(&self, part: u64, parts: u64, elements: &mut dyn Elements<S>) -> Result<Vec<(u32, u64)>, ReadError> {
        let mut at = vec![0; self.shape.len()];
        let ArrayEntries::Sparse { form, starts, indices, offsets } = &self.entries else {
            return self.read_all(part, parts, elements);
        };
        let mut read = match form {
            Form::Coordinates => {
                let own = share(self.values.header.count(), part, parts);
                let mut values = self.reader(&self.values, &own);
                let mut all: Vec<_> = indices.iter().map(|numbers| self.reader(numbers, &own)).collect();
                for some in own.clone().step_by(AT_ONCE as usize) {
                    let count = AT_ONCE.min(own.end - some);
                    elements.read(&mut values, count)?;
                    let coordinates =
                        all.iter_mut().zip(&self.shape).enumerate().map(|(dimension, (all, &extent))| {
                            all.indices(count, || coordinates_of(dimension), extent)
                        });
                    let coordinates = coordinates.collect::<Result<Vec<_>, _>>()?;
                    for place in 0..count as usize {
                        at.iter_mut().zip(&coordinates).for_each(|(at, all)| *at = all[place] as u64);
                        elements.visit(place, &at);
                    }
                }
                let all = all.into_iter().map(Reader::piece);
                [values.piece()].into_iter().chain(all).collect()
            }
            Form::Compressed { rows } => {
                let (inner, own) = (form.inner(self.shape.len()), share(self.values.header.count(), part, parts));
                let extent = form.extents(&self.shape)[0];
                let (mut values, mut columns) = (self.reader(&self.values, &own), self.reader(&indices[0], &own));
                let (mut row, mut known) = (self.row_of(starts.as_ref(), own.clone())?, None);
                for some in own.clone().step_by(AT_ONCE as usize) {
                    let count = AT_ONCE.min(own.end - some);
                    elements.read(&mut values, count)?;
                    let columns = columns.indices(count, || "indices".to_owned(), extent)?;
                    for (place, column) in columns.into_iter().enumerate() {
                        let own = row.at(some + place as u64)?;
                        if known != Some(own) {
                            apart(own, rows, &self.shape, &mut at);
                            known = Some(own);
                        }
                        apart(column as u64, &inner, &self.shape, &mut at);
                        elements.visit(place, &at);
                    }
                }
                vec![values.piece(), columns.piece()]
            }
            Form::Blocks { size: [height, width] } => {
                let (each, own) = (height * width, share(indices[0].header.count(), part, parts));
                let extent = form.extents(&self.shape)[0];
                let mut values = self.reader(&self.values, &(own.start * each..own.end * each));
                let mut columns = self.reader(&indices[0], &own);
                let mut row = self.row_of(starts.as_ref(), own.clone())?;
                // Small blocks are read many at once, and large ones in parts.
                let at_once = (AT_ONCE / each).max(1);
                for some in own.clone().step_by(at_once as usize) {
                    let count = at_once.min(own.end - some);
                    let columns = columns.indices(count, || "indices".to_owned(), extent)?;
                    for first in (0..count * each).step_by(AT_ONCE as usize) {
                        elements.read(&mut values, AT_ONCE.min(count * each - first))?;
                        let mut next = 0;
                        while let Some(number) = elements.next(next) {
                            let place = first + number as u64;
                            let (block, within) = (place / each, place % each);
                            let column = columns[block as usize] as u64;
                            let row = row.at(some + block)? * height + within / width;
                            elements.visit(number, &[row, column * width + within % width]);
                            next = number + 1;
                        }
                    }
                }
                vec![values.piece(), columns.piece()]
            }
            Form::Diagonals { length } => {
                let own = share(self.values.header.count(), part, parts);
                let mut values = self.reader(&self.values, &own);
                for some in own.clone().step_by(AT_ONCE as usize) {
                    elements.read(&mut values, AT_ONCE.min(own.end - some))?;
                    let mut next = 0;
                    while let Some(number) = elements.next(next) {
                        let place = some + number as u64;
                        let (offset, column) = (offsets[(place / length) as usize], place % length);
                        let row = (column as i64).checked_sub(offset).and_then(|row| u64::try_from(row).ok());
                        if let Some(row) = row.filter(|row| *row < self.shape[0] && column < self.shape[1]) {
                            elements.visit(number, &[row, column]);
                        }
                        next = number + 1;
                    }
                }
                vec![values.piece()]
            }
        };
        if let Some(starts) = starts {
            read.push(self.ascending_part(starts, part, parts)?);
        }
        Ok(read)
    }

    /// Checks what all parts have read: in the order of the parts, what [`read_part`](Self::read_part) has given for
    /// each.
    ///
    /// # Errors
    /// [`ReadError`] if an array is damaged.
    pub fn check_read(&self, parts: &[Vec<(u32, u64)>]) -> Result<(), ReadError> {
        for Checked { name, checksum, head, pieces } in &self.files {
            let mut all = head.clone();
            for piece in pieces.clone() {
                for &(checksum, bytes) in parts.iter().filter_map(|read| read.get(piece)) {
                    all.combine(&Hasher::new_with_initial_len(checksum, bytes));
                }
            }
            let found = all.finalize();
            if found != *checksum {
                let reason =
                    format!("array '{name}' is damaged: its checksum is {found:08x}, and must be {checksum:08x}");
                return Err(malformed(reason));
            }
        }
        Ok(())
    }

    /// One of so many parts of a dense array.
    fn read_all(&self, part: u64, parts: u64, elements: &mut dyn Elements<S>) -> Result<Vec<(u32, u64)>, ReadError> {
        let own = share(self.values.header.count(), part, parts);
        let mut values = self.reader(&self.values, &own);
        let mut order: Vec<usize> = (0..self.shape.len()).collect();
        if self.order() == Some(Order::Columns) {
            order.reverse();
        }
        let mut at = vec![0; self.shape.len()];
        for some in own.clone().step_by(AT_ONCE as usize) {
            elements.read(&mut values, AT_ONCE.min(own.end - some))?;
            let mut next = 0;
            while let Some(number) = elements.next(next) {
                apart(some + number as u64, &order, &self.shape, &mut at);
                elements.visit(number, &at);
                next = number + 1;
            }
        }
        Ok(Vec::new())
    }

    fn reader(&self, numbers: &Numbers, range: &Range<u64>) -> Reader<'_, S> {
        Reader::new(&self.source, numbers, range.clone())
    }

    /// Checks where the first row begins, and the last one ends.
    fn check_rows(&self) -> Result<(), ReadError> {
        let ArrayEntries::Sparse { starts: Some(starts), indices, .. } = &self.entries else { return Ok(()) };
        let last = starts.header.count().saturating_sub(1);
        let (first, end) = (self.one(starts, 0)?, self.one(starts, last)?);
        check_ends(first, end, indices[0].header.count()).map_err(malformed)
    }

    /// One of some integers.
    fn one(&self, numbers: &Numbers, place: u64) -> Result<i64, ReadError> {
        Ok(Reader::with_room(&self.source, numbers, place..place + 1, 0).integers(1)?[0])
    }

    /// The rows that some entries, or blocks, are in.
    fn row_of(&self, starts: Option<&Numbers>, own: Range<u64>) -> Result<Rows<'_, S>, ReadError> {
        let Some(starts) = starts.filter(|_| !own.is_empty()) else { return Ok(Rows::default()) };
        // The last row that begins at the first entry or before it; that rows ascend is checked where they are read.
        let (mut least, mut most) = (0, starts.header.count() - 1);
        while most - least > 1 {
            let middle = least + (most - least) / 2;
            if self.one(starts, middle)? as u64 <= own.start { least = middle } else { most = middle }
        }
        let all = self.reader(starts, &(least + 1..starts.header.count()));
        let left = starts.header.count() - least - 1;
        Rows { starts: Some(all), left, next: Vec::new().into_iter(), row: least, end: 0 }.begun()
    }

    /// Checks that the rows of a part ascend, whatever entries it has.
    fn ascending_part(&self, starts: &Numbers, part: u64, parts: u64) -> Result<Piece, ReadError> {
        let own = share(starts.header.count(), part, parts);
        let mut reader = self.reader(starts, &own);
        let mut before = if own.start > 0 && !own.is_empty() { Some(self.one(starts, own.start - 1)?) } else { None };
        for some in own.clone().step_by(AT_ONCE as usize) {
            let numbers = reader.integers(AT_ONCE.min(own.end - some))?;
            let all: Vec<i64> = before.into_iter().chain(numbers).collect();
            ascending(&all).map_err(malformed)?;
            before = all.last().copied();
        }
        Ok(reader.piece())
    }
}

/// Elements of a part, some at a time, whose type only this knows.
trait Elements<S> {
    /// Reads the next ones, so many, in the place of those before.
    fn read(&mut self, from: &mut Reader<'_, S>, count: u64) -> Result<(), ReadError>;

    /// The first that is not zero, of those from this one on.
    fn next(&self, first: usize) -> Option<usize>;

    /// Visits one of them with its coordinates.
    fn visit(&mut self, number: usize, at: &[u64]);
}

/// Elements that are visited by a function.
struct Visiting<T, V> {
    read: Vec<T>,
    visit: V,
}

impl<S: Source, T: Number, V: FnMut(&[u64], T)> Elements<S> for Visiting<T, V> {
    fn read(&mut self, from: &mut Reader<'_, S>, count: u64) -> Result<(), ReadError> {
        self.read = from.numbers(count)?;
        Ok(())
    }

    fn next(&self, first: usize) -> Option<usize> {
        self.read[first..].iter().position(|element| *element != T::zeroed()).map(|place| first + place)
    }

    fn visit(&mut self, number: usize, at: &[u64]) {
        (self.visit)(at, self.read[number]);
    }
}

/// The rows of entries that follow each other.
struct Rows<'a, S> {
    /// The reader of the first entries of the rows after the current one.
    starts: Option<Reader<'a, S>>,
    /// How many of these are not read.
    left: u64,
    next: std::vec::IntoIter<i64>,
    row: u64,
    /// The number of the entry at which the current row ends.
    end: i64,
}

impl<S> Default for Rows<'_, S> {
    fn default() -> Self {
        Self { starts: None, left: 0, next: Vec::new().into_iter(), row: 0, end: 0 }
    }
}

impl<S: Source> Rows<'_, S> {
    fn begun(mut self) -> Result<Self, ReadError> {
        self.end = self.start()?;
        Ok(self)
    }

    /// Gives the number of the entry at which the next row begins.
    fn start(&mut self) -> Result<i64, ReadError> {
        if let Some(start) = self.next.next() {
            return Ok(start);
        }
        match &mut self.starts {
            Some(starts) if self.left > 0 => {
                let count = AT_ONCE.min(self.left);
                (self.left, self.next) = (self.left - count, starts.integers(count)?.into_iter());
                self.start()
            }
            _ => Err(malformed("'indptr' descends, or ends before the last element".to_owned())),
        }
    }

    /// The row of an entry, which is not before the one that was asked for before.
    fn at(&mut self, place: u64) -> Result<u64, ReadError> {
        while self.end <= place as i64 {
            self.end = self.start()?;
            self.row += 1;
        }
        Ok(self.row)
    }
}

/// The header of so many of an array's numbers, in a line.
fn in_line(header: &NpyHeader, count: u64) -> NpyHeader {
    NpyHeader { shape: vec![count], order: Order::Rows, ..header.clone() }
}

/// Numbers that are read one after the other.
struct Reader<'a, S> {
    name: Option<&'static str>,
    header: NpyHeader,
    bytes: Hashed<BufReader<Section<'a, S>>>,
}

/// So many bytes are read at once where fewer are asked for.
const ROOM: usize = 64 << 10;

impl<'a, S: Source> Reader<'a, S> {
    fn new(source: &'a S, numbers: &Numbers, range: Range<u64>) -> Self {
        Self::with_room(source, numbers, range, ROOM)
    }

    fn with_room(source: &'a S, numbers: &Numbers, range: Range<u64>, room: usize) -> Self {
        let size = numbers.header.stored_size() as u64;
        let section = Section::new(source, numbers.begin + range.start * size..numbers.begin + range.end * size);
        let bytes = Hashed { source: BufReader::with_capacity(room, section), hasher: Hasher::new() };
        Self { name: numbers.name, header: numbers.header.clone(), bytes }
    }

    fn numbers<T: Number>(&mut self, count: u64) -> Result<Vec<T>, ReadError> {
        let read = read_elements::<T>(&in_line(&self.header, count), &mut self.bytes, Some(u64::MAX));
        read.map(|read| read.elements).map_err(|error| match self.name {
            Some(name) => named(name, error),
            None => error,
        })
    }

    fn integers(&mut self, count: u64) -> Result<Vec<i64>, ReadError> {
        fn wide<N: Into<i64>>(numbers: Vec<N>) -> Vec<i64> {
            numbers.into_iter().map(Into::into).collect()
        }
        match self.header.number {
            ElementType::U8 => self.numbers::<u8>(count).map(wide),
            ElementType::I8 => self.numbers::<i8>(count).map(wide),
            ElementType::U16 => self.numbers::<u16>(count).map(wide),
            ElementType::I16 => self.numbers::<i16>(count).map(wide),
            ElementType::U32 => self.numbers::<u32>(count).map(wide),
            ElementType::I32 => self.numbers::<i32>(count).map(wide),
            ElementType::U64 => {
                let name = self.name.unwrap_or_default();
                let numbers: Option<_> =
                    self.numbers::<u64>(count)?.into_iter().map(|one| one.try_into().ok()).collect();
                numbers.ok_or_else(|| malformed(format!("array '{name}' has integers of 2^63 or more")))
            }
            ElementType::I64 => self.numbers::<i64>(count),
            _ => Err(malformed(format!("array '{}' must have integers", self.name.unwrap_or_default()))),
        }
    }

    /// Integers from 0 on that are less than an extent.
    fn indices(&mut self, count: u64, name: impl FnOnce() -> String, extent: u64) -> Result<Vec<i64>, ReadError> {
        let found = self.integers(count)?;
        // The name is for messages.
        match found.iter().all(|&index| (index as u64) < extent) {
            true => Ok(found),
            false => within(&name(), &found, extent).map_err(malformed).map(|()| found),
        }
    }

    fn piece(self) -> Piece {
        let bytes = self.bytes.hasher.total_len();
        (self.bytes.hasher.finalize(), bytes)
    }
}

/// Bytes, with the checksum of those that were read.
struct Hashed<R> {
    source: R,
    hasher: Hasher,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(into)?;
        self.hasher.update(&into[..read]);
        Ok(read)
    }
}
