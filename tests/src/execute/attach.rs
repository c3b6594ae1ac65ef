//! Memory that is attached, and comes back.

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use maniple::{Context, Error, Field, FieldId, Region, Result};

use super::locked;
use crate::oracle::memory_digest;
use crate::value::{Cells, Stored, Word};

/// Memory that is attached: what detaches it, with its values or not.
pub(super) type Attached = Box<dyn FnOnce(&Context, bool) -> Result<Memory> + Send + Sync>;

/// Memory that comes back, to be looked at any number of times.
#[derive(Clone)]
pub(super) struct Memory(Arc<Mutex<Coming>>);

enum Coming {
    /// What is awaited for it.
    Pending(Pin<Box<dyn Future<Output = Result<Word>> + Send>>),
    Here(Box<Result<Word>>),
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
            Coming::Here(digest) => *digest,
            Coming::Awaited => Err(Error::application("two wait for memory")),
        };
        *locked(&self.0) = Coming::Here(Box::new(digest.clone()));
        digest
    }
}

/// Attaches values to a field.
pub(super) fn attach_values<T: Stored, const D: usize>(
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
