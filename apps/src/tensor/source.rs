//! Sparse tensors from files, for programs that compute with doubles: read by the tasks of all nodes, where the file
//! can be read in parts.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use maniple::Context;
use maniple_tensor::distributed::{DistributedError, EntryFile, TcsFile, Tensor};
use maniple_tensor::element::{ElementType, Scalar};
use maniple_tensor::files::{Contents, FileInParts, InputError, Opened, TensorFile};
use maniple_tensor::notation::TensorVariable;
use maniple_tensor::storage::{Duplicates, EntryList, pack};

use crate::error::{Error, Result};
use crate::options::place;

/// The source of the entries of a sparse tensor.
pub(crate) enum Source {
    /// In a file of entries, with elements of this type, which tasks read.
    Entries(EntryFile, ElementType),
    /// In a file with levels, which tasks read.
    Levels(TcsFile),
    /// In a file of this name that each node reads whole, as one with dense levels. Zeros are left out.
    Whole(String, EntryList<f64>),
}

impl Source {
    /// Opens a file, and reads no more of it than tells the extents, if tasks can read it. Entries at the same place
    /// are added in the type of the file, if that is of arrays.
    ///
    /// # Errors
    /// [`Error::Usage`] if its name does not say what it is,
    /// [`Error::Input`] if it can't be read.
    pub(crate) fn open(path: &Path) -> Result<(Vec<i64>, Self)> {
        let text = path.display().to_string();
        let file = TensorFile::input(&text).map_err(|error| Error::Usage(format!("{text}: {error}")))?;
        let file = if place().nodes > 1 { file } else { file.spooled()? };
        let opened = file.open(true)?;
        match opened.parts() {
            Some(FileInParts::Levels(levels))
                if levels.is_whole() && levels.format().is_ok_and(|format| !format.is_dense()) =>
            {
                Ok((levels.dimensions(), Self::Levels(levels.clone())))
            }
            Some(FileInParts::Entries(entries)) => {
                let element = match entries.element() {
                    element if element.is_complex() || !file.is_text() => element,
                    // Text has numbers of any type.
                    _ => ElementType::F64,
                };
                Ok((entries.dimensions().to_vec(), Self::Entries(entries.clone(), element)))
            }
            _ => Self::whole(&file, opened),
        }
    }

    /// The same of a file whose elements are to be added as doubles, whatever their type is.
    ///
    /// # Errors
    /// As of [`open`](Self::open).
    pub(crate) fn open_as_doubles(path: &Path) -> Result<(Vec<i64>, Self)> {
        match Self::open(path)? {
            (dimensions, Self::Entries(file, element)) if !element.is_complex() => {
                Ok((dimensions, Self::Entries(file, ElementType::F64)))
            }
            found => Ok(found),
        }
    }

    fn whole(file: &TensorFile, opened: Opened) -> Result<(Vec<i64>, Self)> {
        if let Some(fill) = opened.fill() {
            let reason = format!("what is not stored is {fill}, and must be 0 here");
            return Err(InputError::unsuitable(file.path(), reason).into());
        }
        let Contents { dimensions, entries, .. } = opened.read(ElementType::F64)?;
        let entries: EntryList<f64> = entries.downcast().expect("entries have the type that was asked for");
        let mut stored = EntryList::new(dimensions.len());
        entries.iter().filter(|(_, value)| *value != 0.0).for_each(|(at, value)| stored.push(&at, value));
        Ok((dimensions, Self::Whole(file.path().display().to_string(), stored)))
    }

    /// The type of the elements.
    pub(crate) fn element(&self) -> ElementType {
        match self {
            Self::Entries(_, element) => *element,
            Self::Levels(levels) => levels.element(),
            Self::Whole(..) => ElementType::F64,
        }
    }

    /// The tensor that statements call `variable`, whose elements are doubles: what `number` makes of those of the
    /// file, unless these are doubles themselves. Entries at the same place are added.
    ///
    /// # Errors
    /// The errors of [`Tensor::read_entries`], [`Tensor::load`] and [`Tensor::with_elements`];
    /// [`DistributedError::File`] if nodes have read different entries.
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
            Self::Whole(name, entries) => {
                check_same(cx, name, entries.iter()).await?;
                let (format, dimensions) = (variable.format(), variable.dimensions());
                let packed = pack(format, dimensions, 0.0, entries.clone(), Duplicates::Sum);
                Tensor::from_sparse(cx, variable, packed.map_err(maniple::Error::from_task)?.tensor)?
            }
        };
        if read.variable() == variable {
            return Ok(read);
        }
        let change = Box::new(move |value| Some(Scalar::F64(number(value))));
        let made = read.with_elements(cx, variable, change).await?;
        read.destroy(cx)?;
        Ok(made)
    }
}

/// Checks that all nodes have read the same from a file.
///
/// # Errors
/// [`DistributedError::File`] with the node that has not.
pub(crate) async fn check_same<'e, A: AsRef<[i64]>>(
    cx: &Context,
    name: &str,
    entries: impl Iterator<Item = (A, f64)> + 'e,
) -> Result<(), DistributedError> {
    let mut hasher = DefaultHasher::new();
    entries.for_each(|(at, value)| (at.as_ref(), value.to_bits()).hash(&mut hasher));
    let digests = cx.per_node(hasher.finish()).all().await?;
    match digests.iter().position(|digest| *digest != digests[0]) {
        None => Ok(()),
        Some(node) => {
            let reason = format!("it is not the same on node {node} as on node 0: all nodes must have the same file");
            Err(DistributedError::File { name: name.to_owned(), reason, is_input: true })
        }
    }
}
