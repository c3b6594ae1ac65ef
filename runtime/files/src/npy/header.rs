//! The header of a `.npy` file.

use std::io::{self, Read};

use super::literal::{Literal, LiteralValue};
use maniple_element::ElementType;

use crate::dense::Order;
use crate::error::{Problem, ReadError};
use crate::number::Number;
use crate::text::{packed, shown};

/// The first bytes of each `.npy` file.
pub const MAGIC: &[u8] = b"\x93NUMPY";

/// The longest header that is read; NumPy reads no longer ones from files that it does not trust.
const LONGEST: usize = 10_000;

/// Headers of arrays have a handful of brackets. The parser follows them however deep they are.
const MOST_BRACKETS: usize = 100;

/// The contents of the header of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpyHeader {
    /// The type of the elements as they are read.
    pub number: ElementType,
    /// The type in the file, if it is no [`ElementType`].
    pub other: Option<Other>,
    /// Whether the first byte of a number, or of each part of a complex one, is the most significant.
    pub big_endian: bool,
    /// The order of the elements.
    pub order: Order,
    /// The extent of each dimension.
    pub shape: Vec<u64>,
    /// The offset of the first element in the file.
    pub start: u64,
}

/// A type of elements that are read as those of an [`ElementType`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other {
    /// Floats of 16 bits, which are read as [`ElementType::F32`].
    F16,
}

impl Other {
    fn named(name: &str) -> Option<Self> {
        (name == "f2").then_some(Self::F16)
    }

    fn number(self) -> ElementType {
        ElementType::F32
    }

    /// The bytes of an element.
    pub(crate) fn size(self) -> usize {
        2
    }

    /// Makes elements of what the file has of them, two bytes each, in this machine's order.
    pub(super) fn widen(self, narrow: &[u8], wide: &mut [u8]) {
        let of_file = narrow.chunks_exact(2).map(|bytes| u16::from_ne_bytes([bytes[0], bytes[1]]));
        let elements = wide.chunks_exact_mut(4).zip(of_file);
        elements.for_each(|(wide, bits)| wide.copy_from_slice(&half(bits).to_ne_bytes()));
    }
}

/// The float of 16 bits that has these (IEEE 754 binary16).
fn half(bits: u16) -> f32 {
    let (exponent, fraction) = (u32::from(bits >> 10 & 0x1f), u32::from(bits & 0x3ff));
    let magnitude = match exponent {
        // Below 2^-14 they are multiples of 2^-24.
        0 => fraction as f32 / 16_777_216.0,
        31 => f32::from_bits(0x7f80_0000 | fraction << 13),
        _ => f32::from_bits((exponent + 112) << 23 | fraction << 13),
    };
    if bits >> 15 == 0 { magnitude } else { -magnitude }
}

/// The contents of a header, whatever the type of the elements: for callers that move the bytes themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The type as the file writes it, for messages.
    pub descr: String,
    /// The order of bytes, as NumPy writes it: `<`, `>`, `=`, or `|` where there is none.
    pub byte_order: char,
    /// The type's name without the order of bytes, as in `f8`; empty of a type that is not plain.
    pub type_name: String,
    /// The order of the elements.
    pub order: Order,
    /// The extent of each dimension.
    pub shape: Vec<u64>,
    /// The offset of the first element from the beginning of the header.
    pub start: u64,
    /// The offset of the text of the header.
    text: usize,
}

impl NpyHeader {
    /// Reads the header, and no byte of what follows.
    ///
    /// # Errors
    /// [`ReadError`] if the file has another format, or elements of a type that is no [`ElementType`].
    pub fn read(source: &mut impl Read) -> Result<Self, ReadError> {
        Self::of(Description::read(source)?)
    }

    /// The header of a description, if the elements are of a type that is known.
    pub(crate) fn of(described: Description) -> Result<Self, ReadError> {
        let text = described.text;
        Self::of_numbers(described).map_err(|problem| wrong(text, problem))
    }

