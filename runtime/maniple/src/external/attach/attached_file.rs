//! Files as the places of values: read when they are attached, and written when they are detached, by threads that no
//! task waits for.
//!
//! The values are in memory in between, which is attached as a program's own would be. What reads the file comes before
//! all uses of that memory, and what writes it after all of them, as operations in the order of events: so a task waits
//! for the file if it needs the values, and nothing else does. What is read of one file and written to it is so in the
//! order of the program, whatever it is attached to.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use bytemuck::Pod;
use maniple_region::{Field, FieldValue};
use maniple_space::AnyRect;

use super::file::{Access, File, Role, check_form};
use super::handle::{Attached, Detached, Finished, GivenResult, Kept};
use super::held::{HeldFile, Holding, Load, Loading};
use super::operation::FromFile;
use super::room::Room;
use super::values::{FieldMemory, FieldValues};
use super::{DETACH, values_of};
use crate::context::{Context, ContextState};
use crate::core::FileClaim;
use crate::data::regions::Region;
use crate::data::value::Value;
use crate::future::Future;
use crate::instances::instance::Backing;
use crate::nodes::replication::Replica;
use crate::results::{Origin, Results, Sources, one_point};
use crate::support::error::{Error, FileError, Result};

/// A file that is attached to the values of a field of a region: see [`Context::attach_file`].
///
/// Dropping the handle leaves the values to the region; the file is then never written.
#[must_use = "a file whose handle is dropped is never written"]
pub struct AttachedFile {
    attached: Attached<()>,
    at: Arc<HeldFile>,
    /// The claim on the part of the file that is going to be written.
    claim: Option<Arc<FileClaim>>,
}

impl AttachedFile {
    /// The same file, to be detached without being written.
    pub fn discard(self) -> Self {
        let mut attached = self.attached.discard();
        attached.give = close;
        Self { attached, at: self.at, claim: None }
    }
}

impl fmt::Debug for AttachedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AttachedFile({:?})", self.attached)
    }
}

/// A piece of an open file, and the memory with its values.
pub(super) struct Contents {
    room: Room,
    bytes: usize,
    piece: AnyRect,
    at: Arc<HeldFile>,
    /// It is written when it is detached.
    pub(super) is_written: bool,
    /// It is all that is written of the file.
    is_whole: bool,
}

/// Detaches without writing.
pub(super) fn close(kept: Box<dyn Any + Send>) -> Option<Finished> {
    kept.downcast::<Kept<Contents>>().ok()?.take()?;
    Some(Finished::Now(Value::new(GivenResult::new(()))))
}

/// Detaches, and writes what is to be written.
pub(super) fn store(kept: Box<dyn Any + Send>) -> Option<Finished> {
    let contents = kept.downcast::<Kept<Contents>>().ok()?.take()?;
    if !contents.is_written {
        return Some(Finished::Now(Value::new(GivenResult::new(()))));
    }
    Some(Finished::Later(Box::new(move || {
        let Contents { room, bytes, piece, at, is_whole, .. } = contents;
        // SAFETY: the block has so many bytes, which were zero at first and then values of a type without padding; the
        // instance that used them is gone.
        let bytes = unsafe { std::slice::from_raw_parts_mut(room.base().as_ptr(), bytes) };
        at.check_in_place()?;
        let place = at.place()?;
        place.write(&piece, bytes)?;
        if is_whole {
            place.finish()?;
        }
        Ok(Value::new(GivenResult::new(())))
    })))
}

