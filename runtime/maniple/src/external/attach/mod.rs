//! Memory of the program's as the place of a region's values: attached without a copy, used, and detached with what the
//! region holds then.
//!
//! Both are operations in program order. An attachment is like a write of all values, which are in the memory from then
//! on; a mapper may place copies elsewhere, and tasks may change these, so what the memory holds meanwhile is
//! unspecified. A detachment brings the current values to it, if they are elsewhere, and gives it back; the values
//! leave the region with it, which is zero there from then on, as when it was made.

mod array;
mod attached_file;
mod claims;
mod file;
mod file_pieces;
mod handle;
mod held;
mod load;
mod npy;
mod operation;
mod pieces;
mod placing;
mod room;
mod values;

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use maniple_realm::Event;
use maniple_region::{Field, FieldMask, FieldType, FieldValue, Privilege};

use self::handle::{Give, give, give_shared};
use self::operation::FromFile;
use crate::context::Context;
use crate::core::Claim;
use crate::data::regions::Region;
use crate::instances::bound::Bound;
use crate::instances::instance::Backing;
use crate::nodes::replication::Replica;
use crate::operation::lifecycle::Operation;
use crate::results::{Input, Results};
use crate::support::error::Result;

pub use self::attached_file::AttachedFile;
pub use self::file::File;
pub use self::file_pieces::AttachedFilePieces;
pub use self::handle::{Attached, Detached};
pub use self::pieces::{AttachedPieces, DetachedPieces};
pub(crate) use self::values::{FieldMemory, FieldValues};

const ATTACH: &str = "attachment";
const DETACH: &str = "detachment";

/// Data from outside of the runtime.
impl Context {
    /// Makes a vector the place of a field's values in a region, which is a rectangle: in row-major order, from now on.
    /// Nothing is copied, and nothing is waited for. A vector that is longer keeps its rest as it is.
    ///
    /// The values are the region's like any others: tasks use them where they are, or in copies that a mapper wants
    /// elsewhere. What the vector holds is known again when it is [detached](Self::detach).
    ///
    /// ```
    /// use maniple::prelude::*;
    ///
    /// #[derive(Fields)]
    /// struct Cell {
    ///     value: f64,
    /// }
    ///
    /// #[task(leaf)]
    /// fn double(#[writes(value)] cells: Piece<Cell>) {
    ///     cells.points().for_each(|point| cells.value[point] *= 2.0);
    /// }
    ///
    /// let doubled = Runtime::builder().workers(2).build()?.run(async |cx: &Context| {
    ///     let cells = cx.region::<Cell>(3)?;
    ///     let values = cx.attach_vec(&cells, Cell::value, vec![1.0, 2.0, 3.0])?;
    ///     cx.launch(double(&cells));
    ///     cx.detach(values)?.await
    /// })?;
    /// assert_eq!(doubled, [2.0, 4.0, 6.0]);
    /// # Ok::<(), maniple::Error>(())
    /// ```
    ///
    /// In a program that several nodes run, each gives the values of the whole region, and all the same.
    ///
    /// # Errors
    /// [`Error::Attachment`](crate::Error::Attachment) if the vector is too short, the region's points are scattered,
    /// or other memory is attached to some of the values; [`Error::MappedByParent`](crate::Error::MappedByParent) if
    /// the task has some of them mapped; [`Error::PrivilegeNotHeld`](crate::Error::PrivilegeNotHeld),
    /// [`Error::Region`](crate::Error::Region) if the region was destroyed, [`Error::Launch`](crate::Error::Launch) if
    /// the field holds another type. The vector is then dropped.
    pub fn attach_vec<F, T: FieldValue, const D: usize>(
        &self,
        region: &Region<F, D>,
        field: Field<F, T>,
        mut values: Vec<T>,
    ) -> Result<Attached<Vec<T>>> {
        let memory = FieldMemory::of_vec(&mut values);
        // SAFETY: the elements are values of `T`; they stay where they are when the vector moves, and nothing touches
        // them before it is given back.
        unsafe { self.attach(&values_of(region, field), memory, give::<Vec<T>>, values) }
    }

