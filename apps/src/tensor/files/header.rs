//! The header of a `.npy` file, looked at before the crate `npyz` is given it: that multiplies extents whatever comes out, and follows brackets however deep they are.

use std::io::{self, Read};

use py_literal::Value;

const MAGIC: &[u8] = b"\x93NUMPY";

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
    let problem = header.get(start..).and_then(problem);
    Ok(problem.map_or(Ok(header), Err))
}

/// What is wrong with the text of a header.
fn problem(text: &[u8]) -> Option<String> {
    let brackets = text.iter().filter(|byte| b"([{".contains(byte)).count();
    if brackets > MOST_BRACKETS {
        return Some(format!("its header has {brackets} brackets, and describes no plain array"));
    }
    // If it is no expression of Python, npyz says where.
    let Ok(Value::Dict(entries)) = std::str::from_utf8(text).ok()?.trim_end().parse() else { return None };
    let shapes = entries.iter().filter(|(key, _)| key.as_string().is_some_and(|key| key == "shape"));
    shapes.filter_map(|(_, shape)| extents(shape)).find(|extents| !can_be_counted(extents)).map(|extents| {
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
