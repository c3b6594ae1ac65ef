//! Memory and files that are attached, and come back.

use std::io::Write as _;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use bytemuck::Pod;
use maniple::{Context, Error, Field, FieldId, File, FileError, Rect, Region, Result};
use maniple_files::Order;
use maniple_files::npy::header_of;
use tempfile::NamedTempFile;

use super::locked;
use crate::oracle::memory_digest;
use crate::value::{Cells, Kind, Stored, Width, Word};

/// Memory that is attached: what detaches it, with its values or not.
pub(super) type Attached = Box<dyn FnOnce(&Context, bool) -> Result<Memory> + Send + Sync>;

/// Memory that comes back, to be looked at any number of times.
#[derive(Clone)]
pub(super) struct Memory {
    coming: Arc<Mutex<Coming>>,
    /// It is written, which may be after all others have forgotten it.
    pub(super) file: Option<Arc<NamedTempFile>>,
}

enum Coming {
    /// The future of the digest, which is not awaited yet.
    Pending(Pin<Box<dyn Future<Output = Result<Word>> + Send>>),
    Here(Box<Result<Word>>),
    /// It is awaited.
    Awaited,
}

impl Memory {
    fn new<M: AsRef<[T]> + Send + 'static, T: Stored>(
        detached: maniple::Detached<M>,
        flush: bool,
        points: usize,
    ) -> Self {
        Self::pending(None, async move {
            let memory = detached.await?;
            let values = &memory.as_ref()[..points];
            Ok(match flush {
                true => memory_digest(values.iter().map(|value| value.word())),
                false => memory_digest(std::iter::once(points as Word)),
            })
        })
    }

    fn pending(file: Option<Arc<NamedTempFile>>, digest: impl Future<Output = Result<Word>> + Send + 'static) -> Self {
        Self { coming: Arc::new(Mutex::new(Coming::Pending(Box::pin(digest)))), file }
    }

    /// The digest of what it holds.
    pub(super) async fn digest(&self) -> Result<Word> {
        let coming = std::mem::replace(&mut *locked(&self.coming), Coming::Awaited);
        let digest = match coming {
            Coming::Pending(pending) => pending.await,
            Coming::Here(digest) => *digest,
            Coming::Awaited => Err(Error::application("two wait for memory")),
        };
        *locked(&self.coming) = Coming::Here(Box::new(digest.clone()));
        digest
    }
}

/// Attaches values to a field.
pub(super) fn attach_values<T: Stored, const D: usize>(
    context: &Context,
    region: &Region<Cells, D>,
    field: FieldId,
    mut values: Vec<T>,
    read_only: bool,
) -> Result<Attached> {
    let (points, field) = (values.len(), Field::<Cells, T>::new(field));
    if read_only {
        let attached = context.attach_read_only(region, field, hardly_aligned(values))?;
        return Ok(Box::new(move |context, _| Ok(Memory::new::<_, T>(context.detach(attached)?, true, points))));
    }
    // More than is needed: the rest is left as it is.
    values.extend_from_within(..points.min(1));
    let attached = context.attach_vec(region, field, hardly_aligned(values))?;
    Ok(Box::new(move |context, flush| {
        let attached = if flush { attached } else { attached.discard() };
        Ok(Memory::new::<_, T>(context.detach(attached)?, flush, points))
    }))
}

/// The values at an address that is no multiple of 32. Mappers ask for instances that are aligned: whether memory which
/// is attached is one of these must follow from the seed, not from where the allocator has room.
fn hardly_aligned<T: Clone>(values: Vec<T>) -> Vec<T> {
    const MOST_TRIES: usize = 100;
    let is_aligned = |values: &Vec<T>| values.as_ptr().addr().is_multiple_of(32);
    // Those that are given up keep their places until another one is found.
    let mut tried = vec![values];
    while size_of::<T>() > 0 && tried.len() < MOST_TRIES && tried.last().is_some_and(is_aligned) {
        tried.extend(tried.last().cloned());
    }
    tried.pop().unwrap_or_default()
}

/// Attaches a `.npy` file with words, which are in row-major order of the points.
pub(super) fn attach_array<const D: usize>(
    context: &Context,
    region: &Region<Cells, D>,
    field: FieldId,
    kind: Kind,
    words: &[Word],
    columns: bool,
) -> Result<Attached> {
    match kind {
        Kind::Long => attach_numbers::<i64, D>(context, region, field, columns, "i8", words),
        Kind::Short => attach_numbers::<u32, D>(context, region, field, columns, "u4", words),
        Kind::Number(Width::I8) => attach_numbers::<i8, D>(context, region, field, columns, "i1", words),
        Kind::Number(Width::U16) => attach_numbers::<u16, D>(context, region, field, columns, "u2", words),
        Kind::Number(Width::I32) => attach_numbers::<i32, D>(context, region, field, columns, "i4", words),
        Kind::Number(Width::U64) => attach_numbers::<u64, D>(context, region, field, columns, "u8", words),
        Kind::Pair | Kind::Trio | Kind::Pointer(_) => Err(Error::application("NumPy has no such numbers")),
    }
}

fn attach_numbers<T: Stored + Pod, const D: usize>(
    context: &Context,
    region: &Region<Cells, D>,
    field: FieldId,
    columns: bool,
    ty: &str,
    words: &[Word],
) -> Result<Attached> {
    let bounds = region.bounds();
    let shape: Vec<u64> =
        (0..D).map(|dimension| if bounds.is_empty() { 0 } else { bounds.extent(dimension) }).collect();
    let order = if columns { Order::Columns } else { Order::Rows };
    let byte_order = if cfg!(target_endian = "big") { '>' } else { '<' };
    let header = header_of(&format!("{byte_order}{ty}"), order, &shape).map_err(Error::application)?;
    // The words of the file, by their numbers in row-major order.
    let mut numbers: Vec<usize> = (0..words.len()).collect();
    if columns {
        let reversed =
            |number: &usize| Rect::<D>::delinear(&bounds, *number as u64).0.into_iter().rev().collect::<Vec<_>>();
        numbers.sort_by_key(reversed);
    }
    let values: Vec<T> = numbers.iter().map(|&number| T::from_word(words[number])).collect();
    let write = || -> std::io::Result<NamedTempFile> {
        let mut file = NamedTempFile::new()?;
        file.write_all(&header)?;
        file.write_all(bytemuck::cast_slice(&values))?;
        Ok(file)
    };
    let file = Arc::new(write().map_err(Error::application)?);
    let attach = |file: File| context.attach_file(region, Field::<Cells, T>::new(field), file.read_write());
    let attached = match attach(File::npy(file.path())) {
        // What reads headers refuses to work on the stack of a simulated thread.
        Err(Error::File(FileError::Npy { .. })) => {
            let raw = File::raw(file.path()).at(header.len() as u64);
            attach(if columns { raw.columns() } else { raw })?
        }
        other => other?,
    };
    let points = words.len();
    Ok(Box::new(move |context, flush| {
        let detached = context.detach_file(if flush { attached } else { attached.discard() })?;
        Ok(Memory::pending(Some(Arc::clone(&file)), async move {
            detached.await?;
            let bytes = std::fs::read(file.path()).map_err(Error::application)?;
            let found = bytes[header.len()..]
                .chunks_exact(size_of::<T>())
                .map(|bytes| bytemuck::pod_read_unaligned::<T>(bytes));
            let mut words = vec![0; points];
            numbers.iter().zip(found).for_each(|(&number, value)| words[number] = value.word());
            Ok(match flush {
                true => memory_digest(words.into_iter()),
                false => memory_digest(std::iter::once(points as Word)),
            })
        }))
    }))
}
