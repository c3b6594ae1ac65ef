//! What is in a file of a sparse tensor, and which formats suit it.

use clap::Args;
use maniple_tensor::element::Element;
use maniple_tensor::format::Format;
use maniple_tensor::storage::{Duplicates, EntryList, SparseTensor, StorageError, pack};
use maniple_tensor::with_element;
use rustc_hash::FxHashMap;

use super::files::{Contents, SparseFile};
use crate::error::{Error, Result};
use crate::input::InputError;
use crate::report::Table;

/// What `maniple tensor info` teaches.
pub const ABOUT: &str = "\
Tell what is in a file of a sparse tensor: its extents, how many entries there are and where, and which formats suit it.

For each dimension it says how many entries the coordinates have, at most and on average; of a matrix, these are its rows and columns. Of a matrix it also \
counts diagonals and tells whether it is symmetric. The first of the suggested formats is what to try first with --format.";

/// What `maniple tensor info` gives as examples.
pub const EXAMPLES: &str = "\
Examples:
  maniple tensor info web.mtx        a matrix in Matrix Market's form
  maniple tensor info uber.tns       a tensor of FROSTT
  maniple tensor info scipy.npz      of scipy.sparse or pydata/sparse
  maniple tensor info dense.npy      what of a dense array is not zero
  maniple tensor 'y(i) = A(i,j) * x(j)' --input A=web.mtx --format A=csr";

/// Which file is looked at.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The file: .mtx (Matrix Market), .tns (FROSTT), .npz (SciPy, pydata/sparse) or .npy (NumPy)
    #[arg(value_name = "FILE")]
    pub file: SparseFile,
}

/// Says what is in a file.
///
/// # Errors
/// [`Error::Input`].
pub fn run(options: &Options) -> Result<String> {
    let file = options.file.path().display();
    with_element!(options.file.element()?, T => {
        let contents = options.file.read::<T>()?;
        let table = told(contents).map_err(|error| {
            Error::from(InputError::Unsuitable { name: file.to_string(), reason: error.to_string() })
        })?;
        Ok(format!("{file}\n{table}"))
    })
}

/// The names of dimensions.
const DIMENSIONS: [&str; 8] = [
    "dimension 0",
    "dimension 1",
    "dimension 2",
    "dimension 3",
    "dimension 4",
    "dimension 5",
    "dimension 6",
    "dimension 7",
];

/// What is known of the entries along a dimension.
struct Along {
    /// How many coordinates have some.
    used: usize,
    /// The most that one has.
    most: usize,
    /// How many they have on average, those without any too.
    mean: f64,
}

fn along<T: Copy>(entries: &EntryList<T>, mode: usize, extent: i64) -> Along {
    let mut counts: FxHashMap<i64, usize> = FxHashMap::default();
    entries.along(mode).iter().for_each(|&at| *counts.entry(at).or_default() += 1);
    let most = counts.values().copied().max().unwrap_or(0);
    Along { used: counts.len(), most, mean: entries.len() as f64 / (extent as f64).max(1.0) }
}

