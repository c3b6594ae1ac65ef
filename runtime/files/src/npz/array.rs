//! Arrays of elements of a type that a file says.

use std::io::{self, Read, Write};

use maniple_element::ElementType;
use num_complex::Complex;

use crate::dense::{Dense, Order};
use crate::error::{Problem, ReadError};
use crate::npy::{Description, NpyHeader, read_elements, write_described};
use crate::number::Number;

/// Elements of one type.
#[derive(Clone, Debug, PartialEq)]
pub enum ArrayValues {
    /// Truth values.
    Bool(Vec<bool>),
    /// Integers of 8 bits without sign.
    U8(Vec<u8>),
    /// Integers of 8 bits.
    I8(Vec<i8>),
    /// Integers of 16 bits without sign.
    U16(Vec<u16>),
    /// Integers of 16 bits.
    I16(Vec<i16>),
    /// Integers of 32 bits without sign.
    U32(Vec<u32>),
    /// Integers of 32 bits.
    I32(Vec<i32>),
    /// Integers of 64 bits without sign.
    U64(Vec<u64>),
    /// Integers of 64 bits.
    I64(Vec<i64>),
    /// Floats of 32 bits; those of 16 bits are read as such too.
    F32(Vec<f32>),
    /// Floats of 64 bits.
    F64(Vec<f64>),
    /// Complex numbers with parts of 32 bits.
    C32(Vec<Complex<f32>>),
    /// Complex numbers with parts of 64 bits.
    C64(Vec<Complex<f64>>),
    /// A text, of arrays of one text.
    Text(String),
}

/// An array.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// The extent of each dimension.
    pub shape: Vec<u64>,
    /// The order of the elements.
    pub order: Order,
    /// The elements.
    pub values: ArrayValues,
}

/// Does the same with the elements of each type; a text gives `$text`.
macro_rules! each {
    ($values:expr, $elements:ident => $result:expr, $text:expr) => {
        match $values {
            ArrayValues::Bool($elements) => $result,
            ArrayValues::U8($elements) => $result,
            ArrayValues::I8($elements) => $result,
            ArrayValues::U16($elements) => $result,
            ArrayValues::I16($elements) => $result,
            ArrayValues::U32($elements) => $result,
            ArrayValues::I32($elements) => $result,
            ArrayValues::U64($elements) => $result,
            ArrayValues::I64($elements) => $result,
            ArrayValues::F32($elements) => $result,
            ArrayValues::F64($elements) => $result,
            ArrayValues::C32($elements) => $result,
            ArrayValues::C64($elements) => $result,
            ArrayValues::Text(_) => $text,
        }
    };
}
pub(super) use each;

impl ArrayValues {
    /// The number of elements; a text is one.
    #[must_use]
    pub fn len(&self) -> usize {
        each!(self, elements => elements.len(), 1)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The type of the elements; none of a text.
    #[must_use]
    pub fn number(&self) -> Option<ElementType> {
        fn of<T: Number>(_: &[T]) -> ElementType {
            T::TYPE
        }
        each!(self, elements => Some(of(elements)), None)
    }

    /// Whether an element is zero.
    pub(crate) fn is_zero(&self, place: usize) -> bool {
        fn of<T: Number>(element: T) -> bool {
            element == T::zeroed()
        }
        each!(self, elements => of(elements[place]), false)
    }

    /// One zero of the type.
    pub(super) fn zero(number: Option<ElementType>) -> Self {
        match number {
            None => Self::Text(String::new()),
            Some(ElementType::Bool) => Self::Bool(vec![false]),
            Some(ElementType::U8) => Self::U8(vec![0]),
            Some(ElementType::I8) => Self::I8(vec![0]),
            Some(ElementType::U16) => Self::U16(vec![0]),
            Some(ElementType::I16) => Self::I16(vec![0]),
            Some(ElementType::U32) => Self::U32(vec![0]),
            Some(ElementType::I32) => Self::I32(vec![0]),
            Some(ElementType::U64) => Self::U64(vec![0]),
            Some(ElementType::I64) => Self::I64(vec![0]),
            Some(ElementType::F32) => Self::F32(vec![0.0]),
            Some(ElementType::F64) => Self::F64(vec![0.0]),
            Some(ElementType::C32) => Self::C32(vec![Complex::new(0.0, 0.0)]),
            Some(ElementType::C64) => Self::C64(vec![Complex::new(0.0, 0.0)]),
        }
    }
}

impl Array {
    /// An array with these elements, the last coordinate varying fastest.
    #[must_use]
    pub fn rows(shape: Vec<u64>, values: ArrayValues) -> Self {
        Self { shape, order: Order::Rows, values }
    }

