//! The types of elements, in bytes and in text.

use std::io::{self, Write};
use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;

use maniple_element::{Element, ElementType};
use num_complex::Complex;

use crate::error::Problem;
use crate::text::shown;

/// A type of elements that is read and written as text: `bool`, integers and floats, and complex numbers of the latter.
pub trait Number: Element {
    /// Reads the number in a text without blanks around it. A complex number is its real and imaginary part with blanks
    /// between. Floats may have Fortran's exponents, such as `1.5D+03`, and be `inf`, `infinity` or `nan`. Integers may
    /// be written as floats are, such as `2.0` or `1e3`, if they are none other.
    ///
    /// # Errors
    /// [`Problem::Malformed`] if the text is no such number, [`Problem::TooLarge`] if it is one that does not fit; a
    /// float that is too large does not become an infinity.
    fn parse(text: &str) -> Result<Self, Problem>;

    /// Writes the number as [`parse`](Self::parse) reads it, with as many digits as tell it from all others of its
    /// type.
    ///
    /// # Errors
    /// As of `into`.
    fn write(self, into: &mut impl Write) -> io::Result<()>;

    /// The number that a text begins with and the bytes that it takes, where that is found out fast; most numbers are
    /// like that.
    #[doc(hidden)]
    fn quick(_: &[u8]) -> Option<(Self, usize)> {
        None
    }

    /// The number with the opposite sign; the smallest integer is its own opposite.
    #[must_use]
    fn negated(self) -> Self;

    /// The complex conjugate; of a real number, the number.
    #[must_use]
    fn conjugated(self) -> Self;

    /// Whether there is no imaginary part other than zero.
    #[must_use]
    fn is_real(self) -> bool {
        true
    }
}

macro_rules! integers {
    ($($ty:ty),*) => {$(
        impl Number for $ty {
            fn parse(text: &str) -> Result<Self, Problem> {
                text.parse().or_else(|error| match is_overflow(&error) {
                    true => Err(too_large(text, Self::BITS)),
                    false => whole_number(text)?.try_into().map_err(|_| match Self::TYPE.is_unsigned() {
                        true if text.starts_with('-') => below_zero(text, Self::TYPE),
                        _ => too_large(text, Self::BITS),
                    }),
                })
            }

            fn write(self, into: &mut impl Write) -> io::Result<()> {
                into.write_all(itoa::Buffer::new().format(self).as_bytes())
            }

            fn negated(self) -> Self {
                self.wrapping_neg()
            }

            fn conjugated(self) -> Self {
                self
            }
        }
    )*};
}

macro_rules! floats {
    ($($ty:ty => $power:expr),*) => {$(
        impl Number for $ty {
            fn parse(text: &str) -> Result<Self, Problem> {
                let value = Self::from_str(text).or_else(|_| Self::from_str(&text.replace(['d', 'D'], "e")));
                match value {
                    // An infinity is written in letters.
                    Ok(value) if value.is_infinite() && text.contains(|c: char| c.is_ascii_digit()) => {
                        Err(too_large(text, 8 * size_of::<Self>() as u32))
                    }
                    Ok(value) => Ok(value),
                    Err(_) => Err(Problem::Malformed(format!("'{}' is not a number", shown(text)))),
                }
            }

            fn write(self, into: &mut impl Write) -> io::Result<()> {
                into.write_all(zmij::Buffer::new().format(self).as_bytes())
            }

            fn quick(text: &[u8]) -> Option<(Self, usize)> {
                quick(text, Self::MANTISSA_DIGITS, $power).map(|(value, length)| (value as Self, length))
            }

            fn negated(self) -> Self {
                -self
            }

            fn conjugated(self) -> Self {
                self
            }
        }

        impl Number for Complex<$ty> {
            fn parse(text: &str) -> Result<Self, Problem> {
                let mut words = text.split_whitespace();
                match (words.next(), words.next(), words.next()) {
                    (Some(real), Some(imaginary), None) => Ok(Self::new(<$ty>::parse(real)?, <$ty>::parse(imaginary)?)),
                    _ => Err(Problem::Malformed(format!("expected 'REAL IMAGINARY', found '{}'", shown(text)))),
                }
            }

            fn write(self, into: &mut impl Write) -> io::Result<()> {
                self.re.write(into)?;
                into.write_all(b" ")?;
                self.im.write(into)
            }

            fn negated(self) -> Self {
                -self
            }

            fn conjugated(self) -> Self {
                self.conj()
            }

            fn is_real(self) -> bool {
                self.im == 0.0
            }
        }
    )*};
}

