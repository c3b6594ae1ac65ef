//! Sparse tensors from files, for programs that compute with numbers of one type: read by the tasks of all nodes, where the file can be read in parts.

use std::path::Path;

use maniple::{Context, FieldValue};
use maniple_tensor::distributed::{DistributedError, EntryFile, TcsFile, Tensor};
use maniple_tensor::element::{Element, ElementType, Scalar};
use maniple_tensor::notation::TensorVariable;
use maniple_tensor::storage::{Duplicates, EntryList, pack};
use maniple_tensor::with_element;

use super::files::SparseFile;
use super::operands::read;
use crate::error::Result;

/// Where the entries of a sparse tensor are.
pub(crate) enum Source {
    /// In a file of entries, with elements of this type, which tasks read.
    Entries(EntryFile, ElementType),
    /// In a file with levels, which tasks read.
    Levels(TcsFile),
    /// In a file that each node reads whole: one that is compressed, or has all elements. Zeros are left out.
    Whole(EntryList<f64>),
}

impl Source {
    /// Opens a file, and reads no more of it than tells the extents, if tasks can read it.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::error::Error::Usage) if its name does not say what it is, [`Error::Input`](crate::error::Error::Input) if it can't be read.
    pub(crate) fn open(path: &Path) -> Result<(Vec<i64>, Self)> {
        let file = SparseFile::of(path)?;
        if let Some(levels) = file.levels()?.filter(TcsFile::is_whole) {
            return Ok((levels.dimensions(), Self::Levels(levels)));
        }
        if let Some(entries) = file.entries()? {
            return Ok((entries.dimensions().to_vec(), Self::Entries(entries, file.element()?)));
        }
        let (dimensions, entries) = read(path)?;
        let mut stored = EntryList::new(dimensions.len());
        entries.iter().filter(|(_, value)| *value != 0.0).for_each(|(at, value)| stored.push(&at, value));
        Ok((dimensions, Self::Whole(stored)))
    }

    /// The type of the elements.
    pub(crate) fn element(&self) -> ElementType {
        match self {
            Self::Entries(_, element) => *element,
            Self::Levels(levels) => levels.element(),
            Self::Whole(_) => ElementType::F64,
        }
    }

    /// The tensor that statements call `variable`, whose elements are doubles: what `number` makes of those of the file, unless these are doubles themselves. Entries at the same place are added.
    ///
    /// # Errors
    /// Those of [`Tensor::read_entries`], [`Tensor::load`] and [`Tensor::mapped`].
    pub(crate) async fn tensor(
        &self,
        cx: &Context,
        variable: &TensorVariable,
        number: fn(Scalar) -> f64,
    ) -> Result<Tensor, DistributedError> {
        let element = self.element();
        let of_type = TensorVariable::new(variable.name(), element, variable.dimensions());
        let read = match self {
            Self::Entries(file, _) => {
                Tensor::read_entries(cx, &of_type.stored(variable.format().clone()), file).await?.0
            }
            Self::Levels(file) => {
                let stored = of_type.stored(file.format().map_err(maniple::Error::from_task)?);
                Tensor::load(cx, &stored, file).await?.0
            }
            Self::Whole(entries) => {
                let (format, dimensions) = (variable.format(), variable.dimensions());
                let packed = pack(format, dimensions, 0.0, entries.clone(), Duplicates::Sum);
                Tensor::from_sparse(cx, variable, packed.map_err(maniple::Error::from_task)?.tensor)?
            }
        };
        if read.variable() == variable {
            return Ok(read);
        }
        with_element!(element, T => numbers_of::<T>(cx, &read, (variable, number)).await)
    }
}

/// The numbers that are made of the elements of a tensor, which goes.
async fn numbers_of<T: Element + FieldValue>(
    cx: &Context,
    given: &Tensor,
    (variable, number): (&TensorVariable, fn(Scalar) -> f64),
) -> Result<Tensor, DistributedError> {
    let made = given.mapped::<T, f64>(cx, variable, move |at, value, visit| visit(at, number(value.to_scalar())));
    let made = made.await?;
    given.destroy(cx)?;
    Ok(made)
}
