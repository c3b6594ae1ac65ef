//! Which arrays of a file are which part of a sparse array: the conventions of SciPy and of PyData's `sparse`.

use std::io::{self, Read, Seek, Write};

use super::archive::{Archive, Compression, write_arrays, wrong};
use super::array::{Array, ArrayValues};
use super::sparse::{Form, Sparse, Structure};
use maniple_element::ElementType;

use crate::error::{Problem, ReadError};
use crate::text::shown;

pub(crate) fn malformed(reason: String) -> ReadError {
    wrong(Problem::Malformed(reason))
}

/// The integers of an array.
pub(crate) fn integers<R: Read + Seek>(
    archive: &mut Archive<R>,
    name: &str,
) -> Result<(Vec<u64>, Vec<i64>), ReadError> {
    let array = archive.expect(name)?.by_rows();
    macro_rules! widened {
        ($($variant:ident),*) => {
            match array.values {
                $(ArrayValues::$variant(elements) => Ok((array.shape, elements.into_iter().map(i64::from).collect())),)*
                ArrayValues::I64(elements) => Ok((array.shape, elements)),
                _ => Err(malformed(format!("array '{name}' must have integers"))),
            }
        };
    }
    widened!(U8, I8, I16, U32, I32)
}

/// A sparse array of an archive, before its arrays are read.
pub(crate) struct ArchiveLayout {
    pub(crate) shape: Vec<u64>,
    pub(crate) form: Form,
    /// The arrays of coordinates, columns or offsets; `coords` has those of all dimensions.
    pub(crate) indices: &'static [&'static str],
}

impl ArchiveLayout {
    pub(crate) fn read<R: Read + Seek>(archive: &mut Archive<R>) -> Result<Self, ReadError> {
        let names = archive.names();
        let has = |name: &str| names.iter().any(|found| found == name);
        let form = match archive.array("format")?.map(|array| array.values) {
            Some(ArrayValues::Text(form)) => form,
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
        let mut extents = |name: &str, expected: usize| match archive.header(name)?.shape {
            shape if shape.len() == expected => Ok(shape),
            shape => Err(malformed(format!("array '{name}' has {} dimensions, and must have {expected}", shape.len()))),
        };
        let compressed: &[&str] = &["indices"];
        let (form, indices): (_, &[&str]) = match form.as_str() {
            "csr" | "csc" if shape.len() != 2 => {
                return Err(malformed(format!("its shape has {} dimensions, and must have 2", shape.len())));
            }
            "csr" => (Form::Compressed { rows: vec![0] }, compressed),
            "csc" => (Form::Compressed { rows: vec![1] }, compressed),
            "gcxs" => {
                let (_, axes) = integers(archive, "compressed_axes")?;
                if let Some(axis) = axes.iter().find(|axis| **axis < 0) {
                    return Err(malformed(format!(
                        "array 'compressed_axes' has {axis}, and must have numbers from 0 on"
                    )));
                }
                (Form::Compressed { rows: axes.into_iter().map(|axis| axis as usize).collect() }, compressed)
            }
            "coo" if has("coords") => {
                let dimensions = extents("coords", 2)?[0];
                if dimensions != shape.len() as u64 {
                    let reason =
                        format!("array 'coords' has {dimensions} rows, and the shape {} dimensions", shape.len());
                    return Err(malformed(reason));
                }
                (Form::Coordinates, &["coords"])
            }
            "coo" => (Form::Coordinates, &["row", "col"]),
            "bsr" => match extents("data", 3)?[..] {
                [_, rows, columns] => (Form::Blocks { size: [rows, columns] }, compressed),
                _ => (Form::Blocks { size: [0; 2] }, compressed),
            },
            "dia" => (Form::Diagonals { length: extents("data", 2)?[1] }, &["offsets"]),
            other => {
                let reason = format!("its form is '{}'; csr, csc, coo, bsr, dia and gcxs can be read", shown(other));
                return Err(wrong(Problem::Unsupported(reason)));
            }
        };
        Ok(Self { shape, form, indices })
    }
}

impl Sparse {
    /// Reads the sparse array that a file is: in SciPy's forms `csr`, `csc`, `coo`, `bsr` and `dia`, or in `sparse`'s
    /// `coo` and `gcxs`.
    ///
    /// # Errors
    /// [`ReadError`] if the file holds other arrays, or they do not fit together.
    pub fn read<R: Read + Seek>(archive: &mut Archive<R>) -> Result<Self, ReadError> {
        let ArchiveLayout { shape, form, indices } = ArchiveLayout::read(archive)?;
        let data = archive.expect("data")?.by_rows();
        let mut numbers = |name: &str| integers(archive, name);
        let structure = match form {
            Form::Coordinates if indices.len() == 1 => {
                let (extents, coordinates) = numbers(indices[0])?;
                let count = extents[1] as usize;
                let row = |dimension: usize| coordinates[dimension * count..][..count].to_vec();
                Structure::Coordinates((0..shape.len()).map(row).collect())
            }
            Form::Coordinates => {
                let all = indices.iter().map(|name| Ok(numbers(name)?.1));
                Structure::Coordinates(all.collect::<Result<_, ReadError>>()?)
            }
            Form::Compressed { rows } => {
                Structure::Compressed { rows, starts: numbers("indptr")?.1, columns: numbers(indices[0])?.1 }
            }
            Form::Blocks { size } => {
                Structure::Blocks { size, starts: numbers("indptr")?.1, columns: numbers(indices[0])?.1 }
            }
            Form::Diagonals { length } => Structure::Diagonals { offsets: numbers(indices[0])?.1, length },
        };
        let fill = archive.array("fill_value")?.map(|array| array.values);
        Self::new(shape, structure, data.values, fill)
    }

    /// The type of the elements of the sparse array that a file is, of which no more is read than the headers of
    /// arrays, and the small ones.
    ///
    /// # Errors
    /// [`ReadError`] if the file holds other arrays.
    pub fn number<R: Read + Seek>(archive: &mut Archive<R>) -> Result<ElementType, ReadError> {
        ArchiveLayout::read(archive)?;
        archive.header("data").map(|header| header.number)
    }

    /// Writes the array in the form that its structure has: as SciPy reads it, or as `sparse` does if it has other than
    /// two dimensions, or a fill value other than zero.
    ///
    /// # Errors
    /// As of `into`.
    pub fn write(&self, into: impl Write + Seek, compression: Compression) -> io::Result<()> {
        let count = self.values().len() as u64;
        let text = |text: &str| Array::rows(Vec::new(), ArrayValues::Text(text.to_owned()));
        let shape: Vec<i64> = self.shape().iter().map(|&extent| extent as i64).collect();
        let shape = Array::rows(vec![shape.len() as u64], ArrayValues::I64(shape));
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
