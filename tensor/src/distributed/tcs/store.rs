//! Tensors written to files by tasks.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use maniple::task::LeafCall;
use maniple::{Context, FieldValue, Privilege};
use maniple_files::tcs::load::Pieces;
use maniple_files::tcs::store::{Target, Writer};
use maniple_files::tcs::{Level, Summed, TcsHeader, TcsLevelKind, TcsPart, Width};
use maniple_files::{Order, npy};

use super::arrays::{Array, Arrays, Outcome, Writers};

use crate::distributed::aside::{Aside, UNSHARED, alone, create, finish, wrong};
use crate::distributed::error::DistributedError;
use crate::distributed::modes::is_in_region;
use crate::distributed::pending::Pending;
use crate::distributed::rows::blocks_for;
use crate::distributed::tensor::Tensor;
use crate::element::{ElementType, Scalar};
use crate::format;
use crate::notation::cast;
use crate::with_element;

/// How a tensor was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenTensor {
    /// In how many pieces.
    pub pieces: usize,
    /// The bytes that each node has written.
    pub bytes: Vec<u64>,
}

impl Tensor {
    /// Writes the tensor to a `.tcs` file, in its format: each node writes the pieces that are dealt to it at their
    /// places, in a file beside the one that is asked for, in a folder that all nodes see. When all is written, the
    /// file takes the name; if anything fails before, it is removed, and what had the name stays as it was. Waits until
    /// it is done.
    ///
    /// # Errors
    ///
    /// [`DistributedError::File`] if it can't be written, or there are no such files of the tensor;
    /// [`DistributedError::Runtime`].
    pub fn store<'a>(&'a self, cx: &'a Context, path: &'a Path, width: Width) -> Pending<'a, WrittenTensor> {
        Box::pin(async move { self.store_by(cx, path, width, Writers::default()).await })
    }

    /// The same, by all nodes at once or one after the other.
    ///
    /// # Errors
    ///
    /// As of [`store`](Self::store).
    pub fn store_by<'a>(
        &'a self,
        cx: &'a Context,
        path: &'a Path,
        width: Width,
        writers: Writers,
    ) -> Pending<'a, WrittenTensor> {
        Box::pin(async move {
            let header = self.header(width).map_err(|reason| wrong(path, reason))?;
            self.store_as(cx, path, header, None, writers).await
        })
    }

    /// Writes a dense tensor to a `.npy` file, in the same way: all of its elements, in the order in which it stores
    /// them, which is that of rows or of columns.
    ///
    /// # Errors
    ///
    /// As of [`store`](Self::store).
    pub fn store_npy<'a>(&'a self, cx: &'a Context, path: &'a Path, writers: Writers) -> Pending<'a, WrittenTensor> {
        Box::pin(async move {
            let (format, dimensions) = (self.variable().format(), self.variable().dimensions());
            let shape: Vec<u64> = dimensions.iter().map(|&extent| extent as u64).collect();
            let header = self.header(Width::Eight).and_then(|header| match file_order(format) {
                Some(order) => {
                    let head = npy::little_endian_header(header.number, order, &shape);
                    Ok((header, head.map_err(|error| error.to_string())?))
                }
                None => {
                    let name = self.variable().name();
                    Err(format!("{name} is stored as {format}, and such files have all elements by rows or by columns"))
                }
            });
            let (header, head) = header.map_err(|reason| wrong(path, reason))?;
            self.store_as(cx, path, header, Some(head), writers).await
        })
    }

    /// Writes the arrays of a `.tcs` file, or its values after another head.
    async fn store_as(
        &self,
        cx: &Context,
        path: &Path,
        mut header: TcsHeader,
        head: Option<Vec<u8>>,
        writers: Writers,
    ) -> Result<WrittenTensor, DistributedError> {
        let wrong = |reason: String| wrong(path, reason);
        let values = header.section(TcsPart::Values);
        let moved = head.as_ref().map(|head| (values.offset, head.len() as u64));
        let bytes_of_values = values.length * header.number.size() as u64;
        let bytes = head.as_ref().map_or(header.bytes(), |head| head.len() as u64 + bytes_of_values);
        let of = path.to_owned();
        let number = alone(cx, "create a file", move || create(&of, bytes)).await?.map_err(wrong)?;
        // From here on whatever happens removes the file, unless it gets its name.
        let aside = Aside::new(path, number);
        let count = match writers {
            Writers::Together => blocks_for(cx, bytes as usize).next_multiple_of(cx.nodes()),
            Writers::InTurn => cx.nodes(),
        };
        let arrays = Arrays::new(cx, self, &header, Pieces::equal(&header, count))?;
        let written = Arc::new(AtomicU64::new(0));
        let write = {
            let (path, header, all) = (aside.path.clone(), header.clone(), arrays.all.clone());
            let (pieces, written) = (Arc::clone(&arrays.pieces), Arc::clone(&written));
            move |call: &LeafCall<'_>, piece: usize| {
                let sums = write_piece(call, &path, moved, &header, &all, &|part| pieces.range(part, piece).start)?;
                if let Ok(sums) = &sums {
                    written.fetch_add(sums.iter().map(|(_, bytes)| bytes).sum(), Ordering::Relaxed);
                }
                Ok(sums)
            }
        };
        let sums = arrays.run(cx, "store", &path.display().to_string(), Privilege::Read, writers, write).await;
        let sums = sums.map_err(|error| match error {
            DistributedError::File { name, reason, .. } => DistributedError::File { name, reason, is_input: false },
            other => other,
        })?;
        for (array, sums) in arrays.all.iter().zip(sums) {
            header.set_checksum(array.part, Summed::join(sums));
        }
        let (from, to, bytes) = (aside.path.clone(), path.to_owned(), head.unwrap_or_else(|| header.to_bytes()));
        _ = alone(cx, "name a file", move || finish(&from, &to, &bytes)).await?.map_err(wrong)?;
        aside.keep();
        let bytes = cx.per_node(written.load(Ordering::Relaxed)).all().await?;
        Ok(WrittenTensor { pieces: arrays.pieces.count(), bytes })
    }

    /// The header of the file, without checksums.
    fn header(&self, width: Width) -> Result<TcsHeader, String> {
        let (variable, format) = (self.variable(), self.variable().format());
        if variable.fill() != cast(Scalar::I32(0), variable.element()) {
            let fill = variable.fill();
            return Err(format!("what is not stored is zero in such files, and {fill:?} in {}", variable.name()));
        }
        let is_known = |level: &format::Level| matches!(level, format::Level::Dense | format::Level::Compressed);
        let is_strict = format.properties().iter().all(|level| level.unique && level.ordered);
        if !format.is_plain() || !is_strict || !format.levels().iter().all(is_known) {
            return Err(format!(
                "{} is stored as {format}, and such files have dense and compressed levels of whole dimensions, with coordinates in order and each there once: convert it",
                variable.name()
            ));
        }
        let kind = |level: &format::Level| {
            if *level == format::Level::Compressed { TcsLevelKind::Sparse } else { TcsLevelKind::Dense }
        };
        let modes = format.order().iter().zip(format.levels());
        let levels = modes.map(|(&mode, level)| Level::new(kind(level), mode, variable.dimensions()[mode] as u64));
        let levels: Vec<Level> = levels.collect();
        let counts: Vec<u64> = (0..levels.len()).map(|level| self.positions(level) as u64).collect();
        TcsHeader::new(variable.element(), width, levels, &counts).map_err(|problem| problem.to_string())
    }
}

