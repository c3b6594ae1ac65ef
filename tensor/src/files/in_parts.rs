//! Files that the tasks of all nodes read, each its own ranges of bytes.

use std::hash::{DefaultHasher, Hash, Hasher};

use maniple::Context;
use maniple_files::tcs::TcsPart;

use crate::distributed::{EntryFile, Pending, TcsFile, Tensor, is_made_by_tasks};
use crate::element::ElementType;
use crate::format::Format;
use crate::notation::TensorVariable;

/// A file whose header is known, and of which tasks can read parts. Copies are the same file.
#[derive(Clone, Debug)]
pub enum FileInParts {
    /// Arrays of levels.
    Levels(TcsFile),
    /// Entries, in lines or arrays.
    Entries(EntryFile),
}

impl FileInParts {
    /// The name of the file in messages.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Levels(file) => file.name(),
            Self::Entries(file) => file.name(),
        }
    }

    /// The extents of the tensor.
    #[must_use]
    pub fn dimensions(&self) -> Vec<i64> {
        match self {
            Self::Levels(file) => file.dimensions(),
            Self::Entries(file) => file.dimensions().to_vec(),
        }
    }

    /// The type that holds all elements.
    #[must_use]
    pub fn element(&self) -> ElementType {
        match self {
            Self::Levels(file) => file.element(),
            Self::Entries(file) => file.element(),
        }
    }

    /// Whether elements of a type are read without others between: of text, those that the text has.
    #[must_use]
    pub fn has(&self, element: ElementType) -> bool {
        match self {
            Self::Levels(file) => file.element() == element,
            Self::Entries(file) => file.has(element),
        }
    }

    /// Whether tasks can have a tensor of it in these formats, of which one is there at least.
    pub fn fits<'f>(&self, mut formats: impl Iterator<Item = &'f Format>) -> bool {
        match self {
            Self::Levels(file) => {
                let is_read =
                    |own: &Format, format: &Format| format == own || !own.is_dense() && is_made_by_tasks(format);
                file.is_whole() && file.format().is_ok_and(|own| formats.all(|format| is_read(&own, format)))
            }
            // Others are converted from the first, and dense ones to other dense ones alone.
            Self::Entries(_) => {
                let formats: Vec<&Format> = formats.collect();
                let is_alike = |format: &&Format| format.is_dense() == formats[0].is_dense();
                formats.iter().all(|format| is_made_by_tasks(format) && is_alike(format))
            }
        }
    }

    /// A number that is another one for other files, or most of them.
    #[must_use]
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
    ///
    /// As of [`Tensor::load`], [`Tensor::cast`] and [`Tensor::read_entries`].
    pub fn read<'a>(&'a self, cx: &'a Context, variable: &'a TensorVariable) -> Pending<'a, (Tensor, Vec<u64>)> {
        Box::pin(async move {
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
        })
    }

    /// How it is read, in words, for the operand of a name.
    #[must_use]
    pub fn described(&self, name: &str) -> String {
        match self {
            Self::Levels(file) => {
                let elements = match file.header().section(TcsPart::Values).length {
                    1 => "1 element".to_owned(),
                    count => format!("{count} elements"),
                };
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
