//! The contents of a file of a sparse tensor, and the formats that suit it.

use clap::Args;
use maniple_tensor::files::{Contents, InputError, TensorFile, in_full};
use maniple_tensor::format::Format;
use maniple_tensor::storage::{Duplicates, DynamicTensor, ModeStatistics, StorageError};

use super::svg_file::SvgFile;
use crate::error::{Error, Result};
use crate::report::ReportTable;

/// The long description of `maniple tensor info`, which its `--help` shows.
pub const ABOUT: &str = "\
Tell what is in a file of a sparse tensor: its extents, how many entries there are and where, and which formats suit it.

For each dimension it says how many entries the coordinates have, at most and on average; of a matrix, these are its rows and columns. Of a matrix it also \
counts diagonals and tells whether it is symmetric. Of a .tcs file it says how the tensor is stored. The first of the suggested formats is what to try first with --format.";

/// The examples that `maniple tensor info --help` ends with.
pub const EXAMPLES: &str = "\
Examples:
  maniple tensor info web.mtx        a matrix in Matrix Market's form
  maniple tensor info uber.tns       a tensor of FROSTT
  maniple tensor info web.tcs        a file with levels, and how they are stored
  maniple tensor info scipy.npz      of scipy.sparse or pydata/sparse
  maniple tensor info dense.npy      what of a dense array is not zero
  maniple tensor info web.mtx --draw web.svg --format csr     with a picture
  maniple tensor 'y(i) = A(i,j) * x(j)' --input A=web.mtx --format A=csr";

/// Which file is looked at.
#[derive(Args, Clone, Debug)]
pub struct TensorInfoOptions {
    /// The file: .mtx (Matrix Market), .tns (FROSTT), .tcs (levels in binary), .npz (SciPy, pydata/sparse) or .npy
    /// (NumPy)
    #[arg(value_name = "FILE", value_parser = TensorFile::input)]
    pub file: TensorFile,

    /// Draw where the entries are, and of few entries the tree of levels too, as SVG
    #[arg(long, value_name = "FILE")]
    pub draw: Option<SvgFile>,

    /// How the tensor is stored in the picture, as csr or {D,C}(1,0) [default: coo]
    #[arg(long, value_name = "FORMAT", requires = "draw")]
    pub format: Option<Format>,
}

/// Says what is in a file.
///
/// # Errors
/// [`Error::Input`].
pub fn run(options: &TensorInfoOptions) -> Result<String> {
    if let Some(picture) = &options.draw {
        picture.check()?;
    }
    let file = options.file.path().display();
    let from = options.file.clone().spooled()?.open(false)?;
    if from.is_without_entries() {
        if options.draw.is_some() {
            return Err(Error::Usage(format!("--draw: {file} has no entries, which would tell the extents")));
        }
        let note = "0: a .tns file tells the number of dimensions and the extents by its entries alone";
        return Ok(format!("{file}\n{}", ReportTable::new().line("entries", note)));
    }
    let (element, stored) = (from.element(), from.described());
    let contents = from.read(element)?;
    let unsuitable =
        |error: StorageError| Error::from(InputError::Unsuitable { name: file.to_string(), reason: error.to_string() });
    let (table, tensor) = told(contents).map_err(unsuitable)?;
    let table = table.maybe("stored", stored);
    if let Some(picture) = &options.draw {
        let format = options.format.clone().unwrap_or_else(|| tensor.format().clone());
        let stored = tensor.convert(&format).map_err(unsuitable)?;
        let name = options.file.path().file_stem().unwrap_or_default().to_string_lossy();
        picture.write(&stored.draw(&name, None))?;
    }
    Ok(format!("{file}\n{table}"))
}

fn told(contents: Contents) -> Result<(ReportTable, DynamicTensor), StorageError> {
    let Contents { dimensions, fill, entries } = contents;
    let format = Format::coordinates(dimensions.len());
    let (tensor, added) = entries.pack(&format, &dimensions, fill, Duplicates::Sum)?;
    let statistics = tensor.statistics().clone();
    let entries = statistics.entries;
    let extents: Vec<String> = dimensions.iter().map(i64::to_string).collect();
    let fills = tensor.count_fill();
    let notes = [
        (fills > 0).then(|| format!("{fills} of them {}, as what is not stored", in_full(fill))),
        (added > 0).then(|| format!("{added} more at the same places were added")),
    ];
    let notes: String = notes.into_iter().flatten().map(|note| format!("; {note}")).collect();
    let mut table = ReportTable::new()
        .line("order", dimensions.len())
        .line("extents", extents.join(" x "))
        .line("entries", format_args!("{entries} of type {}{notes}", tensor.element()))
        .line("density", percentage(statistics.density()));
    let alongs = &statistics.modes;
    for (number, along) in alongs.iter().enumerate() {
        let name = match (dimensions.len(), number) {
            (2, 0) => "rows".to_owned(),
            (2, _) => "columns".to_owned(),
            _ => format!("dimension {number}"),
        };
        let ModeStatistics { extent, used, most } = *along;
        let (mean, empty) = (along.mean(entries), extent - used as i64);
        table = table
            .line(name, format_args!("{most} entries at most, {mean:.2} on average; {empty} of {extent} have none"));
    }
    if let [rows, columns] = &dimensions[..] {
        let found = statistics.diagonals.filter(|found| found.used > 0);
        let between = found.map_or_else(String::new, |found| format!(", from {} to {}", found.first, found.last));
        let diagonals = found.map_or(0, |found| found.used);
        table = table
            .line("diagonals", format_args!("{diagonals} of {}{between}", (rows + columns - 1).max(0)))
            .line("symmetric", symmetry(&tensor)?);
        if entries > 0 {
            let blocks = statistics.blocks.iter().filter(|(side, _)| side <= rows.min(columns));
            let blocks: Vec<String> =
                blocks.map(|(side, full)| format!("{} of {side} x {side}", percentage(*full))).collect();
            if !blocks.is_empty() {
                table = table.line("blocks", format_args!("those with entries are full to {}", blocks.join(", ")));
            }
        }
    }
    let formats = statistics.formats().into_iter().map(|(format, reason)| format!("{format} ({reason})"));
    let formats: Vec<String> = formats.collect();
    Ok((table.line("formats", formats.join(", ")), tensor))
}

/// Whether a matrix equals its transpose.
fn symmetry(tensor: &DynamicTensor) -> Result<&'static str, StorageError> {
    let [rows, columns] = ["dcsr", "dcsc"].map(str::parse::<Format>);
    let (Ok(rows), Ok(columns)) = (rows, columns) else { return Ok("no") };
    let (rows, columns) = (tensor.convert(&rows)?, tensor.convert(&columns)?);
    Ok(match () {
        () if rows.levels() != columns.levels() => "no",
        () if !rows.has_values_of(&columns) => "where entries are, not what they are",
        () => "yes",
    })
}

fn percentage(part: f64) -> String {
    match 100.0 * part {
        percent if percent >= 0.1 || percent == 0.0 => format!("{percent:.1}%"),
        percent => format!("{percent:.1e}%"),
    }
}