integers!(u8, i8, u16, i16, u32, i32, u64, i64);

impl Number for bool {
    fn parse(text: &str) -> Result<Self, Problem> {
        match u8::parse(text) {
            Ok(number @ 0..=1) => Ok(number == 1),
            Ok(_) | Err(Problem::TooLarge(_)) => {
                Err(Problem::TooLarge(format!("the value '{}' is no truth value, 0 or 1", shown(text))))
            }
            Err(problem) => Err(problem),
        }
    }

    fn write(self, into: &mut impl Write) -> io::Result<()> {
        u8::from(self).write(into)
    }

    fn negated(self) -> Self {
        self
    }

    fn conjugated(self) -> Self {
        self
    }
}

// With the largest power of ten that the type holds exactly.
floats!(f32 => 10, f64 => 22);

/// The float that a text begins with, of a type of so many bits whose powers of ten are exact up to `power`: one of few
/// digits, which is the quotient or product of two exact numbers and so the nearest (Clinger, *How to read floating
/// point numbers accurately*, 1990). Both operations give the same in `f64` as in `f32`, whose operands have at most 24
/// bits.
#[inline]
fn quick(text: &[u8], bits: u32, power: u32) -> Option<(f64, usize)> {
    let digit = |at: usize| text.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10);
    let sign = text.first() == Some(&b'-');
    let (mut at, mut mantissa) = (usize::from(sign), 0_u64);
    let mut read = |mut at: usize| {
        let first = at;
        while let Some(digit) = digit(at) {
            mantissa = mantissa.wrapping_mul(10).wrapping_add(digit.into());
            at += 1;
        }
        at - first
    };
    let whole = read(at);
    at += whole;
    let fraction = if text.get(at) == Some(&b'.') { read(at + 1) } else { 0 };
    at += if text.get(at) == Some(&b'.') { 1 + fraction } else { 0 };
    let mut exponent = -(fraction as i32);
    if let Some(b'e' | b'E') = text.get(at) {
        let is_negative = text.get(at + 1) == Some(&b'-');
        at += 1 + usize::from(is_negative || text.get(at + 1) == Some(&b'+'));
        let (mut number, first) = (0, at);
        while let Some(digit) = digit(at).filter(|_| at < first + 3) {
            number = 10 * number + i32::from(digit);
            at += 1;
        }
        exponent += if is_negative { -number } else { number };
        // An exponent has digits.
        at = if at == first { return None } else { at };
    }
    if !(1..=19).contains(&(whole + fraction)) || mantissa >> bits != 0 || exponent.unsigned_abs() > power {
        return None;
    }
    let power = POWERS[exponent.unsigned_abs() as usize];
    let value = if exponent < 0 { mantissa as f64 / power } else { mantissa as f64 * power };
    Some((if sign { -value } else { value }, at))
}

/// The powers of ten that are exact in `f64`.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

fn below_zero(text: &str, number: ElementType) -> Problem {
    Problem::TooLarge(format!("the value '{}' is below zero, and {} has no sign", shown(text), number.numpy_name()))
}

fn too_large(text: &str, bits: u32) -> Problem {
    Problem::TooLarge(format!("the value '{}' is too large for {bits} bits", shown(text)))
}

/// The integer that a text in the form of a float is, to its last digit.
fn whole_number(text: &str) -> Result<i128, Problem> {
    let digits_of = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = text.split_once(['e', 'E', 'd', 'D']).unwrap_or((text, "0"));
    let exponent = exponent.parse::<i32>().map_err(|_| no_integer(text))?;
    let unsigned = mantissa.strip_prefix(['+', '-']).unwrap_or(mantissa);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    if whole.len() + fraction.len() == 0 || !digits_of(whole) || !digits_of(fraction) {
        return Err(no_integer(text));
    }
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_end_matches('0');
    let zeros = (digits.len() - significant.len()) as i64 - fraction.len() as i64 + i64::from(exponent);
    match (significant.is_empty(), u32::try_from(zeros)) {
        (true, _) => Ok(0),
        (false, Err(_)) => Err(no_integer(text)),
        (false, Ok(zeros)) => {
            let magnitude = significant.parse::<i128>().ok();
            let power = 10_i128.checked_pow(zeros);
            let magnitude = magnitude.and_then(|magnitude| magnitude.checked_mul(power?));
            let magnitude = magnitude.ok_or_else(|| too_large(text, i64::BITS))?;
            Ok(if mantissa.starts_with('-') { -magnitude } else { magnitude })
        }
    }
}

