//! One file for the pieces of a partition: each node reads and writes the parts of it that hold its pieces.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytemuck::Pod;
use maniple_realm::{Realm, UserEvent};
use maniple_region::{Field, FieldType, FieldValue};

use super::attached_file::{FilePart, close, store};
use super::file::{Access, File, Role, check_form};
use super::held::{HeldFile, Holding};
use super::load::{FilePlace, Opened};
use super::pieces::AttachedPieces;
use super::values::FieldValues;
use crate::context::Context;
use crate::core::FileClaim;
use crate::data::regions::Partition;
use crate::nodes::replication::Replica;
use crate::support::error::{FileError, Result};

/// A file that is attached to the pieces of a partition: see [`Context::attach_file_pieces`].
///
/// Dropping the handle leaves the values to the region; the file is then never written.
#[must_use = "a file whose handle is dropped is never written"]
pub struct AttachedFilePieces {
    pieces: AttachedPieces<()>,
    at: Arc<HeldFile>,
    /// The claim on the part of the file that is going to be written.
    claim: Option<Arc<FileClaim>>,
}

impl AttachedFilePieces {
    /// The same file, to be detached without being written.
    pub fn discard(self) -> Self {
        let mut pieces = self.pieces.discard();
        pieces.give = close;
        Self { pieces, at: self.at, claim: None }
    }
}

impl fmt::Debug for AttachedFilePieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AttachedFilePieces({:?})", self.pieces)
    }
}

/// Files in pieces.
impl Context {
    /// Makes a file the place of a field's values in the pieces of a partition, which are rectangles apart: as
    /// [`attach_file`](Self::attach_file) for each piece. The file has the values of the region that is partitioned,
    /// and of each piece the bytes are read that hold it, rows of it or columns. In a program that several nodes run,
    /// each reads and writes those of the pieces that the mapper deals to it, as of
    /// [`attach_pieces`](Self::attach_pieces), from a disk that all of them see.
    ///
    /// ```no_run
    /// # use maniple::prelude::*;
    /// # use maniple::File;
    /// # #[derive(Fields)]
    /// # struct Cell { heat: f64 }
    /// # #[task(leaf)]
    /// # fn warm(#[writes(heat)] tile: Piece<Cell, 2>) { tile.points().for_each(|at| tile.heat[at] += 1.0); }
    /// # Runtime::builder().workers(1).build()?.run(async |cx: &Context| {
    /// let cells = cx.region_over::<Cell, 2>(Rect::from_shape([1000, 1000]))?;
    /// let tiles = cells.blocks([250, 250])?;
    /// let file = cx.attach_file_pieces(&tiles, Cell::heat, File::npy("heat.npy").read_write())?;
    /// cx.index_launch(Rect::from_shape([4, 4]), warm(&tiles));
    /// cx.detach_file_pieces(file).await?;
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), maniple::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`attach_file`](Self::attach_file) and [`attach_pieces`](Self::attach_pieces). The file is opened by all
    /// nodes; what is wrong with it on one of them fails what needs the values, on all.
    pub fn attach_file_pieces<F, T: FieldValue + Pod, const D: usize>(
        &self,
        partition: &Partition<F, D>,
        field: Field<F, T>,
        file: File,
    ) -> Result<AttachedFilePieces> {
        let (partition, field, ty) = (partition.logical(), field.id(), FieldType::of::<T>());
        let parent = partition.parent();
        let is_first = Replica::of(&self.state).is_none_or(|replica| replica.rank() == 0);
        let role = if is_first || file.access != Access::Create { Role::Writes } else { Role::WritesLater };
        let values = FieldValues { region: &parent, field, ty };
        let area = parent.space().space().bounds();
        check_form(&file, &values, area)?;
        let Holding { at, claim, earlier } = self.hold(&file, role, &values, area, partition.partitioning().union())?;
        // On one node each piece waits for its own values alone.
        let shared = Replica::of(&self.state).and_then(|_| self.loading(&at, &earlier)).map(Arc::new);
        let make = |_, values: &FieldValues<'_>| {
            let bytes = self.state.check_file(values)?;
            let own = match &shared {
                None => self.loading(&at, &earlier).map(Arc::new),
                Some(shared) => Some(Arc::clone(shared)),
            };
            let FilePart { memory, contents, from_file } = self.state.contents(values, bytes, &at, own.as_ref())?;
            if let (Some(own), None) = (own, &shared) {
                own.end.end_part(Ok(()));
            }
            Ok((memory, contents, Some(from_file)))
        };
        // SAFETY: the bytes are those of a block, zero or what it held before; any are a value of a type that is plain
        // old data. They stay where they are, and nothing but the load, which comes before all uses, touches them.
        let pieces = unsafe { self.attach_each(partition, field, ty, store, make) };
        if let Some(loading) = shared {
            // A node without pieces, or one that refuses them, tells the others.
            let opened = at.found_out();
            loading.end.end_part(pieces.as_ref().map_or_else(|error| Err(error.clone()), |_| opened));
        }
        Ok(AttachedFilePieces { pieces: pieces?, at, claim })
    }

    /// Takes a file back that was attached to pieces, and waits until all nodes have written their parts of it, if it
    /// is written: then it is whole. All nodes wait at the same place in the program.
    ///
    /// # Errors
    /// As [`detach`](Self::detach). [`Error::File`](crate::Error::File) if this node, or another one, cannot write.
    pub async fn detach_file_pieces(&self, attached: AttachedFilePieces) -> Result<()> {
        let AttachedFilePieces { pieces, at, claim } = attached;
        let state = &self.state;
        if claim.is_none() && !at.is_refused() {
            return self.detach_each(pieces)?.await.map(drop);
        }
        let realm = state.core.realm();
        let (before, written) = (state.before_writing(&at), WrittenFile(realm.clone(), realm.user_event()));
        state.note_writing(&at, written.1.event(), None);
        if at.access() == Access::Create {
            let own = at.place().ok().and_then(|place| place.partial.as_ref());
            let own = own.map(|partial| absolute(&partial.path).into_os_string());
            let known: Vec<Option<OsString>> = self.per_node(own).all().await?;
            if let (Ok(FilePlace { file: Opened::Later(path), .. }), Some(made)) =
                (at.place(), known.into_iter().flatten().next())
            {
                path.get_or_init(|| PathBuf::from(made));
            }
        }
        let detached = self.detach_each_after(pieces, &[before])?.await.map(drop);
        // A node without pieces of its own writes none after that.
        let _ = realm.event_future(before).await;
        self.agree(detached.and_then(|()| at.place().map(drop)), &at).await?;
        match at.access() {
            Access::Create => self.agree(at.place().and_then(FilePlace::finish), &at).await,
            _ => Ok(()),
        }
    }

    /// Agrees with all nodes on the outcome of work on a file: it is good if it is good on each.
    async fn agree(&self, own: Result<()>, at: &HeldFile) -> Result<()> {
        let problems = self.per_node(own.as_ref().err().map(ToString::to_string)).all().await?;
        own?;
        let found = problems.into_iter().enumerate().find_map(|(node, problem)| Some((node, problem?)));
        let path = at.path().to_owned();
        found.map_or(Ok(()), |(node, problem)| Err(FileError::OnNode { path, node, problem }.into()))
    }
}

/// The writing of a file, until it is dropped.
struct WrittenFile(Realm, UserEvent);

impl Drop for WrittenFile {
    fn drop(&mut self) {
        self.0.trigger(self.1);
    }
}

/// A path that means the same in another folder.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
