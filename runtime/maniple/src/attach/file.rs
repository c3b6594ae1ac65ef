//! Files as the places of values: read when they are attached, and written when they are detached, by threads that no task waits for.
//!
//! The values are in memory in between, which is attached as a program's own would be. What reads the file comes before all uses of that memory, and what writes it after all of them, as operations
//! in the order of events: so a task waits for the file if it needs the values, and nothing else does.

use std::any::Any;
use std::fmt;
use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use bytemuck::Pod;
use maniple_files::npy::Description;
use maniple_files::tcs::store::Target;
use maniple_region::{Field, FieldValue};
use maniple_space::AnyRect;

use super::array::Array;
use super::handle::{Attached, Detached, Finished, Given, Kept};
use super::load::{Load, Opened, Partial, Place, system};
use super::npy::{Element, unreadable};
use super::placing::{Memory, Values};
use super::room::Room;
use super::values_of;
use crate::context::{Context, ContextState};
use crate::error::{Error, FileError, Result};
use crate::instances::instance::Backing;
use crate::regions::Region;
use crate::replication::Replica;
use crate::value::Value;

/// A file with the values of a field: where they are in it, and what becomes of it. It is read only, unless it is said otherwise.
#[derive(Clone, Debug)]
pub struct File {
    pub(super) path: PathBuf,
    form: Form,
    offset: u64,
    within: Option<AnyRect>,
    by_columns: Option<bool>,
    pub(super) access: Access,
}

/// What is in a file before the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Nothing that is looked at.
    Raw,
    /// A header of NumPy's.
    Npy,
}

/// What becomes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    ReadWrite,
    Write,
    Create,
}

impl File {
    /// A file with values as they are in memory, in row-major order.
    #[must_use]
    pub fn raw(path: impl Into<PathBuf>) -> Self {
        let (path, access) = (path.into(), Access::Read);
        Self { path, form: Form::Raw, offset: 0, within: None, by_columns: None, access }
    }

    /// A `.npy` file, NumPy's form of one array: its header has to say that it has the shape of the region, and the type of the field. Arrays may be stored by rows or by columns,
    /// and in either order of bytes. A file that is [created](Self::create) gets such a header.
    ///
    /// Values are the integers and floats of Rust from `u8` to `f64` that NumPy has too, and complex numbers.
    #[must_use]
    pub fn npy(path: impl Into<PathBuf>) -> Self {
        Self { form: Form::Npy, ..Self::raw(path) }
    }

    /// With the values, or the header before them, from this byte on. What comes before stays as it is, and is zero in a file that is created.
    #[must_use]
    pub fn at(self, offset: u64) -> Self {
        Self { offset, ..self }
    }

    /// The file has the values of all points of this rectangle; those of the region are a part of them. Without, the rectangle is that of the region, or of the region that is
    /// partitioned.
    #[must_use]
    pub fn within(self, bounds: impl Into<AnyRect>) -> Self {
        Self { within: Some(bounds.into()), ..self }
    }

    /// The values are in column-major order, the first coordinate fastest, as Fortran has them. A `.npy` file that says otherwise is refused.
    #[must_use]
    pub fn columns(self) -> Self {
        Self { by_columns: Some(true), ..self }
    }

    /// The values are in row-major order, the last coordinate fastest. That is so for raw files unless it is said otherwise; a `.npy` file that says otherwise is refused.
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

    /// The file is made, with values that are zero at first, and written when it is detached. It takes its place when it is whole, and not before: it is made beside it, under a name of its own that
    /// ends in `.partial`. A file that was there before stays until then, and is left as it was if the new one is not written.
    #[must_use]
    pub fn create(self) -> Self {
        Self { access: Access::Create, ..self }
    }
}

/// A file that is attached to the values of a field of a region: see [`Context::attach_file`].
///
/// Dropping the handle leaves the values to the region; the file is then never written.
#[must_use = "a file whose handle is dropped is never written"]
pub struct AttachedFile(Attached<()>);

impl AttachedFile {
    /// The same file, to be detached without being written.
    pub fn discard(self) -> Self {
        let mut attached = self.0.discard();
        attached.give = close;
        Self(attached)
    }
}

impl fmt::Debug for AttachedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AttachedFile({:?})", self.0)
    }
}

/// A piece of an open file, and the memory with its values.
pub(super) struct Contents {
    room: Room,
    bytes: usize,
    piece: AnyRect,
    at: Arc<Place>,
    /// It is written when it is detached.
    is_written: bool,
    /// It is all that is written of the file.
    is_whole: bool,
}