    fn of_numbers(described: Description) -> Result<Self, Problem> {
        let other = Other::named(&described.type_name);
        let named = || ElementType::ALL.into_iter().find(|number| number.npy_name() == described.type_name);
        let number = other.map(Other::number).or_else(named);
        let Some(number) = number.filter(|number| described.byte_order != '|' || number.size() == 1) else {
            let known = "bool, integers of 8, 16, 32 or 64 bits, float16, float32, float64, complex64 or complex128";
            let found = shown(&described.descr);
            return Err(Problem::Unsupported(format!(
                "its elements are {found}; they must be {known}: convert it with NumPy's astype"
            )));
        };
        let big_endian = described.is_big_endian();
        let Description { order, shape, start, .. } = described;
        let header = Self { number, other, big_endian, order, shape, start };
        // All products of extents fit, those without extents of 0 included.
        let multiplied = |product: i64, &extent: &u64| product.checked_mul(i64::try_from(extent.max(1)).ok()?);
        match header.shape.iter().try_fold(number.size() as i64, multiplied) {
            Some(_) => Ok(header),
            None => Err(Problem::TooLarge(format!(
                "it says that it has {} elements, which are more than can be counted",
                header.extents()
            ))),
        }
    }

    /// The number of elements.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.shape.iter().product()
    }

    /// The bytes of all elements.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.count() * self.stored_size() as u64
    }

    /// The bytes of one element in the file.
    pub(crate) fn stored_size(&self) -> usize {
        self.other.map_or(self.number.size(), Other::size)
    }

    /// The extents, for messages.
    pub(crate) fn extents(&self) -> String {
        match self.shape[..] {
            [] => "1".to_owned(),
            _ => self.shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(" x "),
        }
    }
}

impl Description {
    /// Whether the first byte of a number, or of each part of a complex one, is the most significant.
    #[must_use]
    pub fn is_big_endian(&self) -> bool {
        match self.byte_order {
            '>' => true,
            '=' => cfg!(target_endian = "big"),
            _ => false,
        }
    }

    /// Reads the header, and no byte of what follows.
    ///
    /// # Errors
    /// [`ReadError`] if the file has another format.
    pub fn read(source: &mut impl Read) -> Result<Self, ReadError> {
        let mut header = Vec::new();
        let read = |source: &mut dyn Read, header: &mut Vec<u8>, length: usize| {
            source.take((length - header.len()) as u64).read_to_end(header)
        };
        read(source, &mut header, 10)?;
        if !header.starts_with(MAGIC) {
            let reason = match header.is_empty() {
                true => "this is no .npy file: it is empty".to_owned(),
                false => format!("this is no .npy file: it starts with '{}', not '\\x93NUMPY'", shown(&header)),
            };
            return Err(wrong(0, packed(&header).unwrap_or(Problem::Foreign(reason))));
        }
        let start = match header.get(6) {
            None | Some(1) => 10,
            Some(2 | 3) => 12,
            Some(version) => {
                let reason = format!("its version of the format is {version}; versions 1 to 3 can be read");
                return Err(wrong(6, Problem::Unsupported(reason)));
            }
        };
        read(source, &mut header, start)?;
        let length = match header[..] {
            [_, _, _, _, _, _, _, _, a, b] => usize::from(u16::from_le_bytes([a, b])),
            [_, _, _, _, _, _, _, _, a, b, c, d] => u32::from_le_bytes([a, b, c, d]) as usize,
            _ => {
                let reason = format!("this is no whole .npy file: it ends after {} bytes", header.len());
                return Err(wrong(header.len(), Problem::Truncated(reason)));
            }
        };
        if length > LONGEST {
            let reason = format!("its header has {length} bytes, and such headers have at most {LONGEST}");
            return Err(wrong(8, Problem::Unsupported(reason)));
        }
        read(source, &mut header, start + length)?;
        let found = header.len() - start;
        if found < length {
            let reason = format!("it ends after {found} bytes of its header, which has {length}");
            return Err(wrong(header.len(), Problem::Truncated(reason)));
        }
        Self::of_text(&mut header[start..], start).map_err(|problem| wrong(start, problem))
    }

