//! Files whose headers were read.

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};

use maniple_files::matrix_market::{Field, MatrixLayout};
use maniple_files::npz::{Archive, Sparse};
use maniple_files::tcs::TcsHeader;
use maniple_files::{Number, ReadError, tns};

use super::archive::contents;
use super::contents::{Contents, zero};
use super::error::{FileError, InputError};
use super::in_parts::FileInParts;
use super::processors::processors;
use super::tcs;

use crate::element::{ElementType, Scalar};
use crate::format::Format;
use crate::notation::is_zero;
use crate::storage::{DynamicEntries, DynamicTensor, EntryList, StorageError};
use crate::with_element;

/// A file whose header was read, and that is open until this is dropped.
#[derive(Debug)]
pub struct Opened {
    /// The name of the file, as the user calls it.
    name: PathBuf,
    inside: Inside,
}

/// The knowledge of a file.
#[derive(Debug)]
enum Inside {
    /// Its header.
    InParts(FileInParts),
    /// All of an archive, which tasks can't read in parts.
    Archive(Contents),
    /// All of a `.tns` file, as doubles: with the place of its bytes.
    Listed(Contents, PathBuf),
    /// A `.tns` file without entries, which tells nothing of its tensor.
    Nothing,
}

impl Opened {
    pub(super) fn in_parts(name: &Path, file: FileInParts) -> Self {
        Self { name: name.to_owned(), inside: Inside::InParts(file) }
    }

    pub(super) fn archive(name: &Path, source: File) -> Result<Self, ReadError> {
        let sparse = Archive::new(BufReader::new(source)).and_then(|mut archive| Sparse::read(&mut archive))?;
        Ok(Self { name: name.to_owned(), inside: Inside::Archive(contents(&sparse)) })
    }

    pub(super) fn listed(name: &Path, source: File, place: &Path) -> Result<Self, ReadError> {
        let listed = lines::<f64>(source)?;
        Ok(Self { name: name.to_owned(), inside: Inside::Listed(listed, place.to_owned()) })
    }

    pub(super) fn nothing(name: &Path) -> Self {
        Self { name: name.to_owned(), inside: Inside::Nothing }
    }

    /// The file, as it is called.
    #[must_use]
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// The file that tasks can read in parts, if they can.
    #[must_use]
    pub fn parts(&self) -> Option<&FileInParts> {
        match &self.inside {
            Inside::InParts(file) => Some(file),
            Inside::Archive(_) | Inside::Listed(..) | Inside::Nothing => None,
        }
    }

    /// The extents of the tensor: of a `.tns` file, those of the smallest that has all entries; none of one without.
    #[must_use]
    pub fn dimensions(&self) -> Vec<i64> {
        match &self.inside {
            Inside::InParts(file) => file.dimensions(),
            Inside::Archive(contents) | Inside::Listed(contents, _) => contents.dimensions.clone(),
            Inside::Nothing => Vec::new(),
        }
    }

    /// The type that holds all elements.
    #[must_use]
    pub fn element(&self) -> ElementType {
        match &self.inside {
            Inside::InParts(file) => file.element(),
            Inside::Archive(contents) | Inside::Listed(contents, _) => contents.entries.element(),
            Inside::Nothing => ElementType::F64,
        }
    }

    /// Whether the file tells the extents of its tensor: not if it has entries alone.
    #[must_use]
    pub fn tells_extents(&self) -> bool {
        match &self.inside {
            Inside::InParts(FileInParts::Entries(file)) => file.tells_extents(),
            Inside::InParts(FileInParts::Levels(_)) | Inside::Archive(_) => true,
            Inside::Listed(..) | Inside::Nothing => false,
        }
    }

    /// Whether it has no entries, which alone would tell of its tensor.
    #[must_use]
    pub fn is_without_entries(&self) -> bool {
        matches!(self.inside, Inside::Nothing)
    }

    /// Whether the file lists entries, and does not say how the tensor is stored: no file of levels, and none that has
    /// all elements.
    #[must_use]
    pub fn is_list(&self) -> bool {
        match &self.inside {
            Inside::InParts(FileInParts::Levels(_)) => false,
            Inside::InParts(FileInParts::Entries(file)) => match file.header() {
                Some(header) => header.layout == MatrixLayout::Coordinate,
                None => file.order().is_none(),
            },
            Inside::Archive(_) | Inside::Listed(..) | Inside::Nothing => true,
        }
    }

    /// The header of a file of levels.
    #[must_use]
    pub fn levels(&self) -> Option<&TcsHeader> {
        match &self.inside {
            Inside::InParts(FileInParts::Levels(file)) => Some(file.header()),
            _ => None,
        }
    }

    /// The format in which a file of levels stores its tensor, if there is one.
    #[must_use]
    pub fn format(&self) -> Option<Format> {
        match &self.inside {
            Inside::InParts(FileInParts::Levels(file)) => file.format().ok(),
            _ => None,
        }
    }

    /// How a file of levels stores its tensor, in words.
    #[must_use]
    pub fn described(&self) -> Option<String> {
        match &self.inside {
            Inside::InParts(FileInParts::Levels(file)) => Some(tcs::described(file)),
            _ => None,
        }
    }

    /// The value of the elements that the file does not store, if it is not zero.
    #[must_use]
    pub fn fill(&self) -> Option<Scalar> {
        match &self.inside {
            Inside::Archive(contents) => Some(contents.fill).filter(|fill| !is_zero(*fill)),
            _ => None,
        }
    }

