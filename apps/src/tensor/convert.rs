//! Sparse tensors from one file to another.

use clap::Args;
use maniple_tensor::format::Format;
use maniple_tensor::storage::{Duplicates, pack};
use maniple_tensor::with_element;

use super::files::{Contents, SparseFile};
use crate::error::{Error, Result};
use crate::input::InputError;
use crate::report::counted;

/// What `maniple tensor convert` teaches.
pub const ABOUT: &str = "\
Write a sparse tensor to another file, in the form that the file's name tells.

Entries with equal coordinates are added up. Text is sorted by coordinates. A .npz file is SciPy's array of the same kind if the format is csr, csc or bcsr:RxC \
(with blocks that divide the extents), and has coordinates otherwise; of tensors that are no matrices, and of fill values other than zero, it is one of pydata/sparse. \
A format with a position for every element, such as bcsr:2x2, drops stored zeros.

OUT is written whole or not at all: what was there stays until the new file is complete.";

/// What `maniple tensor convert` gives as examples.
pub const EXAMPLES: &str = "\
Examples:
  maniple tensor convert web.mtx web.npz --format csr   for scipy.sparse
  maniple tensor convert web.npz web.mtx                as text
  maniple tensor convert web.mtx a.npz --format bcsr:2x2
  maniple tensor convert uber.tns uber.npz              for pydata/sparse
  maniple tensor convert small.npy small.mtx            what is not zero
  maniple tensor convert small.mtx small.npy            all elements";

/// What is converted to what.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The file to read: .mtx (Matrix Market), .tns (FROSTT), .npz (SciPy, pydata/sparse) or .npy (NumPy)
    #[arg(value_name = "IN")]
    pub from: SparseFile,

    /// The file to write, of one of the same kinds
    #[arg(value_name = "OUT")]
    pub to: SparseFile,

    /// How the tensor is stored: csr, csc, coo, dcsr, bcsr:2x2, csf:3 and other names, or levels such as `{D,C}(1,0)` [default: csr to .npz if it is a matrix; else coo]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
}

/// Converts a file, and says what was written.
///
/// # Errors
/// [`Error::Input`], [`Error::Write`], [`Error::Usage`] if the format or the file does not fit the tensor.
pub fn run(options: &Options) -> Result<String> {
    let unsuitable = |reason: String| {
        Error::from(InputError::Unsuitable { name: options.from.path().display().to_string(), reason })
    };
    with_element!(options.from.element()?, T => {
        let Contents { dimensions, fill, entries } = options.from.read::<T>()?;
        let order = dimensions.len();
        let format = match &options.format {
            Some(format) if format.rank() != order => {
                return Err(Error::Usage(format!("--format {format} is for {} dimensions, and {} has {order}", format.rank(), options.from.path().display())));
            }
            Some(format) => format.clone(),
            None if order == 2 && options.to.path().extension().is_some_and(|extension| extension == "npz") => {
                "csr".parse().map_err(|error| Error::Usage(format!("{error}")))?
            }
            None => Format::coordinates(order),
        };
        let read = entries.len();
        let packed = pack(&format, &dimensions, fill, entries, Duplicates::Sum).map_err(|error| unsuitable(error.to_string()))?;
        options.to.write(&packed.tensor)?;
        let extents: Vec<String> = dimensions.iter().map(i64::to_string).collect();
        Ok(format!(
            "{}: {} with {} as {format}\n{}",
            options.to.path().display(),
            extents.join(" x "),
            counted(read - packed.duplicates, "entry", "entries"),
            match packed.duplicates {
                0 => String::new(),
                count => format!("{} added to others at the same place\n", counted(count, "entry was", "entries were")),
            },
        ))
    })
}
