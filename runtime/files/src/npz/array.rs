//! Arrays of elements of a type that a file says.

use std::io::{self, Read, Write};

use num_complex::Complex;

use crate::dense::{Dense, Order};
use crate::error::{Problem, ReadError};
use crate::npy::{Description, write_described};
use crate::number::{Number, NumberType};

/// Elements of one type.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Truth values.
    Bool(Vec<bool>),
    /// Integers of 8 bits without sign.
    U8(Vec<u8>),
    /// Integers of 8 bits.
    I8(Vec<i8>),
    /// Integers of 16 bits.
    I16(Vec<i16>),
    /// Integers of 32 bits without sign.
    U32(Vec<u32>),
    /// Integers of 32 bits; those of 16 bits without sign are read as such too.
    I32(Vec<i32>),
    /// Integers of 64 bits; integers without sign are read as such too if they fit.
    I64(Vec<i64>),
    /// Floats of 32 bits.
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
    pub values: Values,
}

/// Does the same with the elements of each type; a text gives `$text`.
macro_rules! each {
    ($values:expr, $elements:ident => $result:expr, $text:expr) => {
        match $values {
            Values::Bool($elements) => $result,
            Values::U8($elements) => $result,
            Values::I8($elements) => $result,
            Values::I16($elements) => $result,
            Values::U32($elements) => $result,
            Values::I32($elements) => $result,
            Values::I64($elements) => $result,
            Values::F32($elements) => $result,
            Values::F64($elements) => $result,
            Values::C32($elements) => $result,
            Values::C64($elements) => $result,
            Values::Text(_) => $text,
        }
    };
}
pub(super) use each;