    /// As [`attach_vec`](Self::attach_vec), for values that are to be read only: a slice behind an `Arc`, a file that
    /// is mapped to memory, or anything else that is a slice. A task that may change some of the values gets other
    /// memory, with a copy of those that it needs, and so do all after it that read these.
    ///
    /// Detaching it gives it back as it was, whatever the region holds by then.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use maniple::prelude::*;
    /// # #[derive(Fields)]
    /// # struct Cell { value: f64 }
    /// # #[task(leaf)]
    /// # fn double(#[writes(value)] cells: Piece<Cell>) {
    /// #     cells.points().for_each(|point| cells.value[point] *= 2.0);
    /// # }
    /// # Runtime::builder().workers(1).build()?.run(async |cx: &Context| {
    /// let table: Arc<[f64]> = vec![1.0, 2.0, 3.0].into();
    /// let cells = cx.region::<Cell>(3)?;
    /// let values = cx.attach_read_only(&cells, Cell::value, Arc::clone(&table))?;
    /// cx.launch(double(&cells));
    /// assert_eq!(cx.map_read(&cells, Cell::value).await?.to_vec(), [2.0, 4.0, 6.0]);
    /// assert_eq!(*cx.detach(values)?.await?, [1.0, 2.0, 3.0]);
    /// # Ok(())
    /// # })?;
    /// # Ok::<(), maniple::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`attach_vec`](Self::attach_vec).
    pub fn attach_read_only<F, T: FieldValue, O, const D: usize>(
        &self,
        region: &Region<F, D>,
        field: Field<F, T>,
        values: O,
    ) -> Result<Attached<O>>
    where
        O: AsRef<[T]> + Send + Sync + 'static,
    {
        // Shared, so that it stays where it is, and may be moved while its values are looked at.
        let owner = Arc::new(values);
        let values: &[T] = (*owner).as_ref();
        let bytes = size_of_val(values);
        let base = NonNull::from(values).cast();
        let memory = FieldMemory { base, bytes, backing: Backing::ReadOnly, order: None, home: None };
        // SAFETY: the values are those of a borrow of what the owner does not share, which lasts until that is given
        // back. They are only read.
        unsafe { self.attach(&values_of(region, field), memory, give_shared::<O>, owner) }
    }

