//! Memory that is attached, and comes back.

use std::sync::{Arc, Mutex};

use maniple::{Context, Error, Field, FieldId, Region, Result};

use super::statement::{Boxed, Frame};
use super::{Handle, Stop, locked, with_dimension};
use crate::oracle::{attached_word, memory_digest};
use crate::program::{Column, FutureName};
use crate::value::{Cells, Stored, Word};
use crate::with_kind;

/// Memory that is attached: what detaches it, with its values or not.
pub(super) type Attached = Box<dyn FnOnce(&Context, bool) -> Result<Memory> + Send + Sync>;

/// Memory that comes back, to be looked at any number of times.
#[derive(Clone)]
pub(super) struct Memory(Arc<Mutex<Coming>>);

enum Coming {
    /// What is awaited for it.
    Pending(Boxed<'static, Result<Word>>),
    Here(Result<Word>),
    /// It is awaited.
    Awaited,
}

impl Memory {
    fn new<M: AsRef<[T]> + Send + 'static, T: Stored>(
        detached: maniple::Detached<M>,
        (flush, points): (bool, usize),
    ) -> Self {
        let digest = async move {
            let memory = detached.await?;
            let values = &memory.as_ref()[..points];
            Ok(match flush {
                true => memory_digest(values.iter().map(|value| value.word())),
                false => memory_digest(std::iter::once(points as Word)),
            })
        };
        Self(Arc::new(Mutex::new(Coming::Pending(Box::pin(digest)))))
    }

    /// The digest of what it holds.
    pub(super) async fn digest(&self) -> Result<Word> {
        let coming = std::mem::replace(&mut *locked(&self.0), Coming::Awaited);
        let digest = match coming {
            Coming::Pending(pending) => pending.await,
            Coming::Here(digest) => digest,
            Coming::Awaited => Err(Error::application("two wait for memory")),
        };
        *locked(&self.0) = Coming::Here(digest.clone());
        digest
    }
}

impl Frame<'_> {
    pub(super) fn attach(
        &mut self,
        name: FutureName,
        column: Column,
        (seed, read_only): (Word, bool),
    ) -> std::result::Result<Result<()>, Stop> {
        let run = self.run;
        let kind = run.kind(column)?;
        let (dim, id) = (run.dimension(column.place.node)?, run.field(column.place.region, column.field)?);
        let attached = with_kind!(kind, T => with_dimension!(dim, D => {
            let region = run.region::<D>(column.place)?;
            let words = (0..region.volume() as usize).map(|number| attached_word(kind, seed, number));
            let values: Vec<T> = words.map(<T as Stored>::from_word).collect();
            attach_values(self.context, (&region, id), values, read_only)
        }));
        Ok(attached.map(|attached| _ = self.attached.insert(name, attached)))
    }

    pub(super) fn detach(
        &mut self,
        name: FutureName,
        (handle, flush): (FutureName, bool),
    ) -> std::result::Result<Result<()>, Stop> {
        let Some(attached) = self.attached.remove(&handle) else {
            return Err(Stop(Error::application(format!("there is no memory {handle:?}"))));
        };
        Ok(attached(self.context, flush).map(|memory| self.run.names.futures.insert(name, Handle::Memory(memory))))
    }
}

fn attach_values<T: Stored, const D: usize>(
    context: &Context,
    (region, field): (&Region<Cells, D>, FieldId),
    mut values: Vec<T>,
    read_only: bool,
) -> Result<Attached> {
    let (points, field) = (values.len(), Field::<Cells, T>::new(field));
    if read_only {
        let attached = context.attach_read_only(region, field, values)?;
        return Ok(Box::new(move |context, _| Ok(Memory::new::<_, T>(context.detach(attached)?, (true, points)))));
    }
    // More than is needed: the rest is left as it is.
    values.extend_from_within(..points.min(1));
    let attached = context.attach_vec(region, field, values)?;
    Ok(Box::new(move |context, flush| {
        let attached = if flush { attached } else { attached.discard() };
        Ok(Memory::new::<_, T>(context.detach(attached)?, (flush, points)))
    }))
}