fn told<T: Element>(contents: Contents<T>) -> Result<Table, StorageError> {
    let Contents { dimensions, fill, entries } = contents;
    let packed = pack(&Format::coordinates(dimensions.len()), &dimensions, fill, entries, Duplicates::Sum)?;
    let tensor = packed.tensor;
    let entries = tensor.entries();
    let all = dimensions.iter().map(|&extent| extent as f64).product::<f64>();
    let density = if all > 0.0 { entries.len() as f64 / all } else { 0.0 };
    let extents: Vec<String> = dimensions.iter().map(i64::to_string).collect();
    let fills = tensor.values().iter().filter(|value| **value == fill).count();
    let notes = [
        (fills > 0).then(|| format!("{fills} of them {fill:?}, as what is not stored")),
        (packed.duplicates > 0).then(|| format!("{} more at the same places were added", packed.duplicates)),
    ];
    let notes: String = notes.into_iter().flatten().map(|note| format!("; {note}")).collect();
    let mut table = Table::new()
        .line("order", dimensions.len())
        .line("extents", extents.join(" x "))
        .line("entries", format_args!("{} of type {}{notes}", entries.len(), T::TYPE))
        .line("density", percentage(density));
    let alongs: Vec<Along> =
        dimensions.iter().enumerate().map(|(mode, &extent)| along(&entries, mode, extent)).collect();
    let names = if dimensions.len() == 2 { &["rows", "columns"] } else { &DIMENSIONS[..] };
    for ((name, along), &extent) in names.iter().zip(&alongs).zip(&dimensions) {
        let Along { used, most, mean } = along;
        let empty = extent - *used as i64;
        table = table
            .line(name, format_args!("{most} entries at most, {mean:.2} on average; {empty} of {extent} have none"));
    }
    let mut formats = Vec::new();
    if density > 0.3 {
        formats.push((format!("{}", Format::dense(dimensions.len())), "most elements are there"));
    }
    if let ([rows, columns], [row, _]) = (&dimensions[..], &alongs[..]) {
        let (diagonals, ends) = diagonals(&tensor)?;
        let between = ends.map_or_else(String::new, |(first, last)| format!(", from {first} to {last}"));
        table = table
            .line("diagonals", format_args!("{diagonals} of {}{between}", (rows + columns - 1).max(0)))
            .line("symmetric", symmetry(&tensor)?);
        formats.extend(suggested(row, *rows, diagonals as f64, entries.len() as f64));
    } else {
        formats.push((
            if dimensions.len() == 1 { "{C}".to_owned() } else { format!("csf:{}", dimensions.len()) },
            "what is not there takes no room",
        ));
        formats.push(("coo".to_owned(), "to build and to sort"));
    }
    let formats: Vec<String> = formats.into_iter().map(|(format, reason)| format!("{format} ({reason})")).collect();
    Ok(table.line("formats", formats.join(", ")))
}

/// Formats for a matrix, the best first.
fn suggested(row: &Along, rows: i64, diagonals: f64, entries: f64) -> Vec<(String, &'static str)> {
    let cases = [
        (diagonals * rows as f64 <= 1.5 * entries, "dia", "few full diagonals"),
        (row.mean >= 1.0 && row.most as f64 <= 1.25 * row.mean, "ell", "rows are equally long"),
        (2 * row.used as i64 <= rows, "dcsr", "most rows are empty"),
        (2 * row.used as i64 > rows, "csr", "for products by rows"),
        (true, "coo", "to build and to sort"),
    ];
    cases
        .into_iter()
        .filter(|(fits, ..)| *fits && entries > 0.0)
        .map(|(_, name, reason)| (name.to_owned(), reason))
        .collect()
}

/// How many diagonals of a matrix have entries, and the first and last one.
fn diagonals<T: Element>(tensor: &SparseTensor<T>) -> Result<(usize, Option<(i64, i64)>), StorageError> {
    let Ok(format) = "(i,j) -> (j-i: C, i: C)".parse() else { return Ok((0, None)) };
    let converted = tensor.convert(&format)?;
    let found = converted.levels()[0].component("crd");
    Ok((found.len(), found.len().checked_sub(1).map(|last| (found.get(0), found.get(last)))))
}

/// Whether a matrix equals its transpose.
fn symmetry<T: Element>(tensor: &SparseTensor<T>) -> Result<&'static str, StorageError> {
    let [rows, columns] = ["dcsr", "dcsc"].map(str::parse::<Format>);
    let (Ok(rows), Ok(columns)) = (rows, columns) else { return Ok("no") };
    let (rows, columns) = (tensor.convert(&rows)?, tensor.convert(&columns)?);
    Ok(match () {
        () if rows.levels() != columns.levels() => "no",
        () if rows.values() != columns.values() => "where entries are, not what they are",
        () => "yes",
    })
}

fn percentage(part: f64) -> String {
    match 100.0 * part {
        percent if percent >= 0.1 || percent == 0.0 => format!("{percent:.1}%"),
        percent => format!("{percent:.1e}%"),
    }
}