    /// As [`attach_vec`](Self::attach_vec), for any memory: `length` values from `base` on. The owner is dropped when
    /// the memory is not needed any more, or given back when it is detached.
    ///
    /// # Safety
    /// The `length` values from `base` on are initialised, and may be read and written by any thread. They stay there,
    /// touched by nothing else, until the owner is dropped or given back.
    ///
    /// # Errors
    /// As [`attach_vec`](Self::attach_vec); and [`Error::Attachment`](crate::Error::Attachment) if the memory is
    /// misaligned, or some of it is attached already.
    pub unsafe fn attach_raw<F, T: FieldValue, O: Send + 'static, const D: usize>(
        &self,
        region: &Region<F, D>,
        field: Field<F, T>,
        base: NonNull<T>,
        length: usize,
        owner: O,
    ) -> Result<Attached<O>> {
        let bytes = length.saturating_mul(size_of::<T>());
        let memory = FieldMemory { base: base.cast(), bytes, backing: Backing::Attached, order: None, home: None };
        // SAFETY: promised by the caller.
        unsafe { self.attach(&values_of(region, field), memory, give::<O>, owner) }
    }

    /// Takes memory back that was attached, at this place in the program: with the values that the region has after all
    /// that was launched before this call. Returns at once; the memory is there when nothing uses it any more. Values
    /// are copied only if they are current nowhere but elsewhere.
    ///
    /// The values leave the region with it: the field is zero in the region from then on, as when the region was made.
    ///
    /// # Errors
    /// [`Error::Attachment`](crate::Error::Attachment) if another task attached it,
    /// [`Error::MappedByParent`](crate::Error::MappedByParent) if the task has some of the values mapped,
    /// [`Error::PrivilegeNotHeld`](crate::Error::PrivilegeNotHeld), or [`Error::Region`](crate::Error::Region) if the
    /// region was destroyed. The memory is then left to the region.
    pub fn detach<M: Send + 'static>(&self, attached: Attached<M>) -> Result<Detached<M>> {
        Ok(self.detach_after(attached, &[])?.0)
    }

    /// The same; what is written then to a file is so after these events. And the operation.
    fn detach_after<M: Send + 'static>(
        &self,
        attached: Attached<M>,
        written_after: &[Event],
    ) -> Result<(Detached<M>, Option<Arc<Operation>>)> {
        let Attached { claim, instance, give, flushes, .. } = attached;
        let state = &self.state;
        let privilege = if flushes && !instance.is_read_only() { Privilege::ReadWrite } else { Privilege::Discard };
        let (region, fields) = (&claim.region, FieldMask::of(claim.field));
        let bound = state.begin(DETACH, region, &fields, privilege)?;
        state.check_attached_here(&claim)?;
        if let Some(replica) = Replica::of(state) {
            match privilege {
                Privilege::ReadWrite => replica.bring(self, region, &fields, privilege)?,
                _ => replica.replace(DETACH, region, &fields, None),
            }
            state.interrupt("a detachment");
        }
        let zeroed = bound.clone();
        let results = state.submit_detachments(vec![(bound, instance)], zeroed, give, written_after)?.remove(0);
        let operation = Results::producers(&[Input::all(Arc::clone(&results))]).here.pop();
        Ok((Detached::new(results), operation))
    }

    /// # Safety
    /// As [`ContextState::place`].
    unsafe fn attach<O: Send + 'static, M>(
        &self,
        values: &FieldValues<'_>,
        memory: FieldMemory,
        give: Give,
        owner: O,
    ) -> Result<Attached<M>> {
        values.check(&memory)?;
        let claimed = self.claim(values)?;
        // SAFETY: promised by the caller.
        unsafe { self.attach_claimed(values, claimed, memory, owner, give, None) }
    }

    /// Claims values for memory, which the task may replace.
    fn claim(&self, values: &FieldValues<'_>) -> Result<Claimed> {
        let (state, fields) = (&self.state, FieldMask::of(values.field));
        let bound = state.begin(ATTACH, values.region, &fields, Privilege::Discard)?;
        let claim = state.claim(values.region, values.field, values.region.space().shape())?;
        Ok(Claimed { bound, claim })
    }

    /// Attaches memory, which has been checked, to values that have been claimed; into which a file is read, if there
    /// is one.
    ///
    /// # Safety
    /// As [`ContextState::place`].
    unsafe fn attach_claimed<O: Send + 'static, M>(
        &self,
        values: &FieldValues<'_>,
        Claimed { bound, claim }: Claimed,
        memory: FieldMemory,
        owner: O,
        give: Give,
        from_file: Option<FromFile>,
    ) -> Result<Attached<M>> {
        let state = &self.state;
        let with = match (Replica::of(state), &from_file) {
            // SAFETY: promised by the caller; nothing uses the memory yet.
            (Some(_), None) => unsafe { values.compared(&memory) },
            _ => None,
        };
        // SAFETY: promised by the caller.
        let instance = unsafe { state.place(values, memory, owner) }?;
        if let Some(replica) = Replica::of(state) {
            replica.replace(ATTACH, values.region, &FieldMask::of(values.field), with);
        }
        let load = from_file.as_ref().and_then(|file| file.load.as_ref());
        let reading = load.map(|load| (Arc::clone(&load.at), Arc::clone(&load.loading)));
        let operation = state.submit_attachment(bound, Arc::clone(&instance), from_file)?;
        if let Some((at, loading)) = reading {
            state.note_reading(&at, &loading, &operation);
        }
        Ok(Attached { claim, instance, give, flushes: true, marker: PhantomData })
    }
}

/// Values claimed for memory that is about to be attached to them.
struct Claimed {
    bound: Bound,
    claim: Arc<Claim>,
}

fn values_of<F, T: FieldValue, const D: usize>(region: &Region<F, D>, field: Field<F, T>) -> FieldValues<'_> {
    FieldValues { region: region.logical(), field: field.id(), ty: FieldType::of::<T>() }
}