pub(crate) fn no_integer(text: &str) -> Problem {
    Problem::Malformed(format!("'{}' is not a whole number", shown(text)))
}

/// Whether a text is an integer, of any size.
pub(crate) fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a text is an integer that does not fit.
pub(crate) fn is_overflow(error: &ParseIntError) -> bool {
    matches!(error.kind(), IntErrorKind::PosOverflow | IntErrorKind::NegOverflow)
}

/// Reads a coordinate, which text files count from 1, and counts it from 0. `extent` is how many there are, if it is
/// known.
pub(crate) fn coordinate(name: &str, word: &str, extent: Option<u64>) -> Result<u64, Problem> {
    coordinate_from(1, name, word, extent)
}

/// Reads a coordinate that is counted from `base`, 0 or 1, and counts it from 0.
pub(crate) fn coordinate_from(base: u64, name: &str, word: &str, extent: Option<u64>) -> Result<u64, Problem> {
    match word.parse::<u64>() {
        Ok(number) if number >= base && extent.is_none_or(|extent| number - base < extent) => Ok(number - base),
        Err(_) if !is_integer(word) => {
            Err(Problem::Malformed(format!("the {name} '{}' is not a whole number", shown(word))))
        }
        _ => {
            let is_below = word.starts_with('-') || word.parse::<u64>().is_ok_and(|number| number < base);
            let word = shown(word);
            let last = match extent {
                None if is_below => {
                    return Err(Problem::Malformed(format!("{name} {word} is below {base}, where coordinates begin")));
                }
                None => return Err(Problem::Malformed(format!("{name} {word} is too large"))),
                // There is no coordinate from 0 on.
                Some(0) if base == 0 => {
                    return Err(Problem::Malformed(format!("{name} {word} is in a dimension of extent 0")));
                }
                Some(extent) => extent + base - 1,
            };
            Err(Problem::Malformed(format!("{name} {word} is not between {base} and {last}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    fn refused<T: Number + fmt::Debug>(text: &str, message: &str) {
        assert_eq!(T::parse(text).unwrap_err().to_string(), message);
    }

    #[test]
    fn floats_are_read_as_fortran_writes_them_too() {
        for text in ["1500", "1.5e3", "1.5D+03", "1.5d3", "+1.5E3"] {
            assert_eq!(f64::parse(text), Ok(1500.0), "{text}");
        }
    }

    #[test]
    fn infinities_and_nans_are_words() {
        assert_eq!(f64::parse("-Infinity"), Ok(f64::NEG_INFINITY));
        assert_eq!(f32::parse("inf"), Ok(f32::INFINITY));
        assert!(f64::parse("NaN").unwrap().is_nan());
        refused::<f64>("1e999", "the value '1e999' is too large for 64 bits");
        refused::<f32>("1e99", "the value '1e99' is too large for 32 bits");
    }

    #[test]
    fn floats_are_written_as_short_as_the_standard_library_writes_them() {
        let mut random = 0x2545_F491_4F6C_DD1D_u64;
        let mut next = || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        let special = [
            0.0,
            -0.0,
            1.0,
            -1.5,
            0.001,
            123_456.789,
            1e15,
            1e16,
            1e17,
            1e22,
            5e-324,
            f64::MAX,
            f64::NAN,
            f64::INFINITY,
            -f64::INFINITY,
        ];
        let any: Vec<f64> = (0..20_000)
            .map(|_| f64::from_bits(next()))
            .chain((0..9999).map(|i| f64::from(i) / 100.0))
            .chain(special)
            .collect();
        for value in any {
            let mut text = Vec::new();
            value.write(&mut text).expect("memory takes all");
            let text = String::from_utf8_lossy(&text);
            // Of two texts that are as short and as near, either is right.
            let read = f64::parse(&text).expect("a number");
            assert!(read.to_bits() == value.to_bits() || read.is_nan() && value.is_nan(), "{text}");
            let digits =
                |text: &str| text.split('e').next().map(|text| text.replace(['.', '-'], "").trim_matches('0').len());
            assert_eq!(digits(&text), digits(&format!("{value:e}")), "{text}");
            let mut text = Vec::new();
            (value as f32).write(&mut text).expect("memory takes all");
            let (text, value) = (String::from_utf8_lossy(&text), value as f32);
            assert!(
                text.parse::<f32>().is_ok_and(|read| read.to_bits() == value.to_bits() || value.is_nan()),
                "{text}"
            );
            assert_eq!(digits(&text), digits(&format!("{value:e}")), "{text}");
        }
    }

    #[test]
    fn what_is_read_fast_is_what_is_read_otherwise() {
        let mut found = 0;
        for (number, digits) in
            (0..30_000_u64).zip([1_u64, 997, 123_457, 900_719_925_474_099, 8_888_888_888_888].into_iter().cycle())
        {
            let mantissa = number.wrapping_mul(digits);
            for text in [
                format!("{mantissa}"),
                format!("-{}.{number}", mantissa % 9973),
                format!("{mantissa}e-{}", number % 30),
                format!("0.{number:05}E+{}", number % 40),
                format!("{number}.e2"),
            ] {
                if let Some((value, length)) = f64::quick(text.as_bytes()) {
                    assert_eq!(
                        (value.to_bits(), length),
                        (f64::parse(&text).expect("a number").to_bits(), text.len()),
                        "{text}"
                    );
                    found += 1;
                }
                if let Some((value, length)) = f32::quick(text.as_bytes()) {
                    assert_eq!(
                        (value.to_bits(), length),
                        (f32::parse(&text).expect("a number").to_bits(), text.len()),
                        "{text}"
                    );
                }
            }
        }
        assert!(found > 50_000, "{found}");
        for text in ["", "-", ".", "e5", "1e", "1e+", "+1", "x", "12345678901234567890"] {
            assert_eq!(f64::quick(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn texts_that_are_no_numbers_are_refused() {
        refused::<f64>("one", "'one' is not a number");
        refused::<f64>("1 2", "'1 2' is not a number");
        refused::<f64>("", "'' is not a number");
        refused::<i64>("1.5", "'1.5' is not a whole number");
        refused::<u8>("inf", "'inf' is not a whole number");
        refused::<i64>("1e", "'1e' is not a whole number");
        refused::<i64>(".", "'.' is not a whole number");
        refused::<i64>("1e99", "the value '1e99' is too large for 64 bits");
        refused::<u8>("-1", "the value '-1' is below zero, and uint8 has no sign");
        refused::<i64>("99999999999999999999", "the value '99999999999999999999' is too large for 64 bits");
        refused::<i32>("-2147483649", "the value '-2147483649' is too large for 32 bits");
        refused::<Complex<f64>>("1", "expected 'REAL IMAGINARY', found '1'");
        refused::<Complex<f64>>("1 2 3", "expected 'REAL IMAGINARY', found '1 2 3'");
    }

    #[test]
    fn integers_that_are_written_as_floats_are_read_to_the_last_digit() {
        for (text, expected) in [
            ("9007199254740993.0", 9_007_199_254_740_993),
            ("-9007199254740993.", -9_007_199_254_740_993),
            ("+9.007199254740993e15", 9_007_199_254_740_993),
            ("90071992547409930d-1", 9_007_199_254_740_993),
            ("9223372036854775807.00", i64::MAX),
            ("-9.223372036854775808E+18", i64::MIN),
            ("0.000", 0),
            ("-0e5", 0),
            (".5e1", 5),
        ] {
            assert_eq!(i64::parse(text), Ok(expected), "{text}");
        }
        assert_eq!(bool::parse("1.0"), Ok(true));
    }

    #[test]
    fn coordinates_are_counted_from_one_in_files() {
        assert_eq!(coordinate("row", "3", Some(3)), Ok(2));
        let told = |word| coordinate("row", word, Some(3)).unwrap_err().to_string();
        assert_eq!(told("0"), "row 0 is not between 1 and 3");
        assert_eq!(told("4"), "row 4 is not between 1 and 3");
        assert_eq!(told("-1"), "row -1 is not between 1 and 3");
        assert_eq!(told("99999999999999999999"), "row 99999999999999999999 is not between 1 and 3");
        assert_eq!(told("one"), "the row 'one' is not a whole number");
    }
}
