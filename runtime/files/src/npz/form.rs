//! Which arrays of a file are which part of a sparse array: the conventions of SciPy and of PyData's `sparse`.

use std::io::{self, Read, Seek, Write};

use super::archive::{Archive, Compression, write_arrays, wrong};
use super::array::{Array, Values};
use super::sparse::{Sparse, Structure};
use crate::error::{Problem, ReadError};
use crate::text::shown;

fn malformed(reason: String) -> ReadError {
    wrong(Problem::Malformed(reason))
}

/// The integers of an array.
fn integers<R: Read + Seek>(archive: &mut Archive<R>, name: &str) -> Result<(Vec<u64>, Vec<i64>), ReadError> {
    let array = archive.expect(name)?.by_rows();
    macro_rules! widened {
        ($($variant:ident),*) => {
            match array.values {
                $(Values::$variant(elements) => Ok((array.shape, elements.into_iter().map(i64::from).collect())),)*
                Values::I64(elements) => Ok((array.shape, elements)),
                _ => Err(malformed(format!("array '{name}' must have integers"))),
            }
        };
    }
    widened!(U8, I8, I16, U32, I32)
}

impl Sparse {
    /// Reads the sparse array that a file is: in SciPy's forms `csr`, `csc`, `coo`, `bsr` and `dia`, or in `sparse`'s `coo` and `gcxs`.
    ///
    /// # Errors
    /// [`ReadError`] if the file holds other arrays, or they do not fit together.
    pub fn read<R: Read + Seek>(archive: &mut Archive<R>) -> Result<Self, ReadError> {
        let names = archive.names();
        let has = |name: &str| names.iter().any(|found| found == name);
        let form = match archive.array("format")?.map(|array| array.values) {
            Some(Values::Text(form)) => form,
            // Older versions of `sparse` do not say.
            None if has("compressed_axes") => "gcxs".to_owned(),
            None if has("coords") => "coo".to_owned(),
            _ => {
                let found = shown(names.join(", "));
                let reason = format!(
                    "there is no sparse array in the file, which would have a text 'format'; there are {found}"
                );
                return Err(wrong(Problem::Unsupported(reason)));
            }
        };
        let (_, shape) = integers(archive, "shape")?;
        let shape: Option<Vec<u64>> = shape.into_iter().map(|extent| u64::try_from(extent).ok()).collect();
        let shape = shape.ok_or_else(|| malformed("array 'shape' must have numbers from 0 on".to_owned()))?;
        let data = archive.expect("data")?.by_rows();
        let structure = match form.as_str() {
            "csr" | "csc" | "gcxs" => {
                let (_, starts) = integers(archive, "indptr")?;
                let (_, columns) = integers(archive, "indices")?;
                let rows = match form.as_str() {
                    "csr" => vec![0],
                    "csc" => vec![1],
                    // Negative ones become numbers that are refused.
                    _ => integers(archive, "compressed_axes")?.1.into_iter().map(|axis| axis as usize).collect(),
                };
                if form != "gcxs" && shape.len() != 2 {
                    return Err(malformed(format!("its shape has {} dimensions, and must have 2", shape.len())));
                }
                Structure::Compressed { rows, starts, columns }
            }
            "coo" if has("coords") => {
                let (extents, coordinates) = integers(archive, "coords")?;
                let [dimensions, count] = extents[..] else {
                    let reason = format!("array 'coords' has {} dimensions, and must have 2", extents.len());
                    return Err(malformed(reason));
                };
                if dimensions != shape.len() as u64 {
                    let reason =
                        format!("array 'coords' has {dimensions} rows, and the shape {} dimensions", shape.len());
                    return Err(malformed(reason));
                }
                let row = |dimension: usize| coordinates[dimension * count as usize..][..count as usize].to_vec();
                Structure::Coordinates((0..shape.len()).map(row).collect())
            }
            "coo" => Structure::Coordinates(vec![integers(archive, "row")?.1, integers(archive, "col")?.1]),
            "bsr" => {
                let [_, rows, columns] = data.shape[..] else {
                    return Err(malformed(format!(
                        "array 'data' has {} dimensions, and must have 3",
                        data.shape.len()
                    )));
                };
                let (_, starts) = integers(archive, "indptr")?;
                let (_, indices) = integers(archive, "indices")?;
                Structure::Blocks { size: [rows, columns], starts, columns: indices }
            }
            "dia" => {
                let [_, length] = data.shape[..] else {
                    return Err(malformed(format!(
                        "array 'data' has {} dimensions, and must have 2",
                        data.shape.len()
                    )));
                };
                Structure::Diagonals { offsets: integers(archive, "offsets")?.1, length }
            }
            other => {
                let reason = format!("its form is '{}'; csr, csc, coo, bsr, dia and gcxs can be read", shown(other));
                return Err(wrong(Problem::Unsupported(reason)));
            }
        };
        let fill = archive.array("fill_value")?.map(|array| array.values);
        Self::new(shape, structure, data.values, fill)
    }

    /// Writes the array in the form that its structure has: as SciPy reads it, or as `sparse` does if it has other than two dimensions, or a fill value other than zero.
    ///
    /// # Errors
    /// As of `into`.
    pub fn write(&self, into: impl Write + Seek, compression: Compression) -> io::Result<()> {
        let count = self.values().len() as u64;
        let text = |text: &str| Array::rows(Vec::new(), Values::Text(text.to_owned()));
        let shape: Vec<i64> = self.shape().iter().map(|&extent| extent as i64).collect();
        let shape = Array::rows(vec![shape.len() as u64], Values::I64(shape));
        let data = |shape: Vec<u64>| Array::rows(shape, self.values().clone());
        let is_plain = self.shape().len() == 2 && self.fill().is_zero(0);
        let mut arrays = match self.structure() {
            Structure::Coordinates(all) if is_plain => vec![
                ("row", Array::integers(&all[0])),
                ("col", Array::integers(&all[1])),
                ("format", text("coo")),
                ("data", data(vec![count])),
            ],
            Structure::Coordinates(all) => {
                let coordinates = Array { shape: vec![all.len() as u64, count], ..Array::integers(&all.concat()) };
                vec![("coords", coordinates), ("format", text("coo")), ("data", data(vec![count]))]
            }
            Structure::Compressed { rows, starts, columns } => {
                let mut arrays = vec![
                    ("indices", Array::integers(columns)),
                    ("indptr", Array::integers(starts)),
                    ("data", data(vec![count])),
                ];
                arrays.push(match rows[..] {
                    [0] if is_plain => ("format", text("csr")),
                    [1] if is_plain => ("format", text("csc")),
                    _ => ("format", text("gcxs")),
                });
                if !(is_plain && rows.len() == 1) {
                    let axes: Vec<i64> = rows.iter().map(|&axis| axis as i64).collect();
                    arrays.push(("compressed_axes", Array::integers(&axes)));
                }
                arrays
            }
            Structure::Blocks { size, starts, columns } => vec![
                ("indices", Array::integers(columns)),
                ("indptr", Array::integers(starts)),
                ("format", text("bsr")),
                ("data", data(vec![columns.len() as u64, size[0], size[1]])),
            ],
            Structure::Diagonals { offsets, length } => vec![
                ("offsets", Array::integers(offsets)),
                ("format", text("dia")),
                ("data", data(vec![offsets.len() as u64, *length])),
            ],
        };
        arrays.push(("shape", shape));
        if !is_plain {
            arrays.push(("fill_value", Array::rows(Vec::new(), self.fill().clone())));
        }
        write_arrays(into, compression, arrays.iter().map(|(name, array)| (*name, array)))
    }
}
