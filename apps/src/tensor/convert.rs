//! Sparse tensors from one file to another.

use clap::Args;
use maniple_files::tcs::Width;
use maniple_tensor::element::{ElementType, Scalar};
use maniple_tensor::files::{Contents, FileError, InputError, TensorFile};
use maniple_tensor::format::Format;
use maniple_tensor::notation::cast;
use maniple_tensor::storage::{Duplicates, DynamicEntries};

use crate::error::{Error, Result};
use crate::options::whole;
use crate::report::counted;

/// The long description of `maniple tensor convert`, which its `--help` shows.
pub const ABOUT: &str = "\
Write a sparse tensor to another file, in the form that the file's name tells.

Entries with equal coordinates are added up. Text is sorted by coordinates. A .npz file is SciPy's array of the same kind if the format is csr, csc or bcsr:RxC \
(with blocks that divide the extents), and has coordinates otherwise; of tensors that are no matrices, and of fill values other than zero, it is one of pydata/sparse. \
A format with a position for every element, such as bcsr:2x2, drops stored zeros.

A .tcs file has the levels of the format, dense and compressed ones. From text it is written in little memory, whatever the size of the file: the lines are read twice, and must be sorted in the order \
of the levels, by rows and then columns for csr. With --sort they are sorted first, by way of a temporary file beside OUT. A symmetric matrix needs --sort, since half of its entries follow from others.

OUT is written whole or not at all: what was there stays until the new file is complete.";

/// The examples that `maniple tensor convert --help` ends with.
pub const EXAMPLES: &str = "\
Examples:
  maniple tensor convert web.mtx web.npz --format csr   for scipy.sparse
  maniple tensor convert web.npz web.mtx                as text
  maniple tensor convert web.mtx a.npz --format bcsr:2x2
  maniple tensor convert uber.tns uber.npz              for pydata/sparse
  maniple tensor convert web.mtx web.tcs --format csr --sort
  maniple tensor convert small.npy small.mtx            what is not zero
  maniple tensor convert small.mtx small.npy            all elements
  zcat web.mtx.gz | maniple tensor convert /dev/stdin web.npz
  maniple tensor convert web.npz mtx:/dev/stdout | head";

/// The file to convert, and the one to make of it.
#[derive(Args, Clone, Debug)]
pub struct ConvertOptions {
    /// The file to read: .mtx (Matrix Market), .tns (FROSTT), .tcs (levels in binary), .npz (SciPy, pydata/sparse) or
    /// .npy (NumPy); or any of them from a pipe, such as /dev/stdin
    #[arg(value_name = "IN", value_parser = TensorFile::input)]
    pub from: TensorFile,

    /// The file to write, of one of the same kinds; of a pipe or device the kind is said before it, as in
    /// mtx:/dev/stdout
    #[arg(value_name = "OUT")]
    pub to: TensorFile,

    /// The extents of the tensor in a .tns file, which does not tell them, such as 100,200 [default: the largest
    /// coordinates]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = extent)]
    pub extents: Vec<u64>,

    /// How the tensor is stored: csr, csc, coo, dcsr, bcsr:2x2, csf:3 and other names, or levels such as `{D,C}(1,0)`
    /// [default: csr to .npz or .tcs if it is a matrix; compressed levels to .tcs otherwise, or as they are from .tcs;
    /// else coo]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,

    /// The bytes of each position and coordinate in a .tcs file: 8, or 4 if all are below 2^31 [default: 8]
    #[arg(long, value_name = "4|8", value_parser = width)]
    pub width: Option<Width>,

    /// Sort the lines of text that becomes a .tcs file
    #[arg(long)]
    pub sort: bool,
}

fn extent(text: &str) -> std::result::Result<u64, String> {
    whole(0, i64::MAX as u64 / 4, text)
}

fn width(text: &str) -> std::result::Result<Width, String> {
    match text {
        "4" => Ok(Width::Four),
        "8" => Ok(Width::Eight),
        _ => Err("it must be 4 or 8".to_owned()),
    }
}