/// Detaches without writing.
pub(super) fn close(kept: Box<dyn Any + Send>) -> Option<Finished> {
    kept.downcast::<Kept<Contents>>().ok()?.take()?;
    Some(Finished::Now(Value::new(Given::new(()))))
}

/// Detaches, and writes what is to be written.
pub(super) fn store(kept: Box<dyn Any + Send>) -> Option<Finished> {
    let contents = kept.downcast::<Kept<Contents>>().ok()?.take()?;
    if !contents.is_written {
        return Some(Finished::Now(Value::new(Given::new(()))));
    }
    Some(Finished::Later(Box::new(move || {
        let Contents { room, bytes, piece, at, is_whole, .. } = contents;
        // SAFETY: the block has so many bytes, which were zero at first and then values of a type without padding; the instance that used them is gone.
        let bytes = unsafe { std::slice::from_raw_parts_mut(room.base().as_ptr(), bytes) };
        at.write(&piece, bytes)?;
        if is_whole {
            at.finish()?;
        }
        Ok(Value::new(Given::new(())))
    })))
}

impl Context {
    /// Makes a file the place of a field's values in a region, which is a rectangle: as [`attach_vec`](Self::attach_vec), with the values that are in the file. It is read by threads of its own while
    /// the program goes on; tasks that use the values wait for it.
    ///
    /// ```no_run
    /// # use maniple::prelude::*;
    /// # use maniple::File;
    /// # #[derive(Fields)]
    /// # struct Cell { heat: f64 }
    /// # Runtime::builder().workers(1).build()?.run(async |cx: &Context| {
    /// let cells = cx.region_over::<Cell, 2>(Rect::from_shape([1000, 1000]))?;
    /// let file = cx.attach_file(&cells, Cell::heat, File::npy("heat.npy").read_write())?;
    /// // Tasks that change the heat.
    /// cx.detach_file(file)?.await?;
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), maniple::Error>(())
    /// ```
    ///
    /// The values are in memory until the file is detached and written, and count there as those of instances do.
    ///
    /// In a program that several nodes run, each reads the region's part of the file, and the first one creates and writes it. For files whose pieces are spread over nodes, see
    /// [`attach_file_pieces`](Self::attach_file_pieces).
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be opened, is too short, or its header tells of other values than the field's; [`Error::OutOfMemory`] if there is no room for the values now; else as
    /// [`attach_vec`](Self::attach_vec). If the file cannot be read, tasks that need the values fail with that error.
    pub fn attach_file<F, T: FieldValue + Pod, const D: usize>(
        &self,
        region: &Region<F, D>,
        field: Field<F, T>,
        file: File,
    ) -> Result<AttachedFile> {
        let values = values_of(region, field);
        let bytes = self.state.check_file(&values)?;
        let claimed = self.claim(&values)?;
        let is_first = Replica::of(&self.state).is_none_or(|replica| replica.rank() == 0);
        let otherwise = (!is_first).then_some(Opened::Elsewhere);
        let piece = region.logical().space().space().bounds();
        let at = Arc::new(open(&file, (&values, piece), otherwise)?);
        let mut part = self.state.contents((&values, bytes), (&at, file.access))?;
        part.contents.is_written &= is_first;
        part.contents.is_whole = true;
        let FilePart { memory, contents, load } = part;
        // SAFETY: the bytes are those of a block, zero or what it held before; any are a value of a type that is plain old data. They stay where they are, and nothing
        // but the load, which comes before all uses, touches them.
        unsafe { self.attach_claimed(&values, claimed, (memory, contents), (store, load)) }.map(AttachedFile)
    }

    /// Takes a file back that was attached: as [`detach`](Self::detach). If it is not read only, the values that the region has are written to it; it is done when they are.
    ///
    /// # Errors
    /// As [`detach`](Self::detach). [`Error::File`], where it is awaited, if the file cannot be written.
    pub fn detach_file(&self, attached: AttachedFile) -> Result<Detached<()>> {
        self.detach(attached.0)
    }
}

/// What is attached of a file to a region.
pub(super) struct FilePart {
    pub(super) memory: Memory,
    pub(super) contents: Contents,
    pub(super) load: Option<Load>,
}