    /// Makes it the file of a tensor of so many dimensions, if all others after these have an extent of 1, as of a
    /// vector in a file of a matrix; or if it is without entries. Whether it is.
    pub fn take_order(&mut self, order: usize) -> bool {
        let others_are_one =
            |dimensions: &[i64]| dimensions.len() > order && dimensions[order..].iter().all(|extent| *extent == 1);
        match &mut self.inside {
            Inside::InParts(FileInParts::Levels(_)) => return false,
            Inside::InParts(FileInParts::Entries(file)) => {
                match file.with_order(order).filter(|_| others_are_one(file.dimensions())) {
                    Some(of_order) => *file = of_order,
                    None => return false,
                }
            }
            Inside::Archive(contents) | Inside::Listed(contents, _) if others_are_one(&contents.dimensions) => {
                contents.dimensions.truncate(order);
                contents.entries.truncate(order);
            }
            Inside::Archive(_) | Inside::Listed(..) => return false,
            Inside::Nothing => {
                let (entries, fill) = (DynamicEntries::new(ElementType::F64, order), Scalar::F64(0.0));
                let contents = Contents { dimensions: vec![0; order], fill, entries };
                self.inside = Inside::Listed(contents, self.name.clone());
            }
        }
        true
    }

    /// Gives a file that does not tell them its extents, which are no smaller than those of its entries.
    pub fn take_extents(&mut self, extents: &[i64]) {
        match &mut self.inside {
            Inside::InParts(FileInParts::Entries(file)) => {
                if let Some(extended) = file.with_extents(extents) {
                    *file = extended;
                }
            }
            Inside::Listed(contents, _) => contents.dimensions = extents.to_vec(),
            Inside::InParts(FileInParts::Levels(_)) | Inside::Archive(_) | Inside::Nothing => {}
        }
    }

    /// Whether elements of a type are [read](Self::read) without others between: of text, those that the text has.
    #[must_use]
    pub fn has(&self, element: ElementType) -> bool {
        match &self.inside {
            Inside::InParts(file) => file.has(element),
            Inside::Archive(contents) => contents.entries.element() == element,
            Inside::Listed(..) | Inside::Nothing => Field::Real.is_kept_by(element),
        }
    }

    /// Reads all entries here, with elements of a type: those of text may be read as any that [has](Self::has) them,
    /// and others are cast.
    ///
    /// # Errors
    ///
    /// [`FileError::Input`] if the file can't be read or is wrong, or if its elements are complex and those asked for
    /// are not.
    pub fn read(self, element: ElementType) -> Result<Contents, FileError> {
        let name = self.name;
        let wrong = |error| FileError::from(InputError::read(&name, error));
        let is_lost = |own: ElementType| own.is_complex() && !element.is_complex();
        let contents = match self.inside {
            Inside::InParts(FileInParts::Levels(file)) if is_lost(file.element()) => return Err(complex(&name)),
            Inside::InParts(FileInParts::Levels(file)) => tcs::read(&file).map_err(wrong)?,
            // Of text, the line is told.
            Inside::InParts(FileInParts::Entries(file)) if file.number().is_some() && is_lost(file.element()) => {
                return Err(complex(&name));
            }
            Inside::InParts(FileInParts::Entries(file)) => {
                let entries = file.entries(element, &processors()).map_err(wrong)?;
                Contents { dimensions: file.dimensions().to_vec(), fill: zero(element), entries }
            }
            Inside::Archive(contents) if is_lost(contents.entries.element()) => return Err(complex(&name)),
            // Text has numbers of any type, to the last digit.
            Inside::Listed(listed, place) if element != listed.entries.element() && !listed.entries.is_empty() => {
                let (rank, dimensions) = (listed.dimensions.len(), listed.dimensions);
                let source = File::open(&place).map_err(|error| wrong(error.into()))?;
                let mut contents = with_element!(element, T => lines::<T>(source)).map_err(wrong)?;
                contents.entries.truncate(rank);
                Contents { dimensions, ..contents }
            }
            Inside::Archive(contents) | Inside::Listed(contents, _) => contents,
            Inside::Nothing => {
                let entries = DynamicEntries::new(element, 0);
                Contents { dimensions: Vec::new(), fill: zero(element), entries }
            }
        };
        Ok(contents.cast(element))
    }

    /// The tensor of a `.tcs` file, as it is stored there; none of other files, of elements of another type, and of
    /// blocks.
    ///
    /// # Errors
    ///
    /// [`FileError::Input`].
    pub fn stored(&self, element: ElementType) -> Result<Option<DynamicTensor>, FileError> {
        let Inside::InParts(FileInParts::Levels(file)) = &self.inside else { return Ok(None) };
        let found = tcs::whole(file, element).map_err(|error| InputError::read(&self.name, error))?;
        let unsuitable = |error: StorageError| InputError::unsuitable(&self.name, error.to_string());
        Ok(found.transpose().map_err(unsuitable)?)
    }
}

fn complex(name: &Path) -> FileError {
    InputError::unsuitable(name, "its elements are complex, and must be real here").into()
}

/// All entries of a `.tns` file.
fn lines<T: Number>(mut source: File) -> Result<Contents, ReadError> {
    let mut text = Vec::new();
    source.rewind()?;
    source.read_to_end(&mut text)?;
    let (extents, entries) = tns::read_entries::<T>(&text, 1, None, &processors())?;
    let dimensions = extents.into_iter().map(|extent| extent as i64).collect();
    let entries = EntryList::of(entries.coordinates, entries.values).into();
    Ok(Contents { dimensions, fill: zero(T::TYPE), entries })
}
