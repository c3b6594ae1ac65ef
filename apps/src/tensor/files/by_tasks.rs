//! Files of operands that tasks read on all nodes: each its own ranges of bytes.

use std::hash::{DefaultHasher, Hash, Hasher};

use maniple::Context;
use maniple_files::tcs::Part;
use maniple_tensor::distributed::{DistributedError, EntryFile, TcsFile, Tensor, is_made_by_tasks};
use maniple_tensor::format::Format;
use maniple_tensor::notation::TensorVariable;

use crate::report::counted;

/// A file whose header is known.
#[derive(Clone)]
pub enum FileByTasks {
    /// Arrays of levels.
    Levels(TcsFile),
    /// Entries, in lines or arrays.
    Entries(EntryFile),
}

impl FileByTasks {
    /// The name of the file in messages.
    pub fn name(&self) -> &str {
        match self {
            Self::Levels(file) => file.name(),
            Self::Entries(file) => file.name(),
        }
    }

    /// Whether tasks can have a tensor of it in these formats, of which one is there at least.
    pub fn fits<'f>(&self, mut formats: impl Iterator<Item = &'f Format>) -> bool {
        match self {
            Self::Levels(file) => file
                .format()
                .is_ok_and(|own| formats.all(|format| *format == own || !own.is_dense() && is_made_by_tasks(format))),
            // Others are converted from the first, and dense ones to other dense ones alone.
            Self::Entries(_) => {
                let formats: Vec<&Format> = formats.collect();
                let is_alike = |format: &&Format| format.is_dense() == formats[0].is_dense();
                formats.iter().all(|format| is_made_by_tasks(format) && is_alike(format))
            }
        }
    }

    /// A number that is another one for other files, or most of them.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        match self {
            Self::Levels(file) => file.header().to_bytes().hash(&mut hasher),
            // What cannot be read is found out when it is.
            Self::Entries(file) => file.digest().unwrap_or_default().hash(&mut hasher),
        }
        hasher.finish()
    }

    /// Reads the tensor that statements call `variable`, in the format of the file or of the variable: with the bytes
    /// that each node has read.
    ///
    /// # Errors
    /// As of [`Tensor::load`], [`Tensor::cast`] and [`Tensor::read_entries`].
    pub async fn read(&self, cx: &Context, variable: &TensorVariable) -> Result<(Tensor, Vec<u64>), DistributedError> {
        match self {
            Self::Levels(file) => {
                let stored = variable.stored(file.format()?);
                let (dimensions, format) = (stored.dimensions().to_vec(), stored.format().clone());
                let as_is = TensorVariable::new(variable.name(), file.element(), dimensions).stored(format);
                let (mut tensor, loaded) = Tensor::load(cx, &as_is, file).await?;
                if file.element() != variable.element() {
                    let cast = tensor.cast(cx, &stored).await?;
                    tensor.destroy(cx)?;
                    tensor = cast;
                }
                Ok((tensor, loaded.bytes))
            }
            Self::Entries(file) => Tensor::read_entries(cx, variable, file).await,
        }
    }

    /// How it is read, in words, for the operand of a name.
    pub fn described(&self, name: &str) -> String {
        match self {
            Self::Levels(file) => {
                let elements = counted(file.header().section(Part::Values).length as usize, "element", "elements");
                let stored = file.format().map_or_else(|error| error.to_string(), |format| format.to_string());
                format!(
                    "operand {name}: {elements} as {stored}, {} bytes of {}, read by tasks on all nodes\n",
                    file.bytes(),
                    file.name()
                )
            }
            Self::Entries(file) => {
                let (extents, from) = (file.dimensions(), file.name());
                let what = if file.number().is_none() { "lines" } else { "elements" };
                format!("operand {name}: the {what} of {from}, extents {extents:?}, read by tasks on all nodes\n")
            }
        }
    }
}