    /// One line of integers, as narrow as they allow.
    pub(super) fn integers(integers: &[i64]) -> Self {
        let narrow: Option<Vec<i32>> = integers.iter().map(|&integer| i32::try_from(integer).ok()).collect();
        let values = narrow.map_or_else(|| ArrayValues::I64(integers.to_vec()), ArrayValues::I32);
        Self::rows(vec![integers.len() as u64], values)
    }

    /// The same array, the last coordinate varying fastest.
    #[must_use]
    pub fn by_rows(self) -> Self {
        let Self { shape, order, values } = self;
        macro_rules! turned {
            ($($variant:ident),*) => {
                match values {
                    $(ArrayValues::$variant(elements) => {
                        let array = Dense { shape: shape.clone(), order, elements };
                        ArrayValues::$variant(array.by_rows().elements)
                    })*
                    text @ ArrayValues::Text(_) => text,
                }
            };
        }
        let values = turned!(Bool, U8, I8, U16, I16, U32, I32, U64, I64, F32, F64, C32, C64);
        Self { shape, order: Order::Rows, values }
    }

    /// Reads the `.npy` file that `source` is, of so many bytes if that is known.
    pub(super) fn read(source: &mut impl Read, length: Option<u64>) -> Result<Self, ReadError> {
        let described = Description::read(source)?;
        if described.shape.is_empty() && described.type_name.starts_with(['S', 'U']) {
            let Description { order, shape, .. } = described.clone();
            return Ok(Self { shape, order, values: ArrayValues::Text(read_text(&described, source)?) });
        }
        let header = NpyHeader::of(described)?;
        macro_rules! read {
            ($($variant:ident $ty:ty),*) => {
                match header.number {
                    $(ElementType::$variant => {
                        let read = read_elements::<$ty>(&header, source, length)?;
                        Self { shape: read.shape, order: read.order, values: ArrayValues::$variant(read.elements) }
                    })*
                }
            };
        }
        Ok(read!(
            Bool bool, U8 u8, I8 i8, U16 u16, I16 i16, U32 u32, I32 i32, U64 u64, I64 i64, F32 f32, F64 f64, C32 Complex<f32>, C64 Complex<f64>
        ))
    }

    /// Writes the array as a `.npy` file.
    pub(super) fn write(&self, into: &mut impl Write) -> io::Result<()> {
        let native = if cfg!(target_endian = "big") { '>' } else { '<' };
        let described = |name: &str, into: &mut dyn Write| {
            write_described(into, &format!("{native}{name}"), self.order, &self.shape)
        };
        let name = match self.values.number() {
            Some(number) => number.npy_name(),
            None => {
                let ArrayValues::Text(text) = &self.values else { return Ok(()) };
                // As NumPy writes texts, and PyData's `sparse` wants them; SciPy takes them too.
                described(&format!("U{}", text.chars().count()), into)?;
                return text.chars().try_for_each(|letter| into.write_all(&u32::from(letter).to_ne_bytes()));
            }
        };
        described(&name, into)?;
        each!(&self.values, elements => into.write_all(bytemuck::cast_slice(elements)), Ok(()))
    }
}

/// The text that an array of one text is.
fn read_text(described: &Description, source: &mut impl Read) -> Result<String, ReadError> {
    let Description { type_name, start, descr, .. } = described;
    let (kind, letters) = type_name.split_at_checked(1).unwrap_or_default();
    let Some(letters) = letters.parse().ok().filter(|letters: &usize| *letters <= LONGEST_TEXT) else {
        let reason = format!("its element is {}, a text of which the length is not known", crate::text::shown(descr));
        return Err(ReadError::Byte { byte: *start, problem: Problem::Unsupported(reason) });
    };
    let size = if kind == "U" { 4 } else { 1 };
    let mut text = vec![0; letters * size];
    let found = crate::npy::fill(source, &mut text)?;
    if found < text.len() {
        let reason = format!("it ends after {found} of {} bytes of its text", text.len());
        return Err(ReadError::Byte { byte: start + found as u64, problem: Problem::Truncated(reason) });
    }
    let least = if described.is_big_endian() { size - 1 } else { 0 };
    Ok(text.chunks_exact(size).map(|letter| char::from(letter[least])).filter(|letter| *letter != '\0').collect())
}

/// Texts say which form an array has, in a few letters.
const LONGEST_TEXT: usize = 1 << 10;
