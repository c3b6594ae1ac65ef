//! Files with values: where these are in them, and what becomes of the files.

use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::OnceLock;

use maniple_files::npy::Description;
use maniple_files::tcs::store::Target;
use maniple_realm::disk::{self, DiskUse};
use maniple_space::AnyRect;

use super::array::Array;
use super::load::{FilePlace, Opened, Partial, system};
use super::npy::{Element, unreadable};
use super::values::FieldValues;
use crate::support::error::{FileError, Result};

/// A file with the values of a field: where they are in it, and what becomes of it. It is read only, unless it is said
/// otherwise.
#[derive(Clone, Debug)]
pub struct File {
    pub(super) path: PathBuf,
    form: Form,
    offset: u64,
    within: Option<AnyRect>,
    pub(super) by_columns: Option<bool>,
    pub(super) access: Access,
}

/// The form of a file: its content before the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Nothing that is looked at.
    Raw,
    /// A header of NumPy's.
    Npy,
}

/// The use of a file that is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    ReadWrite,
    Write,
    Create,
}

impl Access {
    /// Whether the values of the file are read.
    pub(super) fn is_read(self) -> bool {
        matches!(self, Self::Read | Self::ReadWrite)
    }
}

/// The role of a node in the use of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The node makes the file, if it is to be made, and writes it.
    Writes,
    /// Another node does that.
    ReadsOnly,
    /// Another node makes the file; this one opens it when it writes its part.
    WritesLater,
}

impl File {
    /// A file with values as they are in memory, in row-major order.
    #[must_use]
    pub fn raw(path: impl Into<PathBuf>) -> Self {
        let (path, access) = (path.into(), Access::Read);
        Self { path, form: Form::Raw, offset: 0, within: None, by_columns: None, access }
    }

    /// A `.npy` file, NumPy's form of one array: its header has to say that it has the shape of the region, and the
    /// type of the field. Arrays may be stored by rows or by columns, and in either order of bytes. A file that is
    /// [created](Self::create) gets such a header.
    ///
    /// Values are the integers and floats of Rust from `u8` to `f64` that NumPy has too, and complex numbers.
    #[must_use]
    pub fn npy(path: impl Into<PathBuf>) -> Self {
        Self { form: Form::Npy, ..Self::raw(path) }
    }

    /// With the values, or the header before them, from this byte on. What comes before stays as it is, and is zero in
    /// a file that is created.
    #[must_use]
    pub fn at(self, offset: u64) -> Self {
        Self { offset, ..self }
    }

    /// The file has the values of all points of this rectangle; those of the region are a part of them. Without, the
    /// rectangle is that of the region, or of the region that is partitioned.
    #[must_use]
    pub fn within(self, bounds: impl Into<AnyRect>) -> Self {
        Self { within: Some(bounds.into()), ..self }
    }

    /// The values are in column-major order, the first coordinate fastest, as Fortran has them. A `.npy` file that says
    /// otherwise is refused.
    #[must_use]
    pub fn columns(self) -> Self {
        Self { by_columns: Some(true), ..self }
    }

    /// The values are in row-major order, the last coordinate fastest. That is so for raw files unless it is said
    /// otherwise; a `.npy` file that says otherwise is refused.
    #[must_use]
    pub fn rows(self) -> Self {
        Self { by_columns: Some(false), ..self }
    }

    /// The file is written when it is detached.
    #[must_use]
    pub fn read_write(self) -> Self {
        Self { access: Access::ReadWrite, ..self }
    }

    /// The values that the file has are not read, but are zero at first; they are written when it is detached.
    #[must_use]
    pub fn write_only(self) -> Self {
        Self { access: Access::Write, ..self }
    }

    /// The file is made, with values that are zero at first, and written when it is detached. It takes its place when
    /// it is whole, and not before: it is made beside it, under a name of its own that ends in `.partial`. A file that
    /// was there before stays until then, and is left as it was if the new one is not written.
    #[must_use]
    pub fn create(self) -> Self {
        Self { access: Access::Create, ..self }
    }
}

