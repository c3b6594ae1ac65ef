//! Lines of coordinates and a value each, read in parts at the same time.
//!
//! Only the usual form is read here: a line for each entry, and nothing wrong. A caller that gets no answer reads the
//! file line by line, and so finds the problem and its line.

use crate::number::{Number, is_integer};
use crate::parallel::{Parallel, each};

/// Entries of a sparse array, in the order in which a file lists them.
#[derive(Clone, Debug, PartialEq)]
pub struct Entries<T> {
    /// For each dimension, the coordinate of each entry, counted from 0.
    pub coordinates: Vec<Vec<i64>>,
    /// The value of each entry.
    pub values: Vec<T>,
}

impl<T> Entries<T> {
    /// None, of a number of dimensions.
    pub(crate) fn new(rank: usize) -> Self {
        Self { coordinates: vec![Vec::new(); rank], values: Vec::new() }
    }

    /// Adds an entry.
    pub(crate) fn push(&mut self, coordinates: impl IntoIterator<Item = u64>, value: T) {
        self.coordinates.iter_mut().zip(coordinates).for_each(|(all, at)| all.push(at as i64));
        self.values.push(value);
    }
}

/// The form of each line.
pub(crate) struct Form {
    /// The number that the first coordinate of a dimension has.
    pub(crate) base: u64,
    /// For each dimension, one more than the last coordinate.
    pub(crate) extents: Vec<u64>,
    /// How many words there are after the coordinates: none stands for one.
    pub(crate) words: usize,
    /// Which signs values may have, if they are written as integers.
    pub(crate) integers: Option<Sign>,
}

/// Which signs integers may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    Any,
    /// None may be below zero.
    None,
}

/// Files are cut into parts of at least so many bytes.
const PART: usize = 1 << 16;

/// A part of a file, and where the coordinates and values of its lines go.
type Part<'a, T> = (&'a [u8], Vec<&'a mut [i64]>, &'a mut [T]);

/// Reads lines of one entry each; none if there is any other line, or anything wrong.
pub(crate) fn read<T: Number>(text: &[u8], form: &Form, parallel: &dyn Parallel) -> Option<Entries<T>> {
    let text = text.trim_ascii_end();
    let mut parts = Vec::new();
    let count = parallel.parts().min(text.len() / PART).max(1);
    let mut rest = text;
    for part in (1..=count).rev() {
        let least = rest.len() / part;
        let end = rest[least..].iter().position(|&byte| byte == b'\n').map_or(rest.len(), |end| least + end + 1);
        let (first, after) = rest.split_at(end);
        parts.push(first);
        rest = after;
    }
    let lines =
        each(parallel, parts.clone(), |part| line_ends(part) + usize::from(!part.is_empty() && !part.ends_with(b"\n")));
    let total = lines.iter().sum();
    let mut entries =
        Entries { coordinates: vec![vec![0; total]; form.extents.len()], values: vec![T::zeroed(); total] };
    let mut places: Vec<Part<'_, T>> = Vec::new();
    let mut values = &mut entries.values[..];
    for (part, lines) in parts.into_iter().zip(&lines) {
        places.push((part, Vec::new(), values.split_off_mut(..*lines)?));
    }
    for all in &mut entries.coordinates {
        let mut all = &mut all[..];
        for (place, lines) in places.iter_mut().zip(&lines) {
            place.1.push(all.split_off_mut(..*lines)?);
        }
    }
    let read = each(parallel, places, |(text, mut coordinates, values)| part(text, form, &mut coordinates, values));
    (read.len() == lines.len() && read.into_iter().all(|read| read.is_some())).then_some(entries)
}

/// Reads as many lines as there are places for values.
fn part<T: Number>(mut text: &[u8], form: &Form, coordinates: &mut [&mut [i64]], values: &mut [T]) -> Option<()> {
    for (number, value) in values.iter_mut().enumerate() {
        for (all, &extent) in coordinates.iter_mut().zip(&form.extents) {
            let (at, rest) = digits(blanks(text))?;
            let at = at.checked_sub(form.base).filter(|at| *at < extent)?;
            all[number] = at as i64;
            text = rest;
        }
        if form.words == 1 && form.integers.is_none() && text.first().is_some_and(|byte| matches!(byte, b' ' | b'\t')) {
            let word = blanks(text);
            if let Some((quick, length)) = T::quick(word)
                && let Some(rest) = line_end(&word[length..])
            {
                (*value, text) = (quick, rest);
                continue;
            }
        }
        let end = text.iter().position(|&byte| byte == b'\n').unwrap_or(text.len());
        let (line, rest) = text.split_at(end);
        let word = line.trim_ascii();
        // Something must be between the last coordinate and the value.
        if word.is_empty() != (form.words == 0) || line.first().is_some_and(|first| !first.is_ascii_whitespace()) {
            return None;
        }
        *value = match std::str::from_utf8(word).ok()? {
            "" => T::ONE,
            word if form.integers.is_some() && !is_integer(word) => return None,
            word if form.integers == Some(Sign::None) && word.starts_with('-') => return None,
            word => T::parse(word).ok()?,
        };
        text = rest.get(1..).unwrap_or(&[]);
    }
    text.is_empty().then_some(())
}

/// The entry of the line that a text begins with, if it is of the usual form, and how many bytes the line is with its
/// end: the coordinates, one for each extent and counted from `base`, are visited, and the value is returned. None of
/// any other line, or if anything is wrong, or the end of the line is not there.
#[inline]
pub(crate) fn entry<T: Number>(
    whole: &[u8],
    base: u64,
    extents: impl IntoIterator<Item = u64>,
    mut visit: impl FnMut(u64),
) -> Option<(T, usize)> {
    let mut text = whole;
    for extent in extents {
        let (at, rest) = digits(blanks(text))?;
        visit(at.checked_sub(base).filter(|at| *at < extent)?);
        text = rest;
    }
    let word = blanks(text);
    let (value, length) = T::quick(word).filter(|_| word.len() < text.len())?;
    let rest = line_end(&word[length..])?;
    let line = &whole[..whole.len() - rest.len()];
    line.ends_with(b"\n").then_some((value, line.len()))
}

/// The text after the end of a line, if there is nothing before the end but blanks.
#[inline]
fn line_end(text: &[u8]) -> Option<&[u8]> {
    let text = blanks(text);
    let text = text.strip_prefix(b"\r").unwrap_or(text);
    if text.is_empty() { Some(text) } else { text.strip_prefix(b"\n") }
}

#[inline]
fn blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    &text[blanks..]
}

/// The number that a text begins with, of at most 18 digits, and what follows it.
#[inline]
fn digits(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0_u64;
    let mut count = 0;
    while let Some(digit) = text.get(count).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
        number = number.wrapping_mul(10).wrapping_add(digit.into());
        count += 1;
    }
    (1..=18).contains(&count).then(|| (number, &text[count..]))
}

/// How many lines end in a text: counted in bytes, many at once.
fn line_ends(text: &[u8]) -> usize {
    let few = |few: &[u8]| few.iter().map(|&byte| u8::from(byte == b'\n')).sum::<u8>();
    text.chunks(u8::MAX.into()).map(|chunk| usize::from(few(chunk))).sum()
}