    fn of_text(text: &mut [u8], place: usize) -> Result<Self, Problem> {
        let start = (place + text.len()) as u64;
        let brackets = text.iter().filter(|byte| b"([{".contains(byte)).count();
        if brackets > MOST_BRACKETS {
            let reason = format!("its header has {brackets} brackets, and describes no plain array");
            return Err(Problem::Unsupported(reason));
        }
        without_long_suffixes(text);
        let parsed = std::str::from_utf8(text).ok().and_then(Literal::parse);
        let Some(Literal { value: LiteralValue::Dictionary(entries), .. }) = parsed else {
            return Err(Problem::Malformed(format!(
                "its header must be a dictionary such as {{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3)}}, and is '{}'",
                shown(text)
            )));
        };
        let get = |key: &str| {
            // As in Python, the last of several counts.
            let found = entries.iter().rev().find(|(found, _)| found.as_text() == Some(key));
            found.map(|(_, value)| value).ok_or_else(|| Problem::Malformed(format!("its header has no '{key}'")))
        };
        let (descr, fortran_order, shape) = (get("descr")?, get("fortran_order")?, get("shape")?);
        let order = match fortran_order.value {
            LiteralValue::Truth(true) => Order::Columns,
            LiteralValue::Truth(false) => Order::Rows,
            _ => {
                return Err(Problem::Malformed(
                    "the 'fortran_order' in its header is neither True nor False".to_owned(),
                ));
            }
        };
        let shape = extents(shape).ok_or_else(|| {
            Problem::Malformed("the 'shape' in its header is no tuple of whole numbers from 0 on".to_owned())
        })?;
        let name = descr.as_text().unwrap_or_default();
        let mut letters = name.chars();
        let byte_order = letters.next().filter(|order| "<>=|".contains(*order));
        let type_name = byte_order.map(|_| letters.as_str().to_owned()).unwrap_or_default();
        Ok(Self {
            descr: descr.text.to_owned(),
            byte_order: byte_order.unwrap_or('|'),
            type_name,
            order,
            shape,
            start,
            text: place,
        })
    }
}

fn wrong(byte: usize, problem: Problem) -> ReadError {
    ReadError::Byte { byte: byte as u64, problem }
}

/// Makes blanks of the `L` with which Python 2 ended large whole numbers, as in `(1000L, 3L)`.
fn without_long_suffixes(text: &mut [u8]) {
    let mut quote = None;
    for place in 0..text.len() {
        match (quote, text[place]) {
            (None, b'\'' | b'"') => quote = Some(text[place]),
            (Some(open), byte) if open == byte => quote = None,
            (None, b'L') if place > 0 && text[place - 1].is_ascii_digit() => text[place] = b' ',
            _ => {}
        }
    }
}

/// The extents, if they are numbers.
fn extents(shape: &Literal<'_>) -> Option<Vec<u64>> {
    let LiteralValue::Sequence(extents) = &shape.value else { return None };
    let count = |extent: &Literal<'_>| match extent.value {
        LiteralValue::Count(count) => Some(count),
        _ => None,
    };
    extents.iter().map(count).collect()
}

/// The header of an array by rows in this machine's order of bytes.
pub(super) fn text<T: Number>(shape: &[u64]) -> io::Result<Vec<u8>> {
    let order = if cfg!(target_endian = "big") { '>' } else { '<' };
    header_of(&format!("{order}{}", T::TYPE.npy_name()), Order::Rows, shape)
}

/// The header of an array with elements of a type, the least significant byte of each first: as [`header_of`].
///
/// # Errors
/// As of [`header_of`].
pub fn little_endian_header(number: ElementType, order: Order, shape: &[u64]) -> io::Result<Vec<u8>> {
    header_of(&format!("<{}", number.npy_name()), order, shape)
}

/// The header of an array with elements of a type that NumPy describes like this, as in `<f8`: of version 1.0, with
/// blanks to a multiple of 64 bytes.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] if there are more dimensions than a header can hold.
pub fn header_of(descr: &str, order: Order, shape: &[u64]) -> io::Result<Vec<u8>> {
    let fortran_order = if order == Order::Columns { "True" } else { "False" };
    let extents: String = shape.iter().map(|extent| format!("{extent}, ")).collect();
    // A tuple of one has a comma.
    let extents = if shape.len() == 1 { extents.trim_end() } else { extents.trim_end_matches(", ") };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': {fortran_order}, 'shape': ({extents}), }}");
    let length = (MAGIC.len() + 4 + text.len() + 1).next_multiple_of(64) - MAGIC.len() - 4;
    text.extend(std::iter::repeat_n(' ', length - text.len() - 1));
    text.push('\n');
    let length = u16::try_from(length).map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("{} dimensions are too many for a .npy file", shape.len()))
    })?;
    Ok([MAGIC, &[1, 0], &length.to_le_bytes(), text.as_bytes()].concat())
}