impl Context {
    /// Makes a file the place of a field's values in a region, which is a rectangle: as
    /// [`attach_vec`](Self::attach_vec), with the values that are in the file. It is read by threads of its own while
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
    /// In a program that several nodes run, each reads the region's part of the file, and the first one creates and
    /// writes it. For files whose pieces are spread over nodes, see [`attach_file_pieces`](Self::attach_file_pieces).
    ///
    /// # Errors
    /// [`Error::File`] if the file cannot be opened, is too short, its header tells of other values than the field's,
    /// or another attachment is going to write some of what this one is; else as [`attach_vec`](Self::attach_vec). If
    /// the file cannot be read, or there is no room for the values, tasks that need them fail with that error, and so
    /// does the detachment; as they do in a program that several nodes run, on all of them, if one cannot open the
    /// file.
    pub fn attach_file<F, T: FieldValue + Pod, const D: usize>(
        &self,
        region: &Region<F, D>,
        field: Field<F, T>,
        file: File,
    ) -> Result<AttachedFile> {
        let values = values_of(region, field);
        let bytes = self.state.check_file(&values)?;
        let (area, points) = (region.logical().space().space().bounds(), region.logical().space().shape());
        check_form(&file, &values, area)?;
        let claimed = self.claim(&values)?;
        let writes_here = Replica::of(&self.state).is_none_or(|replica| replica.rank() == 0);
        let role = if writes_here { Role::Writes } else { Role::ReadsOnly };
        let Holding { at, claim, earlier } = self.hold(&file, role, &values, area, points)?;
        let loading = self.loading(&at, &earlier).map(Arc::new);
        let part = self.state.contents(&values, bytes, &at, loading.as_ref());
        if let Some(loading) = &loading {
            loading.end.end_part(part.as_ref().map(|_| ()).map_err(Error::clone));
        }
        let mut part = part?;
        part.contents.is_written &= writes_here;
        part.contents.is_whole = true;
        let FilePart { memory, contents, from_file } = part;
        // SAFETY: the bytes are those of a block, zero or what it held before; any are a value of a type that is plain
        // old data. They stay where they are, and nothing but the load, which comes before all uses, touches them.
        let attached = unsafe { self.attach_claimed(&values, claimed, memory, contents, store, Some(from_file)) }?;
        Ok(AttachedFile { attached, at, claim })
    }

    /// Takes a file back that was attached: as [`detach`](Self::detach). If it is not read only, the values that the
    /// region has are written to it; it is done when they are.
    ///
    /// # Errors
    /// As [`detach`](Self::detach). [`Error::File`], where it is awaited, if the file cannot be written: on several
    /// nodes all are told.
    pub fn detach_file(&self, attached: AttachedFile) -> Result<Detached<()>> {
        let AttachedFile { attached, at, claim } = attached;
        let state = &self.state;
        if claim.is_none() && !at.is_refused() {
            return self.detach(attached);
        }
        let (detached, operation) = self.detach_after(attached, &[state.before_writing(&at)])?;
        let detached = match Replica::of(state) {
            None => detached,
            Some(replica) => {
                // It is told by its end alone, as several nodes may have failed.
                let (realm, end) = (state.core.realm(), detached.event());
                let own = Results::new(realm, Origin::BuiltIn(DETACH), one_point(), end, Sources::new());
                detached.of_all(replica.spread(DETACH, &Future::new(own, 0)))
            }
        };
        state.note_writing(&at, detached.event(), operation.as_ref());
        drop(claim);
        Ok(detached)
    }
}

/// A part of a file that is attached to a region, and its memory.
pub(super) struct FilePart {
    pub(super) memory: FieldMemory,
    pub(super) contents: Contents,
    pub(super) from_file: FromFile,
}

impl ContextState {
    /// Refuses values that memory could not be attached to, and gives how many bytes they have.
    pub(super) fn check_file(&self, values: &FieldValues<'_>) -> Result<usize> {
        let bytes = values.region.space().space().volume().checked_mul(values.ty.size as u64);
        let bytes = bytes.and_then(|bytes| isize::try_from(bytes).ok()).ok_or_else(|| {
            let (field, region) = values.names();
            Error::from(FileError::TooLarge { field, region, points: values.region.space().space().volume() })
        })?;
        let base =
            std::ptr::NonNull::new(std::ptr::without_provenance_mut(values.ty.align)).expect("alignments are not 0");
        let (bytes, backing, order, home) = (bytes as usize, Backing::Attached, None, None);
        values.check(&FieldMemory { base, bytes, backing, order, home })?;
        Ok(bytes)
    }

    /// Memory for values, and the load that reads them from a file.
    pub(super) fn contents(
        &self,
        values: &FieldValues<'_>,
        bytes: usize,
        at: &Arc<HeldFile>,
        loading: Option<&Arc<Loading>>,
    ) -> Result<FilePart> {
        let access = at.access();
        let (room, wanted) = self.room(values, bytes, access.is_read())?;
        let piece = values.region.space().space().bounds();
        let (backing, order, home) = (Backing::OfFile, Some(at.order()), Some(wanted.memory()));
        let memory = FieldMemory { base: room.base(), bytes, backing, order, home };
        let load = loading.map(|loading| {
            loading.end.add();
            Load { at: Arc::clone(at), piece, bytes, loading: Arc::clone(loading) }
        });
        let is_written = access != Access::Read;
        let contents = Contents { room, bytes, piece, at: Arc::clone(at), is_written, is_whole: false };
        Ok(FilePart { memory, contents, from_file: FromFile { load, room: wanted } })
    }
}