/// Whether a `.npy` file can have the elements of a tensor as they are stored in a format: see [`Tensor::store_npy`].
#[must_use]
pub fn is_stored_as_npy(format: &format::Format) -> bool {
    file_order(format).is_some()
}

/// The order in which `.npy` files have the elements of a tensor that is stored in a format, without a gap; none if
/// they have not.
fn file_order(format: &format::Format) -> Option<Order> {
    let order = format.order();
    let is_reversed = || order.iter().rev().copied().eq(0..order.len());
    match is_in_region(format) {
        true if order.is_sorted() => Some(Order::Rows),
        true if is_reversed() => Some(Order::Columns),
        _ => None,
    }
}

/// A file whose values are not where the header of a `.tcs` file says: from there to where they are.
struct Moved<'a> {
    file: &'a File,
    by: Option<(u64, u64)>,
}

impl Target for Moved<'_> {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(self.by.map_or(offset, |(from, to)| offset - from + to), bytes)
    }
}

/// Writes a piece of all arrays, from `start` of each on, and waits until it is on the disk.
fn write_piece(
    call: &LeafCall<'_>,
    path: &Path,
    by: Option<(u64, u64)>,
    header: &TcsHeader,
    arrays: &[Array],
    start: &dyn Fn(TcsPart) -> u64,
) -> maniple::Result<Outcome> {
    let file = match OpenOptions::new().write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Err(UNSHARED.to_owned())),
        Err(error) => return Ok(Err(error.to_string())),
    };
    let file = Moved { file: &file, by };
    let mut sums = Vec::new();
    for array in arrays {
        let writer = Writer::new(&file, header, array.part, start(array.part));
        let written = match array.part {
            TcsPart::Values => {
                with_element!(array.element, T => write_array(call, array, writer, Writer::values::<T>)?)
            }
            _ if array.element == ElementType::I32 => write_array(call, array, writer, write_numbers::<i32>)?,
            _ => write_array(call, array, writer, write_numbers::<i64>)?,
        };
        match written {
            Ok(sum) => sums.push((sum.checksum, sum.bytes)),
            Err(error) => return Ok(Err(error.to_string())),
        }
    }
    Ok(file.file.sync_data().map(|()| sums).map_err(|error| error.to_string()))
}

/// Writes a piece of an array, which a task is given, row after row.
fn write_array<'t, T: FieldValue>(
    call: &LeafCall<'_>,
    array: &Array,
    mut writer: Writer<'t>,
    write: impl Fn(&mut Writer<'t>, &[T]) -> io::Result<()>,
) -> maniple::Result<io::Result<Summed>> {
    let mut written = Ok(());
    call.read_rows(array.requirement, array.field, &mut |_, row: &[T]| {
        if written.is_ok() {
            written = write(&mut writer, row);
        }
    })?;
    Ok(written.and_then(|()| writer.finish()))
}

fn write_numbers<N: Copy + Into<i64>>(writer: &mut Writer<'_>, row: &[N]) -> io::Result<()> {
    row.iter().try_for_each(|&number| writer.number(number.into() as u64))
}
