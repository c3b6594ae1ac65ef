//! Files as the places of values: read when they are attached, and written when they are detached, by threads that no task waits for.
//!
//! The values are in memory in between, which is attached as a program's own would be. What reads the file comes before all uses of that memory, and what writes it after all of them, as operations
//! in the order of events: so a task waits for the file if it needs the values, and nothing else does.

use std::any::Any;
use std::fmt;
use std::fs::OpenOptions;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::Arc;

use bytemuck::Pod;
use maniple_realm::memory::Block;
use maniple_region::{Field, FieldType, FieldValue};

use super::handle::{Attached, Detached, Finished, Given, Kept};
use super::load::{Load, Place, system};
use super::placing::{Memory, Values};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::instances::instance::Backing;
use crate::regions::Region;
use crate::replication::Replica;
use crate::value::Value;

/// A file with the values of a field: where they are in it, and what becomes of it. It is read only, unless it is said otherwise.
#[derive(Clone, Debug)]
pub struct File {
    path: PathBuf,
    offset: u64,
    access: Access,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    ReadOnly,
    ReadWrite,
    Create,
}

impl File {
    /// A file with values as they are in memory, in row-major order.
    #[must_use]
    pub fn raw(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), offset: 0, access: Access::ReadOnly }
    }

    /// With the values from this byte on. What comes before stays as it is.
    #[must_use]
    pub fn at(self, offset: u64) -> Self {
        Self { offset, ..self }
    }

    /// The file is written when it is detached.
    #[must_use]
    pub fn read_write(self) -> Self {
        Self { access: Access::ReadWrite, ..self }
    }

    /// The file is made when it is attached, or emptied if it is there, and written when it is detached. The values are zero at first.
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

/// An open file, and the memory with its values.
struct Contents {
    block: Block,
    bytes: usize,
    at: Arc<Place>,
    /// It is written when it is detached.
    is_written: bool,
}

/// Detaches without writing.
fn close(kept: Box<dyn Any + Send>) -> Option<Finished> {
    kept.downcast::<Kept<Contents>>().ok()?.take()?;
    Some(Finished::Now(Value::new(Given::new(()))))
}

/// Detaches, and writes what is to be written.
fn store(kept: Box<dyn Any + Send>) -> Option<Finished> {
    let contents = kept.downcast::<Kept<Contents>>().ok()?.take()?;
    if !contents.is_written {
        return Some(Finished::Now(Value::new(Given::new(()))));
    }
    Some(Finished::Later(Box::new(move || {
        // SAFETY: the block has so many bytes, which were zero at first and then values of a type without padding; the instance that used them is gone.
        let bytes = unsafe { std::slice::from_raw_parts(contents.block.base().as_ptr(), contents.bytes) };
        contents.at.write(bytes)?;
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
    /// let file = cx.attach_file(&cells, Cell::heat, File::raw("heat.bin").read_write())?;
    /// // Tasks that change the heat.
    /// cx.detach_file(file)?.await?;
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), maniple::Error>(())
    /// ```
    ///
    /// In a program that several nodes run, each reads the whole file, and the first one creates and writes it.
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be opened, or is too short; else as [`attach_vec`](Self::attach_vec). If it cannot be read, tasks that
    /// need the values fail with that error.
    pub fn attach_file<F, T: FieldValue + Pod, const D: usize>(
        &self,
        region: &Region<F, D>,
        field: Field<F, T>,
        file: File,
    ) -> Result<AttachedFile> {
        let values = Values { region: region.logical(), field: field.id(), ty: FieldType::of::<T>() };
        let count = usize::try_from(region.volume()).ok();
        let bytes = count.and_then(|count| count.checked_mul(size_of::<T>())).unwrap_or(0);
        values.check(&Memory { base: NonNull::<T>::dangling().cast(), bytes, backing: Backing::Attached })?;
        let claimed = self.claim(&values)?;
        let is_first = Replica::of(&self.state).is_none_or(|replica| replica.rank() == 0);
        // Before the file: one that is to be made is emptied when it is opened.
        let block = Block::zeroed(bytes, align_of::<T>()).map_err(Error::internal)?;
        let at = Arc::new(open((&file, is_first), &values.names().1, bytes as u64)?);
        let memory = Memory { base: block.base(), bytes, backing: Backing::Attached };
        let load = (file.access != Access::Create).then(|| Load { at: Arc::clone(&at), bytes });
        let is_written = file.access != Access::ReadOnly && is_first;
        let contents = Contents { block, bytes, at, is_written };
        // SAFETY: the bytes are the block's, all zero; any are a value of a type that is plain old data. They stay where they are, and nothing but the load, which
        // comes before all uses, touches them.
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

/// Opens a file whose values are a region's, or makes it: on the first node, if it is to be written.
fn open((file, is_first): (&File, bool), region: &str, bytes: u64) -> Result<Place> {
    let (path, offset) = (&file.path, file.offset);
    let region = region.to_owned();
    if file.access == Access::Create && !is_first {
        return Ok(Place { file: None, path: path.clone(), offset, region });
    }
    let creates = file.access == Access::Create;
    let mut options = OpenOptions::new();
    options.read(true).write(file.access != Access::ReadOnly && is_first).create(creates).truncate(creates);
    let failed = |error| system("open", path, offset, error);
    let opened = options.open(path).map_err(failed)?;
    let end = offset.saturating_add(bytes);
    if creates {
        opened.set_len(end).map_err(failed)?;
    }
    let found = opened.metadata().map_err(failed)?.len();
    let place = Place { file: Some(opened), path: path.clone(), offset, region };
    if found < end { Err(place.too_short(end, found)) } else { Ok(place) }
}