impl Values {
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
    pub fn number(&self) -> Option<NumberType> {
        fn of<T: Number>(_: &[T]) -> NumberType {
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
    pub(super) fn zero(number: Option<NumberType>) -> Self {
        match number {
            None => Self::Text(String::new()),
            Some(NumberType::Bool) => Self::Bool(vec![false]),
            Some(NumberType::U8) => Self::U8(vec![0]),
            Some(NumberType::I8) => Self::I8(vec![0]),
            Some(NumberType::I16) => Self::I16(vec![0]),
            Some(NumberType::U32) => Self::U32(vec![0]),
            Some(NumberType::I32) => Self::I32(vec![0]),
            Some(NumberType::I64) => Self::I64(vec![0]),
            Some(NumberType::F32) => Self::F32(vec![0.0]),
            Some(NumberType::F64) => Self::F64(vec![0.0]),
            Some(NumberType::C32) => Self::C32(vec![Complex::new(0.0, 0.0)]),
            Some(NumberType::C64) => Self::C64(vec![Complex::new(0.0, 0.0)]),
        }
    }
}

impl Array {
    /// An array with these elements, the last coordinate varying fastest.
    #[must_use]
    pub fn rows(shape: Vec<u64>, values: Values) -> Self {
        Self { shape, order: Order::Rows, values }
    }

    /// One line of integers, as narrow as they allow.
    pub(super) fn integers(integers: &[i64]) -> Self {
        let narrow: Option<Vec<i32>> = integers.iter().map(|&integer| i32::try_from(integer).ok()).collect();
        let values = narrow.map_or_else(|| Values::I64(integers.to_vec()), Values::I32);
        Self::rows(vec![integers.len() as u64], values)
    }

    /// The same array, the last coordinate varying fastest.
    #[must_use]
    pub fn by_rows(self) -> Self {
        let Self { shape, order, values } = self;
        macro_rules! turned {
            ($($variant:ident),*) => {
                match values {
                    $(Values::$variant(elements) => Values::$variant(Dense { shape: shape.clone(), order, elements }.by_rows().elements),)*
                    text @ Values::Text(_) => text,
                }
            };
        }
        let values = turned!(Bool, U8, I8, I16, U32, I32, I64, F32, F64, C32, C64);
        Self { shape, order: Order::Rows, values }
    }

    /// Reads the `.npy` file that `source` is.
    pub(super) fn read(source: &mut impl Read) -> Result<Self, ReadError> {
        let described = Description::read(source)?;
        let Description { shape, order, .. } = described.clone();
        let values = read_values(&described, source)?;
        Ok(Self { shape, order, values })
    }

    /// Writes the array as a `.npy` file.
    pub(super) fn write(&self, into: &mut impl Write) -> io::Result<()> {
        let native = if cfg!(target_endian = "big") { '>' } else { '<' };
        let described = |name: &str, into: &mut dyn Write| {
            write_described(into, &format!("{native}{name}"), self.order, &self.shape)
        };
        let name = match self.values.number() {
            Some(number) => crate::npy::name(number),
            None => {
                let Values::Text(text) = &self.values else { return Ok(()) };
                // As NumPy writes texts, and PyData's `sparse` wants them; SciPy takes them too.
                described(&format!("U{}", text.chars().count()), into)?;
                return text.chars().try_for_each(|letter| into.write_all(&u32::from(letter).to_ne_bytes()));
            }
        };
        described(name, into)?;
        each!(&self.values, elements => into.write_all(bytemuck::cast_slice(elements)), Ok(()))
    }
}

/// Reads as many elements as the header says, in chunks: memory follows what is there.
fn read_values(described: &Description, source: &mut impl Read) -> Result<Values, ReadError> {
    let Description { type_name, shape, start, .. } = described;
    let big_endian = described.is_big_endian();
    let wrong = |byte: u64, problem| ReadError::Byte { byte, problem };
    let unsupported = || {
        let reason = format!(
            "its elements are {}; they must be truth values, integers, floats of 32 or 64 bits, complex numbers of these, or one text",
            crate::text::shown(&described.descr)
        );
        wrong(*start, Problem::Unsupported(reason))
    };
    let (kind, size) = type_name.split_at_checked(1).ok_or_else(unsupported)?;
    let size: usize = size.parse().ok().filter(|size| *size <= 1 << 10).ok_or_else(unsupported)?;
    let size = if kind == "U" { 4 * size } else { size };
    let multiplied = |product: u64, &extent: &u64| product.checked_mul(extent);
    let count = shape.iter().try_fold(1_u64, multiplied).filter(|count| count.checked_mul(size as u64).is_some());
    let too_many =
        || wrong(*start, Problem::TooLarge("it says that it has more elements than can be counted".to_owned()));
    let count = count.ok_or_else(too_many)?;
    // Reads all elements; `$element` makes one of its bytes, the least significant one first.
    macro_rules! read {
        ($variant:ident, $parts:literal, $element:expr) => {{
            let mut elements = Vec::new();
            for_each_chunk(source, count, size, *start, |chunk| {
                if big_endian {
                    chunk.chunks_exact_mut((size / $parts).max(1)).for_each(<[u8]>::reverse);
                }
                #[allow(clippy::redundant_closure_call)] // the macro's argument is written as a function
                elements.extend(chunk.chunks_exact(size).map($element));
            })?;
            Ok(Values::$variant(elements))
        }};
    }
    fn part<const N: usize>(bytes: &[u8], part: usize) -> [u8; N] {
        let mut one = [0; N];
        one.copy_from_slice(&bytes[part * N..][..N]);
        one
    }
    match (kind, size) {
        ("b", 1) => read!(Bool, 1, |bytes: &[u8]| bytes[0] != 0),
        ("u", 1) => read!(U8, 1, |bytes: &[u8]| bytes[0]),
        ("i", 1) => read!(I8, 1, |bytes: &[u8]| bytes[0] as i8),
        ("i", 2) => read!(I16, 1, |bytes: &[u8]| i16::from_le_bytes(part(bytes, 0))),
        ("u", 2) => read!(I32, 1, |bytes: &[u8]| i32::from(u16::from_le_bytes(part(bytes, 0)))),
        ("i", 4) => read!(I32, 1, |bytes: &[u8]| i32::from_le_bytes(part(bytes, 0))),
        ("u", 4) => read!(U32, 1, |bytes: &[u8]| u32::from_le_bytes(part(bytes, 0))),
        ("i", 8) => read!(I64, 1, |bytes: &[u8]| i64::from_le_bytes(part(bytes, 0))),
        ("u", 8) => {
            let read: Result<Values, ReadError> = read!(I64, 1, |bytes: &[u8]| i64::from_le_bytes(part(bytes, 0)));
            match read? {
                Values::I64(elements) if elements.iter().any(|element| *element < 0) => Err(wrong(
                    *start,
                    Problem::TooLarge("it has integers of 2^63 or more, which do not fit int64".to_owned()),
                )),
                values => Ok(values),
            }
        }
        ("f", 4) => read!(F32, 1, |bytes: &[u8]| f32::from_le_bytes(part(bytes, 0))),
        ("f", 8) => read!(F64, 1, |bytes: &[u8]| f64::from_le_bytes(part(bytes, 0))),
        ("c", 8) => read!(C32, 2, |bytes: &[u8]| {
            Complex::new(f32::from_le_bytes(part(bytes, 0)), f32::from_le_bytes(part(bytes, 1)))
        }),
        ("c", 16) => read!(C64, 2, |bytes: &[u8]| {
            Complex::new(f64::from_le_bytes(part(bytes, 0)), f64::from_le_bytes(part(bytes, 1)))
        }),
        ("S" | "U", _) if shape.is_empty() => {
            let mut text = String::new();
            for_each_chunk(source, 1, size, *start, |chunk| {
                if big_endian && kind == "U" {
                    chunk.chunks_exact_mut(4).for_each(<[u8]>::reverse);
                }
                let step = if kind == "U" { 4 } else { 1 };
                text.extend(
                    chunk.chunks_exact(step).map(|letter| char::from(letter[0])).filter(|letter| *letter != '\0'),
                );
            })?;
            Ok(Values::Text(text))
        }
        _ => Err(unsupported()),
    }
}

/// Reads `count` elements of `size` bytes, and gives some of them at a time.
fn for_each_chunk(
    source: &mut impl Read,
    count: u64,
    size: usize,
    start: u64,
    mut take: impl FnMut(&mut [u8]),
) -> Result<(), ReadError> {
    let mut chunk = vec![0; (64 << 10) / size.max(1) * size.max(1)];
    let (total, mut found) = (count * size as u64, 0);
    while found < total {
        let wanted = (total - found).min(chunk.len() as u64) as usize;
        let read = crate::npy::fill(source, &mut chunk[..wanted])?;
        found += read as u64;
        if read < wanted {
            let reason = format!("it ends after {found} of {total} bytes of its elements");
            return Err(ReadError::Byte { byte: start + found, problem: Problem::Truncated(reason) });
        }
        take(&mut chunk[..wanted]);
    }
    Ok(())
}