/// Refuses an area that is not all within the points of a file, or values that its form does not have: what no file has
/// to be looked at for.
pub(super) fn check_form(file: &File, values: &FieldValues<'_>, area: AnyRect) -> Result<()> {
    let bounds = file.within.unwrap_or(area);
    if !bounds.contains_rect(&area).unwrap_or(false) {
        let (path, values) = (file.path.clone(), values.names());
        let (area, bounds) = (area.to_string(), bounds.to_string());
        return Err(FileError::NotWithin { path, field: values.0, region: values.1, area, bounds }.into());
    }
    if file.form == Form::Npy {
        Element::of(values, &file.path)?;
    }
    Ok(())
}

/// Opens a file whose values are those of an area.
pub(super) fn open(file: &File, values: &FieldValues<'_>, area: AnyRect, role: Role) -> Result<FilePlace> {
    let (offset, region) = (file.offset, values.names().1);
    let bounds = file.within.unwrap_or(area);
    let element = match file.form {
        Form::Raw => None,
        Form::Npy => Some(Element::of(values, &file.path)?),
    };
    let failed = |path: &std::path::Path, error| system("open", path, offset, error);
    let asked = disk::ask(DiskUse::Open);
    let by_columns = file.by_columns.unwrap_or(false);
    let raw = Array { start: offset, bounds, by_columns, size: values.ty.size, swapped: 1 };
    if file.access == Access::Create {
        let (header, array) = match element {
            None => (Vec::new(), raw),
            Some(element) => element.header(values, &file.path, offset, bounds, by_columns)?,
        };
        let elsewhere = match role {
            Role::Writes => None,
            Role::ReadsOnly => Some(Opened::Elsewhere),
            Role::WritesLater => Some(Opened::Later(OnceLock::new())),
        };
        if let Some(opened) = elsewhere {
            return Ok(FilePlace { file: opened, path: file.path.clone(), array, region, partial: None });
        }
        // What is renamed takes the place of anything.
        check_regular(&file.path)?;
        let (partial, opened) = asked
            .and_then(|()| Partial::create(&file.path))
            .map_err(|error| system("create", &file.path, offset, error))?;
        let path = partial.path.clone();
        opened.set_len(array.end()).map_err(|error| failed(&path, error))?;
        Target::write_at(&opened, offset, &header).map_err(|error| failed(&path, error))?;
        return Ok(FilePlace { file: Opened::Here(opened), path, array, region, partial: Some(partial) });
    }
    let is_written = file.access != Access::Read && role != Role::ReadsOnly;
    // To open a pipe is to wait for its other end.
    check_regular(&file.path)?;
    let opened = asked.and_then(|()| OpenOptions::new().read(true).write(is_written).open(&file.path));
    let mut opened = opened.map_err(|error| failed(&file.path, error))?;
    let array = match element {
        None => raw,
        Some(element) => {
            opened.seek(SeekFrom::Start(offset)).map_err(|error| failed(&file.path, error))?;
            // A handful of reads otherwise.
            let mut buffered = std::io::BufReader::new(Read::by_ref(&mut opened));
            let description = Description::read(&mut buffered).map_err(|error| unreadable(&file.path, &error))?;
            element.check(values, &file.path, &description, offset, bounds, file.by_columns)?
        }
    };
    let found = opened.metadata().map_err(|error| failed(&file.path, error))?.len();
    let place = FilePlace { file: Opened::Here(opened), path: file.path.clone(), array, region, partial: None };
    if found < place.array.end() { Err(place.too_short(found)) } else { Ok(place) }
}

/// Refuses what is there and no file.
fn check_regular(path: &std::path::Path) -> Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(FileError::NotRegular { path: path.to_owned() }.into()),
        _ => Ok(()),
    }
}
