//! Sparse tensors from files, for programs that compute with doubles: read by the tasks of all nodes, where the file
//! can be read in parts.

use std::path::Path;

use maniple::Context;
use maniple_tensor::distributed::{DistributedError, Tensor};
use maniple_tensor::element::{ElementType, Scalar};
use maniple_tensor::files::{FileInParts, InputError, Opened, Readable, TensorFile};
use maniple_tensor::notation::TensorVariable;

use crate::error::{Error, Result};
use crate::options::place;

/// A file of a sparse tensor, whose header was read.
pub(crate) struct TensorSource {
    opened: Opened,
    /// Whether it is text, whose numbers are those of any type.
    is_text: bool,
}

impl TensorSource {
    /// Opens a file, and reads no more of it than tells the extents, if tasks can read it.
    ///
    /// # Errors
    /// [`Error::Usage`] if its name does not say what it is, [`Error::Input`] if it can't be read, or does not store
    /// what is not zero.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let text = path.display().to_string();
        let file = TensorFile::input(&text).map_err(|error| Error::Usage(format!("{text}: {error}")))?;
        let file = if place().nodes > 1 { file } else { file.spooled()? };
        let opened = file.open(true)?;
        if let Some(fill) = opened.fill() {
            let reason = format!("what is not stored is {fill}, and must be 0 here");
            return Err(InputError::unsuitable(path, reason).into());
        }
        Ok(Self { opened, is_text: file.is_text() })
    }

    /// The extents.
    pub(crate) fn dimensions(&self) -> Vec<i64> {
        self.opened.dimensions()
    }

    /// The tensor that statements call `variable`. Entries at the same place are added as doubles, or in the type of
    /// the file, if that is of arrays. Zeros are left out where the file is read whole.
    ///
    /// # Errors
    /// [`Error::Input`] if the file has to be read whole, and can't be.
    pub(crate) fn readable(self, variable: &TensorVariable, as_doubles: bool) -> Result<Readable> {
        let parts = self.opened.parts().filter(|parts| parts.fits([variable.format()].into_iter()));
        let element = match parts {
            Some(FileInParts::Levels(levels)) => levels.element(),
            Some(FileInParts::Entries(file)) if file.element().is_complex() => file.element(),
            Some(FileInParts::Entries(file)) if !as_doubles && !self.is_text => file.element(),
            _ => ElementType::F64,
        };
        let own = TensorVariable::new(variable.name(), element, variable.dimensions());
        Ok(self.opened.readable(&own.stored(variable.format().clone()), false)?)
    }
}

/// The tensor that statements call `variable`, whose elements are doubles: what `number` makes of those of the file,
/// unless these are doubles themselves.
///
/// # Errors
/// The errors of [`Readable::tensor`] and [`Tensor::with_elements`].
pub(crate) async fn with_doubles(
    cx: &Context,
    file: &Readable,
    variable: &TensorVariable,
    number: fn(Scalar) -> f64,
) -> Result<Tensor, DistributedError> {
    let read = file.tensor(cx).await?;
    if read.variable() == variable {
        return Ok(read);
    }
    let change = Box::new(move |value| Some(Scalar::F64(number(value))));
    let made = read.with_elements(cx, variable, change).await?;
    read.destroy(cx)?;
    Ok(made)
}