impl ContextState {
    /// Refuses values that memory could not be attached to, and gives how many bytes they have.
    pub(super) fn check_file(&self, values: &Values<'_>) -> Result<usize> {
        let bytes = values.region.space().space().volume().checked_mul(values.ty.size as u64);
        let bytes = bytes.and_then(|bytes| isize::try_from(bytes).ok()).ok_or_else(|| {
            let (field, region) = values.names();
            Error::from(FileError::TooLarge { field, region, points: values.region.space().space().volume() })
        })?;
        let base =
            std::ptr::NonNull::new(std::ptr::without_provenance_mut(values.ty.align)).expect("alignments are not 0");
        let (bytes, backing, order) = (bytes as usize, Backing::Attached, None);
        values.check(&Memory { base, bytes, backing, order })?;
        Ok(bytes)
    }

    /// Memory for values, and what reads them from a file.
    pub(super) fn contents(
        &self,
        (values, bytes): (&Values<'_>, usize),
        (at, access): (&Arc<Place>, Access),
    ) -> Result<FilePart> {
        let is_read = matches!(access, Access::Read | Access::ReadWrite);
        let room = self.room(values, (bytes, is_read && at.is_here()))?;
        let piece = values.region.space().space().bounds();
        let order = Some(at.array.order());
        let memory = Memory { base: room.base(), bytes, backing: Backing::Attached, order };
        let load = is_read.then(|| Load { at: Arc::clone(at), piece, bytes });
        let is_written = access != Access::Read;
        let contents = Contents { room, bytes, piece, at: Arc::clone(at), is_written, is_whole: false };
        Ok(FilePart { memory, contents, load })
    }
}

/// Opens a file whose values are those of an area. With `otherwise`, another node is the one that makes it, if it is to be made, and writes it.
pub(super) fn open(file: &File, (values, area): (&Values<'_>, AnyRect), otherwise: Option<Opened>) -> Result<Place> {
    let (offset, region) = (file.offset, values.names().1);
    let bounds = file.within.unwrap_or(area);
    if !bounds.contains_rect(&area).unwrap_or(false) {
        let (path, values) = (file.path.clone(), values.names());
        let (area, bounds) = (area.to_string(), bounds.to_string());
        return Err(FileError::NotWithin { path, field: values.0, region: values.1, area, bounds }.into());
    }
    let element = match file.form {
        Form::Raw => None,
        Form::Npy => Some(Element::of(values, &file.path)?),
    };
    let failed = |path: &std::path::Path, error| system("open", path, offset, error);
    let by_columns = file.by_columns.unwrap_or(false);
    let raw = Array { start: offset, bounds, by_columns, size: values.ty.size, swapped: 1 };
    if file.access == Access::Create {
        let (header, array) = match element {
            None => (Vec::new(), raw),
            Some(element) => element.header((values, &file.path), (offset, bounds, by_columns))?,
        };
        if let Some(opened) = otherwise {
            return Ok(Place { file: opened, path: file.path.clone(), array, region, partial: None });
        }
        // What is renamed takes the place of anything.
        check_regular(&file.path)?;
        let (partial, opened) =
            Partial::create(&file.path).map_err(|error| system("create", &file.path, offset, error))?;
        let path = partial.path.clone();
        opened.set_len(array.end()).map_err(|error| failed(&path, error))?;
        Target::write_at(&opened, offset, &header).map_err(|error| failed(&path, error))?;
        return Ok(Place { file: Opened::Here(opened), path, array, region, partial: Some(partial) });
    }
    let is_written = file.access != Access::Read && !matches!(otherwise, Some(Opened::Elsewhere));
    // To open a pipe is to wait for its other end.
    check_regular(&file.path)?;
    let mut opened =
        OpenOptions::new().read(true).write(is_written).open(&file.path).map_err(|error| failed(&file.path, error))?;
    let array = match element {
        None => raw,
        Some(element) => {
            opened.seek(SeekFrom::Start(offset)).map_err(|error| failed(&file.path, error))?;
            // A handful of reads otherwise.
            let mut buffered = std::io::BufReader::new(Read::by_ref(&mut opened));
            let description = Description::read(&mut buffered).map_err(|error| unreadable(&file.path, &error))?;
            element.check((values, &file.path), (&description, offset), (bounds, file.by_columns))?
        }
    };
    let found = opened.metadata().map_err(|error| failed(&file.path, error))?.len();
    let place = Place { file: Opened::Here(opened), path: file.path.clone(), array, region, partial: None };
    if found < place.array.end() { Err(place.too_short(found)) } else { Ok(place) }
}

/// Refuses what is there and no file.
fn check_regular(path: &std::path::Path) -> Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(FileError::NotRegular { path: path.to_owned() }.into()),
        _ => Ok(()),
    }
}

/// A file that another node makes, and whose name it tells when it is to be written.
pub(super) fn made_elsewhere() -> Opened {
    Opened::Later(OnceLock::new())
}
