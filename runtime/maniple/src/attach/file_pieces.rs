//! One file for the pieces of a partition: each node reads and writes the parts of it that hold its pieces.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use bytemuck::Pod;
use maniple_region::{Field, FieldType, FieldValue};

use super::file::{Access, File, FilePart, close, made_elsewhere, open, store};
use super::load::{Opened, Place};
use super::pieces::AttachedPieces;
use super::placing::Values;
use crate::context::Context;
use crate::error::{FileError, Result};
use crate::regions::Partition;
use crate::replication::Replica;

/// A file that is attached to the pieces of a partition: see [`Context::attach_file_pieces`].
///
/// Dropping the handle leaves the values to the region; the file is then never written.
#[must_use = "a file whose handle is dropped is never written"]
pub struct AttachedFilePieces {
    pieces: AttachedPieces<()>,
    at: Arc<Place>,
    access: Access,
}

impl AttachedFilePieces {
    /// The same file, to be detached without being written.
    pub fn discard(self) -> Self {
        let mut pieces = self.pieces.discard();
        pieces.give = close;
        Self { pieces, access: Access::Read, ..self }
    }
}

impl fmt::Debug for AttachedFilePieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AttachedFilePieces({:?})", self.pieces)
    }
}

/// Files in pieces.
impl Context {
    /// Makes a file the place of a field's values in the pieces of a partition, which are rectangles apart: as [`attach_file`](Self::attach_file) for each piece. The file has the values of the
    /// region that is partitioned, and of each piece the bytes are read that hold it, rows of it or columns. In a program that several nodes run, each reads and writes those of the pieces
    /// that the mapper deals to it, as of [`attach_pieces`](Self::attach_pieces), from a disk that all of them see.
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
    /// As [`attach_file`](Self::attach_file) and [`attach_pieces`](Self::attach_pieces).
    pub fn attach_file_pieces<F, T: FieldValue + Pod, const D: usize>(
        &self,
        partition: &Partition<F, D>,
        field: Field<F, T>,
        file: File,
    ) -> Result<AttachedFilePieces> {
        let (partition, field, ty) = (partition.logical(), field.id(), FieldType::of::<T>());
        let parent = partition.parent();
        let is_first = Replica::of(&self.state).is_none_or(|replica| replica.rank() == 0);
        let otherwise = (!is_first && file.access == Access::Create).then(made_elsewhere);
        let values = Values { region: &parent, field, ty };
        let at = Arc::new(open(&file, (&values, parent.space().space().bounds()), otherwise)?);
        let make = |_, values: &Values<'_>| {
            let bytes = self.state.check_file(values)?;
            let FilePart { memory, contents, load } = self.state.contents((values, bytes), (&at, file.access))?;
            Ok((memory, contents, load))
        };
        // SAFETY: the bytes are those of a block, zero or what it held before; any are a value of a type that is plain old data. They stay where they are, and nothing but the load, which
        // comes before all uses, touches them.
        let pieces = unsafe { self.attach_each(partition, (field, ty), store, make) }?;
        Ok(AttachedFilePieces { pieces, at, access: file.access })
    }

    /// Takes a file back that was attached to pieces, and waits until all nodes have written their parts of it, if it is written: then it is whole. All nodes wait at the same place in the program.
    ///
    /// # Errors
    /// As [`detach`](Self::detach). [`Error::File`](crate::Error::File) if this node, or another one, cannot write.
    pub async fn detach_file_pieces(&self, attached: AttachedFilePieces) -> Result<()> {
        let AttachedFilePieces { pieces, at, access } = attached;
        if access == Access::Create {
            let own = at.partial.as_ref().map(|partial| partial.path.clone().into_os_string());
            let known: Vec<Option<OsString>> = self.per_node(own).all().await?;
            if let (Opened::Later(path), Some(made)) = (&at.file, known.into_iter().flatten().next()) {
                path.get_or_init(|| PathBuf::from(made));
            }
        }
        let detached = self.detach_each(pieces)?.await.map(drop);
        if access == Access::Read {
            return detached;
        }
        self.agree(detached, &at).await?;
        match access {
            Access::Create => self.agree(at.finish(), &at).await,
            _ => Ok(()),
        }
    }

    /// What has become of a file on all nodes: it is well if it is on each.
    async fn agree(&self, own: Result<()>, at: &Place) -> Result<()> {
        let problems = self.per_node(own.as_ref().err().map(ToString::to_string)).all().await?;
        own?;
        let found = problems.into_iter().enumerate().find_map(|(node, problem)| Some((node, problem?)));
        found.map_or(Ok(()), |(node, problem)| Err(FileError::OnNode { path: at.path.clone(), node, problem }.into()))
    }
}