/// Converts a file, and says what was written.
///
/// # Errors
/// [`Error::Input`], [`Error::Write`], [`Error::Usage`] if the format or the file does not fit the tensor.
pub fn run(options: &ConvertOptions) -> Result<String> {
    let unsuitable = |reason: String| {
        Error::from(InputError::Unsuitable { name: options.from.path().display().to_string(), reason })
    };
    options.to.check_writable()?;
    let to = match options.width {
        Some(_) if !options.to.has_levels() => {
            let name = options.to.path().display();
            return Err(Error::Usage(format!("--width is for .tcs files, and {name} is none")));
        }
        Some(width) => options.to.clone().with_width(width),
        None => options.to.clone(),
    };
    let from = options.from.clone().spooled()?;
    let extents = (!options.extents.is_empty()).then_some(&options.extents[..]);
    if extents.is_some() && !from.is_coordinates() {
        return Err(Error::Usage(format!("--extents: {} tells its extents itself", from.path().display())));
    }
    if options.sort && !(from.is_text() && to.has_levels()) {
        return Err(Error::Usage(
            "--sort sorts lines of text (.mtx, .tns) that become a .tcs file; others need no sorting".to_owned(),
        ));
    }
    let format = options.format.as_ref();
    let fitting = |error: FileError| match error {
        FileError::Unfit(reason) if reason.starts_with("format ") => Error::Usage(format!("--{reason}")),
        FileError::Unsorted { file, line, reason, is_half } => {
            let advice = if is_half { "; say --sort, which sorts both halves" } else { ", or say --sort" };
            InputError::Line { file, line, reason: reason + advice }.into()
        }
        other => other.into(),
    };
    let is_empty = from.is_without_entries()?;
    if !is_empty && let Some(done) = from.convert_text(&to, format, extents, options.sort).map_err(fitting)? {
        return Ok(told(&to, &done.extents, &done.format, done.entries, done.added));
    }
    let opened = from.open(false)?;
    let (element, own) = (opened.element(), opened.format().filter(|_| to.has_levels()));
    let Contents { dimensions, fill, entries } = match is_empty {
        true => without_entries(element, extents).map_err(unsuitable)?,
        false => opened.read(element)?,
    };
    let dimensions = extended(dimensions, extents).map_err(unsuitable)?;
    let wanted = format.or(own.as_ref());
    let format = to.checked_format(from.path(), dimensions.len(), wanted).map_err(fitting)?;
    let read = entries.len();
    let packed = entries.pack(&format, &dimensions, fill, Duplicates::Sum);
    let (tensor, added) = packed.map_err(|error| unsuitable(error.to_string()))?;
    to.write(&tensor)?;
    Ok(told(&to, &dimensions, &format, (read - added) as u64, added as u64))
}

/// A tensor without entries, whose file tells nothing of it.
fn without_entries(element: ElementType, extents: Option<&[u64]>) -> std::result::Result<Contents, String> {
    let extents =
        extents.ok_or("there are no entries, which would tell the extents: say them, as with --extents 100,200")?;
    let entries = DynamicEntries::new(element, extents.len());
    Ok(Contents { dimensions: signed(extents), fill: cast(Scalar::I32(0), element), entries })
}

/// The extents that are given, if the tensor has room in them; without, its own.
fn extended(own: Vec<i64>, extents: Option<&[u64]>) -> std::result::Result<Vec<i64>, String> {
    let Some(extents) = extents.map(signed) else { return Ok(own) };
    if extents.len() != own.len() {
        let (expected, found) = (counted(own.len(), "dimension", "dimensions"), extents.len());
        return Err(format!("the tensor has {expected}, and --extents gives {found}"));
    }
    match own.iter().zip(&extents).position(|(own, given)| own > given) {
        Some(at) => {
            Err(format!("there are {} coordinates in dimension {at}, and --extents gives {}", own[at], extents[at]))
        }
        None => Ok(extents),
    }
}

fn signed(extents: &[u64]) -> Vec<i64> {
    extents.iter().map(|&extent| extent as i64).collect()
}

/// Returns a report of the file that was written, with its number of entries, and of further ones that were added to
/// these.
fn told(to: &TensorFile, extents: &[impl ToString], format: &Format, entries: u64, added: u64) -> String {
    let extents: Vec<String> = extents.iter().map(ToString::to_string).collect();
    let added = match added as usize {
        0 => String::new(),
        count => format!("{} added to others at the same place\n", counted(count, "entry was", "entries were")),
    };
    let entries = counted(entries as usize, "entry", "entries");
    format!("{}: {} with {entries} as {format}\n{added}", to.path().display(), extents.join(" x "))
}
