//! The header of a `.npy` file, looked at before the crate `npyz` is given it: that multiplies extents whatever comes out, and follows brackets however deep they are.

use std::io::{self, Read};

use py_literal::Value;

use crate::market::shown;

pub(super) const MAGIC: &[u8] = b"\x93NUMPY";

/// NumPy reads no longer ones from files that it does not trust.
const LONGEST: usize = 10_000;

/// Headers of arrays have a handful of brackets.
const MOST_BRACKETS: usize = 100;

/// Reads the header: as much of the file as is needed to know what is in it. Gives what is wrong with it, if `npyz` would not say so.
pub(super) fn read(file: &mut impl Read) -> io::Result<Result<Vec<u8>, String>> {
    let mut header = Vec::new();
    file.by_ref().take(12).read_to_end(&mut header)?;
    let (start, length) = match header[..] {
        _ if !header.starts_with(MAGIC) => return Ok(Ok(header)),
        [_, _, _, _, _, _, 1, _, a, b, ..] => (10, u32::from(u16::from_le_bytes([a, b]))),
        [_, _, _, _, _, _, _, _, a, b, c, d] => (12, u32::from_le_bytes([a, b, c, d])),
        _ => return Ok(Ok(header)),
    };
    let length = length as usize;
    if length > LONGEST {
        return Ok(Err(format!("its header has {length} bytes, and such headers have at most {LONGEST}")));
    }
    let missing = (start + length).saturating_sub(header.len());
    file.by_ref().take(missing as u64).read_to_end(&mut header)?;
    if header.len() < start + length {
        let found = header.len().saturating_sub(start);
        return Ok(Err(format!("it ends after {found} bytes of its header, which has {length}")));
    }
    without_long_suffixes(&mut header[start..start + length]);
    let problem = problem(&header[start..start + length]);
    Ok(problem.map_or(Ok(header), Err))
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

/// What is wrong with the text of a header.
fn problem(text: &[u8]) -> Option<String> {
    let brackets = text.iter().filter(|byte| b"([{".contains(byte)).count();
    if brackets > MOST_BRACKETS {
        return Some(format!("its header has {brackets} brackets, and describes no plain array"));
    }
    // What the parser says would be its grammar.
    let parsed = std::str::from_utf8(text).ok().and_then(|text| text.trim_end().parse().ok());
    let Some(Value::Dict(entries)) = parsed else {
        return Some(format!(
            "its header must be a dictionary such as {{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3)}}, and is '{}'",
            shown(text)
        ));
    };
    let has = |key: &str| entries.iter().any(|(found, _)| found.as_string().is_some_and(|found| found == key));
    if let Some(missing) = ["descr", "fortran_order", "shape"].into_iter().find(|key| !has(key)) {
        return Some(format!("its header has no '{missing}'"));
    }
    let shapes = entries.iter().filter(|(key, _)| key.as_string().is_some_and(|key| key == "shape"));
    let shapes: Vec<_> = shapes.map(|(_, shape)| extents(shape)).collect();
    if shapes.contains(&None) {
        return Some("the 'shape' in its header is no tuple of whole numbers from 0 on".to_owned());
    }
    shapes.into_iter().flatten().find(|extents| !can_be_counted(extents)).map(|extents| {
        let extents: Vec<String> = extents.iter().map(ToString::to_string).collect();
        format!("it says that it has {} elements, which are more than can be counted", extents.join(" x "))
    })
}

/// The extents, if they are numbers; `npyz` says so if not.
fn extents(shape: &Value) -> Option<Vec<u64>> {
    let (Value::Tuple(extents) | Value::List(extents)) = shape else { return None };
    extents.iter().map(|extent| u64::try_from(extent.as_integer()?).ok()).collect()
}

/// Whether all products of these extents fit, those without extents of 0 included.
fn can_be_counted(extents: &[u64]) -> bool {
    let multiplied = |product: i64, &extent: &u64| product.checked_mul(i64::try_from(extent.max(1)).ok()?);
    extents.iter().try_fold(1, multiplied).is_some()
}
